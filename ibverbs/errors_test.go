package ibverbs

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
)

// Every way in which C says that a call failed, and what a stale errno must
// not do.
func TestRetErr(t *testing.T) {
	for _, tc := range []struct {
		name  string
		ret   int
		errno error
		want  error
	}{
		{"success", 0, nil, nil},
		{"success with a stale errno", 0, syscall.ENOENT, nil},
		{"positive errno", 22, nil, syscall.EINVAL},
		{"positive errno beats a stale one", 22, syscall.ENOENT, syscall.EINVAL},
		{"negative errno", -22, nil, syscall.EINVAL},
		{"negative errno beats a stale one", -12, syscall.ENOENT, syscall.ENOMEM},
		{"-1 with errno", -1, syscall.ENOTCONN, syscall.ENOTCONN},
		{"bare -1", -1, nil, syscall.EIO},
	} {
		if got := retErr(tc.ret, tc.errno); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestNullErr(t *testing.T) {
	for _, tc := range []struct {
		name   string
		isNull bool
		errno  error
		want   error
	}{
		{"pointer", false, nil, nil},
		{"pointer with a stale errno", false, syscall.ENOENT, nil},
		{"NULL with errno", true, syscall.ENOMEM, syscall.ENOMEM},
		{"NULL without errno", true, nil, syscall.EIO},
	} {
		if got := nullErr(tc.isNull, tc.errno); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestOpError(t *testing.T) {
	for _, tc := range []struct {
		name        string
		err         error
		text        string
		is          error
		unsupported bool
	}{
		{"errno", wrap("ibv_create_qp", "rxe0/pd3", syscall.EINVAL), "ibv_create_qp rxe0/pd3: invalid argument", syscall.EINVAL, false},
		{"no object", wrap("ibv_get_device_list", "", syscall.EMFILE), "ibv_get_device_list: too many open files", syscall.EMFILE, false},
		{"hint", wrap("ibv_reg_mr", "rxe0/pd3", hint(syscall.ENOMEM, "%d bytes", 7)), "ibv_reg_mr rxe0/pd3: cannot allocate memory: 7 bytes", syscall.ENOMEM, false},
		{"closed", wrap("ibv_poll_cq", "rxe0/cq1", os.ErrClosed), "ibv_poll_cq rxe0/cq1: file already closed", os.ErrClosed, false},
		{"EOPNOTSUPP", wrap("ibv_create_qp", "siw0/pd1", syscall.EOPNOTSUPP), "ibv_create_qp siw0/pd1: operation not supported", syscall.EOPNOTSUPP, true},
		{"ENOSYS", wrap("ibv_alloc_mw", "siw0/pd1", syscall.ENOSYS), "ibv_alloc_mw siw0/pd1: function not implemented", syscall.ENOSYS, true},
		{"EPROTONOSUPPORT", wrap("ibv_create_qp", "x", hint(syscall.EPROTONOSUPPORT, "no XRC")), "ibv_create_qp x: protocol not supported: no XRC", syscall.EPROTONOSUPPORT, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.err.Error(); got != tc.text {
				t.Errorf("text %q, want %q", got, tc.text)
			}
			if !errors.Is(tc.err, tc.is) {
				t.Errorf("%v is not %v", tc.err, tc.is)
			}
			if got := errors.Is(tc.err, errors.ErrUnsupported); got != tc.unsupported {
				t.Errorf("ErrUnsupported: %v, want %v", got, tc.unsupported)
			}
			var op *OpError
			if !errors.As(tc.err, &op) || op.Err == nil {
				t.Errorf("%v is not an OpError with a cause", tc.err)
			}
		})
	}
	if err := wrap("ibv_poll_cq", "cq", nil); err != nil {
		t.Errorf("success became %v", err)
	}
}

func TestWCError(t *testing.T) {
	ok := WC{WRID: 1}
	if err := ok.Err(); err != nil {
		t.Errorf("a work request that succeeded: %v", err)
	}
	bad := WC{WRID: 7, Status: WCStatusRetryExcErr, QPN: 17, VendorErr: 0x81}
	err := bad.Err()
	if want := "work request 7 of QP 17: RETRY_EXC_ERR: the peer does not acknowledge"; !strings.HasPrefix(err.Error(), want) {
		t.Errorf("text %q, want it to begin %q", err, want)
	}
	if !strings.HasSuffix(err.Error(), "(vendor error 0x81)") {
		t.Errorf("text %q lacks the vendor error", err)
	}
	if !errors.Is(err, &WCError{Status: WCStatusRetryExcErr}) || errors.Is(err, &WCError{Status: WCStatusWRFlushErr}) {
		t.Errorf("%v does not compare by status", err)
	}
	var wce *WCError
	if !errors.As(err, &wce) || wce.WRID != 7 || wce.QPN != 17 {
		t.Errorf("%v lost the work request", err)
	}
}

// With each kind of failure that has a cause a user can mend, the error says
// how.
func TestRegHint(t *testing.T) {
	for _, tc := range []struct {
		err    error
		access Access
		want   string
	}{
		{syscall.ENOMEM, AccessLocalWrite, "RLIMIT_MEMLOCK is"},
		{syscall.EINVAL, AccessRemoteWrite, "REMOTE_WRITE needs LOCAL_WRITE too"},
		{syscall.EFAULT, AccessLocalWrite, "read-only"},
	} {
		err := regHint(tc.err, &region{length: 4096, access: tc.access})
		if !errors.Is(err, tc.err) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v: %q lacks %q", tc.err, err, tc.want)
		}
	}
	if err := regHint(syscall.EINVAL, &region{length: 4096, access: AccessLocalWrite | AccessRemoteWrite}); err != syscall.EINVAL {
		t.Errorf("EINVAL of another cause became %v", err)
	}
}
