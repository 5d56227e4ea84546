package upkeep

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/cluster"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

// A store in use becomes a cluster of two, and one again.
func TestAStoreBecomesAClusterAndBack(t *testing.T) {
	b := testdb.Empty(t)
	t.Setenv("URL_OF_B", b)
	commands := clitest.NewCommandLine(t)
	for _, thread := range []string{"t1", "t2", "t3", "t4"} {
		importOld(t, commands, thread, 1)
	}
	text := must.Have(json.Marshal(map[string]any{"nodes": []cluster.Node{{Name: "a", URL: commands.DatabaseURL}, {Name: "b", URL: "${URL_OF_B}"}}}))(t)
	file := clitest.WriteFile(t, "nodes.json", string(text))
	// run runs a command on the nodes, and returns its exit code and what it prints on one line.
	run := func(arguments ...string) (code int, printed string) {
		var out, messages bytes.Buffer
		code = clitest.Run(t.Context(), append(arguments, "--nodes", file), strings.NewReader(""), &out, &messages)
		return code, strings.Join(strings.Fields(out.String()+messages.String()), " ")
	}
	expect := func(want string, arguments ...string) {
		t.Helper()
		if code, got := run(append([]string{"cluster"}, arguments...)...); code != cli.ExitOK || !strings.Contains(got, want) {
			t.Errorf("pgagui cluster %s: exit code %d, prints\n%s\nwant %s", strings.Join(arguments, " "), code, got, want)
		}
	}
	expect("", "migrate")
	expect("b 0 0 0 has not joined", "status")
	expect("a 1024 0 0 node of the cluster b 0 0 0 node of the cluster", "init")
	expect("moved 512 buckets and ", "rebalance")
	expect("a 512 0 0 node of the cluster b 512 0 0 node of the cluster", "status")
	expect("moved 0 buckets and 0 threads", "rebalance")
	expect("SCOPE BUCKET NODE", "pin")
	expect("moved 0 buckets and ", "pin", "", "--bucket", "1000")
	expect("1000 b", "pin")
	if got := clitest.On(t, b).Must("threads"); !containsAll(got, "t1", "t2", "t3", "t4") {
		t.Errorf("threads of the pinned scope on b:\n%s", got)
	}
	if code, got := run("cluster", "pin", "--json"); code != cli.ExitOK || got != `{"scope":"","bucket":1000,"node":"b"}` {
		t.Errorf("pgagui cluster pin --json: %d, %s", code, got)
	}
	expect("moved 0 buckets and ", "pin", "", "--remove")

	// Commands over all nodes, and over one.
	if code, got := run("threads"); code != cli.ExitOK || !containsAll(got, "t1", "t2", "t3", "t4") {
		t.Errorf("pgagui threads: %d, %s", code, got)
	}
	listed := 0
	for _, node := range []string{"a", "b"} {
		if code, got := run("compact", "--node", node); code != cli.ExitOK {
			t.Errorf("pgagui job compact on %s: %d, %s", node, code, got)
		}
		_, got := run("threads", "--node", node)
		listed += strings.Count(got, "finished")
	}
	if listed != 4 {
		t.Errorf("the nodes list %d threads, want 4", listed)
	}
	for _, thread := range []string{"t1", "t2", "t3", "t4"} {
		for _, command := range [][]string{{"show", thread}, {"show", thread, "--status"}, {"events", thread}, {"show", thread, "--document"}, {"events", "--follow", thread}} {
			if code, got := run(command...); code != cli.ExitOK {
				t.Errorf("pgagui %s: %d, %s", strings.Join(command, " "), code, got)
			}
		}
	}
	if code, got := run("events", "--all"); code != cli.ExitOK || strings.Count(got, "RUN_STARTED") != 4 {
		t.Errorf("pgagui events --all: %d, %s", code, got)
	}
	expect("moved 512 buckets", "move", "0-1023", "--to", "b")
	there := clitest.On(t, b)
	if got := there.Must("threads"); strings.Count(got, "t1")+strings.Count(got, "t4") != 2 {
		t.Errorf("threads on b:\n%s", got)
	}
	if text := commands.MustFail(cli.ExitRefused, "show", "t1"); !strings.Contains(text, `thread "t1" is on node "b" of the cluster, and this is node "a"`) {
		t.Error(text)
	}
	expect("moved 0 buckets and 1 thread", "move", "--thread", "t1", "--to", "a")
	expect("moved 1,024 buckets", "move", "0-1023", "--to", "a")

	for _, wrong := range [][]string{
		{"cluster"}, {"cluster", "move"}, {"cluster", "move", "1"}, {"cluster", "move", "--to", "b"}, {"cluster", "move", "1024", "--to", "b"},
		{"cluster", "move", "2-1", "--to", "b"}, {"cluster", "move", "x", "--to", "b"}, {"cluster", "move", "1", "--thread", "t1", "--to", "b"},
		{"migrate", "up"}, {"job", "compact", "--node", "z"}, {"threads", "--database-url", b},
	} {
		if code, got := run(wrong...); code != cli.ExitUsage {
			t.Errorf("pgagui %s: exit code %d, %s", strings.Join(wrong, " "), code, got)
		}
	}
	commands.MustFail(cli.ExitUsage, "cluster", "status")
	commands.MustFail(cli.ExitUsage, "threads", "--node", "a")
	for text, want := range map[string]string{
		`{"nodes":[{"name":"a","url":"${NOT_SET_ANYWHERE}"}]}`:      "NOT_SET_ANYWHERE of its address is not set",
		`{"nodes":[{"name":"A","url":"x"}]}`:                        `"A" is no name of a node`,
		`{"nodes":[{"name":"a","url":"x"},{"name":"a","url":"x"}]}`: `two nodes "a"`,
		`{"nodes":[]}`:                       "no nodes",
		`{"nodes":[{"name":"a","dsn":"x"}]}`: "dsn",
		`{"nodes":[{"name":"a","url":""}]}`:  `node "a" has no address`,
	} {
		file = clitest.WriteFile(t, "wrong.json", text)
		if code, message := run("cluster", "status"); code != cli.ExitInput || !strings.Contains(message, want) {
			t.Errorf("%s: %d, %s", text, code, message)
		}
	}
	file = clitest.WriteFile(t, "gone.json", `{"nodes":[{"name":"a","url":"postgres://127.0.0.1:1/none"}]}`)
	if code, message := run("cluster", "status"); code != cli.ExitUnavailable || !strings.Contains(message, `node "a"`) {
		t.Errorf("a node that does not answer: %d, %s", code, message)
	}
}

func containsAll(text string, parts ...string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}
