/* Posting through ibv_wr_*. */
#ifndef GV_SHIM_WR_H
#define GV_SHIM_WR_H

#include "shim.h"

/*
 * Posts wr[0..n), laid out as for ibv_post_send, in one critical section: all
 * or none. A FLUSH has its length where bind_mw.mw is, and its placement and
 * selectivity where bind_mw.rkey is, one byte each.
 */
struct gv_posted gv_wr_post(struct ibv_qp_ex *qp, struct ibv_send_wr *wr, int n);

#endif
