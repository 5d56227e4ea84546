package serve

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/cluster"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
)

// A server reads from the standbys that the description of the nodes has; status and doctor say how
// they are.
func TestStandbysOfTheDescription(t *testing.T) {
	t.Parallel()
	replicated := testdb.NewReplicated(t)
	nodes := testdb.JoinNodes(t, replicated.Primary.URL("postgres"), testdb.New(t))
	a := cluster.Node{Name: "a", URL: nodes[0].URL, Standbys: []string{replicated.Standby.URL("postgres")}}
	onNodes, onA := clitest.OnNodes(t, a, cluster.Node{Name: "b", URL: nodes[1].URL}), clitest.OnNodes(t, a)

	wait.For(t, "the standby catches up", func() bool {
		standbys := clitest.Parse[cluster.NodeStatus](onA, "cluster", "status").Standbys
		return len(standbys) == 1 && standbys[0] == cluster.StandbyStatus{}
	})
	replicated.Pause(t)
	testdb.Exec(t, replicated.PrimaryPool, `create table public.written ()`)
	if text := onNodes.Must("cluster", "status"); !strings.Contains(text, "standby 1, 1 transaction behind") {
		t.Errorf("status prints\n%s", text)
	}
	replicated.Resume(t)
	for _, arguments := range [][]string{{"doctor"}, {"doctor", "--node", "a"}} {
		if text := onNodes.Run(arguments...).Out; strings.Count(text, "the standbys of the description answer") != 1 {
			t.Errorf("%v prints\n%s", arguments, text)
		}
	}

	tokens := filepath.Join(t.TempDir(), "tokens.yaml")
	token := onNodes.Token(tokens, "web", "", "read,write")
	s := onNodes.Serve("--token-file", tokens, "--agent", "assistant="+clitest.NewSample(t), "--metrics-listen", "127.0.0.1:0")
	s.WaitForLine(t, "reads go to the replica", `"node":"a"`, `"standby":"1"`)
	for _, thread := range []string{"t1", "t2", "t3", "t4"} {
		if answer, text := s.Request(http.DefaultClient, token, "POST", "/agent/assistant/run", clitest.RunInput(thread, "r1", "Hello")); answer.StatusCode != http.StatusOK {
			t.Fatal(answer.Status, text)
		}
		if answer, text := s.Request(http.DefaultClient, token, "GET", "/threads/"+thread+"/messages", ""); answer.StatusCode != http.StatusOK || !strings.Contains(text, "Hello") {
			t.Error(answer.Status, text)
		}
	}
	got := scrape(t, s.Running)
	for _, line := range []string{
		`pgagui_server_replica_usable{node="a",standby="1"} 1`, `pgagui_pool_max_connections{node="a",pool="reads 1"} 10`, `pgagui_node_up{node="a"} 1`,
	} {
		if !got.has(line) {
			t.Errorf("there is no metric %s", line)
		}
	}
	// The standby answers, the primary does not: the node is away.
	must.Do(t, replicated.Primary.Kill())
	if got := scrape(t, s.Running); !got.has(`pgagui_node_up{node="a"} 0`) || !got.has(`pgagui_node_up{node="b"} 1`) {
		t.Error("pgagui_node_up does not say that the primary of node a is away")
	}
	must.Do(t, replicated.Primary.Restart(t.Context()))
	must.Do(t, replicated.Standby.Kill())
	s.WaitForLine(t, "the replica cannot be used, reads go to the primary", `"node":"a"`)
	s.Terminate(t)
	s.End(t)

	if text := onNodes.MustFail(cli.ExitUnavailable, "cluster", "status"); !strings.Contains(text, `standby 1 of node "a":`) {
		t.Errorf("status prints\n%s", text)
	}
	if result := onNodes.Run("doctor", "--node", "a"); result.Code != cli.ExitProblems || !strings.Contains(result.Out, `standby 1 of node "a":`) {
		t.Errorf("doctor: exit code %d, prints\n%s", result.Code, result.Out)
	}
}
