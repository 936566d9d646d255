package ibverbs_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/goverbs/goverbs/ibverbs"
	"github.com/goverbs/goverbs/internal/verbstest"
)

// providerChild tells the test binary to hide libibverbs' providers from itself
// and to open this device.
const providerChild = "GOVERBS_TEST_PROVIDER_DEVICE"

// A device whose provider is missing is in no list, and C says nothing of it:
// Open names the device and where the provider was looked for.
func TestMissingProvider(t *testing.T) {
	if name := os.Getenv(providerChild); name != "" {
		openWithoutProvider(t, name)
		return
	}
	verbstest.Each(t, func(t *testing.T, target *verbstest.Target) {
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestMissingProvider$", "-test.v")
		cmd.Env = append(os.Environ(), providerChild+"="+target.Dev.Name())
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS} // its mounts are its own
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "refused as it should") {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

func openWithoutProvider(t *testing.T, name string) {
	if err := unix.Mount("none", "/etc/libibverbs.d", "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	if list, err := ibverbs.Devices(); len(list) != 0 || err != nil {
		t.Errorf("devices %v, %v; want none", list, err)
	}
	_, err := ibverbs.Open(name)
	refused(t, "device without a provider", err, syscall.ENODEV, "/etc/libibverbs.d")
	if !t.Failed() && strings.Contains(err.Error(), name) {
		fmt.Println("refused as it should:", err)
	}
}
