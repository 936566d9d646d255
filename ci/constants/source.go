package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// goConst is a constant of the package that stands for one of C's.
type goConst struct {
	name  string
	typ   string   // "" in the shim
	c     string   // the C name, where the Go source has it
	value *big.Int // where it is a number of its own; nil where C gives it
	label string   // what String says
	pos   token.Position
}

// source is what the package's files say about constants.
type source struct {
	fset   *token.FileSet
	consts []goConst
	enums  map[string]string // a type's C enum
	// used are the C names that code mentions, in Go or in the shim.
	used   map[string]bool
	tables []table
}

// table gives names to the flags of a set.
type table struct {
	name   string
	labels map[string]string // by constant
	pos    token.Position
}

var (
	enumOf = regexp.MustCompile(`\(enum\s+(ibv?_\w+)`)
	cName  = regexp.MustCompile(`\bIBV?_[A-Z0-9_]+\b`)
	// ownNumber is a constant of the shim's for one that older headers lack.
	ownNumber = regexp.MustCompile(`\bGV_([A-Z0-9_]+)\s*=\s*([^,;}]+?)\s*[,}]`)
)

// readSource reads the Go files and the C files of a folder, without tests.
func readSource(dir string) (*source, error) {
	s := &source{fset: token.NewFileSet(), enums: map[string]string{}, used: map[string]bool{}}
	files, err := filepath.Glob(filepath.Join(dir, "*.[gch]*"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		switch ext := filepath.Ext(file); {
		case strings.HasSuffix(file, "_test.go"), strings.HasSuffix(file, "_string.go"):
		case ext == ".go":
			f, err := parser.ParseFile(s.fset, file, nil, parser.ParseComments)
			if err != nil {
				return nil, err
			}
			s.readGo(f)
		case ext == ".c", ext == ".h":
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			s.readC(file, withoutComments(string(text)))
		}
	}
	if len(s.consts) == 0 {
		return nil, fmt.Errorf("no constants in %s", dir)
	}
	return s, nil
}

// readC takes what C code uses, and its own numbers, which have C's names but
// for the prefix.
func (s *source) readC(file, text string) {
	for _, name := range cName.FindAllString(text, -1) {
		s.used[name] = true
	}
	for _, m := range ownNumber.FindAllStringSubmatch(text, -1) {
		if e, err := parser.ParseExpr(m[2]); err == nil {
			s.consts = append(s.consts, goConst{name: "GV_" + m[1], c: "IBV_" + m[1], value: number(e), pos: token.Position{Filename: file}})
		}
	}
}

func (s *source) readGo(f *ast.File) {
	for _, decl := range f.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range gen.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				if m := enumOf.FindStringSubmatch(gen.Doc.Text()); m != nil {
					s.enums[spec.Name.Name] = m[1]
				}
			case *ast.ValueSpec:
				s.readValue(gen.Tok, spec)
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && isC(sel.X) {
			s.used[sel.Sel.Name] = true
		}
		return true
	})
}

func isC(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "C"
}

// readValue takes the constants that have a type, and the tables.
func (s *source) readValue(tok token.Token, spec *ast.ValueSpec) {
	if len(spec.Names) != 1 || len(spec.Values) != 1 {
		return
	}
	name, value := spec.Names[0].Name, spec.Values[0]
	typ, typed := spec.Type.(*ast.Ident)
	switch {
	case tok == token.VAR:
		if lit, ok := value.(*ast.CompositeLit); ok {
			s.readTable(name, lit)
		}
	case tok == token.CONST && typed:
		c := goConst{name: name, typ: typ.Name, pos: s.fset.Position(spec.Pos())}
		c.label = strings.TrimSpace(spec.Comment.Text())
		if sel, ok := value.(*ast.SelectorExpr); ok && isC(sel.X) {
			c.c = sel.Sel.Name
		} else if c.value = number(value); c.value != nil && cName.MatchString(c.label) {
			c.c = cName.FindString(c.label)
		}
		if c.c != "" || c.value != nil {
			s.consts = append(s.consts, c)
		}
	}
}

// number evaluates a constant that needs no other, or gives nil.
func number(e ast.Expr) *big.Int {
	v, err := types.Eval(token.NewFileSet(), nil, token.NoPos, types.ExprString(e))
	if err != nil || v.Value == nil || v.Value.Kind() != constant.Int {
		return nil
	}
	n, _ := new(big.Int).SetString(v.Value.ExactString(), 10)
	return n
}

// readTable takes a []flagName.
func (s *source) readTable(name string, lit *ast.CompositeLit) {
	if array, ok := lit.Type.(*ast.ArrayType); !ok || types.ExprString(array.Elt) != "flagName" {
		return
	}
	t := table{name: name, labels: map[string]string{}, pos: s.fset.Position(lit.Pos())}
	for _, elt := range lit.Elts {
		pair, ok := elt.(*ast.CompositeLit)
		if !ok || len(pair.Elts) != 2 {
			continue
		}
		call, isCall := pair.Elts[0].(*ast.CallExpr)
		text, isText := pair.Elts[1].(*ast.BasicLit)
		if !isCall || !isText || len(call.Args) != 1 {
			continue
		}
		label, err := strconv.Unquote(text.Value)
		if err == nil {
			t.labels[types.ExprString(call.Args[0])] = label
		}
	}
	s.tables = append(s.tables, t)
}
