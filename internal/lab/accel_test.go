package lab

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestChooseAccel(t *testing.T) {
	dir := t.TempDir()
	kvm := filepath.Join(dir, "kvm")
	write(t, kvm, "")
	none := filepath.Join(dir, "none")
	hangs := &bootFailure{"the guest did not reach init"}
	for _, tt := range []struct {
		name, want, device string
		memo               *kvmAnswer
		kvmErr             error
		tried              []string
		answer             *kvmAnswer
		err                bool
	}{
		{name: "no kvm", want: AccelAuto, device: none, tried: []string{AccelTCG}},
		{name: "works", want: AccelAuto, device: kvm, tried: []string{AccelKVM}, answer: &kvmAnswer{Works: true}},
		{name: "hangs", want: AccelAuto, device: kvm, kvmErr: hangs, tried: []string{AccelKVM, AccelTCG}, answer: &kvmAnswer{Why: hangs.why}},
		{name: "remembered good", want: AccelAuto, device: kvm, memo: &kvmAnswer{Works: true}, tried: []string{AccelKVM}, answer: &kvmAnswer{Works: true}},
		{name: "remembered bad", want: AccelAuto, device: kvm, memo: &kvmAnswer{Why: "hung"}, tried: []string{AccelTCG}, answer: &kvmAnswer{Why: "hung"}},
		{name: "good no more", want: AccelAuto, device: kvm, memo: &kvmAnswer{Works: true}, kvmErr: hangs, tried: []string{AccelKVM, AccelTCG}, answer: &kvmAnswer{Why: hangs.why}},
		{name: "interrupted", want: AccelAuto, device: kvm, kvmErr: errors.New("interrupted"), tried: []string{AccelKVM}, err: true},
		{name: "kvm or nothing", want: AccelKVM, device: kvm, kvmErr: hangs, tried: []string{AccelKVM}, err: true},
		{name: "kvm without device", want: AccelKVM, device: none, err: true},
		{name: "tcg", want: AccelTCG, device: kvm, tried: []string{AccelTCG}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			memo := newKVMMemo(t.TempDir(), "boot", "QEMU 7.2", "6.1.0-57-amd64")
			if tt.memo != nil {
				memo.put(*tt.memo)
			}
			var tried []string
			err := chooseAccel(tt.want, tt.device, memo, func(accel string, _ time.Duration) error {
				tried = append(tried, accel)
				if accel == AccelKVM {
					return tt.kvmErr
				}
				return nil
			})
			if (err != nil) != tt.err {
				t.Errorf("error %v, want one: %v", err, tt.err)
			}
			if diff := cmp.Diff(tt.tried, tried); diff != "" {
				t.Errorf("tried (-want +got):\n%s", diff)
			}
			answer, known := memo.get()
			if known != (tt.answer != nil) || (known && answer != *tt.answer) {
				t.Errorf("remembered %v %v, want %v", answer, known, tt.answer)
			}
		})
	}
}

// TestKVMMemo checks what makes an answer void, and that a memo that cannot be read or written is only forgotten.
func TestKVMMemo(t *testing.T) {
	cache := t.TempDir()
	memo := newKVMMemo(cache, "boot1", "QEMU 7.2", "6.1")
	memo.put(kvmAnswer{Works: true})
	newKVMMemo(cache, "boot1", "QEMU 7.2", "6.12").put(kvmAnswer{Why: "hung"})
	if a, known := memo.get(); !known || !a.Works {
		t.Errorf("same combination: %v %v, want it to work", a, known)
	}
	for _, other := range []kvmMemo{newKVMMemo(cache, "boot2", "QEMU 7.2", "6.1"), newKVMMemo(cache, "boot1", "QEMU 9", "6.1")} {
		if a, known := other.get(); known {
			t.Errorf("%s: %v, want no answer", other.key, a)
		}
	}
	newKVMMemo(cache, "boot2", "QEMU 7.2", "6.1").put(kvmAnswer{Works: true})
	text, err := os.ReadFile(filepath.Join(cache, "kvm.json"))
	if err != nil || strings.Contains(string(text), "boot1") {
		t.Errorf("after a reboot the memo still has the boot before (%v):\n%s", err, text)
	}
	write(t, filepath.Join(cache, "kvm.json"), "{")
	if _, known := memo.get(); known {
		t.Error("a broken memo has an answer")
	}
	missing := newKVMMemo(filepath.Join(cache, "kvm.json", "no-folder"), "boot1", "QEMU", "6.1")
	missing.put(kvmAnswer{Works: true})
	if _, known := missing.get(); known {
		t.Error("a memo that cannot be written has an answer")
	}
}
