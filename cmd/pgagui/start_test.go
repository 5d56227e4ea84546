package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/internal/markdown"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testneeds"
)

// Each page of docs/start and docs/guides is followed as a reader follows it: in an empty folder, with an empty database. A block that
// the page calls a file is that file, a block of sh is run, and the text behind it is what it prints.
func TestPagesAreFollowed(t *testing.T) {
	t.Parallel()
	var pages []string
	for _, folder := range []string{"start", "guides"} {
		found, err := filepath.Glob("../../docs/" + folder + "/*.md")
		if err != nil || len(found) == 0 {
			t.Fatalf("no pages in %s: %v", folder, err)
		}
		pages = append(pages, found...)
	}
	for _, page := range pages {
		if filepath.Base(page) == "front-end.md" {
			continue // js/frameworks follows it in a browser
		}
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			followPage(t, page)
		})
	}
}

var trailing = regexp.MustCompile(`(?m) +$`)

func followPage(t *testing.T, page string) {
	if _, err := exec.LookPath("psql"); err != nil {
		testneeds.Skip(t, testneeds.Psql, "psql is not installed")
	}
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	place := t.TempDir()
	folder := filepath.Join(place, "start")
	for _, name := range []string{folder, filepath.Join(place, "bin"), filepath.Join(place, "home")} {
		if err := os.Mkdir(name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	program, err := os.Executable() // it runs as pgagui (see clitest)
	if err != nil {
		t.Fatal(err)
	}
	goTool := exec.Command("go", "tool", "-n", "-modfile=tools/go.mod", "sqlc")
	goTool.Dir, goTool.Env = checkout, append(os.Environ(), "GOWORK=off")
	sqlc, err := goTool.Output()
	if err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"pgagui": checkout, "bin/pgagui": program, "bin/sqlc": strings.TrimSpace(string(sqlc))} {
		if err := os.Symlink(target, filepath.Join(place, name)); err != nil {
			t.Fatal(err)
		}
	}
	caches, err := exec.Command("go", "env", "GOMODCACHE", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	modules, builds, _ := strings.Cut(strings.TrimSpace(string(caches)), "\n")
	environment := append(os.Environ(), "GOWORK=off", "GOMODCACHE="+modules, "GOCACHE="+builds,
		"DATABASE_URL="+testdb.Empty(t), "NEW_DATABASE_URL="+testdb.Empty(t), "HOME="+filepath.Join(place, "home"),
		"PATH="+filepath.Join(place, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))

	output := ""
	for _, block := range markdown.Blocks(t, page) {
		switch {
		case block.File != "":
			if err := os.WriteFile(filepath.Join(folder, block.File), []byte(block.Text), 0o600); err != nil {
				t.Fatal(err)
			}
		case block.Language == "sh":
			command := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", block.Text)
			command.Dir, command.Env = folder, environment
			printed, err := command.CombinedOutput()
			if output = trailing.ReplaceAllString(string(printed), ""); err != nil {
				t.Fatalf("%s:%d: %v\n%s", page, block.Line, err, output)
			}
		case block.Language == "text":
			if !prints(block.Text).MatchString(output) {
				t.Errorf("%s:%d: it prints\n%s", page, block.Line, output)
			}
		default:
			t.Errorf("%s:%d: this block is neither run nor written to a file", page, block.Line)
		}
	}
}

// prints is the pattern of an output that a page shows: … is any text within a line, and a line of its own any lines. The schema may
// have a later version.
func prints(shown string) *regexp.Regexp {
	pattern := regexp.QuoteMeta(strings.TrimSpace(trailing.ReplaceAllString(shown, "")))
	pattern = regexp.MustCompile(`version \d+`).ReplaceAllString(pattern, `version \d+`)
	pattern = regexp.MustCompile(`(?m)^…$`).ReplaceAllString(pattern, `(?s:.*)`)
	return regexp.MustCompile(`(?m)^` + strings.ReplaceAll(pattern, "…", `.*`) + `\s*\z`)
}
