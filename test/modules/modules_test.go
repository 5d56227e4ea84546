// Package modules tests the modules of this repository as users get them: from a proxy, without go.work.
package modules

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pgagui/pgagui/internal/testfile"
)

// version is what the modules require of each other. It is another one in each run, for the module cache is that of the user: what was
// compiled for this repository serves its consumers, too.
var version = flag.String("version", fmt.Sprintf("v0.0.0-test.%d", time.Now().UnixNano()), "the version that the modules require of each other")

// proxy is a folder with the modules, in the layout of a module proxy.
var proxy string

func TestMain(m *testing.M) {
	flag.Parse()
	var err error
	if proxy, err = os.MkdirTemp("", "pgagui-modules"); err != nil {
		panic(err)
	}
	status := m.Run()
	if err := errors.Join(os.RemoveAll(proxy), removeFromCache()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

// removeFromCache removes the modules of this run from the module cache, where files are read-only.
func removeFromCache() error {
	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		return err
	}
	for _, folder := range []string{"github.com/pgagui", "cache/download/github.com/pgagui"} {
		err = errors.Join(err, filepath.WalkDir(filepath.Join(strings.TrimSpace(string(cache)), folder), func(path string, entry fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil || !strings.Contains(entry.Name(), *version) {
				return err
			}
			if err := removeReadOnly(path); err != nil || !entry.IsDir() {
				return err
			}
			return fs.SkipDir
		}))
	}
	return err
}

// removeReadOnly removes a folder or a file, and makes the folders in it writable before.
func removeReadOnly(path string) error {
	err := filepath.WalkDir(path, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			err = os.Chmod(path, 0o755)
		}
		return err
	})
	return errors.Join(err, os.RemoveAll(path))
}

// consumer is a module that requires those of this repository.
type consumer struct {
	t           *testing.T
	folder      string
	environment []string
}

func newConsumer(t *testing.T) consumer {
	t.Helper()
	c := consumer{t: t, folder: t.TempDir(), environment: append(os.Environ(), "GOWORK=off")}
	others := strings.TrimSpace(c.run("go", "env", "GOPROXY"))
	if err := packed(); err != nil {
		t.Fatal(err)
	}
	c.environment = append(c.environment, "GOPROXY=file://"+proxy+","+others, "GONOSUMDB=github.com/pgagui/*", "GOFLAGS=-mod=mod")
	return c
}

// packed writes the modules to the proxy, once.
var packed = sync.OnceValue(func() error {
	command := exec.Command("go", "run", "./pack", "..", proxy, *version)
	command.Dir, command.Env = filepath.Join("..", "..", "tools"), append(os.Environ(), "GOWORK=off")
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("pack: %w\n%s", err, output)
	}
	return nil
})

func (c consumer) run(name string, arguments ...string) string {
	c.t.Helper()
	command := exec.Command(name, arguments...)
	command.Dir, command.Env = c.folder, c.environment
	var messages strings.Builder
	command.Stderr = &messages
	out, err := command.Output()
	if err != nil {
		c.t.Fatalf("%s %s: %v\n%s", name, strings.Join(arguments, " "), err, messages.String())
	}
	return string(out)
}

func (c consumer) write(name, text string) {
	c.t.Helper()
	testfile.Write(c.t, filepath.Join(c.folder, name), []byte(text))
}

// Until the modules are in a registry, docs/install.md says how a module requires a checkout.
func TestAModuleRequiresACheckout(t *testing.T) {
	t.Parallel()
	page := testfile.Read(t, "../../docs/install.md")
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## In a Go module\n")
	section, _, isThere := strings.Cut(section, "<!-- then:")
	if !isThere {
		t.Skip("docs/install.md is about released modules")
	}
	c := consumer{t: t, folder: t.TempDir(), environment: append(os.Environ(), "GOWORK=off", "GOFLAGS=")}
	c.run("go", "mod", "init", "example.com/chat")
	c.write("main.go", "package main\n\nimport (\n\t\"fmt\"\n\n\t\"github.com/pgagui/pgagui\"\n)\n\nfunc main() { fmt.Println(pgagui.New(nil, nil)) }\n")
	lines := 0
	for line := range strings.Lines(section) {
		if command, isCode := strings.CutPrefix(line, "    "); isCode {
			arguments := strings.Fields(strings.ReplaceAll(command, "../pgagui", checkout))
			c.run(arguments[0], arguments[1:]...)
			lines++
		}
	}
	if lines < 3 {
		t.Errorf("docs/install.md has %d lines for it", lines)
	}
	c.run("go", "build", "./...")
}

// Who imports the store compiles what is in importer.txt, and gets nothing of the command line, the benchmark or OpenTelemetry.
func TestWhatAnImporterGets(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it compiles a program of another module")
	}
	c := newConsumer(t)
	c.write("go.mod", "module example.com/chat\n\ngo 1.26.0\n\nrequire github.com/pgagui/pgagui "+*version+"\n")
	c.write("main.go", `package main

import (
	"fmt"

	"github.com/pgagui/pgagui"
)

func main() { fmt.Println(pgagui.New(nil, nil)) }
`)
	c.run("go", "mod", "tidy")
	c.run("go", "build", "./...")

	compiled := strings.Fields(c.run("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "."))
	compiled = slices.DeleteFunc(compiled, func(path string) bool { return path == "example.com/chat" })
	slices.Sort(compiled)
	got := strings.Join(compiled, "\n") + "\n"
	testfile.Golden(t, "importer.txt", got)

	sums := testfile.Read(t, filepath.Join(c.folder, "go.sum"))
	modules := c.run("go", "list", "-m", "all")
	for _, unwanted := range []string{"spf13", "gonum", "go-fonts", "golang.org/x/term", "docker", "moby", "containerd"} {
		if strings.Contains(modules, unwanted) {
			t.Errorf("%s is in the module graph of an importer", unwanted)
		}
	}
	for line := range strings.Lines(string(sums)) {
		// Of most modules go.sum has only the sum of their go.mod.
		for _, unwanted := range []string{"opentelemetry", "cobra"} {
			if strings.Contains(line, unwanted) && !strings.Contains(line, "/go.mod ") {
				t.Errorf("an importer downloads %s", line)
			}
		}
	}
	t.Logf("%d packages, %d modules in the graph, %d lines of go.sum", len(compiled), strings.Count(modules, "\n")-1, strings.Count(string(sums), "\n"))
}

// Who imports the server compiles neither the command line nor OpenTelemetry.
func TestWhatAnImporterOfTheServerGets(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it compiles a program of another module")
	}
	c := newConsumer(t)
	c.write("go.mod", "module example.com/chat\n\ngo 1.26.0\n\nrequire (\n\tgithub.com/pgagui/pgagui "+*version+"\n\tgithub.com/pgagui/pgagui/server "+*version+"\n)\n")
	c.write("main.go", `package main

import (
	"net/http"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/server"
	"github.com/pgagui/pgagui/server/access"
)

func main() {
	handler, err := server.New(pgagui.New(nil, nil), server.Options{Access: access.Anonymous("", access.Read)})
	if err != nil {
		panic(err)
	}
	_ = http.ListenAndServe("127.0.0.1:0", handler)
}
`)
	c.run("go", "mod", "tidy")
	c.run("go", "build", "./...")
	compiled := c.run("go", "list", "-deps", ".")
	for _, unwanted := range []string{"opentelemetry", "cobra", "docker", "golang-migrate"} {
		if strings.Contains(compiled, unwanted) {
			t.Errorf("an importer of the server compiles %s", unwanted)
		}
	}
}

func TestTheCommandIsInstalled(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it compiles the command anew")
	}
	c := newConsumer(t)
	folder := t.TempDir()
	c.environment = append(c.environment, "GOBIN="+folder)
	c.run("go", "install", "github.com/pgagui/pgagui/cmd/pgagui@"+*version)
	program := filepath.Join(folder, "pgagui")
	if out := c.run(program, "version"); !strings.HasPrefix(out, "pgagui "+*version+" ") {
		t.Errorf("version: %s", out)
	}
	// Its migrations are made of what the module has.
	if out := c.run(program, "migrate", "sql"); !strings.Contains(out, "create or replace function agui.append(") {
		t.Errorf("migrate sql has no agui.append: %d bytes", len(out))
	}
	if linked := c.run("go", "version", "-m", program); strings.Contains(linked, "gonum") || strings.Contains(linked, "dockertest") {
		t.Errorf("the command has the benchmark or the tests in it:\n%s", linked)
	}
}
