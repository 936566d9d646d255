package ibverbs_test

import (
	"fmt"
	"log"

	"github.com/goverbs/goverbs/ibverbs"
)

// What devices are there, and which GID speaks RoCE v2 from which address?
func ExampleDevices() {
	infos, err := ibverbs.Devices()
	if err != nil {
		log.Fatal(err)
	}
	for _, info := range infos {
		dev, err := ibverbs.Open(info.Name)
		if err != nil {
			log.Fatal(err)
		}
		table, err := dev.GIDTable()
		if err != nil {
			log.Fatal(err)
		}
		for _, e := range table {
			fmt.Println(info.Name, info.Transport, e.Port, e.Index, e.Type, e.GID.Addr())
		}
		if err := dev.Close(); err != nil {
			log.Fatal(err)
		}
	}
}
