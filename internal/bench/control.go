package bench

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// ProtocolVersion is the version of the control protocol. Ends of different
// versions refuse each other.
const ProtocolVersion = 1

// maxMessage bounds one message of the control protocol. The largest real one,
// a hello with its environment, has some 2 KiB.
const maxMessage = 64 << 10

// Message is one message of the control protocol: a 4-byte big-endian length,
// then that many bytes of JSON. Exactly the part that Type names is set.
//
//	client                          server
//	hello                      ->
//	                           <-   hello
//	open (transport)           ->
//	                           <-   listening (address)
//	      data connection, shows the token
//	attach (memory)            ->
//	                           <-   attach (memory)
//	run (task)                 ->
//	                           <-   ready
//	      the task's messages
//	finish                     ->
//	                           <-   report
//	close (transport)          ->
//	                           <-   closed
//
// A server that cannot do what open, attach or run ask answers failed, and has
// closed that data connection, as it has after a report of an error. A report may come early, with an error: the
// server's part of the run has failed. Either end may close the control connection
// at any time, which ends everything.
type Message struct {
	Type string `json:"type"`

	Hello     *Hello     `json:"hello,omitempty"`
	Open      *Open      `json:"open,omitempty"`
	Listening *Listening `json:"listening,omitempty"`
	Attach    *Attach    `json:"attach,omitempty"`
	Run       *Run       `json:"run,omitempty"`
	Ready     *Ready     `json:"ready,omitempty"`
	Finish    *Finish    `json:"finish,omitempty"`
	Report    *RunReport `json:"report,omitempty"`
	Close     *Close     `json:"close,omitempty"`
	Closed    *Close     `json:"closed,omitempty"`
	Failed    *Failed    `json:"failed,omitempty"`
}

// Hello is each end's first message.
type Hello struct {
	Program     string      `json:"program"`
	Protocol    int         `json:"protocol"`
	Environment Environment `json:"environment"`
}

// Open asks for a data connection.
type Open struct {
	Transport string `json:"transport"`
	Params    Params `json:"params"`
}

// Listening says where the server waits for it.
type Listening struct {
	Address string `json:"address"`
}

// Attach says what is at each end of it.
type Attach struct {
	Transport string          `json:"transport"`
	Info      ConnInfo        `json:"info"`
	Memory    json.RawMessage `json:"memory,omitempty"`
}

// Run asks for a Task on a data connection.
type Run struct {
	Transport string `json:"transport"`
	Task      Task   `json:"task"`
}

// Ready says that the server is prepared for a run.
type Ready struct {
	ID uint64 `json:"id"`
}

// Finish says that the client's part of a run is over, and how it ended.
type Finish struct {
	ID    uint64 `json:"id"`
	Error string `json:"error,omitempty"`
}

// RunReport is the server's part of a run.
type RunReport struct {
	ID       uint64   `json:"id"`
	Error    string   `json:"error,omitempty"`
	Usage    Usage    `json:"usage"`
	Verified Verified `json:"verified"`
}

// Close ends a data connection.
type Close struct {
	Transport string `json:"transport"`
}

// Failed says why the server did not do what it was asked.
type Failed struct {
	Error string `json:"error"`
}

// errMalformed is in every error about a message that no rdmabench sends.
var errMalformed = errors.New("not an rdmabench control message")

// part returns the part of m that its Type names, and how many parts are set.
func (m *Message) part() (named bool, set int) {
	for name, is := range map[string]bool{
		"hello": m.Hello != nil, "open": m.Open != nil, "listening": m.Listening != nil,
		"attach": m.Attach != nil, "run": m.Run != nil, "ready": m.Ready != nil,
		"finish": m.Finish != nil, "report": m.Report != nil, "close": m.Close != nil,
		"closed": m.Closed != nil, "failed": m.Failed != nil,
	} {
		if is {
			set++
			named = named || name == m.Type
		}
	}
	return named, set
}

// WriteMessage sends m in one Write.
func WriteMessage(w io.Writer, m Message) error {
	if named, set := m.part(); !named || set != 1 {
		return fmt.Errorf("control message %q does not have just its own part", m.Type)
	}
	body, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("control message %q: %w", m.Type, err)
	}
	if len(body) > maxMessage {
		return fmt.Errorf("control message %q has %d bytes, more than %d", m.Type, len(body), maxMessage)
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
	return err
}

// ReadMessage receives one message. It never allocates more than a message may
// have, whatever the peer sends, and refuses what WriteMessage would not send.
// The error is io.EOF if the connection ended between messages.
func ReadMessage(r io.Reader) (Message, error) {
	var m Message
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return m, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxMessage {
		return m, fmt.Errorf("%w: it claims %d bytes", errMalformed, n)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return m, err
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&m); err != nil {
		return Message{}, fmt.Errorf("%w: %w", errMalformed, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Message{}, fmt.Errorf("%w: text after its end", errMalformed)
	}
	if named, set := m.part(); !named || set != 1 {
		return Message{}, fmt.Errorf("%w: type %.20q", errMalformed, m.Type)
	}
	return m, nil
}
