package guest

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/goverbs/goverbs/internal/lab/wire"
	"github.com/goverbs/goverbs/rnic"
)

// usableWithin bounds the wait for a link; it takes milliseconds where it works.
const usableWithin = 30 * time.Second

// bringUp makes the netdevs and RDMA links, and waits until each is usable.
func bringUp(links []wire.Link) error {
	if err := setUp("lo"); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), usableWithin)
	defer cancel()
	for _, l := range links {
		if err := addNetdev(l); err != nil {
			return fmt.Errorf("netdev %s: %w", l.Netdev, err)
		}
		if err := rnic.AddLink(ctx, rnic.Link{Name: l.Name, Type: l.Type, Netdev: l.Netdev}); err != nil {
			return err
		}
	}
	for _, l := range links {
		if err := rnic.WaitUsable(ctx, l.Name); err != nil {
			return err
		}
	}
	return nil
}

func setUp(name string) error {
	link, err := netlink.LinkByName(name)
	if err == nil {
		err = netlink.LinkSetUp(link)
	}
	if err != nil {
		return fmt.Errorf("bring %s up: %w", name, err)
	}
	return nil
}

// addNetdev makes a dummy netdev with its addresses, usable at once: duplicate address detection is left out.
func addNetdev(l wire.Link) error {
	dummy := &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: l.Netdev, MTU: l.MTU, TxQLen: 1000}}
	if err := netlink.LinkAdd(dummy); err != nil {
		return err
	}
	// A kernel without IPv6 has no such file, and then refuses the address below.
	_ = os.WriteFile("/proc/sys/net/ipv6/conf/"+l.Netdev+"/accept_dad", []byte("0"), 0o644)
	for _, text := range l.Addrs {
		addr, err := netlink.ParseAddr(text)
		if err != nil {
			return err
		}
		if addr.IP.To4() == nil {
			addr.Flags |= unix.IFA_F_NODAD
		}
		if err := netlink.AddrAdd(dummy, addr); err != nil {
			return fmt.Errorf("address %s: %w", text, err)
		}
	}
	return netlink.LinkSetUp(dummy)
}
