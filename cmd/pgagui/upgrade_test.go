package main

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testneeds"
)

// A store that the program of the last release has made is upgraded by this one, while that program works on it. Afterwards, programs of
// both versions work with it, but for what folds by the rules of the release.
func TestUpgradeCostlyRunsBesideTheProgramOfTheRelease(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program of the release")
	}
	released := buildReleased(t)
	address := testdb.Empty(t)
	c := clitest.On(t, address)
	old := func(arguments ...string) string {
		t.Helper()
		out, err := c.Program(released, arguments...).Output()
		if err != nil {
			t.Fatalf("the program of the release: %v: %v", arguments, err)
		}
		return string(out)
	}
	old("migrate", "up")
	events := clitest.WriteFile(t, "chat.ndjson", clitest.Answer("trip", "r1", 50)...)
	old("import", events)
	before := old("export", "trip")

	worker := clitest.StartProcess(t, c.Program(released, "worker", "--json"))
	tokens := filepath.Join(t.TempDir(), "tokens.yaml")
	token := c.Token(tokens, "web", "", "read,write")
	server := clitest.Serving(t, clitest.StartProcess(t, c.Program(released, "serve", "--listen", "127.0.0.1:0", "--json",
		"--agent", "assistant="+clitest.NewSample(t), "--token-file", tokens)))
	post := func(run string) {
		t.Helper()
		answer, text := server.Request(http.DefaultClient, token, "POST", "/agent/assistant/run", clitest.RunInput("served", run, "Hello"))
		if answer.StatusCode != 200 || !strings.Contains(text, "RUN_FINISHED") {
			t.Errorf("%s through the server of the release: %s %s", run, answer.Status, text)
		}
	}
	post("before")
	c.Must("migrate", "up")
	post("after")
	if status := c.Must("migrate", "status"); !strings.Contains(status, "up to date") {
		t.Error(status)
	}
	for _, program := range []func(...string) string{old, c.Must} {
		if after := program("export", "trip"); after != before { // the release has no other name for it
			t.Errorf("the export has changed: %s", after)
		}
		if out := program("show", "served"); strings.Count(out, "Hello") < 2 {
			t.Errorf("the conversation: %s", out)
		}
		program("migrate", "up")
	}
	for _, command := range []string{"compact", "verify"} {
		c.Must(command)
		if out, err := c.Program(released, command).CombinedOutput(); err == nil || !strings.Contains(string(out), "folds events by rules of version") {
			t.Errorf("%s of the release is not refused: %v: %s", command, err, out)
		}
	}
	for _, process := range []*clitest.Running{worker, server.Running} {
		process.Terminate(t)
		if code := process.End(t); code != cli.ExitOK {
			t.Errorf("a process of the release ends with %d", code)
		}
	}
}

// buildReleased builds the program of the commit that froze the last released migration.
func buildReleased(t *testing.T) string {
	t.Helper()
	repository := clitest.Repository("")
	git := func(arguments ...string) string {
		command := exec.Command("git", arguments...)
		command.Dir = repository
		out, err := command.Output()
		if err != nil {
			testneeds.Skip(t, testneeds.Git, "git %v: %v", arguments, err)
		}
		return strings.TrimSpace(string(out))
	}
	files, err := filepath.Glob(filepath.Join(repository, "sql", "schema", "testdata", "store_*.sql"))
	if err != nil || len(files) == 0 {
		t.Fatal("nothing is released: ", err)
	}
	if git("rev-parse", "--is-shallow-repository") == "true" {
		testneeds.Skip(t, testneeds.Git, "the clone has not the commit of the release")
	}
	commit := git("log", "--diff-filter=A", "--format=%H", "-1", "--", "sql/schema/testdata/"+filepath.Base(files[len(files)-1]))
	folder := t.TempDir()
	archive := filepath.Join(folder, "source.tar")
	git("archive", "--output="+archive, commit)
	source, program := filepath.Join(folder, "source"), filepath.Join(folder, "pgagui")
	must.Do(t, os.Mkdir(source, 0o700))
	for _, command := range []*exec.Cmd{exec.Command("tar", "-xf", archive, "-C", source), exec.Command("go", "build", "-o", program, "./cmd/pgagui")} {
		command.Dir = source
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", command.Args, err, out)
		}
	}
	return program
}
