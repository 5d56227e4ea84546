package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testneeds"
)

// Each page of docs/start and docs/guides is followed as a reader follows it: in an empty folder, with an empty database. A block whose paragraph ends
// with the name of a file ("`main.go`:") is that file, a block of sh is run, and the text behind it is what it prints.
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

var (
	pageBlock = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")
	trailing  = regexp.MustCompile(`(?m) +$`)
	fileName  = regexp.MustCompile("`([\\w./-]+)`:\\s*$")
)

func followPage(t *testing.T, page string) {
	if _, err := exec.LookPath("psql"); err != nil {
		testneeds.Skip(t, testneeds.Psql, "psql is not installed")
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
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
	if err := os.Symlink(checkout, filepath.Join(place, "pgagui")); err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable() // it runs as pgagui (see clitest)
	if err == nil {
		err = os.Symlink(program, filepath.Join(place, "bin", "pgagui"))
	}
	if err != nil {
		t.Fatal(err)
	}
	sqlc := exec.Command("go", "tool", "-n", "-modfile=tools/go.mod", "sqlc")
	sqlc.Dir, sqlc.Env = checkout, append(os.Environ(), "GOWORK=off")
	path, err := sqlc.Output()
	if err == nil {
		err = os.Symlink(strings.TrimSpace(string(path)), filepath.Join(place, "bin", "sqlc"))
	}
	if err != nil {
		t.Fatal(err)
	}
	caches, err := exec.Command("go", "env", "GOMODCACHE", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	modules, builds, _ := strings.Cut(strings.TrimSpace(string(caches)), "\n")
	environment := append(os.Environ(), "GOWORK=off", "GOMODCACHE="+modules, "GOCACHE="+builds, "HOME="+filepath.Join(place, "home"), "DATABASE_URL="+testdb.Empty(t), "NEW_DATABASE_URL="+testdb.Empty(t),
		"PATH="+filepath.Join(place, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))

	output, end := "", 0
	for _, at := range pageBlock.FindAllSubmatchIndex(text, -1) {
		before, language, block := string(text[end:at[0]]), string(text[at[2]:at[3]]), string(text[at[4]:at[5]])
		end = at[1]
		line := 1 + bytes.Count(text[:at[0]], []byte("\n"))
		if name := fileName.FindStringSubmatch(before); name != nil {
			if err := os.WriteFile(filepath.Join(folder, name[1]), []byte(block), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		switch language {
		case "sh":
			command := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", block)
			command.Dir, command.Env = folder, environment
			printed, err := command.CombinedOutput()
			if output = trailing.ReplaceAllString(string(printed), ""); err != nil {
				t.Fatalf("%s:%d: %v\n%s", page, line, err, output)
			}
		case "text":
			if !prints(block).MatchString(output) {
				t.Errorf("%s:%d: it prints\n%s", page, line, output)
			}
		default:
			t.Errorf("%s:%d: this block is neither run nor written to a file", page, line)
		}
	}
}

// prints is the pattern of an output that a page shows: … is any text within a line, and a line of its own any lines.
func prints(shown string) *regexp.Regexp {
	pattern := regexp.QuoteMeta(strings.TrimSpace(trailing.ReplaceAllString(shown, "")))
	pattern = regexp.MustCompile(`(?m)^…$`).ReplaceAllString(pattern, `(?s:.*)`)
	return regexp.MustCompile(`(?m)^` + strings.ReplaceAll(pattern, "…", `.*`) + `\s*\z`)
}
