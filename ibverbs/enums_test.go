package ibverbs

import (
	"fmt"
	"testing"
)

func TestStrings(t *testing.T) {
	for _, tc := range []struct {
		v    fmt.Stringer
		want string
	}{
		{QPStateRTS, "RTS"},
		{QPState(99), "QPState(99)"},
		{QPTypeXRCRecv, "XRC_RECV"},
		{QPType(1), "QPType(1)"},
		{WCStatusRNRRetryExcErr, "RNR_RETRY_EXC_ERR"},
		{WCStatus(250), "WCStatus(250)"},
		{WROpcode(12), "WROpcode(12)"},
		{WRFlush, "FLUSH"},
		{WCAtomicWrite, "ATOMIC_WRITE"},
		{SendOpSend | SendOpFlush | 1<<40, "SEND|FLUSH|0x10000000000"},
		{QPCreateScatterFCS | QPCreateSourceQPN, "SCATTER_FCS|SOURCE_QPN"},
		{FlushGlobal | FlushPersistent, "GLOBAL|PERSISTENT"},
		{FlushMR, "MR"},
		{DataInOrderWholeMsg, "WHOLE_MSG"},
		{DataInOrderReturnCaps | DataInOrderDeviceOnly, "RETURN_CAPS|DEVICE_ONLY"},
		{CompCntrRecv | CompCntrRemoteRDMAWrite, "RECV|REMOTE_RDMA_WRITE"},
		{CompCntrBytes, "BYTES"},
		{WQStateRdy, "RDY"},
		{WQTypeRQ, "RQ"},
		{WQScatterFCS | WQDelayDrop, "SCATTER_FCS|DELAY_DROP"},
		{WQAttrState | WQAttrCurState, "STATE|CURR_STATE"},
		{RXHashToeplitz | 2, "TOEPLITZ|0x2"},
		{RXHashSrcIPv4 | RXHashInner, "SRC_IPV4|INNER"},
		{FlowMCDefault, "MC_DEFAULT"},
		{FlowEgress, "EGRESS"},
		{FlowSpecTypeActionHandle, "ACTION_HANDLE"},
		{FlowSpecType(0x33), "FlowSpecType(51)"},
		{ESPTransport | ESPEncrypt, "TRANSPORT|ENCRYPT"},
		{ESPKeymatAESGCM, "AES_GCM"},
		{ESPIVAlgoSeq, "SEQ"},
		{ESPReplayBMP, "BMP"},
		{CounterBytes, "BYTES"},
		{ReadCountersPreferCached, "PREFER_CACHED"},
		{MAC{0x52, 0x54, 0, 0x12, 0x34, 0x56}, "52:54:00:12:34:56"},
		{WCRecvRDMAWithImm, "RECV_RDMA_WITH_IMM"},
		{TransportIWARP, "iWARP"},
		{Transport(-1), "unknown"},
		{NodeRNIC, "RNIC"},
		{GIDTypeRoCEv2, "RoCE v2"},
		{PortActive, "ACTIVE"},
		{MTU4096, "4096"},
		{MTU(0), "MTU(0)"},
		{PhysLinkUp, "LINK_UP"},
		{PortWidth(2), "4X"},
		{PortWidth(3), "PortWidth(3)"},
		{PortSpeed(32), "25 Gbit/s"},
		{PortSpeed(3), "PortSpeed(3)"},
		{Access(0), "0"},
		{AccessLocalWrite | AccessRemoteRead, "LOCAL_WRITE|REMOTE_READ"},
		{AccessLocalWrite | 1<<30, "LOCAL_WRITE|0x40000000"},
		{SendSignaled | SendInline, "SIGNALED|INLINE"},
		{WCGRH | WCWithImm, "GRH|WITH_IMM"},
		{QPAttrMask(1 << 21), "0x200000"},
		{DeviceMemWindowType2B | DeviceXRC, "XRC|MEM_WINDOW_TYPE_2B"},
		{GUID{0x50, 0x54, 0, 0xff, 0xfe, 0x12, 0x34, 0x56}, "5054:00ff:fe12:3456"},
	} {
		if got := tc.v.String(); got != tc.want {
			t.Errorf("%T: %q, want %q", tc.v, got, tc.want)
		}
	}
}

func TestMTUBytes(t *testing.T) {
	for m, want := range map[MTU]int{0: 0, MTU256: 256, MTU512: 512, MTU1024: 1024, MTU2048: 2048, MTU4096: 4096, 6: 0} {
		if got := m.Bytes(); got != want {
			t.Errorf("%v: %d bytes, want %d", m, got, want)
		}
	}
}

// Each flag set has one name for each bit, and no bit twice.
func TestFlagNames(t *testing.T) {
	for i, names := range [][]flagName{
		srqAttrNames, wcExNames, cqCreateNames, opsNames, odpGeneralNames, odpTransportNames, rawPacketNames,
		pciAtomicNames, accessNames, sendNames, wcNames, qpAttrNames, deviceCapNames, flowNames, espNames,
		readCountersNames, reregNames, mrAdviseNames, dmahNames, portCapNames, portCap2Names,
		sendOpNames, qpCreateNames, flushPlacementNames, dataInOrderNames, dataInOrderFlagNames,
		compCntrOpNames, wqFlagNames, wqAttrNames, rxHashFuncNames, rxHashFieldNames,
	} {
		seen := make(map[string]bool)
		var all uint64
		for _, n := range names {
			if n.bit == 0 || n.bit&(n.bit-1) != 0 || all&n.bit != 0 || seen[n.name] {
				t.Errorf("set %d: %+v is no bit of its own", i, n)
			}
			all |= n.bit
			seen[n.name] = true
		}
	}
}
