package ibverbs

// MR is a memory region: memory that a device may read and write.
//
// Its memory is the device's from the moment a work request that names it is
// posted until that work request's completion has been polled, and at any time
// where a peer has its RKey. It is safe for concurrent use; the memory is as
// safe as any shared memory.
type MR struct {
	handle
	pd         *PD
	mr         *cMR
	buf        *buffer
	addr       uint64
	length     int
	lkey, rkey uint32
}

// AllocMR allocates and registers size bytes: mmap(2) and ibv_reg_mr(3). The
// memory is zeroed, page-aligned and outside of Go's heap. Close frees it: no
// slice of it may be used after that.
//
// ENOMEM means RLIMIT_MEMLOCK more often than memory: the error shows it.
func (pd *PD) AllocMR(size int, access Access, opts BufferOptions) (*MR, error) {
	buf, err := mapBuffer(size, opts)
	if err != nil {
		return nil, wrap("mmap", pd.object, err)
	}
	return pd.regMR(buf, access)
}

// RegMR registers a caller's slice: ibv_reg_mr(3). The slice is pinned until
// Close: it neither moves nor is collected. It may be Go memory or mapped
// memory, which must stay mapped.
//
// Registration covers whole pages, and Go's heap shares its pages with other
// objects: prefer AllocMR, above all for memory that a peer may write.
func (pd *PD) RegMR(buf []byte, access Access) (*MR, error) {
	b, err := pinBuffer(buf)
	if err != nil {
		return nil, wrap("ibv_reg_mr", pd.object, err)
	}
	return pd.regMR(b, access)
}

// regMR takes over buf: it frees it where registration fails.
func (pd *PD) regMR(buf *buffer, access Access) (*MR, error) {
	mr := &MR{pd: pd, buf: buf, addr: uint64(buf.addr()), length: len(buf.data)}
	if err := mr.register(access); err != nil {
		buf.free()
		return nil, wrap("ibv_reg_mr", pd.object, err)
	}
	watch(mr, &mr.handle)
	return mr, nil
}

func (mr *MR) register(access Access) error {
	if err := mr.adopt("MR", &mr.pd.handle); err != nil {
		return err
	}
	c, err := regMR(mr.pd.pd, mr.buf.addr(), mr.length, access)
	if err != nil {
		mr.disown()
		return regHint(err, mr.length, access)
	}
	var number uint32
	mr.mr = c
	mr.lkey, mr.rkey, number = mrKeys(c)
	mr.named("%s/mr%d", mr.pd.object, number)
	return nil
}

// Bytes is the memory; nil after Close.
func (mr *MR) Bytes() []byte {
	if mr.acquire() != nil {
		return nil
	}
	defer mr.release()
	return mr.buf.data
}

// Addr is the address of the first byte, which a peer names as RemoteAddr.
func (mr *MR) Addr() uint64 { return mr.addr }

// Len is the region's length in bytes.
func (mr *MR) Len() int { return mr.length }

// LKey is the key of local work requests.
func (mr *MR) LKey() uint32 { return mr.lkey }

// RKey is the key that a peer needs for READ, WRITE and atomics. It is secret
// only in so far as 32 bits are.
func (mr *MR) RKey() uint32 { return mr.rkey }

// PD is the PD that the region belongs to.
func (mr *MR) PD() *PD { return mr.pd }

// SGE names length bytes from off on in a work request. Whether they lie
// within the region is checked by the device: if not, the work request ends
// with WCStatusLocProtErr or another local error.
func (mr *MR) SGE(off, length int) SGE {
	return SGE{Addr: mr.addr + uint64(off), Length: uint32(length), LKey: mr.lkey}
}

// Close deregisters the memory, and frees or unpins it: ibv_dereg_mr(3). It
// fails with EBUSY while a memory window is bound to it, and is nil when
// called again. Close QPs whose work requests name the region, or poll those
// work requests' completions, first.
func (mr *MR) Close() error {
	return mr.close("ibv_dereg_mr", nil, func() error {
		if err := deregMR(mr.mr); err != nil {
			return err
		}
		return mr.buf.free()
	})
}
