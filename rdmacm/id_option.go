package rdmacm

// SetTOS sets the type of service of the connection's packets, as IP_TOS
// would (RDMA_OPTION_ID_TOS, rdma_set_option(3)). Call it before ResolveAddr.
func (id *ID) SetTOS(tos uint8) error {
	return id.setOption(optTOS, int(tos), 1)
}

// SetReuseAddr lets the ID bind to a port that another ID has bound
// (RDMA_OPTION_ID_REUSEADDR).
func (id *ID) SetReuseAddr(on bool) error {
	return id.setOption(optReuseAddr, boolInt(on), 4)
}

// SetAFOnly keeps an ID that is bound to the IPv6 wildcard from taking IPv4
// requests (RDMA_OPTION_ID_AFONLY). Call it before BindAddr.
func (id *ID) SetAFOnly(on bool) error {
	return id.setOption(optAFOnly, boolInt(on), 4)
}

// SetAckTimeout sets the QP's acknowledgement timeout to 4.096 us * 2^t, with
// t from 1 to 31; 0 means for ever (RDMA_OPTION_ID_ACK_TIMEOUT). Call it before
// Connect or Accept. iWARP has none: TCP sees to it.
func (id *ID) SetAckTimeout(t uint8) error {
	return id.setOption(optAckTimeout, int(t), 1)
}

// SetMinRNRTimer sets how long a sender waits that found no receive posted
// here: 1 is 0.01 ms, 12 is 0.64 ms, 31 is 491.52 ms, and 0 the longest,
// 655.36 ms. Unset it is 12. It applies when the QP is connected.
func (id *ID) SetMinRNRTimer(t uint8) { id.rnrTimer.Store(uint32(t & 31)) }

func (id *ID) setOption(opt, value, size int) error {
	return id.call("rdma_set_option", func() error {
		return cSetOption(id.c, opt, value, size)
	})
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
