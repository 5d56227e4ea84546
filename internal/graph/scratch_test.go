package graph

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestScratchGit(t *testing.T) {
	show := 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := 2 + r.IntN(60)
		back := 1 + r.IntN(12)
		rootProb := 0
		if seed%2 == 1 { rootProb = 12 }
		var runs []Run
		var imp strings.Builder
		for i := range n {
			p := ""
			pi := -1
			if i > 0 && (rootProb == 0 || r.IntN(rootProb) != 0) {
				pi = max(0, i-1-r.IntN(back))
				p = fmt.Sprint("r", pi)
			}
			runs = append(runs, Run{ID: fmt.Sprint("r", i), Parent: p})
			msg := fmt.Sprint("r", i)
			fmt.Fprintf(&imp, "commit refs/heads/b%d\nmark :%d\ncommitter a <a@b> %d +0000\ndata %d\n%s\n", i, i+1, 1000000000+i*10, len(msg), msg)
			if pi >= 0 {
				fmt.Fprintf(&imp, "from :%d\n", pi+1)
			}
			imp.WriteString("\n")
		}
		dir, _ := os.MkdirTemp("/tmp/w/D", "git")
		defer os.RemoveAll(dir)
		run := func(in string, args ...string) string {
			c := exec.Command("git", append([]string{"-C", dir}, args...)...)
			c.Stdin = strings.NewReader(in)
			o, err := c.Output()
			if err != nil { t.Fatal(err, string(o)) }
			return string(o)
		}
		run("", "init", "-q", "-b", "x")
		run(imp.String(), "fast-import", "--quiet")
		git := run("", "log", "--graph", "--all", "--date-order", "--format=%s")
		var b strings.Builder
		if err := Write(&b, runs, Options{}); err != nil { t.Fatal(err) }
		clean := func(s string) string {
			var l []string
			for _, x := range strings.Split(s, "\n") {
				x = strings.TrimRight(x, " ")
				if i := strings.IndexByte(x, 'r'); i > 0 { x = strings.ReplaceAll(x[:i], "/", "|") + x[i:] }
				if strings.Trim(x, "| ") != "" { l = append(l, x) }
			}
			return strings.Join(l, "\n")
		}
		if clean(git) != clean(b.String()) {
			show++
			if show < 4 {
			a, c := strings.Split(clean(git), "\n"), strings.Split(clean(b.String()), "\n")
			for i := range max(len(a), len(c)) {
				x, y := "", ""
				if i < len(a) { x = a[i] }
				if i < len(c) { y = c[i] }
				m := " "
				if x != y { m = "!" }
				fmt.Printf("%s %-40s %s\n", m, x, y)
			}
			fmt.Println("=====", seed)
			}
		}
		os.RemoveAll(dir)
	}
	fmt.Println("different:", show, "of 400")
}
