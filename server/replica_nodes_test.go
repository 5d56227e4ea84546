package server_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cluster"
	"github.com/pgagui/pgagui/internal/buckets"
	"github.com/pgagui/pgagui/internal/cutproxy"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
	"github.com/pgagui/pgagui/server"
	"github.com/pgagui/pgagui/server/access"
)

// A server of a cluster reads from the standbys of a node. What a standby does not show, or has to a
// thread that was moved, is as with one database.
func TestReplicasOfNodes(t *testing.T) {
	t.Parallel()
	replicated := testdb.NewReplicated(t)
	nodes := testdb.JoinNodes(t, replicated.Primary.URL("postgres"), testdb.New(t))
	second := cutproxy.Start(t, replicated.Standby.URL("postgres"))
	second.Refuse(true)
	config := &pgagui.Config{Logger: slog.New(slog.DiscardHandler)}
	pools, sentTo := map[string]*pgxpool.Pool{}, map[string]*sent{}
	for name, address := range map[string]string{
		"a": nodes[0].URL, "b": nodes[1].URL, "standby": replicated.Standby.URL("postgres"), "second": second.URL(),
	} {
		pools[name], sentTo[name] = traced(t, address)
	}
	p := &withReplica{registry: prometheus.NewRegistry(), toPrimary: sentTo["a"], toReplica: sentTo["standby"]}
	p.process = serveStore(t, pgagui.NewCluster([]pgagui.Node{{Name: "b", Pool: pools["b"]}, {Name: "a", Pool: pools["a"]}}, config), server.Options{
		NodeReads: map[string][]*pgagui.Store{"a": {pgagui.New(pools["standby"], config), pgagui.New(pools["second"], config)}, "b": nil},
		Logger:    config.Logger, Metrics: p.registry,
	})
	p.waitForReplica()
	threadOn := func(node string, n int) string {
		for i := n * 1000; ; i++ {
			name := fmt.Sprint("t", i)
			var bucket int
			must.Do(t, pools["a"].QueryRow(t.Context(), `select agui.bucket('', $1)`, name).Scan(&bucket))
			if bucket < buckets.Count/2 == (node == "a") {
				return name
			}
		}
	}
	reset := func() {
		for _, to := range sentTo {
			to.reset()
		}
	}
	messages := func(name string) int {
		n, _ := sentTo[name].reset()
		return n
	}
	onA, onB := threadOn("a", 1), threadOn("b", 1)
	mustStore(t, p.store, onA, started(onA, "run"), start("m"), content("m", "one"))
	mustStore(t, p.store, onB, started(onB, "run"), start("m"), content("m", "other"))
	shown(t, replicated, onA, 3)

	const reads = 6
	reset()
	for range reads {
		if one, other := p.lastText(onA), p.lastText(onB); one != "one" || other != "other" {
			t.Fatalf("the texts are %q and %q", one, other)
		}
	}
	if a, standby, second, b := messages("a"), messages("standby"), messages("second"), messages("b"); a != 0 || standby != reads || second != 0 || b != reads {
		t.Errorf("messages to a: %d, its standbys: %d and %d, b: %d (want 0, %d, 0, %d)", a, standby, second, b, reads, reads)
	}

	// In turn, once both can be used.
	second.Refuse(false)
	wait.For(t, "the second standby is used", func() bool { return p.metrics("replica_usable")["a 2"] == 1 })
	reset()
	for range reads {
		p.lastText(onA)
	}
	if standby, second := messages("standby"), messages("second"); standby != reads/2 || second != reads/2 {
		t.Errorf("the standbys were sent %d and %d messages (want %d each)", standby, second, reads/2)
	}
	if values := p.metrics("replica_reads_total"); values["a replica 1"] == 0 || values["a replica 2"] == 0 {
		t.Errorf("reads by standby: %v", values)
	}

	// A position names the node, also for lists over all nodes.
	replicated.Pause(t)
	position := p.rename(onA, "paused")
	if !strings.HasPrefix(position, "tx-") || !strings.HasSuffix(position, "@a") {
		t.Errorf("the position is %q", position)
	}
	if renamed := p.rename(onB, "paused"); !strings.HasSuffix(renamed, "@b") {
		t.Errorf("the position is %q", renamed)
	} else if titles := p.titles("Pgagui-Position", renamed); titles[onA] == "paused" || titles[onB] != "paused" {
		t.Errorf("behind a write on b the titles are %v", titles)
	}
	if titles := p.titles("Pgagui-Position", position); titles[onA] != "paused" || titles[onB] != "paused" {
		t.Errorf("behind the position the titles are %v", titles)
	}
	p.json(422, "GET", "/copilotkit/threads", "", "Pgagui-Position", "tx-a@1")

	// A thread that moves away: its follower reads on, and nothing of the old place is shown behind a position.
	replicated.Resume(t)
	opened := p.stream("GET", "/threads/"+onA+"/events", "")
	opened.want("RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT", "TEXT_MESSAGE_START")
	described := []cluster.Node{{Name: "a", URL: nodes[0].URL}, {Name: "b", URL: nodes[1].URL}}
	moving := must.Have(cluster.Open(t.Context(), described))(t)
	defer moving.Close()
	replicated.Pause(t)
	if moved, err := moving.MoveThread(t.Context(), "", onA, "b"); err != nil || moved.Threads != 1 {
		t.Fatal(moved, err)
	}
	mustStore(t, p.store, onA, content("m", " two"))
	if text := p.lastText(onA, "Pgagui-Position", "4"); text != "one two" {
		t.Errorf("behind the position the text is %q", text)
	}
	replicated.Resume(t)
	opened.want("TEXT_MESSAGE_CONTENT")
	wait.For(t, "the standby has seen the move", func() bool { return p.lastText(onA) == "one two" })
	must.Have(moving.MoveThread(t.Context(), "", onA, "a"))(t)
	mustStore(t, p.store, onA, end("m"), finished(onA, "run"))
	opened.want("TEXT_MESSAGE_END", "RUN_FINISHED")
	opened.rest()

	// Both are lost: the primary of the node answers.
	must.Do(t, replicated.Standby.Kill())
	if text := p.lastText(onA); text != "one two" {
		t.Errorf("without standbys the text is %q", text)
	}
	p.waitUntilUnused()
	mustStore(t, p.store, onB, content("m", " text"), end("m"), finished(onB, "run"))
	if text := p.lastText(onB); text != "other text" {
		t.Errorf("the text is %q", text)
	}

	for what, options := range map[string]server.Options{
		"two kinds":       {Reads: p.store, NodeReads: map[string][]*pgagui.Store{"a": {p.store}}},
		"no such node":    {NodeReads: map[string][]*pgagui.Store{"c": {p.store}}},
		"of one database": {Reads: p.store},
	} {
		options.Access = access.Anonymous("", access.Admin)
		if _, err := server.New(p.store, options); err == nil || !strings.Contains(err.Error(), "Options.NodeReads") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
