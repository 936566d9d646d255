package lab

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Ways to run the guest's CPUs.
const (
	AccelAuto = "auto" // KVM where it works, else TCG
	AccelKVM  = "kvm"
	AccelTCG  = "tcg" // emulation: works everywhere
)

// kvmTrialTime is how long a boot under KVM may take to reach init, for KVM to count as working. It takes a second or two;
// what fails hangs, at the first instruction or in the firmware, although /dev/kvm opens.
const kvmTrialTime = 8 * time.Second

// kvmMemo remembers whether a boot under KVM reaches init on this host. A reboot, another QEMU or another kernel may
// change that, so it holds for one combination of them.
type kvmMemo struct {
	file string
	key  string
}

type kvmAnswer struct {
	Works bool   `json:"works"`
	Why   string `json:"why,omitempty"`
}

func newKVMMemo(cache, bootID, qemu, kernel string) kvmMemo {
	return kvmMemo{file: filepath.Join(cache, "kvm.json"), key: strings.Join([]string{bootID, qemu, kernel}, " ")}
}

func (m kvmMemo) read() map[string]kvmAnswer {
	answers := make(map[string]kvmAnswer)
	if text, err := os.ReadFile(m.file); err == nil {
		_ = json.Unmarshal(text, &answers) // a broken memo is no memo
	}
	return answers
}

// get returns the answer, if there is one.
func (m kvmMemo) get() (answer kvmAnswer, known bool) {
	answer, known = m.read()[m.key]
	return answer, known
}

// put remembers the answer, in one step: others may read meanwhile. Answers of earlier boots of the host are dropped. Where
// the cache cannot be written, the next run tries KVM again.
func (m kvmMemo) put(answer kvmAnswer) {
	answers := map[string]kvmAnswer{m.key: answer}
	bootID, _, _ := strings.Cut(m.key, " ")
	for key, old := range m.read() {
		if strings.HasPrefix(key, bootID+" ") && key != m.key {
			answers[key] = old
		}
	}
	text, err := json.MarshalIndent(answers, "", "\t")
	if err != nil {
		return
	}
	if os.MkdirAll(filepath.Dir(m.file), 0o755) != nil {
		return
	}
	temp := fmt.Sprintf("%s.%d", m.file, os.Getpid())
	if os.WriteFile(temp, text, 0o644) != nil || os.Rename(temp, m.file) != nil {
		os.Remove(temp)
	}
}

// kvmUsable reports whether /dev/kvm is there for us at all. Only a boot shows whether it works.
func kvmUsable(device string) error {
	f, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// hostBootID identifies this boot of the host.
func hostBootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(id))
}

// chooseAccel decides between KVM and TCG: start is called with each that is tried, until one reaches init.
func chooseAccel(want, device string, memo kvmMemo, start func(accel string, limit time.Duration) error) error {
	if want == AccelKVM {
		if err := kvmUsable(device); err != nil {
			return &Error{What: "KVM cannot be used", Err: err, Hint: "leave --accel out, or join the group that owns " + device}
		}
		return start(AccelKVM, bootTime)
	}
	if want == AccelAuto && kvmUsable(device) == nil {
		answer, known := memo.get()
		if !known || answer.Works {
			err := start(AccelKVM, kvmTrialTime)
			if err == nil {
				if !known {
					memo.put(kvmAnswer{Works: true})
				}
				return nil
			}
			if !isBootFailure(err) {
				return err
			}
			memo.put(kvmAnswer{Why: err.Error()})
		}
	}
	return start(AccelTCG, bootTime)
}
