#include <infiniband/kernel.h>

#define ibv_advice		ib_uverbs_advice
#define IBV_ADVICE_WAIT		IB_UVERBS_ADVICE_WAIT
