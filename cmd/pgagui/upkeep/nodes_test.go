package upkeep

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/cluster"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/internal/cutproxy"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
	"github.com/pgagui/pgagui/jobs"
)

// threeNodes are the nodes a, b and c of a cluster, each with threads. b is behind a proxy.
type threeNodes struct {
	clitest.CommandLine
	pools   map[string]testdb.Node
	proxy   *cutproxy.Proxy
	threads []string
	of      map[string][]string // by node
}

func newThreeNodes(t *testing.T) *threeNodes {
	t.Helper()
	n := &threeNodes{pools: map[string]testdb.Node{}, of: map[string][]string{}}
	var described []cluster.Node
	for _, node := range testdb.Nodes(t, 3) {
		n.pools[node.Name] = node
		address := node.URL
		if node.Name == "b" {
			n.proxy = cutproxy.Start(t, node.URL)
			address = n.proxy.URL()
		}
		described = append(described, cluster.Node{Name: node.Name, URL: address})
	}
	n.CommandLine = clitest.OnNodes(t, described...)
	return n
}

// importThreads imports threads, and says which node has which.
func (n *threeNodes) importThreads(count int, flags ...string) {
	n.T.Helper()
	first := len(n.threads)
	for i := range count {
		thread := fmt.Sprint("t", first+i)
		n.threads = append(n.threads, thread)
		n.Must(append([]string{"import", clitest.WriteFile(n.T, "thread.ndjson", clitest.Answer(thread, "r", 3)...)}, flags...)...)
	}
	n.of = map[string][]string{}
	for name, node := range n.pools {
		for _, thread := range n.threads {
			if n.count(node.Name, `select count(*) from agui.run where run_id = 'r' and thread_key = any (array(select thread_key from agui.thread where thread_id = '`+thread+`'))`) > 0 {
				n.of[name] = append(n.of[name], thread)
			}
		}
		if len(n.of[name]) == 0 {
			n.T.Fatalf("node %s has no thread of %d", name, len(n.threads))
		}
	}
}

func (n *threeNodes) count(node, query string) (count int) {
	n.T.Helper()
	must.Do(n.T, n.pools[node].Pool.QueryRow(n.T.Context(), query).Scan(&count))
	return count
}

func (n *threeNodes) exec(node, statement string) {
	n.T.Helper()
	must.Have(n.pools[node].Pool.Exec(n.T.Context(), statement))(n.T)
}

// expect runs a command, and compares its code and what it prints, as one line, in the order of the parts.
func (n *threeNodes) expect(code int, arguments string, parts ...string) string {
	n.T.Helper()
	result := n.Run(strings.Fields(arguments)...)
	rest := strings.Join(strings.Fields(result.Out+result.Messages), " ")
	if result.Code != code {
		n.T.Errorf("pgagui %s: exit code %d, want %d: %s", arguments, result.Code, code, rest)
	}
	for _, part := range parts {
		_, after, found := strings.Cut(rest, part)
		if !found {
			n.T.Errorf("pgagui %s prints\n%s%s\nwant %q in it, in this order", arguments, result.Out, result.Messages, part)
			break
		}
		rest = after
	}
	return result.Out
}

// lines parses the results of a command, one for each node.
func lines[Result any](n *threeNodes, code int, arguments ...string) (nodes []string, results []Result) {
	n.T.Helper()
	done := n.Run(append(arguments, "--json")...)
	if done.Code != code {
		n.T.Errorf("pgagui %s: exit code %d, want %d: %s", strings.Join(arguments, " "), done.Code, code, done.Messages)
	}
	for decoder := json.NewDecoder(strings.NewReader(done.Out)); decoder.More(); {
		var text json.RawMessage
		var named struct{ Node string }
		var result Result
		if err := decoder.Decode(&text); err != nil {
			n.T.Fatalf("pgagui %s: %v in %s", strings.Join(arguments, " "), err, done.Out)
		}
		must.Do(n.T, json.Unmarshal(text, &named))
		must.Do(n.T, json.Unmarshal(text, &result))
		nodes, results = append(nodes, named.Node), append(results, result)
	}
	return nodes, results
}

func TestJobsAndChecksOfACluster(t *testing.T) {
	t.Parallel()
	n := newThreeNodes(t)
	n.importThreads(12)

	nodes, compacted := lines[jobs.Compacted](n, cli.ExitOK, "compact")
	if strings.Join(nodes, "") != "abc" {
		t.Errorf("compact of nodes %v", nodes)
	}
	for i, done := range compacted {
		if want := len(n.of[nodes[i]]); done.Runs != want {
			t.Errorf("%d runs of node %s were compacted, want %d", done.Runs, nodes[i], want)
		}
	}
	for _, job := range []string{"job compact", "job project", "job repack", "job reap", "stats", "migrate status", "retention ls", "retention apply --dry-run", "retention apply --yes", "webhook ls"} {
		n.expect(cli.ExitOK, job, "node a:", "node b:", "node c:")
	}
	n.expect(cli.ExitOK, "verify", "node a:", fmt.Sprintf("%d threads", len(n.of["a"])), "no problem", "node b:", "no problem", "node c:", "no problem")

	// The sum.
	nodes, stats := lines[jobs.Stats](n, cli.ExitOK, "stats", "--exact")
	if len(stats) != 4 || nodes[3] != "" || stats[3].Threads != 12 || stats[3].Runs != 12 || !stats[3].IsExact || stats[0].Events+stats[1].Events+stats[2].Events != stats[3].Events {
		t.Errorf("stats of %v: %+v", nodes, stats)
	}
	n.expect(cli.ExitOK, "stats", "node c:", "all nodes:", "threads 12 (0 erased)", "events 84")

	// The doctor has a list for each node.
	result := n.Run("doctor", "--json")
	if count := strings.Count(result.Out, "\n"); count != 3 {
		t.Errorf("the doctor prints %d lists:\n%s", count, result.Out)
	}
	for line := range strings.Lines(result.Out) {
		var findings []struct{ Node, Check string }
		if err := json.Unmarshal([]byte(line), &findings); err != nil || len(findings) == 0 || findings[0].Node == "" || findings[0].Check == "" {
			t.Errorf("the doctor: %v in %s", err, line)
		}
	}

	// Damage on one node.
	damaged := n.of["b"][0]
	n.exec("b", `update agui.run set status = 'failed' where run_id = 'r' and thread_key = agui.thread_key('', '`+damaged+`')`)
	n.expect(cli.ExitProblems, "verify", "node a:", "no problem", "node b:", "thread "+damaged+", run r: the run is marked as failed", "node c:", "no problem", "node b: ", "1 problem")
	nodes, checked := lines[verified](n, cli.ExitProblems, "verify")
	if len(checked) != 3 || checked[0].Problems != 0 || checked[1].Problems != 1 || checked[2].Problems != 0 || nodes[1] != "b" {
		t.Errorf("verify of %v: %+v", nodes, checked)
	}
	// Named threads are checked on their nodes.
	n.expect(cli.ExitProblems, "verify "+damaged, "node b:", damaged)
	if out := n.expect(cli.ExitProblems, "verify "+n.of["a"][0]+" "+damaged, "node a:", "node b:"); strings.Contains(out, "node c") {
		t.Errorf("node c was checked:\n%s", out)
	}
	n.expect(cli.ExitRefused, "verify unknown", `node "`, `thread "unknown"`)
	n.exec("b", `update agui.run set status = 'finished' where run_id = 'r' and thread_key = agui.thread_key('', '`+damaged+`')`)

	// One node is away: the others are worked on, and it is named.
	n.proxy.Refuse(true)
	for _, job := range []string{"job compact", "job repack", "job project", "job reap", "verify", "stats", "retention apply --dry-run", "webhook ls", "migrate status"} {
		n.expect(cli.ExitUnavailable, job, "node a:", "node c:", `pgagui: node "b": failed to connect`)
	}
	n.expect(cli.ExitUnavailable, "stats", "nodes a, c:", fmt.Sprintf("threads %d ", len(n.of["a"])+len(n.of["c"])))
	n.exec("c", `update agui.run set status = 'failed' where run_id = 'r' and thread_key = agui.thread_key('', '`+n.of["c"][0]+`')`)
	n.expect(cli.ExitProblems, "verify", "node a:", "node c:", n.of["c"][0], `pgagui: node "b": failed to connect`)
	n.expect(cli.ExitUnavailable, "verify "+damaged, `pgagui: node "b": failed to connect`)
	if text := n.Run("job", "compact").Messages; strings.Contains(text, "--database-url") {
		t.Errorf("the error of a node: %s", text)
	}
	n.proxy.Refuse(false)

	// What works on one node.
	for _, command := range []string{"migrate up", "migrate down --yes", "demo"} {
		n.expect(cli.ExitUsage, command, "this works on one node: --node a|b|c")
	}
	n.expect(cli.ExitOK, "version")
	n.expect(cli.ExitOK, "migrate sql")
	if out := n.expect(cli.ExitOK, "job compact --node b"); strings.Contains(out, "node") {
		t.Errorf("job compact --node b:\n%s", out)
	}
}

func TestThreadsOfAClusterAreErasedHeldAndStored(t *testing.T) {
	t.Parallel()
	n := newThreeNodes(t)
	n.importThreads(9)

	// The heads of chained logs are those of all nodes, and each node checks its own.
	for name := range n.pools {
		n.exec(name, `select agui.enable_chain()`)
	}
	n.importThreads(9)
	heads := clitest.WriteFile(t, "heads.ndjson", strings.TrimSpace(n.Must("verify", "--print-heads")))
	text, err := os.ReadFile(heads)
	if err != nil || strings.Count(string(text), `"hash"`) != 9 {
		t.Fatalf("heads: %v, %s", err, text)
	}
	n.expect(cli.ExitOK, "verify --chain --heads "+heads, "node a:", "no problem", "node b:", "no problem", "node c:", "no problem")
	moved := n.of["a"][slices.IndexFunc(n.of["a"], func(id string) bool { return strings.Contains(string(text), `"threadId":"`+id+`"`) })]
	n.expect(cli.ExitOK, "cluster move --thread "+moved+" --to b", "1 thread")
	n.expect(cli.ExitOK, "verify --chain --heads "+heads, "node a:", "no problem", "node b:", "no problem", "node c:", "no problem")
	n.expect(cli.ExitOK, "verify --chain --heads "+heads+" "+moved, "node b:", "no problem")
	forged := clitest.WriteFile(t, "forged.ndjson", regexp.MustCompile(`("threadId":"`+moved+`".*"hash":").{8}`).ReplaceAllString(strings.TrimSpace(string(text)), "${1}00000000"))
	n.expect(cli.ExitProblems, "verify --chain --heads "+forged, "node b:", moved, "is not what it was when its head was kept")
	n.expect(cli.ExitOK, "cluster move --thread "+moved+" --to a", "1 thread")

	// Holds go to the node of the thread.
	held := n.of["b"][0]
	n.expect(cli.ExitOK, "retention hold "+held+" --reason law", "thread "+held+" is held")
	n.expect(cli.ExitOK, "retention hold", held)
	n.expect(cli.ExitRefused, "erase --yes "+held, `pgagui: node "b": `, "held")
	n.expect(cli.ExitOK, "retention hold --lift "+held)

	// Whole threads, from all nodes and back.
	directory := t.TempDir() + "/archive"
	n.expect(cli.ExitOK, "archive "+directory, "node a:", " written, 0 unchanged", "node b:", " written, 0 unchanged", "node c:", " written, 0 unchanged")
	n.expect(cli.ExitOK, "archive "+directory+" "+n.of["a"][0], "node a:", "1 thread", "(0 written, 1 unchanged)")

	n.expect(cli.ExitOK, "erase --older-than 1us --dry-run", "node a:", "would erase", "node b:", "would erase", "node c:", "would erase")
	one, other := n.of["a"][0], n.of["c"][0]
	n.expect(cli.ExitOK, "erase --yes "+one+" "+other, "node a:", "erased thread "+one, "node c:", "erased thread "+other)
	n.proxy.Refuse(true)
	n.expect(cli.ExitUnavailable, "erase --older-than 1us --yes", "node a:", "erased", "node c:", "erased", `pgagui: node "b": failed to connect`)
	n.proxy.Refuse(false)
	nodes, erased := lines[jobs.Erased](n, cli.ExitOK, "erase", "--older-than", "1us", "--yes")
	if len(nodes) != 3 || erased[0].Threads != 0 || erased[1].Threads != len(n.of["b"]) || erased[2].Threads != 0 {
		t.Errorf("erased on %v: %+v", nodes, erased)
	}
	for name := range n.pools {
		if left := n.count(name, `select count(*) from agui.thread`); left != 0 {
			t.Errorf("node %s has %d threads", name, left)
		}
	}
	for _, thread := range n.threads {
		n.expect(cli.ExitOK, "retention allow "+thread, "accepts appends again")
	}
	n.proxy.Refuse(true)
	n.expect(cli.ExitUnavailable, "unarchive "+directory, fmt.Sprintf("(%d stored, 0 already there)", len(n.of["a"])+len(n.of["c"])), `pgagui: node "b": failed to connect`)
	n.proxy.Refuse(false)
	n.expect(cli.ExitOK, "unarchive "+directory, "18 threads", fmt.Sprintf("(%d stored", len(n.of["b"])))
	n.expect(cli.ExitOK, "unarchive "+directory, "18 already there")
	for name, threads := range n.of {
		if stored := n.count(name, `select count(*) from agui.thread`); stored != len(threads) {
			t.Errorf("node %s has %d threads, want %d", name, stored, len(threads))
		}
	}
	n.expect(cli.ExitOK, "verify", "node a:", "no problem", "node b:", "no problem", "node c:", "no problem")

	// Reads of single threads.
	for _, thread := range n.threads {
		n.expect(cli.ExitOK, "log "+thread, "finished")
	}
	exported := n.Must("events", "--all")
	if runs := strings.Count(exported, "RUN_STARTED"); runs != 18 {
		t.Errorf("%d runs are exported, want 18", runs)
	}

	// An import leaves what is there, in all places.
	n.expect(cli.ExitOK, "import "+clitest.WriteFile(t, "all.ndjson", strings.TrimSpace(exported)), "18 runs")
	session := clitest.WriteFile(t, "session.json", `{"event_type":"user","payload":{"text":"Hello"},"message_id":"m1"}`)
	for i := range 4 {
		n.expect(cli.ExitOK, fmt.Sprintf("import --session-messages --thread s%d %s", i, session), "1 message")
	}
	n.expect(cli.ExitOK, "threads --title Hello", "s0")
}

// A scope whose threads are on all nodes is erased on all.
func TestAScopeOfAClusterIsErased(t *testing.T) {
	t.Parallel()
	n := newThreeNodes(t)
	n.importThreads(9, "--scope", "acme")
	n.expect(cli.ExitOK, "erase --scope acme --older-than 1us --yes", "node a:", "of scope acme", "node b:", "of scope acme", "node c:", "of scope acme")
	for name := range n.pools {
		if left := n.count(name, `select count(*) from agui.thread`); left != 0 {
			t.Errorf("node %s has %d threads", name, left)
		}
	}
	result := n.RunWithInput("", "erase", "--scope", "acme", "--older-than", "1us")
	if result.Code != cli.ExitUsage || strings.Count(result.Messages, "permanently") != 1 {
		t.Errorf("without confirmation: %d, %s", result.Code, result.Messages)
	}
}

// All nodes have the secret of a webhook, and rules of retention.
func TestSettingsOfAClusterAreThoseOfAllNodes(t *testing.T) {
	t.Parallel()
	n := newThreeNodes(t)
	secrets := map[string]bool{}
	_, added := lines[struct{ Secret string }](n, cli.ExitOK, "webhook", "add", "crm", "https://example.com/hooks", "--all-scopes")
	_, rotated := lines[struct{ Secret string }](n, cli.ExitOK, "webhook", "rotate", "crm")
	for _, one := range append(added, rotated...) {
		secrets[one.Secret] = true
	}
	if len(added) != 3 || len(rotated) != 3 || len(secrets) != 2 || secrets[""] {
		t.Errorf("secrets: %v, %v", added, rotated)
	}
	n.expect(cli.ExitOK, "webhook set crm --enabled=false", "node a:", "node b:", "node c:")
	n.expect(cli.ExitOK, "retention set archive 90d --all-scopes", "node a:", "node b:", "node c:")
	n.expect(cli.ExitOK, "retention ls", "node a:", "archive", "node b:", "archive", "node c:", "archive")
	n.expect(cli.ExitOK, "webhook rm crm --node a")
	n.expect(cli.ExitRefused, "webhook rm crm", "node b:", "is removed", "node c:", "is removed", `node "a": there is no webhook "crm"`)
}

// addTo imports a thread of a node, beside the cluster.
func (n *threeNodes) addTo(node string) {
	n.T.Helper()
	for i := 0; ; i++ {
		thread := fmt.Sprintf("%s%d", node, i)
		isFree := n.count(node, `select count(*) from agui_internal.bucket as place where place.bucket = agui.bucket('', '`+thread+`') and place.node = '`+node+`'
			and not exists (select from agui.run where thread_key = agui.thread_key('', '`+thread+`'))`)
		if isFree == 1 {
			clitest.On(n.T, n.pools[node].URL).Must("import", clitest.WriteFile(n.T, "thread.ndjson", clitest.Answer(thread, "r", 3)...))
			return
		}
	}
}

// waitForCompaction waits until a node has no run that waits for it.
func (n *threeNodes) waitForCompaction(nodes ...string) {
	n.T.Helper()
	for _, node := range nodes {
		wait.For(n.T, "compaction on node "+node, func() bool { return n.count(node, `select runs_to_compact from agui.lag()`) == 0 })
	}
}

func TestTheWorkerOfACluster(t *testing.T) {
	t.Parallel()
	n := newThreeNodes(t)
	n.importThreads(9)
	arguments := []string{"worker", "--json", "--compact", "@every 1s", "--repack", "off", "--verify", "off", "--grace", "1s", "--metrics-listen", "127.0.0.1:0"}
	var metrics string
	start := func() *clitest.Running {
		t.Helper()
		process := n.Start(arguments...)
		process.WaitForLine(t, "serving metrics")
		lines := strings.Split(strings.TrimSpace(process.Log), "\n")
		var line struct{ URL string }
		must.Do(t, json.Unmarshal([]byte(lines[len(lines)-1]), &line))
		metrics = line.URL
		return process
	}
	expectMetric := func(want string) {
		t.Helper()
		var text string
		has := func() bool {
			answer := must.Have(http.Get(metrics))(t)
			defer answer.Body.Close()
			read, err := io.ReadAll(answer.Body)
			if text = string(read); err != nil {
				t.Fatal(err)
			}
			return strings.Contains(text, "\n"+want+"\n")
		}
		if !wait.Until(has) {
			t.Errorf("no metric %s in\n%s", want, text)
		}
	}
	const away = "the database cannot be used, its jobs wait"

	process := start()
	n.waitForCompaction("a", "b", "c")
	for _, node := range []string{"a", "b", "c"} {
		process.WaitForLine(t, `"node":"`+node+`"`, `"job":"compact"`, "job done")
		expectMetric(`pgagui_node_up{node="` + node + `"} 1`)
		expectMetric(`pgagui_store_runs_to_compact{node="` + node + `"} 0`)
		expectMetric(`pgagui_pool_max_connections{node="` + node + `",pool="worker"} ` + fmt.Sprint(min(4, runtime.NumCPU())+9))
	}

	// A node that is away is named, and holds up no other.
	n.proxy.Refuse(true)
	n.proxy.CutNow()
	process.WaitForLine(t, away, `"node":"b"`, `"retryIn"`)
	expectMetric(`pgagui_node_up{node="b"} 0`)
	for _, node := range []string{"a", "b", "c"} {
		n.addTo(node)
	}
	n.waitForCompaction("a", "c")
	if left := n.count("b", `select runs_to_compact from agui.lag()`); left != 1 {
		t.Errorf("%d runs wait on node b", left)
	}

	// The process is killed. The next one begins without the node, and takes it when it is back.
	must.Do(t, process.Process.Kill())
	process.End(t)
	process = start()
	process.WaitForLine(t, away, `"node":"b"`)
	n.addTo("a")
	n.waitForCompaction("a", "c")
	n.proxy.Refuse(false)
	process.WaitForLine(t, "the database can be used, its jobs begin", `"node":"b"`)
	n.waitForCompaction("b")
	expectMetric(`pgagui_node_up{node="b"} 1`)

	// A network that hangs holds up no other node, nor the end of the process.
	n.proxy.Hold()
	n.addTo("c")
	n.waitForCompaction("c")
	expectMetric(`pgagui_job_in_progress{name="compact",node="b"} 1`)

	// Another worker works beside it, on one node.
	beside := n.Start("worker", "--json", "--compact", "@every 1s", "--repack", "off", "--verify", "off", "--node", "a")
	beside.WaitForLine(t, "job scheduled", `"node":"a"`)
	for _, one := range []*clitest.Running{beside, process} {
		one.Terminate(t)
		if code := one.End(t); code != cli.ExitOK {
			t.Errorf("exit code %d: %s", code, one.Log)
		}
	}
	for _, node := range []string{"a", "b", "c"} {
		if !strings.Contains(process.Log, `"msg":"worker stopped","node":"`+node+`"`) {
			t.Errorf("the jobs of node %s did not end in order:\n%s", node, process.Log)
		}
	}
	n.proxy.Release()
	n.expect(cli.ExitOK, "verify", "node a:", "no problem", "node b:", "no problem", "node c:", "no problem")
}

// Lists have what the nodes that answer have, and the error names the others.
func TestListsOfAClusterGoOnWithoutANode(t *testing.T) {
	t.Parallel()
	n := newThreeNodes(t)
	n.importThreads(9)
	n.expect(cli.ExitOK, "project")
	for name := range n.pools {
		n.exec(name, `select agui.move_consumer('copy', null)`)
	}
	n.proxy.Refuse(true)
	const away = `node "b" did not answer: failed to connect`
	there := append(slices.Clone(n.of["a"]), n.of["c"]...)
	for _, list := range []string{"threads", "threads --all", "feed", "feed --consumer copy", "feed --consumer events --events", "events --all"} {
		out := n.expect(cli.ExitUnavailable, list, away)
		for _, thread := range n.threads {
			if want := slices.Contains(there, thread); strings.Contains(out, thread) != want {
				t.Errorf("pgagui %s: thread %s: %t\n%s", list, thread, !want, out)
			}
		}
	}
	for list, want := range map[string]string{
		"report": fmt.Sprintf(" %d ", len(there)), "waiting": "", "feed consumers": "copy", "retention hold": "", "log --all-threads": "", "log --all-threads --all": "",
	} {
		n.expect(cli.ExitUnavailable, list, want, away)
	}
	if text := n.Run("threads").Messages; strings.Contains(text, "--database-url") || strings.Count(text, "\n") != 1 {
		t.Errorf("the error: %s", text)
	}

	// The feed goes on when the node is back.
	printed := t.TempDir() + "/feed.ndjson"
	out := must.Have(os.Create(printed))(t)
	defer out.Close()
	command := n.Program(os.Args[0], "feed", "--follow", "--every", "50ms")
	command.Stdout = out
	feed := clitest.StartProcess(t, command)
	feed.WaitForLine(t, away)
	n.proxy.Refuse(false)
	wait.For(t, "all threads in the feed", func() bool {
		text := clitest.ReadFile(t, printed)
		return !slices.ContainsFunc(n.threads, func(thread string) bool { return !strings.Contains(text, `"`+thread+`"`) })
	})
	rest := n.Must("feed", "--consumer", "copy")
	for _, thread := range n.of["b"] {
		if !strings.Contains(rest, thread) {
			t.Errorf("the consumer misses thread %s:\n%s", thread, rest)
		}
	}
	feed.Terminate(t)
	if code := feed.End(t); code != cli.ExitInterrupted {
		t.Errorf("the feed ends with %d: %s", code, feed.Log)
	}
}
