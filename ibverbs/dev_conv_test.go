package ibverbs

import (
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"
)

// scramble gives every byte of a C struct a value of its own.
func scramble[T any](c *T) {
	for i, b := 0, unsafe.Slice((*byte)(unsafe.Pointer(c)), unsafe.Sizeof(*c)); i < len(b); i++ {
		b[i] = byte(i%251 + 1)
	}
}

// cField reads a C struct's number by the names that verbs.h gives it.
func cField(t *testing.T, c any, path string) uint64 {
	t.Helper()
	v := reflect.ValueOf(c)
	for name := range strings.SplitSeq(path, ".") {
		if v = v.FieldByName(name); !v.IsValid() {
			t.Fatalf("no field %s", path)
		}
	}
	if v.CanInt() {
		return uint64(v.Int())
	}
	return v.Uint()
}

// set sets a C number, whose type tests cannot name.
func set[T ~uint32](c *T, v uint32) { *c = T(v) }

func TestDeviceAttrExFromC(t *testing.T) {
	var c cDeviceAttrEx
	scramble(&c)
	a := deviceAttrExFromC(&c)
	for path, got := range map[string]uint64{
		"orig_attr.max_qp":                        uint64(a.MaxQP),
		"orig_attr.max_pkeys":                     uint64(a.MaxPKeys),
		"orig_attr.phys_port_cnt":                 uint64(a.PhysPortCount),
		"odp_caps.general_caps":                   uint64(a.ODP.General),
		"odp_caps.per_transport_caps.rc_odp_caps": uint64(a.ODP.RC),
		"odp_caps.per_transport_caps.uc_odp_caps": uint64(a.ODP.UC),
		"odp_caps.per_transport_caps.ud_odp_caps": uint64(a.ODP.UD),
		"xrc_odp_caps":                            uint64(a.ODP.XRC),
		"completion_timestamp_mask":               a.CompletionTimestampMask,
		"hca_core_clock":                          a.HCACoreClock,
		"device_cap_flags_ex":                     uint64(a.CapFlagsEx),
		"tso_caps.max_tso":                        uint64(a.TSO.MaxTSO),
		"tso_caps.supported_qpts":                 uint64(a.TSO.SupportedQPTs),
		"rss_caps.supported_qpts":                 uint64(a.RSS.SupportedQPTs),
		"rss_caps.max_rwq_indirection_tables":     uint64(a.RSS.MaxRWQIndTables),
		"rss_caps.max_rwq_indirection_table_size": uint64(a.RSS.MaxRWQIndTableLen),
		"rss_caps.rx_hash_fields_mask":            uint64(a.RSS.RXHashFields),
		"rss_caps.rx_hash_function":               uint64(a.RSS.RXHashFunctions),
		"max_wq_type_rq":                          uint64(a.MaxWQTypeRQ),
		"packet_pacing_caps.qp_rate_limit_min":    uint64(a.PacketPacing.RateLimitMin),
		"packet_pacing_caps.qp_rate_limit_max":    uint64(a.PacketPacing.RateLimitMax),
		"packet_pacing_caps.supported_qpts":       uint64(a.PacketPacing.SupportedQPTs),
		"raw_packet_caps":                         uint64(a.RawPacket),
		"tm_caps.max_rndv_hdr_size":               uint64(a.TM.MaxRndvHdrSize),
		"tm_caps.max_num_tags":                    uint64(a.TM.MaxNumTags),
		"tm_caps.max_ops":                         uint64(a.TM.MaxOps),
		"tm_caps.max_sge":                         uint64(a.TM.MaxSGE),
		"cq_mod_caps.max_cq_count":                uint64(a.CQModeration.MaxCount),
		"cq_mod_caps.max_cq_period":               uint64(a.CQModeration.MaxPeriod / time.Microsecond),
		"max_dm_size":                             a.MaxDMSize,
		"pci_atomic_caps.fetch_add":               uint64(a.PCIAtomic.FetchAdd),
		"pci_atomic_caps.swap":                    uint64(a.PCIAtomic.Swap),
		"pci_atomic_caps.compare_swap":            uint64(a.PCIAtomic.CompareSwap),
		"phys_port_cnt_ex":                        uint64(a.PhysPortCountEx),
	} {
		if want := cField(t, c, path); got != want || want == 0 {
			t.Errorf("%s: %#x, want %#x", path, got, want)
		}
	}
	for flags, want := range map[uint32]bool{0: false, 1: true, 2: false, 3: true} {
		set(&c.tm_caps.flags, flags)
		if got := deviceAttrExFromC(&c).TM.RC; got != want {
			t.Errorf("TM flags %d: RC = %v", flags, got)
		}
	}
}

func TestRawClockFromC(t *testing.T) {
	var c cValuesEx
	c.raw_clock.tv_sec, c.raw_clock.tv_nsec = 3, 14
	if got := rawClockFromC(&c); got != 3*time.Second+14 {
		t.Errorf("%v, want 3.000000014s", got)
	}
}

// The library's own tables and ours must agree, or one of them is misread.
func TestRates(t *testing.T) {
	for rate, mbps := range map[Rate]int{Rate2_5: 2500, Rate10: 10000, Rate100: 103125, Rate400: 425000} {
		if got := rate.Mbps(); got != mbps {
			t.Errorf("%v: %d Mbit/s, want %d", rate, got, mbps)
		}
		if got := RateFromMbps(mbps); got != rate {
			t.Errorf("%d Mbit/s: %v, want %v", mbps, got, rate)
		}
	}
	if Rate40.Mult() != 16 || RateFromMult(16) != Rate40 || Rate(200).Mbps() != -1 || RateFromMult(3) != RateMax {
		t.Errorf("%d %v %d %v", Rate40.Mult(), RateFromMult(16), Rate(200).Mbps(), RateFromMult(3))
	}
	if s := Rate2_5.String() + " " + Rate(99).String(); s != "2.5 Gbit/s Rate(99)" {
		t.Error(s)
	}
}

func TestQPTypesHas(t *testing.T) {
	q := QPTypes(1<<QPTypeRC | 1<<QPTypeRawPacket)
	if !q.Has(QPTypeRC) || !q.Has(QPTypeRawPacket) || q.Has(QPTypeUD) {
		t.Errorf("%#x: RC %v, raw packet %v, UD %v", q, q.Has(QPTypeRC), q.Has(QPTypeRawPacket), q.Has(QPTypeUD))
	}
}

func TestDescriptions(t *testing.T) {
	for got, want := range map[string]string{
		NodeRNIC.Description():              "iWARP NIC",
		PortActive.Description():            "active",
		WCStatusRetryExcErr.Description():   "transport retry counter exceeded",
		EventQPLastWQEReached.Description(): "last WQE reached",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
