enum { GV_WISH_GOOD = 1ULL << 40, GV_WISH_NEWER = 1ULL << 50 };
int gv_wait(void) { return IBV_ADVICE_WAIT; /* not IBV_LAYER_B */ }
