package ibverbs_test

import (
	"bytes"
	"errors"
	"syscall"
	"testing"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
)

// Messages go from pool to pool, in buffers that are taken and put back, while
// the collector runs.
func TestPoolTraffic(t *testing.T) {
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		const size, rounds = 4000, 20
		a, b := verbstest.Pair(t, target, verbstest.PairCap, nil)
		pool := func(pd *ibverbs.PD) *ibverbs.BufferPool {
			p := verbstest.Must[*ibverbs.BufferPool](t)(pd.CreateBufferPool(ibverbs.PoolOptions{
				Classes: []ibverbs.PoolClass{{Size: 64, Count: 4}, {Size: 4096, Count: 2}},
				Access:  ibverbs.AccessLocalWrite, Debug: true,
			}))
			verbstest.Close(t, p)
			return p
		}
		from, to := pool(a.PD), pool(b.PD)
		ctx := verbstest.Context(t)
		want := make([]byte, size)
		collect(5, func() {
			for round := range rounds {
				src := verbstest.Must[ibverbs.PoolBuffer](t)(from.Get(ctx, size))
				dst := verbstest.Must[ibverbs.PoolBuffer](t)(to.Get(ctx, size))
				verbstest.Pattern(want, round)
				copy(src.Bytes(), want)
				verbstest.Receive(t, b.QP, ibverbs.RecvWR{SGList: []ibverbs.SGE{dst.SGE(size)}})
				verbstest.Post(t, a.QP, ibverbs.SendWR{Opcode: ibverbs.WRSend, Flags: ibverbs.SendSignaled, SGList: []ibverbs.SGE{src.SGE(size)}})
				verbstest.Complete(t, a.CQ, 1)
				verbstest.Complete(t, b.CQ, 1)
				if !bytes.Equal(dst.Bytes()[:size], want) {
					t.Errorf("round %d: the data differs", round)
				}
				if err := errors.Join(src.Put(), dst.Put()); err != nil {
					t.Error(err)
				}
			}
		})
		if _, err := a.PD.CreateBufferPool(ibverbs.PoolOptions{Classes: []ibverbs.PoolClass{{Size: 1, Count: -1}}}); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("a pool of -1 buffers: %v", err)
		}
	})
}
