package ibverbs_test

import (
	"errors"
	"math"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
)

// What neither driver has says so.
func TestNoSuchMemory(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		pd := verbstest.PD(t, target.Dev)
		_, err := pd.AllocNullMR()
		refused(t, "null region", err, syscall.EOPNOTSUPP, "ibv_alloc_null_mr")
		fd := verbstest.Must[int](t)(unix.MemfdCreate("goverbs", unix.MFD_CLOEXEC))
		defer unix.Close(fd)
		_, err = pd.RegDMABufMR(fd, 0, 4096, 0, verbstest.AllAccess)
		refused(t, "dma-buf", err, syscall.EOPNOTSUPP, "ibv_reg_dmabuf_mr")
		_, err = target.Dev.AllocDM(4096, ibverbs.DMOptions{})
		refused(t, "device memory", err, syscall.EOPNOTSUPP, "ibv_alloc_dm")
		_, err = target.Dev.ImportDM(1, 4096)
		refused(t, "imported device memory", err, syscall.EOPNOTSUPP, "ibv_import_dm")
		_, err = target.Dev.AllocTD()
		refused(t, "thread domain", err, syscall.EOPNOTSUPP, "ibv_alloc_td")
		_, err = pd.AllocParentDomain(nil)
		refused(t, "parent domain", err, syscall.EOPNOTSUPP, "ibv_alloc_parent_domain")
		_, err = target.Dev.AllocDMAH(ibverbs.DMAHInitAttr{})
		refused(t, "DMA handle", err, errors.ErrUnsupported, "ibv_alloc_dmah")
		verbstest.Refused(t, target.Dev, "null regions, dma-bufs, device memory, domains, DMA handles")
	})
}

func TestMemoryErrors(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		pd := verbstest.PD(t, target.Dev)
		other := verbstest.Must[*ibverbs.Device](t)(ibverbs.Open(target.Dev.Name()))
		verbstest.Close(t, other)
		dmabuf := func(fd int, offset uint64, length int, iova uint64) error {
			_, err := pd.RegDMABufMR(fd, offset, length, iova, 0)
			return err
		}
		dm := func(length int) error { _, err := target.Dev.AllocDM(length, ibverbs.DMOptions{}); return err }
		imported := func(length int) error { _, err := target.Dev.ImportDM(1, length); return err }
		dmMR := func(dm *ibverbs.DM) error { _, err := pd.RegDMMR(dm, 0, 1, 0); return err }
		ex := func(attr ibverbs.MRInitAttr) error { _, err := pd.RegMREx(attr); return err }
		buf := func(size int) error { _, err := pd.AllocBuf(size); return err }
		bufMR := func(b *ibverbs.Buf) error { _, err := pd.RegBufMR(b, 0, 1, 0); return err }
		for _, tc := range []struct {
			name string
			err  error
			is   error
			word string
		}{
			{"dma-buf of no descriptor", dmabuf(-1, 0, 1, 0), syscall.EBADF, "-1"},
			{"dma-buf of a huge descriptor", dmabuf(1<<32, 0, 1, 0), syscall.EBADF, "descriptor"},
			{"dma-buf of no length", dmabuf(0, 0, 0, 0), syscall.EINVAL, "at least one byte"},
			{"dma-buf of negative length", dmabuf(0, 0, -1, 0), syscall.EINVAL, "at least one byte"},
			{"dma-buf's offset overflows", dmabuf(0, math.MaxUint64, 2, 0), syscall.EINVAL, "offset"},
			{"dma-buf's iova overflows", dmabuf(0, 0, 2, math.MaxUint64), syscall.EINVAL, "iova"},
			{"device memory of no length", dm(0), syscall.EINVAL, "at least one byte"},
			{"device memory of negative length", dm(-1), syscall.EINVAL, "at least one byte"},
			{"imported device memory of no length", imported(0), syscall.EINVAL, "at least one byte"},
			{"region of no device memory", dmMR(nil), syscall.EINVAL, "no device memory"},
			{"region of another device's memory", dmMR(&ibverbs.DM{}), syscall.EINVAL, "another device"},
			{"nothing to register", ex(ibverbs.MRInitAttr{}), syscall.EINVAL, "Buf and DMABuf"},
			{"too much to register", ex(ibverbs.MRInitAttr{Buf: make([]byte, 1), DMABuf: &ibverbs.DMABuf{}}), syscall.EINVAL, "Buf and DMABuf"},
			{"an empty slice to register", ex(ibverbs.MRInitAttr{Buf: []byte{}}), syscall.EINVAL, "at least one byte"},
			{"a dma-buf of no length to register", ex(ibverbs.MRInitAttr{DMABuf: &ibverbs.DMABuf{}}), syscall.EINVAL, "at least one byte"},
			{"another device's DMA handle", ex(ibverbs.MRInitAttr{Buf: make([]byte, 1), DMAH: &ibverbs.DMAH{}}), syscall.EINVAL, "another device"},
			{"buffer of no size", buf(0), syscall.EINVAL, "at least one byte"},
			{"buffer of negative size", buf(-1), syscall.EINVAL, "at least one byte"},
			{"region of no buffer", bufMR(nil), syscall.EINVAL, "no buffer"},
			{"region of another PD's buffer", bufMR(&ibverbs.Buf{}), syscall.EINVAL, "another PD"},
			{"advice on nothing", pd.AdviseMR(ibverbs.MRAdvicePrefetch, 0, nil), syscall.EINVAL, "no parts"},
			{"advice on what is not there", pd.AdviseMR(ibverbs.MRAdvicePrefetch, 0, []ibverbs.SGE{verbstest.MR(t, pd, 1).SGE(0, 2)}), syscall.EINVAL, "outside"},
			{"another device's thread domain", func() error { _, err := pd.AllocParentDomain(&ibverbs.TD{}); return err }(), syscall.EINVAL, "another device"},
		} {
			refused(t, tc.name, tc.err, tc.is, tc.word)
		}
	})
}

// Every call on a PD and a device that are closed.
func TestMemoryClosed(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		dev := verbstest.Must[*ibverbs.Device](t)(ibverbs.Open(target.Dev.Name()))
		pd := verbstest.Must[*ibverbs.PD](t)(dev.AllocPD())
		mr := verbstest.Must[*ibverbs.MR](t)(pd.AllocMR(64, verbstest.AllAccess, ibverbs.BufferOptions{}))
		sge := mr.SGE(0, 1)
		for _, object := range []interface{ Close() error }{mr, pd, dev} {
			if err := object.Close(); err != nil {
				t.Fatal(err)
			}
		}
		errs := make(map[string]error)
		_, errs["AllocMR"] = pd.AllocMR(1, 0, ibverbs.BufferOptions{NUMANodes: []int{0}})
		_, errs["RegMRIOVA"] = pd.RegMRIOVA(make([]byte, 1), 0, 0)
		_, errs["AllocNullMR"] = pd.AllocNullMR()
		_, errs["RegImplicitODP"] = pd.RegImplicitODP(0)
		_, errs["RegDMABufMR"] = pd.RegDMABufMR(0, 0, 1, 0, 0)
		_, errs["RegMREx"] = pd.RegMREx(ibverbs.MRInitAttr{Buf: make([]byte, 1)})
		_, errs["AllocBuf"] = pd.AllocBuf(1)
		_, errs["AllocMW"] = pd.AllocMW(ibverbs.MWType2)
		_, errs["AllocParentDomain"] = pd.AllocParentDomain(nil)
		errs["AdviseMR"] = pd.AdviseMR(ibverbs.MRAdvicePrefetch, 0, []ibverbs.SGE{sge})
		errs["Rereg"] = mr.Rereg(ibverbs.ReregMRAccess, ibverbs.ReregMRAttr{})
		_, errs["AllocDM"] = dev.AllocDM(1, ibverbs.DMOptions{})
		_, errs["ImportDM"] = dev.ImportDM(1, 1)
		_, errs["AllocTD"] = dev.AllocTD()
		_, errs["AllocDMAH"] = dev.AllocDMAH(ibverbs.DMAHInitAttr{})
		for name, err := range errs {
			refused(t, name+" after Close", err, os.ErrClosed, "")
		}
	})
}

// Memory that is paged in on demand works, or is refused in a way that says
// that the device has no such thing.
func TestOnDemand(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		p := newPipe(t, target, 8192, 0)
		mr, err := p.b.PD.AllocMR(8192, verbstest.AllAccess|ibverbs.AccessOnDemand, ibverbs.BufferOptions{})
		if !ibverbs.HasODP(target.Dev) {
			refused(t, "on demand", err, errors.ErrUnsupported, "ibv_reg_mr")
			_, err = p.b.PD.RegImplicitODP(verbstest.AllAccess)
			refused(t, "all memory on demand", err, errors.ErrUnsupported, "ibv_reg_mr")
			verbstest.Refused(t, target.Dev, "regions on demand (ODP)")
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		verbstest.Close(t, mr)
		p.dst = mr
		verbstest.Pattern(p.src.Bytes(), 4)
		verbstest.Post(t, p.a.QP, p.remote(ibverbs.SendWR{Opcode: ibverbs.WRRDMAWrite, SGList: []ibverbs.SGE{p.src.SGE(0, 8192)}}))
		verbstest.Complete(t, p.a.CQ, 1)
		p.same(t)
		verbstest.Works(t, target.Dev, "regions on demand (ODP)")
	})
}

// Advice on memory that is not paged in on demand is refused, by a provider
// that has no such call or by the kernel.
func TestAdvise(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		pd := verbstest.PD(t, target.Dev)
		mr := verbstest.MR(t, pd, 8192)
		for _, advice := range []ibverbs.MRAdvice{ibverbs.MRAdvicePrefetch, ibverbs.MRAdvicePrefetchWrite, ibverbs.MRAdvicePrefetchNoFault} {
			for _, flags := range []ibverbs.MRAdviseFlags{0, ibverbs.MRAdviseFlush} {
				err := pd.AdviseMR(advice, flags, []ibverbs.SGE{mr.SGE(0, 8192)})
				refused(t, advice.String()+" "+flags.String(), err, errors.ErrUnsupported, "ibv_advise_mr")
			}
		}
		verbstest.Refused(t, target.Dev, "advice on regions")
	})
}

// A Rereg that provider or driver do not have leaves the region as it was,
// though libibverbs says that it is lost.
func TestReregRefused(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		p := newPipe(t, target, 4096, 0)
		pd := verbstest.Must[*ibverbs.PD](t)(target.Dev.AllocPD())
		for _, tc := range []struct {
			change ibverbs.ReregMRFlags
			attr   ibverbs.ReregMRAttr
		}{
			{ibverbs.ReregMRAccess, ibverbs.ReregMRAttr{Access: ibverbs.AccessLocalWrite}},
			{ibverbs.ReregMRPD, ibverbs.ReregMRAttr{PD: pd}},
			{ibverbs.ReregMRTranslation, ibverbs.ReregMRAttr{Buf: make([]byte, 100)}},
		} {
			err := p.dst.Rereg(tc.change, tc.attr)
			refused(t, tc.change.String(), err, errors.ErrUnsupported, "ERR_INPUT: the region is as it was")
			var re *ibverbs.ReregMRError
			if !errors.As(err, &re) || re.Lost() || re.Changed() {
				t.Errorf("%v: %v", tc.change, err)
			}
		}
		if err := pd.Close(); err != nil { // the region has not moved there
			t.Error(err)
		}
		verbstest.Pattern(p.src.Bytes(), 5)
		verbstest.Post(t, p.a.QP, p.remote(ibverbs.SendWR{Opcode: ibverbs.WRRDMAWrite, SGList: []ibverbs.SGE{p.src.SGE(0, 4096)}}))
		verbstest.Complete(t, p.a.CQ, 1)
		p.placed(t)
		p.same(t)
		verbstest.Refused(t, target.Dev, "reregistering regions")
	})
}

// Memory that a newer rdma-core allocates and registers, where there is one.
func TestProviderBuffer(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		p := newPipe(t, target, 4096, 0)
		buf, err := p.b.PD.AllocBuf(10000)
		if !ibverbs.HasVerb("ibv_alloc_buf") {
			refused(t, "AllocBuf", err, syscall.ENOSYS, "version 64")
			verbstest.Refused(t, target.Dev, "memory that rdma-core allocates")
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		verbstest.Close(t, buf)
		for _, part := range [][2]int{{-1, 1}, {0, 0}, {0, 10001}, {9999, 2}, {1, math.MaxInt}, {0, -1}} {
			_, err := p.b.PD.RegBufMR(buf, part[0], part[1], 0)
			refused(t, "RegBufMR", err, syscall.EINVAL, "has 10000")
		}
		p.dst = verbstest.Must[*ibverbs.MR](t)(p.b.PD.RegBufMR(buf, 100, 4096, verbstest.AllAccess))
		verbstest.Close(t, p.dst)
		refused(t, "buffer with a region", buf.Close(), syscall.EBUSY, "1 MR")
		_, err = buf.ExportDMABuf()
		want := error(syscall.ENODATA)
		if !ibverbs.HasVerb("ibv_export_buf_dmabuf_fd") {
			want = syscall.ENOSYS
		}
		refused(t, "ExportDMABuf", err, want, "")
		verbstest.Pattern(p.src.Bytes(), 6)
		verbstest.Post(t, p.a.QP, p.remote(ibverbs.SendWR{Opcode: ibverbs.WRRDMAWrite, SGList: []ibverbs.SGE{p.src.SGE(0, 4096)}}))
		verbstest.Complete(t, p.a.CQ, 1)
		p.placed(t)
		p.same(t)
		if string(buf.Bytes()[100:4196]) != string(p.src.Bytes()) {
			t.Error("the region is not where it should be in the buffer")
		}
		verbstest.Works(t, target.Dev, "memory that rdma-core allocates")
	})
}

// Registration by ibv_reg_mr_ex, where there is one.
func TestRegMREx(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		p := newPipe(t, target, 4096, 0)
		mem := make([]byte, 4096)
		mr, err := p.b.PD.RegMREx(ibverbs.MRInitAttr{Buf: mem, Access: verbstest.AllAccess})
		if !ibverbs.HasVerb("ibv_reg_mr_ex") {
			refused(t, "RegMREx", err, syscall.ENOSYS, "version 59")
			verbstest.Refused(t, target.Dev, "registration by ibv_reg_mr_ex")
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		verbstest.Close(t, mr)
		p.dst = mr
		verbstest.Pattern(p.src.Bytes(), 7)
		verbstest.Post(t, p.a.QP, p.remote(ibverbs.SendWR{Opcode: ibverbs.WRRDMAWrite, SGList: []ibverbs.SGE{p.src.SGE(0, 4096)}}))
		verbstest.Complete(t, p.a.CQ, 1)
		p.placed(t)
		p.same(t)
		if string(mem) != string(p.src.Bytes()) {
			t.Error("the data is not in the slice")
		}
		fd := verbstest.Must[int](t)(unix.MemfdCreate("goverbs", unix.MFD_CLOEXEC))
		defer unix.Close(fd)
		_, err = p.b.PD.RegMREx(ibverbs.MRInitAttr{DMABuf: &ibverbs.DMABuf{FD: fd, Length: 4096}})
		refused(t, "dma-buf", err, errors.ErrUnsupported, "ibv_reg_mr_ex")
		verbstest.Works(t, target.Dev, "registration by ibv_reg_mr_ex")
	})
}
