package rdmacm

import (
	"syscall"
	"time"

	"github.com/goverbs/goverbs/ibverbs"
)

// Defaults of Config. Each is also bounded by what the device can do.
const (
	defaultDepth     = 128
	defaultSGE       = 4
	defaultInline    = 64 // iWARP's siw takes 80
	defaultRDDepth   = 16
	defaultRetry     = 7 // the most
	defaultLinger    = 500 * time.Millisecond
	defaultDial      = 30 * time.Second
	defaultResolve   = 2 * time.Second
	defaultHandshake = 10 * time.Second
	defaultBacklog   = 1024
)

// Config says how a connection is set up, on either side. The zero Config
// works: its defaults suit the device.
type Config struct {
	// PD is the protection domain that the QP is made on; it stays the
	// caller's, and must be on the device that the connection runs over. Nil
	// gives the connection a PD of its own, on a device that the process's
	// connections share.
	PD *ibverbs.PD

	// SendCQ and RecvCQ are the caller's own completion queues, on PD's
	// device; they must have room for what is posted. Nil gives the connection
	// a CQ of its own, which takes all that the queue can hold.
	SendCQ, RecvCQ *ibverbs.CQ

	// SRQ is a shared receive queue of the caller's, on PD's device, that the
	// connection takes its receives from: post them there. RecvDepth is then
	// how many completions the connection's own receive CQ has room for (0
	// means SRQ.MaxWR), and where PD is nil the SRQ's is used.
	SRQ *ibverbs.SRQ

	// Polling makes the connection's own CQs without a completion channel: it
	// saves a file descriptor, and CQ.Wait then does not work.
	Polling bool

	// SendDepth and RecvDepth are how many work requests may be outstanding;
	// 0 means 128. The QP may grant more: QP.Cap tells.
	SendDepth, RecvDepth int
	// SendSGE and RecvSGE are how many SGEs a work request may have; 0 means 4.
	SendSGE, RecvSGE int
	// SendCQSize and RecvCQSize are how many completions the connection's own
	// CQs hold; 0 means all that the queue can, and room to spare. Smaller than
	// that they lose completions unless they are polled in time.
	SendCQSize, RecvCQSize int
	// Inline is how many bytes may be sent inline; 0 means 64 or what the
	// device can do, -1 none.
	Inline int
	// SignalAll makes every send work request leave a completion.
	SignalAll bool

	// InitiatorDepth is how many READs and atomics this side may have
	// outstanding, ResponderResources how many of the peer's it serves; 0 means
	// 16 or what the device can do, -1 none. The peer may lower them:
	// Conn.Negotiated tells.
	InitiatorDepth, ResponderResources int
	// RetryCount is how often an unacknowledged packet is sent again, at most
	// 7; 0 means 7, -1 never. The dialing side decides for both.
	RetryCount int
	// RNRRetryCount is how often the peer retries a send that finds no receive
	// posted here, at most 6; 0 or 7 means for ever, -1 never.
	RNRRetryCount int
	// MinRNRTimer is how long the peer waits between those, as a code: 1 is
	// 0.01 ms, 12 is 0.64 ms, 31 is 491.52 ms; 0 means 12.
	MinRNRTimer int
	// AckTimeout is how long a sender waits for an acknowledgement, as a code:
	// 4.096 us * 2^n, n from 1 to 31; 0 lets the kernel choose. Not on iWARP.
	AckTimeout int
	// TOS is the type of service of the connection's packets, as in IP_TOS;
	// 0 leaves it to the kernel.
	TOS uint8

	// Prepare is called once the QP is in INIT, before the connection is made:
	// it registers memory and posts receives, so that not even the first
	// message finds none. An error gives the connection up. What Prepare makes
	// on the connection's own PD is closed in time if it is given to Conn.Own.
	Prepare func(*Conn) error

	// Linger is how long Conn.Close waits for the peer to answer that it is
	// disconnecting; 0 means 500 ms, less than 0 not at all. The answer tells
	// that the peer knows; nothing else depends on it.
	Linger time.Duration
}

// limits are a Config's numbers, settled for a device.
type limits struct {
	sendCQ, recvCQ       int // completions
	cap                  ibverbs.QPCap
	initiator, responder uint8
	retry, rnrRetry      uint8
}

// settle fills in the defaults and checks the rest.
func (c *Config) settle(attr ibverbs.DeviceAttr) (limits, error) {
	var l limits
	var err error
	number := func(name string, value, standard, most int) uint32 {
		switch {
		case value == 0:
			return uint32(min(standard, most))
		case value < 0 || value > most:
			if err == nil {
				err = hint(syscall.EINVAL, "%s is %d; this device allows 1 to %d", name, value, most)
			}
			return 0
		}
		return uint32(value)
	}
	// -1 stands for none where 0 stands for the default.
	orNone := func(name string, value, standard, most int) uint32 {
		if value == -1 {
			return 0
		}
		return number(name, value, standard, most)
	}
	receives, mostReceives := defaultDepth, attr.MaxQPWR
	if c.SRQ != nil {
		receives, mostReceives = c.SRQ.MaxWR(), attr.MaxSRQWR
	}
	l.cap = ibverbs.QPCap{
		MaxSendWR:     number("SendDepth", c.SendDepth, defaultDepth, attr.MaxQPWR),
		MaxRecvWR:     number("RecvDepth", c.RecvDepth, receives, mostReceives),
		MaxSendSGE:    number("SendSGE", c.SendSGE, defaultSGE, attr.MaxSGE),
		MaxRecvSGE:    number("RecvSGE", c.RecvSGE, defaultSGE, attr.MaxSGE),
		MaxInlineData: orNone("Inline", c.Inline, defaultInline, 1<<30),
	}
	// Twice what was asked for, since a QP may grant more than that.
	l.sendCQ = int(number("SendCQSize", c.SendCQSize, 2*int(l.cap.MaxSendWR)+1, attr.MaxCQE))
	l.recvCQ = int(number("RecvCQSize", c.RecvCQSize, 2*int(l.cap.MaxRecvWR)+1, attr.MaxCQE))
	l.initiator = uint8(orNone("InitiatorDepth", c.InitiatorDepth, defaultRDDepth, min(attr.MaxQPInitRDAtom, MaxDepth-1)))
	l.responder = uint8(orNone("ResponderResources", c.ResponderResources, defaultRDDepth, min(attr.MaxQPRDAtom, MaxDepth-1)))
	l.retry = uint8(orNone("RetryCount", c.RetryCount, defaultRetry, 7))
	l.rnrRetry = uint8(orNone("RNRRetryCount", c.RNRRetryCount, defaultRetry, 7))
	number("MinRNRTimer", c.MinRNRTimer, defaultRNRTimer, 31)
	number("AckTimeout", c.AckTimeout, 1, 31)
	return l, err
}

// apply sets what belongs to the ID rather than to the QP.
func (c *Config) apply(id *ID) error {
	if c.MinRNRTimer != 0 {
		id.SetMinRNRTimer(uint8(c.MinRNRTimer))
	}
	if c.TOS != 0 {
		if err := id.SetTOS(c.TOS); err != nil {
			return err
		}
	}
	if c.AckTimeout != 0 && !id.iwarp() {
		return id.SetAckTimeout(uint8(c.AckTimeout))
	}
	return nil
}

// param are the connection parameters that l stands for.
func (l *limits) param(data []byte) ConnParam {
	return ConnParam{
		PrivateData:        data,
		ResponderResources: l.responder,
		InitiatorDepth:     l.initiator,
		RetryCount:         l.retry,
		RNRRetryCount:      l.rnrRetry,
	}
}

// orDefault is d, or standard where d is 0.
func orDefault(d, standard time.Duration) time.Duration {
	if d == 0 {
		return standard
	}
	return d
}
