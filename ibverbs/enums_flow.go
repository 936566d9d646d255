package ibverbs

// #include "shim.h"
import "C"

// FlowType says which packets a flow rule is about (enum ibv_flow_attr_type).
type FlowType uint32

// Flow rule types.
const (
	FlowNormal     FlowType = C.IBV_FLOW_ATTR_NORMAL      // NORMAL
	FlowAllDefault FlowType = C.IBV_FLOW_ATTR_ALL_DEFAULT // ALL_DEFAULT
	FlowMCDefault  FlowType = C.IBV_FLOW_ATTR_MC_DEFAULT  // MC_DEFAULT
	FlowSniffer    FlowType = C.IBV_FLOW_ATTR_SNIFFER     // SNIFFER
)

// FlowFlags modify a flow rule (enum ibv_flow_flags).
type FlowFlags uint32

// Flow flags.
const (
	FlowDontTrap FlowFlags = C.IBV_FLOW_ATTR_FLAGS_DONT_TRAP // let rules of lower priority have the packet too; FlowNormal only
	FlowEgress   FlowFlags = C.IBV_FLOW_ATTR_FLAGS_EGRESS    // match what the device sends; the QP only names the device
)

var flowNames = []flagName{
	{uint64(FlowDontTrap), "DONT_TRAP"},
	{uint64(FlowEgress), "EGRESS"},
}

// String joins the names: "DONT_TRAP|EGRESS".
func (f FlowFlags) String() string { return joinFlags(uint64(f), flowNames) }

// FlowSpecType is the kind of a FlowSpec (enum ibv_flow_spec_type).
type FlowSpecType uint32

// Kinds of FlowSpec. FlowSpecTypeInner is a bit that says of another kind that
// it is about the packet within a tunnel.
const (
	FlowSpecTypeEth          FlowSpecType = C.IBV_FLOW_SPEC_ETH           // ETH
	FlowSpecTypeIPv4         FlowSpecType = C.IBV_FLOW_SPEC_IPV4          // IPV4
	FlowSpecTypeIPv6         FlowSpecType = C.IBV_FLOW_SPEC_IPV6          // IPV6
	FlowSpecTypeIPv4Ext      FlowSpecType = C.IBV_FLOW_SPEC_IPV4_EXT      // IPV4_EXT
	FlowSpecTypeESP          FlowSpecType = C.IBV_FLOW_SPEC_ESP           // ESP
	FlowSpecTypeTCP          FlowSpecType = C.IBV_FLOW_SPEC_TCP           // TCP
	FlowSpecTypeUDP          FlowSpecType = C.IBV_FLOW_SPEC_UDP           // UDP
	FlowSpecTypeVXLANTunnel  FlowSpecType = C.IBV_FLOW_SPEC_VXLAN_TUNNEL  // VXLAN_TUNNEL
	FlowSpecTypeGRE          FlowSpecType = C.IBV_FLOW_SPEC_GRE           // GRE
	FlowSpecTypeMPLS         FlowSpecType = C.IBV_FLOW_SPEC_MPLS          // MPLS
	FlowSpecTypeInner        FlowSpecType = C.IBV_FLOW_SPEC_INNER         // INNER
	FlowSpecTypeActionTag    FlowSpecType = C.IBV_FLOW_SPEC_ACTION_TAG    // ACTION_TAG
	FlowSpecTypeActionDrop   FlowSpecType = C.IBV_FLOW_SPEC_ACTION_DROP   // ACTION_DROP
	FlowSpecTypeActionHandle FlowSpecType = C.IBV_FLOW_SPEC_ACTION_HANDLE // ACTION_HANDLE
	FlowSpecTypeActionCount  FlowSpecType = C.IBV_FLOW_SPEC_ACTION_COUNT  // ACTION_COUNT
)

// ESPFlags say what an ESP action does (enum ibv_flow_action_esp_flags). Where
// a bit is not set, its opposite holds: inline crypto, tunnel mode, decryption.
type ESPFlags uint32

// ESP flags: IBV_FLOW_ACTION_ESP_FLAGS_INLINE_CRYPTO, _TUNNEL and _DECRYPT are 0.
const (
	ESPFullOffload  ESPFlags = C.IBV_FLOW_ACTION_ESP_FLAGS_FULL_OFFLOAD   // add and remove ESP's header and trailer too
	ESPTransport    ESPFlags = C.IBV_FLOW_ACTION_ESP_FLAGS_TRANSPORT      // transport mode rather than tunnel mode
	ESPEncrypt      ESPFlags = C.IBV_FLOW_ACTION_ESP_FLAGS_ENCRYPT        // encrypt rather than decrypt
	ESPESNNewWindow ESPFlags = C.IBV_FLOW_ACTION_ESP_FLAGS_ESN_NEW_WINDOW // the replay window begins in the upper half of the sequence numbers
)

var espNames = []flagName{
	{uint64(ESPFullOffload), "FULL_OFFLOAD"},
	{uint64(ESPTransport), "TRANSPORT"},
	{uint64(ESPEncrypt), "ENCRYPT"},
	{uint64(ESPESNNewWindow), "ESN_NEW_WINDOW"},
}

// String joins the names: "TRANSPORT|ENCRYPT".
func (f ESPFlags) String() string { return joinFlags(uint64(f), espNames) }

// ESPKeymat is a kind of key material (enum ibv_flow_action_esp_keymat).
type ESPKeymat uint32

// ESPKeymatAESGCM is AES GCM as of RFC 4106: see AESGCM. There is no other.
const ESPKeymatAESGCM ESPKeymat = C.IBV_FLOW_ACTION_ESP_KEYMAT_AES_GCM // AES_GCM

// ESPIVAlgo says how initialization vectors follow each other (enum
// ibv_flow_action_esp_keymat_aes_gcm_iv_algo).
type ESPIVAlgo uint32

// ESPIVAlgoSeq counts. There is no other.
const ESPIVAlgoSeq ESPIVAlgo = C.IBV_FLOW_ACTION_IV_ALGO_SEQ // SEQ

// ESPReplayType is a way of protecting against replays (enum
// ibv_flow_action_esp_replay).
type ESPReplayType uint32

// Ways of protecting against replays: none, or a bitmap that shifts.
const (
	ESPReplayNone ESPReplayType = C.IBV_FLOW_ACTION_ESP_REPLAY_NONE // NONE
	ESPReplayBMP  ESPReplayType = C.IBV_FLOW_ACTION_ESP_REPLAY_BMP  // BMP
)

// CounterDescription says what a counter counts (enum
// ibv_counter_description).
type CounterDescription uint32

// What is counted.
const (
	CounterPackets CounterDescription = C.IBV_COUNTER_PACKETS // PACKETS
	CounterBytes   CounterDescription = C.IBV_COUNTER_BYTES   // BYTES
)

// ReadCountersFlags modify Counters.Read (enum ibv_read_counters_flags).
type ReadCountersFlags uint32

// ReadCountersPreferCached takes values that the driver has, rather than ask
// the device.
const ReadCountersPreferCached ReadCountersFlags = C.IBV_READ_COUNTERS_ATTR_PREFER_CACHED

var readCountersNames = []flagName{{uint64(ReadCountersPreferCached), "PREFER_CACHED"}}

// String joins the names.
func (f ReadCountersFlags) String() string { return joinFlags(uint64(f), readCountersNames) }
