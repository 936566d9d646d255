enum { GV_WISH_ALL = 3 };
