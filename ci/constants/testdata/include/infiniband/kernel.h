enum ib_uverbs_advice { IB_UVERBS_ADVICE_WAIT = 7 };
