package report

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goverbs/goverbs/internal/bench"
)

// documented is the user's description of the JSON form.
const documented = "../../../docs/rdmabench.md"

// TestJSONIsDocumented: the table in the document has all fields, and no others.
func TestJSONIsDocumented(t *testing.T) {
	doc := readDoc(t)
	_, section, ok := strings.Cut(doc, "\n## JSON")
	if !ok {
		t.Fatal("no section about JSON")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var got []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z0-9_.\\[\\]]+)` \\|").FindAllStringSubmatch(section, -1) {
		got = append(got, m[1])
	}
	want := fields(reflect.TypeFor[bench.Report](), "")
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields (-code +document):\n%s", diff)
	}
	if !strings.Contains(section, `"`+bench.Schema+`"`) {
		t.Errorf("the schema's name %q is not there", bench.Schema)
	}
}

// fields are the JSON paths of a struct's leaves; "[]" marks a list. Types that occur
// more than once (the two ends of something) are listed where they occur.
func fields(typ reflect.Type, prefix string) []string {
	var out []string
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		path, inner := prefix+name, f.Type
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			if inner.Kind() == reflect.Slice {
				path += "[]"
			}
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && inner != reflect.TypeFor[time.Time]() {
			out = append(out, fields(inner, path+".")...)
			continue
		}
		out = append(out, path)
	}
	return out
}

// TestDocumentedExample: the example is one of this form.
func TestDocumentedExample(t *testing.T) {
	m := regexp.MustCompile("(?s)```json\n(.*?)```").FindStringSubmatch(readDoc(t))
	if m == nil {
		t.Fatal("no example")
	}
	dec := json.NewDecoder(bytes.NewReader([]byte(m[1])))
	dec.DisallowUnknownFields()
	var r bench.Report
	if err := dec.Decode(&r); err != nil {
		t.Fatal(err)
	}
	if r.Schema != bench.Schema || len(r.Measurements) == 0 || r.Measurements[0].Latency == nil {
		t.Errorf("%+v", r)
	}
}

func readDoc(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(documented)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
