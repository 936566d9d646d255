package bench

import (
	"fmt"
	"strconv"
	"strings"
)

// sizeUnits are the suffixes of a size; all are powers of two.
var sizeUnits = []struct {
	suffix string
	shift  uint
}{
	{"kib", 10}, {"mib", 20}, {"kb", 10}, {"mb", 20}, {"k", 10}, {"m", 20}, {"b", 0},
}

// ParseSize reads a message size in bytes: "64", "4K", "4KiB", "1M".
func ParseSize(s string) (int, error) {
	number, shift := strings.ToLower(strings.TrimSpace(s)), uint(0)
	for _, u := range sizeUnits {
		if rest, ok := strings.CutSuffix(number, u.suffix); ok {
			number, shift = strings.TrimSpace(rest), u.shift
			break
		}
	}
	n, err := strconv.ParseUint(number, 10, 31)
	if err != nil || n<<shift < 1 || n<<shift > MaxSize {
		return 0, fmt.Errorf("size %q: use 1 B to %s, such as 64, 4K or 1M", s, FormatSize(MaxSize))
	}
	return int(n << shift), nil
}

// FormatSize writes a size with its unit: "64 B", "4 KiB", "1 MiB".
func FormatSize(n int) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}
