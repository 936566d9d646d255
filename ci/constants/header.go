package main

import (
	"bytes"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// enumerator is a constant of the header.
type enumerator struct {
	enum string // the enum's tag; "" where it has none
	name string
	// value is its value, as a number of 64 bits.
	value *big.Int
}

var (
	enumBlock = regexp.MustCompile(`\benum\s*(\w*)\s*\{([^}]*)\}`)
	enumName  = regexp.MustCompile(`^\s*(\w+)`)
	// verbs_api.h gives names to constants of the kernel's headers.
	renamed = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*define[ \t]+(IBV_\w+)[ \t]+(IB_UVERBS_\w+)[ \t]*$`)
)

// readHeader finds the constants that infiniband/verbs.h offers, and asks the
// compiler for their values.
func readHeader(include string) ([]enumerator, error) {
	var all []enumerator
	for _, file := range []string{"infiniband/verbs.h", "infiniband/verbs_api.h"} {
		text, err := os.ReadFile(filepath.Join(include, file))
		if err != nil {
			return nil, err
		}
		all = append(all, parseHeader(withoutComments(string(text)))...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no constants in %s/infiniband", include)
	}
	return all, evaluate(include, all)
}

func parseHeader(text string) []enumerator {
	var found []enumerator
	for _, block := range enumBlock.FindAllStringSubmatch(text, -1) {
		for _, item := range strings.Split(block[2], ",") {
			// rdma-core's own marks of where an enum ends are for nobody else.
			if m := enumName.FindStringSubmatch(item); m != nil && !strings.HasSuffix(m[1], "_RESERVED") {
				found = append(found, enumerator{enum: block[1], name: m[1]})
			}
		}
	}
	for _, m := range renamed.FindAllStringSubmatch(text, -1) {
		found = append(found, enumerator{name: m[1]})
	}
	return found
}

var comments = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*`)

// withoutComments serves C, whose strings have no comment in them here.
func withoutComments(text string) string { return comments.ReplaceAllString(text, " ") }

// evaluate fills in the values, by a program that prints them.
func evaluate(include string, all []enumerator) error {
	dir, err := os.MkdirTemp("", "constants")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var program strings.Builder
	program.WriteString("#include <infiniband/verbs.h>\n#include <stdio.h>\nint main(void)\n{\n")
	for _, e := range all {
		fmt.Fprintf(&program, "\tprintf(\"%%llu\\n\", (unsigned long long)%s);\n", e.name)
	}
	program.WriteString("\treturn 0;\n}\n")
	source, binary := filepath.Join(dir, "values.c"), filepath.Join(dir, "values")
	if err := os.WriteFile(source, []byte(program.String()), 0o644); err != nil {
		return err
	}
	if out, err := exec.Command("gcc", "-w", "-I", include, "-o", binary, source).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	out, err := exec.Command(binary).Output()
	if err != nil {
		return err
	}
	for i, line := range bytes.Fields(out) {
		value, ok := new(big.Int).SetString(string(line), 10)
		if !ok {
			return fmt.Errorf("%s is no number", line)
		}
		all[i].value = value
	}
	return nil
}
