package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// Package db is sqlc's output: no public signature of another package names its types.
func TestNoPublicSignatureNamesGeneratedTypes(t *testing.T) {
	t.Parallel()
	looked := 0
	for _, pattern := range []string{"../*.go", "../jobs/*.go", "../worker/*.go", "../session/*.go", "../transcript/*.go", "../otelagui/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			positions := token.NewFileSet()
			file, err := parser.ParseFile(positions, name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
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
