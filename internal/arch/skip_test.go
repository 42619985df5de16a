package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// A test that is passed over proves nothing, and nobody sees it. So whoever
// skips for want of something looks at CI first, and fails where it is set. A
// bare Skip is of a fuzz target: this input is of no interest.
func TestSkipsFailInCI(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		files, err := filepath.Glob(filepath.Join(p.Dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
					skipsIn(t, fset, fn)
				}
			}
		}
	}
}

// skipsIn reports the skips of a function that does not ask for CI.
func skipsIn(t *testing.T, fset *token.FileSet, fn *ast.FuncDecl) {
	asks := false
	var skips []token.Pos
	bare := map[ast.Expr]bool{} // t.Skip()
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if len(n.Args) == 0 {
				bare[n.Fun] = true
			}
		case *ast.BasicLit:
			asks = asks || n.Value == `"CI"`
		case *ast.SelectorExpr:
			who, ok := n.X.(*ast.Ident)
			if ok && (who.Name == "t" || who.Name == "b" || who.Name == "f") && strings.HasPrefix(n.Sel.Name, "Skip") && !bare[n] {
				skips = append(skips, n.Pos())
			}
		}
		return true
	})
	if asks {
		return
	}
	for _, p := range skips {
		t.Errorf("%s: a skip that CI does not see: fail there if the variable CI is set", fset.Position(p))
	}
}
