package bench

import "time"

// Schema names the form of Report's JSON. docs/rdmabench.md describes it; it gets
// another number when a field changes its meaning or goes.
const Schema = "rdmabench/1"

// Report is everything a run of rdmabench found.
type Report struct {
	Schema string `json:"schema"`
	// Started is in UTC.
	Started        time.Time `json:"started"`
	ElapsedSeconds float64   `json:"elapsed_seconds"`
	// Partial says why measurements are missing; empty if none is.
	Partial      string       `json:"partial,omitempty"`
	Client       Environment  `json:"client"`
	Server       Environment  `json:"server"`
	SameHost     bool         `json:"same_host"`
	Settings     Settings     `json:"settings"`
	Connections  []Connection `json:"connections"`
	Planned      int          `json:"planned"`
	Measurements []Result     `json:"measurements"`
}

// Settings are what was asked for.
type Settings struct {
	Transports      []string `json:"transports"`
	Ops             []Op     `json:"ops"`
	Modes           []Mode   `json:"modes"`
	Sizes           []int    `json:"sizes"`
	Iterations      int      `json:"iterations"`       // 0: chosen by kind and size
	DurationSeconds float64  `json:"duration_seconds"` // 0: not used
	Depth           int      `json:"depth"`
}

// Connection is a data connection that was used, both its ends.
type Connection struct {
	Transport string   `json:"transport"`
	Client    ConnInfo `json:"client"`
	Server    ConnInfo `json:"server"`
}

// Result is one measurement. Either Error is set, or all that follows it.
type Result struct {
	Transport  string `json:"transport"`
	Op         Op     `json:"op"`
	Mode       Mode   `json:"mode"`
	Kind       Kind   `json:"kind"`
	SizeBytes  int    `json:"size_bytes"`
	Iterations int    `json:"iterations"`
	Warmup     int    `json:"warmup_iterations"`
	Depth      int    `json:"depth"`
	// DepthGranted is less than Depth where the connection allows fewer READs.
	DepthGranted int `json:"depth_granted"`

	Error string `json:"error,omitempty"`

	Seconds     float64     `json:"seconds,omitempty"`
	Latency     *Latency    `json:"latency,omitempty"`
	Throughput  *Throughput `json:"throughput,omitempty"`
	ClientUsage *Usage      `json:"client_usage,omitempty"`
	ServerUsage *Usage      `json:"server_usage,omitempty"`
	// Verified counts messages at both ends: twice the iterations where both
	// receive some.
	Verified *Verified `json:"verified,omitempty"`
}

// Failed counts the measurements that have an error.
func (r *Report) Failed() int {
	n := 0
	for _, m := range r.Measurements {
		if m.Error != "" {
			n++
		}
	}
	return n
}
