package rnic

import (
	"fmt"
	"strconv"
	"strings"
)

// maxName is the kernel's IB_DEVICE_NAME_MAX less its NUL.
const maxName = 63

// checkName refuses what cannot be one path element below sysfs: names come
// from netlink, directories and callers, and none of the three is trusted.
func checkName(what, name string, limit int) error {
	switch {
	case name == "":
		return fmt.Errorf("%s name is empty", what)
	case len(name) > limit:
		return fmt.Errorf("%s name %.20q... has %d bytes, the limit is %d", what, name, len(name), limit)
	case name == "." || name == "..":
		return fmt.Errorf("%s name %q is a directory", what, name)
	case strings.ContainsAny(name, "/\x00"):
		return fmt.Errorf("%s name %q has a slash or a NUL", what, name)
	}
	return nil
}

// printable is s as it may go to a terminal or into one line of a message:
// quoted where it holds control characters, invalid UTF-8 or is empty.
func printable(s string) string {
	for _, r := range s {
		if !strconv.IsPrint(r) || r == '\uFFFD' {
			return strconv.Quote(s)
		}
	}
	if s == "" {
		return `""`
	}
	return s
}
