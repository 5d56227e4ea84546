package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pgagui/pgagui/cluster"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
)

// A server of a cluster runs agents on threads of all nodes, lists them together, and goes on with a
// thread that moves. A node that is away concerns its threads alone.
func TestServeOverACluster(t *testing.T) {
	t.Parallel()
	nodes := testdb.Nodes(t, 2)
	described := make([]cluster.Node, len(nodes))
	for i, node := range nodes {
		described[i] = cluster.Node{Name: node.Name, URL: node.URL}
	}
	text := must.Have(json.Marshal(map[string]any{"nodes": described}))(t)
	file := clitest.WriteFile(t, "nodes.json", string(text))
	c := clitest.On(t, nodes[0].URL)
	tokens := filepath.Join(t.TempDir(), "tokens.yaml")
	token := c.Token(tokens, "web", "", "read,write")
	arguments := []string{"--nodes", file, "--token-file", tokens, "--agent", "assistant=" + clitest.NewSample(t)}
	arguments = append(arguments, "--worker", "--worker-compact", "@every 1s", "--worker-verify", "off")
	s := c.Serve(append(arguments, "--metrics-listen", "127.0.0.1:0")...)
	request := func(method, path, body string) (status int, text string) {
		t.Helper()
		answer, text := s.Request(http.DefaultClient, token, method, path, body)
		return answer.StatusCode, text
	}

	const threads = 8
	for n := range threads {
		if status, text := request("POST", "/agent/assistant/run", clitest.RunInput(fmt.Sprint("t", n), "r1", "Hello")); status != http.StatusOK || !strings.Contains(text, "RUN_FINISHED") {
			t.Fatalf("thread %d: %d %s", n, status, text)
		}
	}
	for _, node := range nodes {
		if stored := testdb.Ask[int](t, node.Pool, `select count(*) from agui.thread`); stored == 0 || stored == threads {
			t.Errorf("node %s has %d of %d threads", node.Name, stored, threads)
		}
	}
	for _, node := range nodes { // the worker in the server
		wait.For(t, "compaction on node "+node.Name, func() bool {
			waiting := testdb.Ask[int](t, node.Pool, `select runs_to_compact from agui.lag()`)
			return waiting == 0
		})
	}
	got := scrape(t, s.Running)
	for _, line := range []string{
		`pgagui_node_up{node="a"} 1`, `pgagui_node_up{node="b"} 1`, `pgagui_pool_max_connections{node="a",pool="requests"} 10`,
		`pgagui_job_runs_total{name="compact",node="b",outcome="failed"} 0`, `pgagui_store_up{node="b",view="lag"} 1`,
	} {
		if !got.has(line) {
			t.Errorf("there is no metric %s", line)
		}
	}
	if status, text := request("GET", "/threads", ""); status != http.StatusOK || strings.Count(text, `"threadId"`) != threads {
		t.Errorf("the list: %d %s", status, text)
	}

	moving, err := cluster.Open(t.Context(), described)
	must.Do(t, err)
	defer moving.Close()
	moving.RemoveAfter = 100 * time.Millisecond
	all := make([]int, cluster.Buckets)
	for i := range all {
		all[i] = i
	}
	must.Have(moving.Move(t.Context(), all, "b", cluster.MoveOptions{}))(t)
	for n := range threads {
		if status, text := request("POST", "/agent/assistant/run", clitest.RunInput(fmt.Sprint("t", n), "r2", "Again")); status != http.StatusOK || !strings.Contains(text, "RUN_FINISHED") {
			t.Errorf("thread %d after the move: %d %s", n, status, text)
		}
		if status, text := request("GET", fmt.Sprintf("/threads/t%d/messages", n), ""); status != http.StatusOK || strings.Count(text, `"role":"user"`) != 2 {
			t.Errorf("thread %d after the move: %d %s", n, status, text)
		}
	}
	s.Terminate(t)
	if code := s.End(t); code != cli.ExitOK {
		t.Errorf("exit code %d: %s", code, s.Log)
	}

	// The node that has nothing is away.
	described[0].URL = "postgres://127.0.0.1:1/away?connect_timeout=2"
	if text, err = json.Marshal(map[string]any{"nodes": described}); err != nil {
		t.Fatal(err)
	}
	arguments[1] = clitest.WriteFile(t, "nodes.json", string(text))
	s = c.Serve(arguments...)
	if !strings.Contains(s.Log, "a node of the cluster cannot be used now") {
		t.Errorf("the log does not name the node that is away:\n%s", s.Log)
	}
	s.WaitForLine(t, "the database cannot be used, its jobs wait", `"node":"a"`)
	if status, text := request("GET", "/readyz", ""); status != http.StatusOK {
		t.Errorf("readiness: %d %s", status, text)
	}
	if status, text := request("GET", "/threads/t0/messages", ""); status != http.StatusOK {
		t.Errorf("a thread of the other node: %d %s", status, text)
	}
	s.Terminate(t)
	s.End(t)

	for _, wrong := range [][]string{{"--worker-database-url", nodes[0].URL}, {"--read-database-url", nodes[0].URL}, {"--live-database-url", nodes[0].URL}} {
		process := c.Start(append(append([]string{"serve", "--listen", "127.0.0.1:0"}, arguments...), wrong...)...)
		if code := process.End(t); code != cli.ExitUsage || !strings.Contains(process.Log, "with --nodes there is no") {
			t.Errorf("%v: exit code %d: %s", wrong, code, process.Log)
		}
	}
}
