package ibverbs

// SGE names memory of a work request, laid out as struct ibv_sge. MR.SGE
// makes one.
type SGE struct {
	Addr   uint64
	Length uint32 // bytes; 0 means 2^31 to some devices: leave the SGE out instead
	LKey   uint32
}

// SendWR is a work request for a send queue (struct ibv_send_wr). PostSend
// copies it, SGList and Inline; the memory that SGList names is the device's
// until the work request's completion, or a later one's of the same QP, has
// been polled.
type SendWR struct {
	WRID   uint64 // comes back in the completion
	Opcode WROpcode
	Flags  SendFlags
	SGList []SGE // what to send or write, or where a READ or an atomic puts what it gets

	// Inline is sent in place of SGList when it is not nil: its bytes are
	// copied by PostSend, and need no registration. At most
	// QPCap.MaxInlineData bytes; not for a READ or an atomic. The flag
	// SendInline does the same for what SGList names. WRAtomicWrite takes its
	// 8 bytes from here, whatever MaxInlineData is.
	Inline []byte

	ImmData        uint32 // host byte order; for the opcodes WithImm
	InvalidateRKey uint32 // for WRSendWithInv and WRLocalInv

	RemoteAddr uint64 // WRITE, READ, FLUSH and atomics, whose address is a multiple of 8
	RKey       uint32 // likewise

	// UD QPs, whose every work request needs an AH: where the message goes. See
	// AH for how long it must stay open.
	AH         *AH
	RemoteQPN  uint32 // 24 bits; McastQPN for a multicast group
	RemoteQKey uint32 // the receiving QP's; if bit 31 is set, the own QP's is sent instead (not by rxe)

	// Atomics work on 8 bytes as on a number of the remote host's byte order;
	// what was there before goes to SGList, 8 bytes long, in that of the local
	// host.
	CompareAdd uint64 // the value to compare with or to add
	Swap       uint64 // ATOMIC_CMP_AND_SWP: the new value

	Bind       *MWBind    // for WRBindMW
	RemoteSRQN uint32     // XRC_SEND QPs: the SRQ that receives (ibv_get_srq_num(3))
	TSO        *TSOHeader // for WRTSO
	Flush      *Flush     // for WRFlush
}

// TSOHeader is what a WRTSO puts before each segment of its data.
type TSOHeader struct {
	Header []byte // all headers down to TCP's; at most QPInitAttr.MaxTSOHeader bytes, copied by PostSend
	MSS    uint16 // bytes of data in a segment
}

// Flush says what a WRFlush waits for: earlier writes of the same QP to
// RemoteAddr, or to all of the region with RKey, are placed when it completes.
type Flush struct {
	Length      uint64 // bytes from RemoteAddr on; FlushRange only
	Placement   FlushPlacement
	Selectivity FlushSelectivity
}

// RecvWR is a work request for a receive queue (struct ibv_recv_wr). The
// memory that SGList names is the device's until the completion has been
// polled.
type RecvWR struct {
	WRID   uint64 // comes back in the completion
	SGList []SGE
}
