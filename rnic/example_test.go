package rnic_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/goverbs/goverbs/rnic"
)

func ExampleList() {
	rnics, err := rnic.List()
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range rnics {
		for _, p := range r.Ports {
			fmt.Println(r.Name, p.Number, p.Protocol, p.State, p.Netdev)
		}
		for _, problem := range r.Problems {
			log.Print(r.Name, ": ", problem)
		}
	}
}

func ExampleAddLink() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := rnic.AddLink(ctx, rnic.Link{Name: "rxe0", Type: "rxe", Netdev: "eth0"}); err != nil {
		log.Fatal(err)
	}
	if err := rnic.WaitUsable(ctx, "rxe0"); err != nil {
		log.Fatal(err)
	}
}

// The host's sysfs as a container may have it mounted.
func ExampleHost_List() {
	rnics, err := rnic.Host{Sysfs: "/host/sys", Dev: "/host/dev"}.List()
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range rnics {
		fmt.Println(r.Name, r.PCI, r.NUMANode)
	}
}
