package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/internal/must"
)

// Package db is sqlc's output: no public signature of another package names its types.
func TestNoPublicSignatureNamesGeneratedTypes(t *testing.T) {
	t.Parallel()
	looked := 0
	for _, pattern := range []string{"../*.go", "../jobs/*.go", "../worker/*.go", "../session/*.go", "../transcript/*.go", "../otelagui/*.go"} {
		files := must.Have(filepath.Glob(pattern))(t)
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			positions := token.NewFileSet()
			file := must.Have(parser.ParseFile(positions, name, nil, 0))(t)
			for _, declaration := range file.Decls {
				for _, public := range publicParts(declaration) {
					looked++
					ast.Inspect(public, func(node ast.Node) bool {
						selector, isSelector := node.(*ast.SelectorExpr)
						if isSelector {
							if of, isName := selector.X.(*ast.Ident); isName && of.Name == "db" {
								t.Errorf("%s: a public signature names db.%s", positions.Position(selector.Pos()), selector.Sel.Name)
							}
						}
						return true
					})
				}
			}
		}
	}
	if looked < 150 {
		t.Errorf("only %d public signatures were found", looked)
	}
}

// publicParts are the types in a declaration that users of the package see.
func publicParts(declaration ast.Decl) (parts []ast.Node) {
	switch declaration := declaration.(type) {
	case *ast.FuncDecl:
		if declaration.Name.IsExported() && hasPublicReceiver(declaration) {
			parts = append(parts, declaration.Type)
		}
	case *ast.GenDecl:
		for _, spec := range declaration.Specs {
			one, isType := spec.(*ast.TypeSpec)
			if !isType || !one.Name.IsExported() {
				continue
			}
			structure, isStruct := one.Type.(*ast.StructType)
			if !isStruct {
				parts = append(parts, one.Type)
				continue
			}
			for _, field := range structure.Fields.List {
				if len(field.Names) == 0 || field.Names[0].IsExported() {
					parts = append(parts, field.Type)
				}
			}
		}
	}
	return parts
}

// hasPublicReceiver reports whether a declaration is a function, or a method of an exported type.
func hasPublicReceiver(function *ast.FuncDecl) bool {
	if function.Recv == nil {
		return true
	}
	receiver := function.Recv.List[0].Type
	for {
		switch of := receiver.(type) {
		case *ast.StarExpr:
			receiver = of.X
		case *ast.IndexExpr:
			receiver = of.X
		case *ast.Ident:
			return of.IsExported()
		default:
			return true
		}
	}
}

// The Store calls its backend: no other file of the package names what the cluster is made of.
func TestNodesOfAClusterStayBehindTheBackend(t *testing.T) {
	t.Parallel()
	hidden := map[string]bool{}
	for name, file := range filesOf(t, "../*.go") {
		if isOfTheCluster(name) {
			for _, declaration := range file.Decls {
				for _, declared := range namesOf(declaration) {
					hidden[declared] = !ast.IsExported(declared)
				}
			}
		}
	}
	if len(hidden) < 10 {
		t.Fatalf("the files of the cluster declare %d names", len(hidden))
	}
	for name, file := range filesOf(t, "../*.go") {
		if isOfTheCluster(name) {
			continue
		}
		ast.Inspect(file, func(node ast.Node) bool {
			if used, isName := node.(*ast.Ident); isName && hidden[used.Name] {
				t.Errorf("%s names %s of the cluster: call a method of backend", name, used.Name)
			}
			return true
		})
	}
}

func isOfTheCluster(name string) bool { return name == "../cluster.go" || name == "../directory.go" }

// filesOf are the files of a package, without tests, by name.
func filesOf(t *testing.T, pattern string) map[string]*ast.File {
	t.Helper()
	names, err := filepath.Glob(pattern)
	must.Do(t, err)
	files := map[string]*ast.File{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		if files[name], err = parser.ParseFile(token.NewFileSet(), name, nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// namesOf are the types, constants, variables and functions that a declaration declares; no methods.
func namesOf(declaration ast.Decl) (names []string) {
	switch declaration := declaration.(type) {
	case *ast.FuncDecl:
		if declaration.Recv == nil {
			names = append(names, declaration.Name.Name)
		}
	case *ast.GenDecl:
		for _, spec := range declaration.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				names = append(names, spec.Name.Name)
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					names = append(names, name.Name)
				}
			}
		}
	}
	return names
}
