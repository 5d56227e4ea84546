package upkeep

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/cluster"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
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
	text, err := json.Marshal(map[string]any{"nodes": []cluster.Node{{Name: "a", URL: commands.DatabaseURL}, {Name: "b", URL: "${URL_OF_B}"}}})
	if err != nil {
		t.Fatal(err)
	}
	file := clitest.WriteFile(t, "nodes.json", string(text))
	cluster := func(arguments ...string) []string {
		return append(append([]string{"cluster"}, arguments...), "--nodes", file)
	}
	expect := func(want string, arguments ...string) {
		t.Helper()
		if got := strings.Join(strings.Fields(commands.Must(cluster(arguments...)...)), " "); !strings.Contains(got, want) {
			t.Errorf("pgagui cluster %s prints\n%s\nwant %s", strings.Join(arguments, " "), got, want)
		}
	}
	expect("", "migrate")
	expect("b 0 0 0 has not joined", "status")
	expect("a 1024 0 0 node of the cluster b 0 0 0 node of the cluster", "init")
	expect("moved 512 buckets and ", "rebalance")
	expect("a 512 0 0 node of the cluster b 512 0 0 node of the cluster", "status")
	expect("moved 0 buckets and 0 threads", "rebalance")
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
		{"cluster"}, {"cluster", "status"}, cluster("move"), cluster("move", "1"), cluster("move", "--to", "b"), cluster("move", "1024", "--to", "b"),
		cluster("move", "2-1", "--to", "b"), cluster("move", "x", "--to", "b"), cluster("move", "1", "--thread", "t1", "--to", "b"),
	} {
		commands.MustFail(cli.ExitUsage, wrong...)
	}
	for text, want := range map[string]string{
		`{"nodes":[{"name":"a","url":"${NOT_SET_ANYWHERE}"}]}`:      "NOT_SET_ANYWHERE of its address is not set",
		`{"nodes":[{"name":"A","url":"x"}]}`:                        `"A" is no name of a node`,
		`{"nodes":[{"name":"a","url":"x"},{"name":"a","url":"x"}]}`: `two nodes "a"`,
		`{"nodes":[]}`:                       "no nodes",
		`{"nodes":[{"name":"a","dsn":"x"}]}`: "dsn",
		`{"nodes":[{"name":"a","url":""}]}`:  `node "a" has no address`,
	} {
		message := commands.MustFail(cli.ExitInput, "cluster", "status", "--nodes", clitest.WriteFile(t, "wrong.json", text))
		if !strings.Contains(message, want) {
			t.Errorf("%s: %s", text, message)
		}
	}
	gone := clitest.WriteFile(t, "gone.json", `{"nodes":[{"name":"a","url":"postgres://127.0.0.1:1/none"}]}`)
	if result := commands.Run("cluster", "status", "--nodes", gone); result.Code != cli.ExitUnavailable || !strings.Contains(result.Messages, `node "a"`) {
		t.Errorf("a node that does not answer: %d, %s", result.Code, result.Messages)
	}
}
