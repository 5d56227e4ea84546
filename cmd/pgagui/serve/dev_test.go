package serve

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/sampleagent"
	"github.com/pgagui/pgagui/devpg/cluster"
	"github.com/pgagui/pgagui/devpg/daemon"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testfile"
	"github.com/pgagui/pgagui/internal/testneeds"
)

// devData is a folder for XDG_DATA_HOME that the account of the database server may enter.
func devData(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("/tmp", "pgagui-dev-")
	if err == nil {
		err = os.Chmod(folder, 0o711)
	}
	must.Do(t, err)
	t.Cleanup(func() {
		must.Report(t, os.RemoveAll(folder))
	})
	return folder
}

// developed is a process of pgagui dev that has printed its guide.
type developed struct {
	*exec.Cmd
	t        *testing.T
	guide    string
	messages bytes.Buffer
}

func dev(c clitest.CommandLine, data string, arguments ...string) *developed {
	c.T.Helper()
	d := &developed{Cmd: c.Program(os.Args[0], append([]string{"dev", "--listen", "127.0.0.1:0"}, arguments...)...), t: c.T}
	d.Env = append(d.Env, "XDG_DATA_HOME="+data, "DATABASE_URL=postgres://nobody@127.0.0.1:1/unused")
	d.Stderr = &d.messages
	out, err := d.StdoutPipe()
	if err == nil {
		err = d.Start()
	}
	must.Do(c.T, err)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		d.guide += lines.Text() + "\n"
		if strings.HasPrefix(lines.Text(), "Ctrl-C") {
			return d
		}
	}
	_ = d.Wait()
	c.T.Fatalf("pgagui dev ended: %s%s", d.guide, &d.messages)
	return nil
}

// end presses Ctrl-C.
func (d *developed) end() {
	d.t.Helper()
	must.Do(d.t, d.Process.Signal(os.Interrupt))
	err := d.Wait()
	for line := range strings.Lines(d.messages.String()) {
		if err != nil || !strings.Contains(line, `msg="access refused"`) {
			d.t.Errorf("pgagui dev: %v, %s", err, line)
		}
	}
	if err != nil {
		d.t.Error(err)
	}
}

// commands returns the commands of the guide, as somebody pastes them into a shell.
func (d *developed) commands() []string {
	return regexp.MustCompile(`(?m)^  (?:export|curl) .*(?:\n    .*)*$`).FindAllString(d.guide, -1)
}

// shell runs commands, and returns what they print.
func (d *developed) shell(commands ...string) string {
	d.t.Helper()
	out, err := exec.CommandContext(d.t.Context(), "sh", "-ec", strings.Join(commands, "\n")).Output()
	if err != nil {
		d.t.Fatalf("%s: %v", commands, err)
	}
	return string(out)
}

func (d *developed) value(name string) string {
	return regexp.MustCompile(`(?m)^  ` + name + ` +(\S+)`).FindStringSubmatch(d.guide)[1]
}

func TestDevStartsEverything(t *testing.T) {
	t.Parallel()
	c := clitest.On(t, "")
	data := devData(t)
	d := dev(c, data)
	if lines := d.commands(); len(lines) != 5 {
		t.Fatalf("the guide has the commands %q", lines)
	}
	out := d.shell(d.commands()...)
	for _, want := range []string{
		`"type":"RUN_STARTED"`, `"type":"TOOL_CALL_RESULT"`, `"type":"STATE_DELTA"`, `"type":"RUN_FINISHED"`, // run
		`"type":"MESSAGES_SNAPSHOT"`, `"snapshot":{"turns": 1}`, // attach
		`{"stopped":0}`, `"threads":[{"id":"hello"`, `"agentId":"assistant"`,
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the commands do not print %s:\n%s", want, out)
		}
	}

	// The second of the commands with another question: it lasts until it is stopped.
	export, run, stop := d.commands()[0], d.commands()[1], d.commands()[3]
	long := strings.NewReplacer(`"content":"Hello"`, `"content":"A long answer, please"`, "'run-$(date +%s)'", "long", "'user-$(date +%s)'", "question").Replace(run)
	begin := time.Now()
	out = d.shell(export, long+" > "+data+"/long &", "sleep 1", stop, "wait", "cat "+data+"/long")
	if !strings.Contains(out, `{"stopped":1}`) || !strings.Contains(out, `"result":{"stopped":true}`) || time.Since(begin) > sampleagent.LongTime/2 {
		t.Errorf("stopped after %s: %s", time.Since(begin), out)
	}

	for _, origin := range []string{"http://localhost:5173", "https://localhost:5173"} {
		preflight, _ := http.NewRequestWithContext(t.Context(), "OPTIONS", d.value("server")+"/agent/assistant/run", nil)
		preflight.Header.Set("Origin", origin)
		preflight.Header.Set("Access-Control-Request-Method", "POST")
		preflight.Header.Set("Access-Control-Request-Headers", "authorization,content-type")
		if answer, err := http.DefaultClient.Do(preflight); err != nil {
			t.Error(err)
		} else if answer.Body.Close(); answer.Header.Get("Access-Control-Allow-Origin") != origin {
			t.Errorf("CORS: %s, %v", answer.Status, answer.Header)
		}
	}
	if answer, err := http.Get(d.value("server") + "/threads/hello/events"); err != nil {
		t.Error(err)
	} else if answer.Body.Close(); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a token: %s", answer.Status)
	}
	for _, name := range []string{"password", "token", "tokens.yaml", "lock"} {
		if info, err := os.Stat(filepath.Join(data, "pgagui", "dev", name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}

	second := c.Program(os.Args[0], "dev", "--listen", "127.0.0.1:0")
	second.Env = append(second.Env, "XDG_DATA_HOME="+data)
	if out, err := second.CombinedOutput(); err == nil || !strings.HasPrefix(string(out), fmt.Sprintf("pgagui: pgagui dev runs already: process %d holds the lock ", d.Process.Pid)) {
		t.Errorf("a second process: %v, %s", err, out)
	}
	token := d.value("token")
	d.end()

	// The database and the token are there the next time.
	d = dev(c, data)
	if again := d.value("token"); again != token {
		t.Errorf("the token was %s, and is %s", token, again)
	}
	commands := d.commands()
	if out := d.shell(commands[0], commands[2]); !strings.Contains(out, "A long answer, please") {
		t.Errorf("after a restart: %s", out)
	}
	d.end()

	// Without a terminal, the command cannot ask whether it may delete.
	reset := c.Program(os.Args[0], "dev", "--reset")
	reset.Env = append(reset.Env, "XDG_DATA_HOME="+data)
	if out, err := reset.CombinedOutput(); err == nil || !strings.Contains(string(out), "nothing was deleted") {
		t.Errorf("--reset: %v, %s", err, out)
	}
	d = dev(c, data, "--reset", "--yes")
	commands = d.commands()
	if out := d.shell(commands[0], commands[4]); !strings.Contains(out, `"threads":[]`) || d.value("token") == token {
		t.Errorf("after a reset: %s", out)
	}
	d.end()
}

// What is killed leaves the data to the next one.
func TestDevThatIsKilledLeavesNoServer(t *testing.T) {
	t.Parallel()
	c := clitest.On(t, "")
	data := devData(t)
	d := dev(c, data)
	commands := d.commands()
	d.shell(commands[0], commands[1])
	must.Do(t, d.Process.Kill())
	_ = d.Wait()
	d = dev(c, data)
	commands = d.commands()
	if out := d.shell(commands[0], commands[2]); !strings.Contains(out, "MESSAGES_SNAPSHOT") {
		t.Errorf("after a kill: %s", out)
	}

	// Data of another build is not touched.
	connection := must.Have(pgx.Connect(t.Context(), d.value("database")))(t)
	testdb.Exec(t, connection, "drop function agui_internal.installed")
	connection.Close(t.Context())
	d.end()
	other := c.Program(os.Args[0], "dev", "--listen", "127.0.0.1:0")
	other.Env = append(other.Env, "XDG_DATA_HOME="+data)
	if out, err := other.CombinedOutput(); other.ProcessState.ExitCode() != cli.ExitUnavailable || !strings.HasSuffix(string(out), "; or start from scratch: pgagui dev --reset\n") {
		t.Errorf("with data of another build: %v, %s", err, out)
	}
}

func TestDevOnAnotherDatabaseWithAnotherAgent(t *testing.T) {
	t.Parallel()
	agent := httptest.NewServer(sampleagent.Agent{})
	defer agent.Close()
	data := devData(t)
	d := dev(clitest.On(t, ""), data, "--database-url", testdb.Empty(t), "--agent", "mine="+agent.URL)
	commands := d.commands()
	if out := d.shell(commands[0], commands[1]); !strings.Contains(commands[1], "/agent/mine/run") || !strings.Contains(out, "RUN_FINISHED") {
		t.Errorf("%s: %s", commands[1], out)
	}
	if _, err := os.Stat(filepath.Join(data, "pgagui", "dev", "server")); err == nil {
		t.Error("a private server was made")
	}
	d.end()
}

// The JavaScript of the guide runs with the official client.
func TestDevClientSnippet(t *testing.T) {
	t.Parallel()
	modules := must.Have(filepath.Abs("../../../test/oracle/node_modules"))(t)
	if _, err := os.Stat(filepath.Join(modules, "@ag-ui", "client")); err != nil {
		testneeds.Skip(t, testneeds.Node, "the official client is not installed: %v", err)
	}
	if _, err := exec.LookPath("node"); err != nil {
		testneeds.Skip(t, testneeds.Node, "%v", err)
	}
	d := dev(clitest.On(t, ""), devData(t), "--database-url", testdb.Empty(t))
	defer d.end()
	folder := t.TempDir()
	must.Do(t, os.Symlink(modules, filepath.Join(folder, "node_modules")))
	_, snippet, _ := strings.Cut(d.guide, "(npm install @ag-ui/client):\n")
	snippet, _, _ = strings.Cut(snippet, "\nCtrl-C")
	file := filepath.Join(folder, "snippet.mjs")
	testfile.Write(t, file, []byte(snippet))
	for turn := 1; turn <= 2; turn++ {
		out, err := exec.CommandContext(t.Context(), "node", file).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "scripted") || !strings.HasSuffix(string(out), fmt.Sprintf("{ turns: %d }\n", turn)) || strings.Contains(string(out), "Error") {
			t.Errorf("turn %d: %v, %s", turn, err, out)
		}
	}
}

func TestDevRefusesDataOfAnotherVersion(t *testing.T) {
	t.Parallel()
	data := devData(t)
	home := filepath.Join(data, "pgagui", "dev")
	must.Do(t, os.MkdirAll(home, 0o711))
	account := must.Have(daemon.ServerAccount())(t)
	folder, err := account.KeepFolder(filepath.Join(home, "server"))
	if err == nil {
		err = errors.Join(folder.Mkdir("data"), folder.Write("data/PG_VERSION", strings.NewReader("12\n")), folder.Release())
	}
	must.Do(t, err)
	command := clitest.On(t, "").Program(os.Args[0], "dev", "--yes")
	command.Env = append(command.Env, "XDG_DATA_HOME="+data)
	out, err := command.CombinedOutput()
	if command.ProcessState.ExitCode() != cli.ExitUnavailable || !strings.Contains(string(out), "is of PostgreSQL 12, and this machine has other versions only") ||
		!strings.Contains(string(out), "--reset") || strings.Count(string(out), "\n") != 1 {
		t.Errorf("%v: %s", err, out)
	}
}

// A download needs consent, and then the hash that is known.
func TestDevDownloadsProgramsThatAreMissing(t *testing.T) {
	t.Parallel()
	var requests []string
	registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests = append(requests, r.URL.Path)
		_, _ = w.Write([]byte("changed"))
	}))
	defer registry.Close()
	var messages bytes.Buffer
	p := &program{&cli.Program{In: strings.NewReader(""), Out: &bytes.Buffer{}, Messages: &messages}}
	command := p.devCommand()
	command.SetContext(t.Context())
	folder := t.TempDir()
	download := cluster.Download{Version: "17.1", Major: 17, URL: registry.URL + "/postgres.tgz", SHA512: "x"}
	opened := 0
	open := func(major int) func(string) (*cluster.Cluster, error) {
		return func(programs string) (*cluster.Cluster, error) {
			opened++
			if want := filepath.Join(folder, "postgresql-17.1", "bin"); programs != want {
				t.Errorf("the programs are looked for in %s, want %s", programs, want)
			}
			return nil, &cluster.NoProgramsError{Major: major}
		}
	}
	for name, test := range map[string]struct {
		major    int
		yes      bool
		download cluster.Download
		want     string
		requests int
	}{
		"nobody was asked":       {0, false, download, "install the package postgresql of your system", 0},
		"another sum":            {0, true, download, "SHA-512", 1},
		"for data that fits":     {17, true, download, "SHA-512", 1},
		"for data of another":    {15, true, download, "no server programs of PostgreSQL 15", 0},
		"none for this platform": {0, true, cluster.Download{Version: "17.1"}, "install the package postgresql", 0},
	} {
		requests, opened = nil, 0
		messages.Reset()
		_, err := p.withPrograms(command, test.download, folder, test.yes, open(test.major))
		if err == nil || !strings.Contains(err.Error(), test.want) || len(requests) != test.requests || opened != 1 {
			t.Errorf("%s: %v, requests %v", name, err, requests)
		}
		if said := strings.Contains(messages.String(), download.URL); said != (test.requests > 0) {
			t.Errorf("%s: it said %q", name, &messages)
		}
	}
	if entries, _ := os.ReadDir(folder); len(entries) != 0 {
		t.Errorf("left in the folder: %v", entries)
	}
}

func TestDevListensOnThisMachineAlone(t *testing.T) {
	t.Parallel()
	clitest.On(t, "").MustFail(cli.ExitUsage, "dev", "--listen", "0.0.0.0:8080")
	taken := httptest.NewServer(http.NotFoundHandler())
	defer taken.Close()
	command := clitest.On(t, "").Program(os.Args[0], "dev", "--listen", strings.TrimPrefix(taken.URL, "http://"), "--database-url", testdb.Empty(t))
	command.Env = append(command.Env, "XDG_DATA_HOME="+devData(t))
	if out, err := command.CombinedOutput(); command.ProcessState.ExitCode() != cli.ExitUsage || !strings.Contains(string(out), "--listen 127.0.0.1:0 takes a free port") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestDevAsJSON(t *testing.T) {
	t.Parallel()
	command := clitest.On(t, "").Program(os.Args[0], "dev", "--listen", "127.0.0.1:0", "--json", "--database-url", testdb.Empty(t))
	command.Env = append(command.Env, "XDG_DATA_HOME="+devData(t))
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	must.Do(t, err)
	var guide devGuide
	if err := json.NewDecoder(out).Decode(&guide); err != nil || guide.Agent != sampleagent.Name || guide.Token == "" {
		t.Errorf("%+v, %v", guide, err)
	}
	must.Do(t, command.Process.Signal(syscall.SIGTERM))
	must.Report(t, command.Wait())
}
