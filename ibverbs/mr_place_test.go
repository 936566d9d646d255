package ibverbs_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
)

// A peer and local work requests name memory by the address that it was
// registered at.
func TestMRIOVA(t *testing.T) {
	page := os.Getpagesize()
	for name, reg := range map[string]func(*ibverbs.PD) (*ibverbs.MR, error){
		"own memory": func(pd *ibverbs.PD) (*ibverbs.MR, error) {
			return pd.AllocMR(3*page, verbstest.AllAccess, ibverbs.BufferOptions{IOVA: uint64(page) << 20})
		},
		"own memory from 0 on": func(pd *ibverbs.PD) (*ibverbs.MR, error) {
			return pd.AllocMR(3*page, verbstest.AllAccess|ibverbs.AccessZeroBased, ibverbs.BufferOptions{})
		},
		"a slice": func(pd *ibverbs.PD) (*ibverbs.MR, error) {
			b := make([]byte, 3*page)
			b = b[page-int(sliceAddr(pd, b)%uint64(page)):][:page+100]
			return pd.RegMRIOVA(b, uint64(page)<<20, verbstest.AllAccess)
		},
	} {
		t.Run(name, func(t *testing.T) {
			verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
				a, b := verbstest.Pair(t, target, verbstest.PairCap, nil)
				src, dst := verbstest.Must[*ibverbs.MR](t)(reg(a.PD)), verbstest.Must[*ibverbs.MR](t)(reg(b.PD))
				verbstest.Close(t, src)
				verbstest.Close(t, dst)
				if want := uint64(page) << 20; src.Addr() != want && src.Access()&ibverbs.AccessZeroBased == 0 || src.Access()&ibverbs.AccessZeroBased != 0 && src.Addr() != 0 {
					t.Errorf("address %#x", src.Addr())
				}
				verbstest.Pattern(src.Bytes(), 3)
				verbstest.Post(t, a.QP, ibverbs.SendWR{
					Opcode: ibverbs.WRRDMAWrite, Flags: ibverbs.SendSignaled, SGList: []ibverbs.SGE{src.SGE(10, 90), src.SGEOf(src.Bytes()[100:])},
					RemoteAddr: dst.Addr() + 10, RKey: dst.RKey(),
				})
				verbstest.Complete(t, a.CQ, 1)
				if !bytes.Equal(dst.Bytes()[10:], src.Bytes()[10:]) || !bytes.Equal(dst.Bytes()[:10], make([]byte, 10)) {
					t.Error("the data differs")
				}
				verbstest.Works(t, target.Dev, "regions at a chosen iova")
			}, verbstest.ChosenIOVA)
			verbstest.EachLacking(t, verbstest.ChosenIOVA, func(t *testing.T, target *verbstest.Target) {
				_, err := reg(verbstest.PD(t, target.Dev))
				refused(t, "iova", err, errors.ErrUnsupported, "address")
				verbstest.Refused(t, target.Dev, "regions at a chosen iova")
			})
		})
	}
}

// sliceAddr finds out where a slice is, as a device sees it.
func sliceAddr(pd *ibverbs.PD, b []byte) uint64 {
	mr, err := pd.RegMR(b, 0)
	if err != nil {
		panic(err)
	}
	defer mr.Close()
	return mr.Addr()
}

func TestIOVAErrors(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		pd := verbstest.PD(t, target.Dev)
		for _, tc := range []struct {
			name   string
			iova   uint64
			access ibverbs.Access
			word   string
		}{
			{"within a page", 1<<30 + 8, 0, "offset within a page"},
			{"at the end", math.MaxUint64 - 4095, 0, "do not fit"},
			{"and from 0 on", 1 << 30, ibverbs.AccessZeroBased, "begins at 0"},
		} {
			_, err := pd.AllocMR(8192, tc.access, ibverbs.BufferOptions{IOVA: tc.iova})
			refused(t, tc.name, err, syscall.EINVAL, tc.word)
		}
		_, err := pd.RegMRIOVA(nil, 1<<30, 0)
		refused(t, "no memory", err, syscall.EINVAL, "at least one byte")
	})
}

// wordOf reads a field of the mapping that holds an address, of smaps or
// numa_maps.
func mapping(t *testing.T, file string, addr uint64) string {
	t.Helper()
	text := string(verbstest.Must[[]byte](t)(os.ReadFile("/proc/self/" + file)))
	start := strings.Index("\n"+text, fmt.Sprintf("\n%x", addr))
	if start < 0 {
		t.Fatalf("%s has no mapping at %#x", file, addr)
	}
	return text[start:]
}

// hugePages sees to it that the kernel has n pages of 2 MiB.
func hugePages(t *testing.T, n int) {
	t.Helper()
	const file = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
	set := func(n string) {
		if err := os.WriteFile(file, []byte(n), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before := string(verbstest.Must[[]byte](t)(os.ReadFile(file)))
	t.Cleanup(func() { set(before) })
	set(strconv.Itoa(n))
}

// Memory in huge pages is in huge pages, and where there are none the error
// says where to get them.
func TestHugePages(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		const size = 3 << 20
		opts := ibverbs.BufferOptions{HugePageSize: 2 << 20}
		hugePages(t, 0)
		p := newPipe(t, target, 4096, 0)
		_, err := p.b.PD.AllocMR(size, verbstest.AllAccess, opts)
		refused(t, "no huge pages", err, syscall.ENOMEM, "hugepages-2048kB/nr_hugepages")
		hugePages(t, 2)
		mr := verbstest.Must[*ibverbs.MR](t)(p.b.PD.AllocMR(size, verbstest.AllAccess, opts))
		verbstest.Close(t, mr)
		if maps := mapping(t, "smaps", mr.Addr()); !strings.Contains(strings.Join(strings.Fields(maps[:600]), " "), "KernelPageSize: 2048 kB") {
			t.Errorf("no huge pages: %s", maps[:600])
		}
		if mr.Len() != size || len(mr.Bytes()) != size || mr.Addr()%(2<<20) != 0 {
			t.Errorf("%d bytes at %#x", mr.Len(), mr.Addr())
		}
		p.dst, p.src = mr, verbstest.MR(t, p.a.PD, size)
		verbstest.Pattern(p.src.Bytes(), 1)
		verbstest.Post(t, p.a.QP, p.remote(ibverbs.SendWR{Opcode: ibverbs.WRRDMAWrite, SGList: []ibverbs.SGE{p.src.SGE(0, size)}}))
		verbstest.Complete(t, p.a.CQ, 1)
		p.placed(t)
		p.same(t)
		verbstest.Works(t, target.Dev, "regions on huge pages, on a NUMA node")
	})
}

// Memory of a NUMA node is bound to it; the machine has node 0 at least.
func TestNUMANode(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		pd := verbstest.PD(t, target.Dev)
		mr := verbstest.Must[*ibverbs.MR](t)(pd.AllocMR(8192, verbstest.AllAccess, ibverbs.BufferOptions{NUMANodes: []int{0}}))
		verbstest.Close(t, mr)
		line, _, _ := strings.Cut(mapping(t, "numa_maps", mr.Addr()), "\n")
		// The pages are there, since registration wants them.
		if !strings.Contains(line, " bind:0 ") || !strings.Contains(line, " N0=2 ") {
			t.Errorf("numa_maps: %s", line)
		}
		for _, nodes := range [][]int{{-1}, {1023}, {0, 1024}, {math.MaxInt}} {
			_, err := pd.AllocMR(8192, verbstest.AllAccess, ibverbs.BufferOptions{NUMANodes: nodes})
			refused(t, fmt.Sprint(nodes), err, syscall.EINVAL, "NUMA node")
		}
		verbstest.Works(t, target.Dev, "regions on huge pages, on a NUMA node")
	})
}

// The kernel takes or refuses each flag as its driver can do it.
func TestAccessFlags(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		pd := verbstest.PD(t, target.Dev)
		for _, access := range []ibverbs.Access{
			0, ibverbs.AccessLocalWrite, verbstest.AllAccess, ibverbs.AccessRemoteRead, ibverbs.AccessMWBind,
			ibverbs.AccessLocalWrite | ibverbs.AccessRemoteAtomic,
			verbstest.AllAccess | ibverbs.AccessRelaxedOrdering, // a wish: what can't do it ignores it
		} {
			mr, err := pd.AllocMR(4096, access, ibverbs.BufferOptions{})
			if err != nil {
				t.Errorf("%v: %v", access, err)
				continue
			}
			if mr.Access() != access {
				t.Errorf("%v became %v", access, mr.Access())
			}
			if err := mr.Close(); err != nil {
				t.Error(err)
			}
		}
		// Some kernels look at no flag that they do not know; others refuse it.
		mr, err := pd.AllocMR(4096, ibverbs.AccessHugeTLB, ibverbs.BufferOptions{})
		if err == nil {
			err = mr.Close()
		} else if errors.Is(err, errors.ErrUnsupported) {
			err = nil
		}
		if err != nil {
			t.Errorf("%v: %v", ibverbs.AccessHugeTLB, err)
		}
		for _, access := range []ibverbs.Access{ibverbs.AccessRemoteWrite, ibverbs.AccessRemoteAtomic, ibverbs.AccessRemoteWrite | ibverbs.AccessRemoteRead} {
			_, err := pd.AllocMR(4096, access, ibverbs.BufferOptions{})
			refused(t, access.String(), err, syscall.EINVAL, "needs LOCAL_WRITE too")
		}
	})
}
