/* A header as small as it can be. IBV_NOT_HERE is only in a comment. */
#include <infiniband/verbs_api.h>

enum {
	IBV_LAYER_A,
	IBV_LAYER_B, /* and a comment, with a comma */
};

enum ibv_color {
	IBV_COLOR_RED,
	IBV_COLOR_GREEN = 5,
	IBV_COLOR_BLUE,
	IBV_COLOR_RESERVED = 1 << 3,
};

enum ibv_wish {
	IBV_WISH_FAST	= 1 << 0,
	IBV_WISH_CHEAP	= 1 << 1, // and another
	IBV_WISH_GOOD	= 1ULL << 40,
	IBV_WISH_ALL	= IBV_WISH_FAST | IBV_WISH_CHEAP | IBV_WISH_GOOD,
};
