package rnic

import (
	"encoding/json"
	"errors"
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestListSysfs(t *testing.T) {
	tests := []struct {
		situation string
		want      []string
		problems  []string
	}{
		{situation: "no_rdma"},
		{situation: "no_device"},
		{
			situation: "mlx5_dual_port",
			want: []string{
				`mlx5_0 mlx5_core RoCE ca guid=b859:9f03:00d1:0a2c fw="20.31.1014" desc="node17 mlx5_0" pci=0000:3b:00.0 numa=1 uverbs0=231:192,umad0=231:0,issm0=231:64,rdma_cm=10:126`,
				`  1 RoCE ACTIVE/LINK_UP Ethernet ens1f0np0/4 [ens1f0np0 ens1f0np0.100] mtu=9000/4096 "100 Gb/sec (2X HDR)"=100 lid=0x0 gids=6/256`,
				`mlx5_1 mlx5_core RoCE ca guid=b859:9f03:00d1:0a2d fw="20.31.1014" desc="node17 mlx5_1" pci=0000:3b:00.1 numa=1 uverbs1=231:193,umad1=231:1,issm1=231:65,rdma_cm=10:126`,
				`  1 RoCE DOWN/DISABLED Ethernet ens1f1np1/5 [ens1f1np1] mtu=1500/1024 "40 Gb/sec (4X QDR)"=40 lid=0x0 gids=2/256`,
			},
		},
		{
			situation: "ib_ipoib",
			want: []string{
				`ibp23s0 mlx5_core IB ca guid=ec0d:9a03:0044:1fb0 fw="16.35.2000" desc="gpu03 HCA-1" pci=0000:17:00.0 numa=0 uverbs0=231:192,umad0=231:0,issm0=231:64,rdma_cm=10:126`,
				`  1 IB ACTIVE/LINK_UP InfiniBand /0 [ibp23s0] mtu=0/0 "100 Gb/sec (4X EDR)"=100 lid=0x1a gids=1/8`,
			},
		},
		{
			situation: "mlx4_mixed",
			want: []string{
				`mlx4_0 mlx4_core IB ca guid=0002:c903:00f1:b1a0 fw="2.42.5000" desc="mixed" pci=0000:81:00.0 numa=-1 uverbs0=231:192,umad0=231:0,umad1=231:1,issm0=231:64,issm1=231:65`,
				`  1 IB INIT/TRAINING InfiniBand /0 [] mtu=0/0 "10 Gb/sec (4X SDR)"=10 lid=0x0 gids=1/4`,
				`  2 RoCE ACTIVE/LINK_UP Ethernet ens8d1/3 [ens8d1] mtu=1500/1024 "40 Gb/sec (4X FDR10)"=40 lid=0x0 gids=1/4`,
			},
		},
		{
			situation: "rxe",
			want: []string{
				`rxe0 rxe RoCE ca guid=6c5e:d5ff:fe6e:1b0f fw="" desc="rxe0" pci= numa=-1 uverbs0=231:192,umad0=231:0,issm0=231:64,rdma_cm=10:126`,
				`  1 RoCE ACTIVE/LINK_UP Ethernet rxenet0/2 [rxenet0] mtu=4200/4096 "2.5 Gb/sec (1X SDR)"=2.5 lid=0x0 gids=2/1024`,
				`rxe1 rxe RoCE ca guid=5054:00ff:fe12:3456 fw="" desc="rxe1" pci=0000:00:03.0 numa=0 uverbs1=231:193,umad1=231:1,issm1=231:65,rdma_cm=10:126`,
				`  1 RoCE ACTIVE/LINK_UP Ethernet eth0/3 [eth0] mtu=1500/1024 "2.5 Gb/sec (1X SDR)"=2.5 lid=0x0 gids=1/8`,
			},
		},
		{
			situation: "siw",
			want: []string{
				`siw0 siw iWARP rnic guid=7a63:12aa:bb01:0000 fw="" desc="Software iWARP stack" pci= numa=-1 uverbs0=231:192,rdma_cm=10:126`,
				`  1 iWARP ACTIVE/LINK_UP Ethernet siwnet0/5 [siwnet0] mtu=4200/4096 "2.5 Gb/sec (1X SDR)"=2.5 lid=0x0 gids=1/1`,
			},
		},
		{
			situation: "efa",
			want: []string{
				`rdmap0s30 efa unknown unspecified guid=0000:0000:0000:0000 fw="0.0.0.0" desc="EFA-ubuntu" pci=0000:00:1e.0 numa=0 uverbs0=231:192,rdma_cm=10:126`,
				`  1 unknown ACTIVE/LINK_UP Unknown /0 [] mtu=0/0 "100 Gb/sec (4X EDR)"=100 lid=0x0 gids=1/1`,
			},
		},
		{
			situation: "half_removed",
			want: []string{
				`mlx5_9  unknown unknown guid=0000:0000:0000:0000 fw="" desc="" pci= numa=-1 `,
				`rxe0 rxe RoCE ca guid=6c5e:d5ff:fe6e:1b0f fw="" desc="rxe0" pci= numa=-1 `,
				`  1 RoCE ACTIVE/LINK_UP Ethernet rxenet0/2 [rxenet0] mtu=1500/1024 "2.5 Gb/sec (1X SDR)"=2.5 lid=0x0 gids=1/4`,
				`rxe7  unknown ca guid=0000:0000:0000:0000 fw="" desc="" pci= numa=-1 `,
				`  1 unknown NOP/NOP Unknown /0 [] mtu=0/0 ""=0 lid=0x0 gids=0/0`,
			},
			problems: []string{
				"class/infiniband/mlx5_9: no such file or directory",
				"class/infiniband/rxe7/node_guid: no such file or directory",
				"class/infiniband/rxe7/sys_image_guid: no such file or directory",
				"class/infiniband/rxe7/ports/1/link_layer: no such file or directory",
				"class/infiniband/rxe7/ports/1/state: no such file or directory",
				"class/infiniband/rxe7/ports/1/phys_state: no such file or directory",
			},
		},
		{
			situation: "unreadable",
			want: []string{
				`mlx5_0  unknown unknown guid=0000:0000:0000:0000 fw="" desc="" pci= numa=-1 `,
				`  1 unknown NOP/NOP Unknown /0 [] mtu=0/0 ""=0 lid=0x0 gids=0/1`,
			},
			problems: []string{
				"class/infiniband/mlx5_0/node_desc: too many levels of symbolic links",
				"class/infiniband/mlx5_0/node_type: too many levels of symbolic links",
				"class/infiniband/mlx5_0/node_guid: too many levels of symbolic links",
				"class/infiniband/mlx5_0/sys_image_guid: too many levels of symbolic links",
				"class/infiniband/mlx5_0/fw_ver: too many levels of symbolic links",
				"class/infiniband/mlx5_0/ports/1/link_layer: too many levels of symbolic links",
				"class/infiniband/mlx5_0/ports/1/state: too many levels of symbolic links",
				"class/infiniband/mlx5_0/ports/1/phys_state: too many levels of symbolic links",
				"class/infiniband/mlx5_0/ports/1/lid: too many levels of symbolic links",
				"class/infiniband/mlx5_0/ports/1/rate: too many levels of symbolic links",
				"class/infiniband/mlx5_0/ports/1/gids/0: too many levels of symbolic links",
				"class/infiniband_verbs/uverbs0/ibdev: too many levels of symbolic links",
			},
		},
		{
			situation: "malformed",
			want: []string{
				`bad0  unknown unknown guid=0000:0000:0000:0000 fw="" desc="" pci= numa=-1 `,
				`  1 unknown NOP/NOP Unknown /0 [] mtu=0/0 "fast"=0 lid=0x0 gids=0/1`,
			},
			problems: []string{
				`class/infiniband/bad0/node_type: "CA" is not of the form "4: NAME"`,
				`class/infiniband/bad0/node_guid: GUID "b859:9f03:00d1": want 4 groups of four hexadecimal digits`,
				`class/infiniband/bad0/sys_image_guid: GUID "zzzz:9f03:00d1:0a2c": group 1: encoding/hex: invalid byte: U+007A 'z'`,
				`class/infiniband/bad0/ports/01: "01" is not a table index`,
				`class/infiniband/bad0/ports/1/link_layer: "Carrier pigeon" is no link layer`,
				`class/infiniband/bad0/ports/1/state: "4" is not of the form "4: NAME"`,
				`class/infiniband/bad0/ports/1/phys_state: "999: LinkUp" is not of the form "4: NAME"`,
				`class/infiniband/bad0/ports/1/lid: "left" is not a LID`,
				`class/infiniband/bad0/ports/1/rate: "fast" is not of the form "100 Gb/sec (4X EDR)"`,
				`class/infiniband/bad0/ports/1/gids/one: "one" is not a table index`,
				`class/infiniband/bad0/ports/1/gids/0: GID "fe80::1": want 8 groups of four hexadecimal digits`,
				`devices/virtual/infiniband/bad0/device/numa_node: "many" is not a number`,
			},
		},
		{
			situation: "hostile_names",
			want: []string{
				"a b\x1b[2J\nrxe0  RoCE ca guid=0000:0000:0000:0001 fw=\"\\x1b]0;pwned\\a\" desc=\"tab\\there\" pci= numa=-1 ",
				`  1 RoCE ACTIVE/LINK_UP Ethernet eth0;reboot/0 [eth0;reboot] mtu=1500/1024 "2.5 Gb/sec (1X SDR)"=2.5 lid=0x0 gids=2/2`,
				`xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx  unknown unknown guid=0000:0000:0000:0000 fw="" desc="" pci= numa=-1 `,
			},
			problems: []string{
				`"class/infiniband/a b\x1b[2J\nrxe0/ports/1/gid_attrs/ndevs/0": not a netdev's name`,
				"class/infiniband: RNIC name \"xxxxxxxxxxxxxxxxxxxx\"... has 70 bytes, the limit is 63",
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.situation, func(t *testing.T) {
			h := tree(t, tt.situation)
			rnics, err := h.List()
			if err != nil {
				t.Fatal(err)
			}
			if rnics == nil {
				t.Error("list is nil, want it empty")
			}
			var got, problems []string
			for _, r := range rnics {
				got = append(got, brief(r)...)
				problems = append(problems, problemLines(h, r)...)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
			if d := cmp.Diff(tt.problems, problems); d != "" {
				t.Errorf("problems: -want +got\n%s", d)
			}
		})
	}
}

func TestListGIDs(t *testing.T) {
	r, err := tree(t, "mlx5_dual_port").Find("mlx5_0")
	if err != nil {
		t.Fatal(err)
	}
	gid := func(s string) GID {
		g, err := ParseGID(s)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	want := []GIDEntry{
		{0, gid("fe80:0000:0000:0000:ba59:9fff:fed1:0a2c"), GIDTypeRoCEv1, "ens1f0np0"},
		{1, gid("fe80:0000:0000:0000:ba59:9fff:fed1:0a2c"), GIDTypeRoCEv2, "ens1f0np0"},
		{2, gid("0000:0000:0000:0000:0000:ffff:c000:0211"), GIDTypeRoCEv1, "ens1f0np0"},
		{3, gid("0000:0000:0000:0000:0000:ffff:c000:0211"), GIDTypeRoCEv2, "ens1f0np0"},
		{4, gid("0000:0000:0000:0000:0000:ffff:c633:6411"), GIDTypeRoCEv1, "ens1f0np0.100"},
		{5, gid("0000:0000:0000:0000:0000:ffff:c633:6411"), GIDTypeRoCEv2, "ens1f0np0.100"},
	}
	if d := cmp.Diff(want, r.Ports[0].GIDs); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// What cannot be read must not become an empty list.
func TestListUnreadable(t *testing.T) {
	tests := map[string]Host{
		"class directory": tree(t, "unreadable_class"),
		"no sysfs":        {Sysfs: "testdata/not/there", NoNetlink: true},
	}
	for name, h := range tests {
		t.Run(name, func(t *testing.T) {
			rnics, err := h.List()
			var op *OpError
			if !errors.As(err, &op) {
				t.Fatalf("List() = %v, %v, want an *OpError", rnics, err)
			}
		})
	}
}

func TestFindMissing(t *testing.T) {
	h := tree(t, "siw")
	for _, name := range []string{"rxe9", "", "..", "a/b"} {
		_, err := h.Find(name)
		var op *OpError
		if !errors.As(err, &op) || op.Op != "list" || op.Object != name {
			t.Errorf("Find(%q): %v, want an *OpError that names it", name, err)
		}
		if notExist := errors.Is(err, fs.ErrNotExist); notExist != (name == "rxe9") {
			t.Errorf("Find(%q): %v, fs.ErrNotExist is %v", name, err, notExist)
		}
	}
}

func TestJSONRoundTrip(t *testing.T) {
	for _, situation := range []string{"mlx5_dual_port", "mlx4_mixed", "siw", "unreadable"} {
		rnics, err := tree(t, situation).List()
		if err != nil {
			t.Fatal(err)
		}
		first, err := json.Marshal(rnics)
		if err != nil {
			t.Fatal(err)
		}
		var back []RNIC
		if err := json.Unmarshal(first, &back); err != nil {
			t.Fatalf("%s: %v", situation, err)
		}
		second, err := json.Marshal(back)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(first), string(second)); d != "" {
			t.Errorf("%s: %s", situation, d)
		}
		if len(back) == 0 || back[0].Name != rnics[0].Name {
			t.Errorf("%s: came back as %+v", situation, back)
		}
	}
}
