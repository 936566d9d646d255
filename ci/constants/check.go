package main

import (
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strings"
)

// label gives flags the label that their table has for them, and then
// constants that are written out as numbers the C name that their enum has for
// their label. Where the header is too old, there is none.
func (s *source) label(header []enumerator) {
	flags := map[string]string{}
	for _, t := range s.tables {
		maps.Copy(flags, t.labels)
	}
	for i := range s.consts {
		c := &s.consts[i]
		if label, isFlag := flags[c.name]; isFlag {
			c.label = label
		}
		if c.c != "" || c.label == "" {
			continue
		}
		for _, e := range header {
			if e.enum != "" && e.enum == s.enums[c.typ] && strings.HasSuffix(e.name, "_"+c.label) {
				c.c = e.name
			}
		}
	}
}

// checkConsts looks at each constant's enum, at its number and at its names.
func checkConsts(header []enumerator, src *source) (complaints []string) {
	byName := byName(header)
	for _, c := range src.consts {
		e, known := byName[c.c]
		complain := func(format string, args ...any) {
			complaints = append(complaints, fmt.Sprintf("%v: %s: ", c.pos, c.name)+fmt.Sprintf(format, args...))
		}
		if c.value != nil && known && c.value.Cmp(e.value) != 0 {
			complain("%v, and %s is %v", c.value, c.c, e.value)
		}
		if want := src.enums[c.typ]; known && e.enum != "" && want != "" && want != e.enum {
			complain("%s is of enum %s, and type %s is for enum %s", c.c, e.enum, c.typ, want)
		}
		if other := src.better(c, src.ownPart(c)); other != "" {
			complain("it is %s, and its name is more like %s", c.c, other)
		}
		if other := src.better(c, c.label); other != "" {
			complain("it is %s, and prints as %q, which is more like %s", c.c, c.label, other)
		}
	}
	return complaints
}

func byName(header []enumerator) map[string]enumerator {
	all := map[string]enumerator{}
	for _, e := range header {
		all[e.name] = e
	}
	return all
}

// ownPart is a constant's name without what all of its type begin with.
func (s *source) ownPart(c goConst) string {
	prefix := c.name
	for _, other := range s.consts {
		if other.typ != c.typ || other.name == c.name {
			continue
		}
		for !strings.HasPrefix(other.name, prefix) {
			prefix = prefix[:len(prefix)-1]
		}
	}
	return strings.TrimPrefix(c.name, prefix)
}

// better finds a constant of the same type whose C name is more like text than
// the C name of c.
func (s *source) better(c goConst, text string) string {
	if c.c == "" || text == "" {
		return ""
	}
	for _, other := range s.consts {
		if c.typ != "" && other.typ == c.typ && other.c != "" && likeness(text, other.c) > likeness(text, c.c) {
			return other.c
		}
	}
	return ""
}

var digits = regexp.MustCompile(`[0-9]+`)

// likeness tells how many letters of a C constant's name text has, word by
// word, less those that it has not. Of a word the first three letters are
// enough, since the rest may be cut off; a longer number counts whole.
func likeness(text, c string) int {
	flat := strings.ToUpper(strings.NewReplacer("_", "", " ", "", ".", "").Replace(text))
	n := 0
	for _, word := range strings.Split(c, "_") {
		has := strings.Contains(flat, word[:min(len(word), 3)])
		if len(word) > 2 && digits.FindString(word) == word {
			has = slices.Contains(digits.FindAllString(flat, -1), word)
		}
		if has {
			n += len(word)
		} else {
			n -= len(word)
		}
	}
	return n
}

// checkFlags looks for flags that a table forgets, and for labels that it has
// twice. A combination of flags needs no label.
func checkFlags(header []enumerator, src *source) (complaints []string) {
	typeOf := map[string]string{}
	for _, c := range src.consts {
		typeOf[c.name] = c.typ
	}
	tables := map[string]table{}
	for _, t := range src.tables {
		var seen []string
		for name, label := range t.labels {
			tables[typeOf[name]] = t
			if slices.Contains(seen, label) {
				complaints = append(complaints, fmt.Sprintf("%v: %s has %q twice", t.pos, t.name, label))
			}
			seen = append(seen, label)
		}
	}
	byName := byName(header)
	for _, c := range src.consts {
		t, isFlag := tables[c.typ]
		value := c.value
		if value == nil {
			value = byName[c.c].value
		}
		if _, named := t.labels[c.name]; isFlag && !named && (value == nil || oneBit(value)) {
			complaints = append(complaints, fmt.Sprintf("%v: %s has no %s", t.pos, t.name, c.name))
		}
	}
	return complaints
}

func oneBit(n *big.Int) bool { return n.Sign() > 0 && n.BitLen() == int(n.TrailingZeroBits())+1 }
