package server_test

// Servers with a replica: which of the two answers, and what clients see while the replica lags, is
// promoted, or is lost.

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/cutproxy"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
	"github.com/pgagui/pgagui/server"
)

// sent counts what a pool sends: the messages with statements of requests, and the statements by
// name. The checks of the replica count apart.
type sent struct {
	mu         sync.Mutex
	messages   int
	statements map[string]int
	checks     int // of the replica
}

// waitForChecks waits until the replica was checked so many times more.
func (s *sent) waitForChecks(t *testing.T, n int) {
	t.Helper()
	checks := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.checks
	}
	before := checks()
	wait.For(t, fmt.Sprint(n, " checks of the replica"), func() bool { return checks() >= before+n })
}

func (s *sent) add(sql string, isMessage bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name, _, _ := strings.Cut(strings.TrimPrefix(sql, "-- name: "), " ")
	if name == "PrimaryState" || name == "StandbyState" {
		s.checks++
		return
	}
	if isMessage {
		s.messages++
	}
	s.statements[name]++
}

func (s *sent) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	s.add(data.SQL, true)
	return ctx
}
func (*sent) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (s *sent) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	for i, query := range data.Batch.QueuedQueries {
		s.add(query.SQL, i == 0)
	}
	return ctx
}
func (*sent) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (*sent) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

// reset returns what was sent since the reset before.
func (s *sent) reset() (messages int, statements map[string]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	messages, statements = s.messages, s.statements
	s.messages, s.statements = 0, map[string]int{}
	return messages, statements
}

func traced(t *testing.T, url string) (*pgxpool.Pool, *sent) {
	t.Helper()
	counted := &sent{statements: map[string]int{}}
	pool := testdb.ConnectWith(t, url, func(config *pgxpool.Config) { config.ConnConfig.Tracer = counted })
	return pool, counted
}

// withReplica is a server with a replica, and what both pools were sent.
type withReplica struct {
	*process
	registry             *prometheus.Registry
	toPrimary, toReplica *sent
}

func serveWithReplica(t *testing.T, primary, replica string, options server.Options) *withReplica {
	t.Helper()
	p := &withReplica{registry: prometheus.NewRegistry()}
	config := &pgagui.Config{Logger: slog.New(slog.DiscardHandler)}
	if options.Logger == nil {
		options.Logger = config.Logger
	}
	var pool, reads *pgxpool.Pool
	pool, p.toPrimary = traced(t, primary)
	reads, p.toReplica = traced(t, replica)
	options.Reads, options.Metrics = pgagui.New(reads, config), p.registry
	p.process = serveStore(t, pgagui.New(pool, config), options)
	p.waitForReplica()
	p.toPrimary.reset()
	p.toReplica.reset()
	return p
}

func (p *withReplica) metrics(name string) map[string]float64 {
	return metricsOf(p.t, p.registry, name)
}

// metricsOf returns the values of a metric, by its labels.
func metricsOf(t *testing.T, registry *prometheus.Registry, name string) map[string]float64 {
	t.Helper()
	families := must.Have(registry.Gather())(t)
	values := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			var labels []string
			for _, label := range metric.GetLabel() {
				labels = append(labels, label.GetValue())
			}
			if family.GetName() == "pgagui_server_"+name {
				values[strings.Join(labels, " ")] = metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
			}
		}
	}
	return values
}

// lastText returns the text of the last message of a thread, as the messages of the server have it. A
// query may follow.
func (p *withReplica) lastText(thread string, headers ...string) string {
	p.t.Helper()
	thread, query, _ := strings.Cut(thread, "?")
	messages, _ := p.json(200, "GET", "/copilotkit/threads/"+thread+"/messages?"+query, "", headers...)["messages"].([]any)
	if len(messages) == 0 {
		return ""
	}
	text, _ := messages[len(messages)-1].(map[string]any)["content"].(string)
	return text
}

// titles returns the titles of the threads that the server lists.
func (p *withReplica) titles(headers ...string) map[string]any {
	p.t.Helper()
	titles := map[string]any{}
	threads, _ := p.json(200, "GET", "/copilotkit/threads", "", headers...)["threads"].([]any)
	for _, thread := range threads {
		titles[thread.(map[string]any)["id"].(string)] = thread.(map[string]any)["name"]
	}
	return titles
}

// rename gives a thread a title, and returns the position of the answer.
func (p *withReplica) rename(thread, title string) string {
	p.t.Helper()
	answer := p.request("PATCH", "/copilotkit/threads/"+thread, fmt.Sprintf(`{"name":%q}`, title))
	position := answer.Header.Get("Pgagui-Position")
	if answer.StatusCode != 200 || position == "" {
		p.t.Fatalf("PATCH: %s, position %q", answer.Status, position)
	}
	return position
}

func mustStore(t *testing.T, store *pgagui.Store, thread string, events ...string) int64 {
	t.Helper()
	raw := make([]json.RawMessage, len(events))
	for i, event := range events {
		raw[i] = json.RawMessage(event)
	}
	seq := must.Have(store.Append(t.Context(), pgagui.RunRef{ThreadID: thread, RunID: "run"}, raw, pgagui.AppendOptions{}))(t)
	return seq
}

// shown waits until a standby shows the event of a thread with a seq.
func shown(t *testing.T, replicated *testdb.Replicated, thread string, seq int64) {
	t.Helper()
	store := pgagui.New(replicated.StandbyPool, nil)
	wait.For(t, fmt.Sprintf("event %d of thread %s on the standby", seq, thread), func() bool {
		status, err := store.Status(t.Context(), pgagui.RunRef{ThreadID: thread})
		return err == nil && status.LastSeq >= seq
	})
}

func TestReplica(t *testing.T) {
	t.Parallel()
	replicated := testdb.NewReplicated(t) // one for all, for it takes longer than they do
	a := newAgent(t)
	p := serveWithReplica(t, replicated.Primary.URL("postgres"), replicated.Standby.URL("postgres"), withAgent(a))
	for _, test := range []struct {
		name string
		run  func(*testing.T, *testdb.Replicated, *withReplica, *agent)
	}{
		{"reads go to it, in as many messages", readsGoToTheReplica},
		{"clients read what they wrote while it lags", clientsReadWhatTheyWrote},
		{"the primary answers what it does not know", thePrimaryKnowsMore},
		{"streams live on it", streamsLiveOnTheReplica},
		{"streams of the own runs need it for nothing", streamsOfTheOwnRuns},
		{"it is not used while it is too far behind", aReplicaTooFarBehind},
		{"row-level security holds there too", rowSecurityOnTheReplica},    // it turns it on
		{"it is not used once it was promoted", aReplicaPromotedByMistake}, // it is none any more
	} {
		t.Run(test.name, func(t *testing.T) {
			inTest := *p.process
			inTest.t = t
			own := *p
			own.process = &inTest
			own.waitForReplica()
			own.toPrimary.reset()
			own.toReplica.reset()
			test.run(t, replicated, &own, a)
		})
	}
}

func readsGoToTheReplica(t *testing.T, replicated *testdb.Replicated, p *withReplica, _ *agent) {
	mustStore(t, p.store, "read", started("read", "run"), start("m"), content("m", "Hello"))
	shown(t, replicated, "read", 3)
	p.toPrimary.reset()
	const reads = 20
	for range reads {
		if text := p.lastText("read"); text != "Hello" {
			t.Fatalf("the text is %q", text)
		}
	}
	if messages, statements := p.toReplica.reset(); messages != reads || len(statements) != 1 {
		t.Errorf("the replica was sent %d messages with %v, want %d", messages, statements, reads)
	}
	for range reads {
		if text := p.lastText("read", "Pgagui-Position", "3"); text != "Hello" {
			t.Fatalf("the text is %q", text)
		}
	}
	if messages, statements := p.toReplica.reset(); messages != reads || statements["IsShown"] != reads {
		t.Errorf("with a position the replica was sent %d messages with %v, want %d", messages, statements, reads)
	}
	if messages, statements := p.toPrimary.reset(); messages != 0 {
		t.Errorf("the primary was sent %v", statements)
	}
	p.json(422, "GET", "/copilotkit/threads", "", "Pgagui-Position", "tx-many")
	p.json(422, "GET", "/copilotkit/threads", "", "Pgagui-Position", "yesterday")
}

func clientsReadWhatTheyWrote(t *testing.T, replicated *testdb.Replicated, p *withReplica, _ *agent) {
	mustStore(t, p.store, "written", started("written", "run"), start("m"), content("m", "one"))
	shown(t, replicated, "written", 3)
	replicated.Pause(t)
	position := p.rename("written", "paused")
	mustStore(t, p.store, "written", content("m", " two"))
	if title := p.titles()["written"]; title == "paused" {
		t.Error("the replica shows the title although it is paused")
	}
	begin := time.Now()
	if title := p.titles("Pgagui-Position", position)["written"]; title != "paused" {
		t.Errorf("behind the position the title is %v", title)
	}
	if took := time.Since(begin); took < 100*time.Millisecond {
		t.Errorf("the primary was asked after %s", took)
	}
	if text := p.lastText("written"); text != "one" {
		t.Errorf("the replica shows %q although it is paused", text)
	}
	for _, query := range []string{"after_seq=4", "at_seq=4", "last_event_id=4-1"} {
		if text := p.lastText("written?" + query); text != "one two" {
			t.Errorf("with %s the text is %q", query, text)
		}
	}
	if text := p.lastText("written", "Last-Event-ID", "4"); text != "one two" {
		t.Errorf("the text is %q", text)
	}
	for _, seen := range []string{"4", position + ", 4", "4-" + fmt.Sprint(time.Now().UnixMicro()) + ".2"} {
		if text := p.lastText("written", "Pgagui-Position", seen); text != "one two" {
			t.Errorf("behind %s the text is %q", seen, text)
		}
	}
	before := p.metrics("replica_reads_total")

	// A replica that is slightly late is waited for.
	time.AfterFunc(50*time.Millisecond, func() { replicated.Resume(t) })
	if text := p.lastText("written", "Pgagui-Position", "4"); text != "one two" {
		t.Errorf("the text is %q", text)
	}
	p.rename("written", "resumed")
	for n := range 20 {
		title := fmt.Sprint("title ", n)
		if got := p.titles("Pgagui-Position", p.rename("written", title))["written"]; got != title {
			t.Errorf("the title is %v, want %s", got, title)
		}
	}

	// A transaction that is still in progress although one that began later has been replayed.
	slow := testdb.Begin(t, replicated.PrimaryPool)
	defer func() { _ = slow.Rollback(context.WithoutCancel(t.Context())) }()
	id := testdb.Ask[string](t, slow, `select 'tx-' || pg_current_xact_id()`)
	if got := p.titles("Pgagui-Position", p.rename("written", "quick"))["written"]; got != "quick" {
		t.Errorf("the title is %v", got)
	}
	isBehind := p.metrics("replica_reads_total")["behind"]
	p.titles("Pgagui-Position", id)
	if got := p.metrics("replica_reads_total")["behind"]; got != isBehind+1 {
		t.Error("the replica answered behind a transaction that it does not show")
	}
	before["behind"]++
	before["replica"]++
	if after := p.metrics("replica_reads_total"); after["behind"] != before["behind"] || after["replica"] != before["replica"]+21 {
		t.Errorf("reads before: %v, after: %v", before, after)
	}
}

func thePrimaryKnowsMore(t *testing.T, replicated *testdb.Replicated, p *withReplica, _ *agent) {
	mustStore(t, p.store, "known", started("known", "run"), start("m"), content("m", "one"))
	mustStore(t, p.store, "continued", started("continued", "run"), finished("continued", "run"))
	shown(t, replicated, "continued", 2)
	replicated.Pause(t)
	defer replicated.Resume(t)
	mustStore(t, p.store, "new", started("new", "run"), start("m"), content("m", "Hi"), end("m"), finished("new", "run"))
	if text := p.lastText("new"); text != "Hi" { // this endpoint answers 200 if there is no such thread
		t.Errorf("the text is %q", text)
	}
	for _, opened := range []*client{
		p.stream("GET", "/threads/new/events", ""), p.stream("POST", "/agent/test/connect", connectInput("new")),
		p.stream("GET", "/threads/new/events?run=run", ""),
	} {
		if types := opened.rest(); len(types) < 3 || types[len(types)-1] != "RUN_FINISHED" {
			t.Errorf("the stream has %v", types)
		}
	}
	p.json(404, "GET", "/threads/nowhere/events", "")
	session := pgagui.SessionKey{ThreadID: "known", Key: "memory"}
	must.Have(p.store.Sessions().Save(t.Context(), session, json.RawMessage(`{}`), pgagui.SaveOptions{}))(t)
	ctx, reads := p.server.ForRead(t.Context())
	if attached, err := reads.Attach(ctx, "new", pgagui.AttachOptions{}); err != nil || attached.RunID != "run" {
		t.Errorf("attached to %+v, %v", attached, err)
	}
	contains := func(page pgagui.ThreadPage, id string) bool {
		return slices.ContainsFunc(page.Threads, func(thread pgagui.Thread) bool { return thread.ID == id })
	}
	if page, err := reads.Threads(ctx, pgagui.ThreadsOptions{}); err != nil || !contains(page, "new") {
		t.Errorf("the request moved to the primary and back: it lists %+v, %v", page, err)
	}
	ctx, reads = p.server.ForRead(t.Context())
	if page, err := reads.Threads(ctx, pgagui.ThreadsOptions{}); err != nil || contains(page, "new") {
		t.Errorf("another request did not read from the replica: it lists %+v, %v", page, err)
	}
	if _, err := reads.Sessions().Load(ctx, session, pgagui.LoadOptions{}); err != nil {
		t.Errorf("session state: %v", err)
	}
	second := pgagui.RunRef{ThreadID: "continued", RunID: "second"}
	must.Have(p.store.Append(t.Context(), second, []json.RawMessage{json.RawMessage(started("continued", "second"))}, pgagui.AppendOptions{}))(t)
	continued := p.stream("GET", "/threads/continued/events", "") // the replica takes the first run for the head
	for event := ""; !strings.Contains(event, "second"); {
		if event = continued.event(); event == "" {
			t.Fatalf("the stream ended with the first run: %v", continued.events)
		}
	}
	mustStore(t, p.store, "known", content("m", " two"), end("m"), finished("known", "run"))
	resumed := p.stream("GET", "/threads/known/events", "", "Last-Event-ID", "4")
	resumed.want("TEXT_MESSAGE_END", "RUN_FINISHED")
	resumed.rest()
	reconnected := p.stream("POST", "/agent/test/connect", strings.Replace(connectInput("known"), "{", `{"lastSeenEventId":"5",`, 1))
	reconnected.want("RUN_FINISHED")
	reconnected.rest()
	if again := p.metrics("resumed_from_history_total"); again[""] != 0 {
		t.Errorf("a client received the history although the log has what it has seen")
	}
}

func streamsLiveOnTheReplica(t *testing.T, replicated *testdb.Replicated, p *withReplica, _ *agent) {
	mustStore(t, p.store, "stream", started("stream", "run"), start("m"), content("m", "one"))
	shown(t, replicated, "stream", 3)
	p.toPrimary.reset()
	opened := p.stream("GET", "/threads/stream/events", "")
	opened.want("RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT", "TEXT_MESSAGE_START")
	mustStore(t, p.store, "stream", content("m", " two"))
	opened.want("TEXT_MESSAGE_CONTENT")
	_, statements := p.toPrimary.reset()
	if statements["AppendEvents"] != 1 || len(statements) != 1 {
		t.Errorf("for the stream the primary was sent %v", statements)
	}
	if _, statements := p.toReplica.reset(); statements["Poll"] == 0 || statements["AttachPart"] != 1 {
		t.Errorf("for the stream the replica was sent %v", statements)
	}

	// The replica does not show the end of the run, nor the run that follows.
	replicated.Pause(t)
	mustStore(t, p.store, "stream", end("m"), finished("stream", "run"))
	select {
	case event := <-opened.next:
		t.Errorf("the replica shows %s although it is paused", event.Data)
	case <-time.After(100 * time.Millisecond):
	}
	if _, err := p.store.Append(t.Context(), pgagui.RunRef{ThreadID: "stream", RunID: "second"}, []json.RawMessage{
		json.RawMessage(started("stream", "second")), json.RawMessage(finished("stream", "second")),
	}, pgagui.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	replicated.Resume(t)
	opened.want("TEXT_MESSAGE_END", "RUN_FINISHED", "RUN_STARTED")
	opened.rest()
}

func streamsOfTheOwnRuns(t *testing.T, replicated *testdb.Replicated, p *withReplica, a *agent) {
	poster := p.run("own", "run", "u1 user Hello")
	called := a.called(t)
	called.send(started("own", "run"), start("m"))
	poster.want("RUN_STARTED", "TEXT_MESSAGE_START")
	shown(t, replicated, "own", 2)
	replicated.Pause(t)
	defer replicated.Resume(t)
	begin := time.Now()
	other := p.stream("GET", "/threads/own/events", "")
	other.want("RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT", "TEXT_MESSAGE_START")
	called.send(content("m", "Hi"), end("m"), finished("own", "run"))
	close(called.answers)
	for _, c := range []*client{poster, other} {
		c.want("TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "RUN_FINISHED")
		c.rest()
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("the events of the own run took %s", took)
	}
}

func aReplicaTooFarBehind(t *testing.T, replicated *testdb.Replicated, _ *withReplica, _ *agent) {
	log := &logOfServer{}
	p := serveWithReplica(t, replicated.Primary.URL("postgres"), replicated.Standby.URL("postgres"), server.Options{
		MaxReadLag: 300 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	mustStore(t, p.store, "far", started("far", "run"), start("m"), content("m", "one"))
	shown(t, replicated, "far", 3)
	opened := p.stream("GET", "/threads/far/events", "")
	opened.want("RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT", "TEXT_MESSAGE_START")
	replicated.Pause(t)
	p.toReplica.waitForChecks(t, 3) // longer than MaxReadLag
	if !p.server.UsesReplica() {
		t.Error("the replica is not used although there is nothing that it lacks")
	}
	mustStore(t, p.store, "far", content("m", " two"))
	p.waitUntilUnused()
	opened.want("TEXT_MESSAGE_CONTENT")
	if text := p.lastText("far"); text != "one two" {
		t.Errorf("the text is %q", text)
	}
	if lag := p.metrics("replica_lag_seconds")[""]; lag < 0.3 || log.count("behind the primary") == 0 {
		t.Errorf("the lag is %v s", lag)
	}
	replicated.Resume(t)
	p.waitForReplica()
	mustStore(t, p.store, "far", end("m"), finished("far", "run"))
	opened.want("TEXT_MESSAGE_END", "RUN_FINISHED")
	opened.rest()
}

func rowSecurityOnTheReplica(t *testing.T, replicated *testdb.Replicated, _ *withReplica, a *agent) {
	for _, statement := range []string{
		`create role requests login password 'secret' in role agui_writer`, `select agui.map_pool('requests')`,
		`create role reads login password 'secret' in role agui_reader`, `select agui.map_pool('reads')`,
		`create role live login password 'secret' in role agui_recorder`, `select agui.map_operator('live')`,
		`call agui.enable_row_security()`,
	} {
		testdb.Exec(t, replicated.PrimaryPool, statement)
	}
	authenticator, made := tokens(t, "a admin", "b admin")
	as := func(address, role string) string {
		parsed := must.Have(url.Parse(address))(t)
		parsed.User = url.UserPassword(role, "secret")
		return parsed.String()
	}
	primary, standby := replicated.Primary.URL("postgres"), replicated.Standby.URL("postgres")
	wait.For(t, "the roles on the standby", func() bool {
		connection, err := pgx.Connect(t.Context(), as(standby, "reads"))
		if err == nil {
			_ = connection.Close(t.Context())
		}
		return err == nil
	})
	pool, _ := traced(t, as(primary, "requests"))
	live, _ := traced(t, as(primary, "live"))
	reads, toReplica := traced(t, as(standby, "reads"))
	p := &withReplica{registry: prometheus.NewRegistry()}
	p.process = serveStore(t, pgagui.New(pool, &pgagui.Config{SetScope: true, Live: live}), server.Options{
		Agents: withAgent(a).Agents, Access: authenticator, Reads: pgagui.New(reads, &pgagui.Config{SetScope: true}), Metrics: p.registry,
	})
	p.waitForReplica()
	of := func(scope int) []string { return []string{"Authorization", "Bearer " + made[scope]} }
	var positions []string
	for scope, name := range []string{"a", "b"} {
		c := p.stream("POST", "/agent/test/run", input("thread", "run", "u1 user Hello "+name), of(scope)...)
		positions = append(positions, c.answer.Header.Get("Pgagui-Position"))
		a.called(t).finish("m", "Hi "+name)
		c.rest()
	}
	for scope, name := range []string{"a", "b"} {
		toReplica.reset()
		headers := append(of(scope), "Pgagui-Position", positions[scope]+", 5")
		answer := fmt.Sprint(p.json(200, "GET", "/copilotkit/threads/thread/messages", "", headers...))
		if !strings.Contains(answer, "Hello "+name) || !strings.Contains(answer, "Hi "+name) {
			t.Errorf("scope %s reads %s", name, answer)
		}
		opened := p.stream("GET", "/threads/thread/events", "", of(scope)...)
		opened.rest()
		if text := fmt.Sprint(opened.events); !strings.Contains(text, "Hi "+name) {
			t.Errorf("scope %s receives %s", name, text)
		}
		if _, statements := toReplica.reset(); statements["Messages"] == 0 || statements["IsShown"] == 0 || statements["AttachPart"] != 1 {
			t.Errorf("scope %s: the replica was sent %v", name, statements)
		}
	}
	if reads := p.metrics("replica_reads_total"); reads["unavailable"]+reads["behind"]+reads["unknown"]+reads["failed"] > 0 {
		t.Errorf("the primary answered what the replica should have: %v", reads)
	}
	p.json(200, "PATCH", "/copilotkit/threads/thread", `{"name":"mine"}`, of(0)...)
	if list := fmt.Sprint(p.json(200, "GET", "/copilotkit/threads", "", of(1)...)); strings.Contains(list, "mine") {
		t.Errorf("scope b lists %s", list)
	}
}

// The standby becomes a primary of its own while the other lives: what it has from then on is not
// what clients have seen.
func aReplicaPromotedByMistake(t *testing.T, replicated *testdb.Replicated, p *withReplica, _ *agent) {
	mustStore(t, p.store, "promoted", started("promoted", "run"), start("m"), content("m", "one"))
	shown(t, replicated, "promoted", 3)
	opened := p.stream("GET", "/threads/promoted/events", "")
	opened.want("RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT", "TEXT_MESSAGE_START")
	mustStore(t, p.store, "promoted", content("m", " and"))
	opened.want("TEXT_MESSAGE_CONTENT")
	must.Do(t, replicated.Standby.Promote(t.Context()))
	p.waitUntilUnused()
	mustStore(t, pgagui.New(replicated.StandbyPool, nil), "promoted", content("m", " else"), end("m"), finished("promoted", "run"))
	mustStore(t, p.store, "promoted", content("m", " two"), end("m"))
	opened.want("TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END")
	if text := opened.events[5]; !strings.Contains(text, " two") {
		t.Errorf("the stream continues with %s", text)
	}
	mustStore(t, p.store, "promoted", finished("promoted", "run"))
	opened.want("RUN_FINISHED")
	opened.rest()
	if text := p.lastText("promoted"); text != "one and two" {
		t.Errorf("the text is %q", text)
	}
}

// logOfServer keeps what a server logs.
type logOfServer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logOfServer) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *logOfServer) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

// waitUntilUnused waits until no reads go to the replica.
func (p *withReplica) waitUntilUnused() {
	p.t.Helper()
	wait.For(p.t, "the replica is not used", func() bool { return !p.server.UsesReplica() })
}

func TestAReplicaThatHangsOrRefuses(t *testing.T) {
	t.Parallel()
	address := testdb.New(t)
	for what, break_ := range map[string]func(*cutproxy.Proxy){
		"hangs":   (*cutproxy.Proxy).Hold,
		"refuses": func(proxy *cutproxy.Proxy) { proxy.Refuse(true); proxy.CutNow() },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			proxy, log := cutproxy.Start(t, address), &logOfServer{}
			isReady := func(context.Context) error { return nil }
			p := serveWithReplica(t, address, proxy.URL(), server.Options{Logger: slog.New(slog.NewTextHandler(log, nil)), Ready: isReady})
			defer proxy.Release() // what was given up says good-bye
			mustStore(t, p.store, what, started(what, "run"), start("m"), content("m", "Hello"))
			opened := p.stream("GET", "/threads/"+what+"/events", "")
			opened.want("RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT", "TEXT_MESSAGE_START")
			mustStore(t, p.store, what, content("m", " again"))
			opened.want("TEXT_MESSAGE_CONTENT") // through the replica
			break_(proxy)
			// The first waits until the check of the replica has failed. The others do not ask the replica.
			for n := range 50 {
				if text := p.lastText(what); text != "Hello again" {
					t.Fatalf("the text is %q", text)
				}
				if n == 0 {
					p.waitUntilUnused()
					p.toReplica.reset()
				}
			}
			if messages, statements := p.toReplica.reset(); messages > 0 {
				t.Errorf("the replica was asked %v", statements)
			}
			mustStore(t, p.store, what, end("m"), finished(what, "run"))
			opened.want("TEXT_MESSAGE_END", "RUN_FINISHED")
			opened.rest()
			p.json(200, "GET", "/readyz", "")
			if usable, moved := p.metrics("replica_usable")[""], p.metrics("replica_followers_moved_total")[""]; usable != 0 || moved != 1 {
				t.Errorf("the replica is usable: %v, followers that moved: %v", usable, moved)
			}
			proxy.Release()
			proxy.Refuse(false)
			p.waitForReplica()
			p.toReplica.reset()
			if text := p.lastText(what); text != "Hello again" {
				t.Errorf("the text is %q", text)
			}
			if messages, _ := p.toReplica.reset(); messages != 1 {
				t.Errorf("the replica was sent %d messages", messages)
			}
			if lost, back := log.count("cannot be used"), log.count("reads go to the replica"); lost != 1 || back != 2 {
				t.Errorf("the log has %d lines that it is lost and %d that it is used", lost, back)
			}
		})
	}
}

// The standby takes over and has missed the end of the log.
func TestFailoverToTheReplica(t *testing.T) {
	t.Parallel()
	replicated := testdb.NewReplicated(t)
	var mu sync.Mutex
	primary := replicated.Primary.URL("postgres") // the server that the name stands for
	pool := testdb.ConnectWith(t, primary, func(config *pgxpool.Config) {
		config.BeforeConnect = func(_ context.Context, connection *pgx.ConnConfig) error {
			mu.Lock()
			defer mu.Unlock()
			target, err := pgx.ParseConfig(primary)
			if err == nil {
				connection.Host, connection.Port, connection.Password, connection.Fallbacks = target.Host, target.Port, target.Password, nil
			}
			return err
		}
	})
	quiet := &pgagui.Config{Logger: slog.New(slog.DiscardHandler)}
	p := serveStore(t, pgagui.New(pool, quiet), server.Options{
		Reads: pgagui.New(testdb.Connect(t, replicated.Standby.URL("postgres")), quiet), Logger: quiet.Logger,
	})
	p.waitForReplica()
	for _, thread := range []string{"lost", "kept"} {
		mustStore(t, p.store, thread, started(thread, "run"), start("m"), content("m", "one"))
		shown(t, replicated, thread, 3)
	}
	kept := p.stream("GET", "/threads/kept/events", "") // on the standby
	kept.want("RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT", "TEXT_MESSAGE_START")
	before := p.stream("GET", "/threads/lost/events", "")
	before.want("RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT", "TEXT_MESSAGE_START")
	replicated.Disconnect(t)
	mustStore(t, p.store, "lost", content("m", " lost"), content("m", " too"))
	ahead := p.stream("GET", "/threads/lost/events", "", "Last-Event-ID", "4") // on the primary
	ahead.want("TEXT_MESSAGE_CONTENT")
	must.Do(t, replicated.Primary.Kill())
	must.Do(t, replicated.Standby.Promote(t.Context()))
	mu.Lock()
	primary = replicated.Standby.URL("postgres")
	mu.Unlock()
	ahead.wantAborted()
	mustStore(t, p.store, "lost", content("m", " and"), content("m", " found"), end("m"), finished("lost", "run"))
	mustStore(t, p.store, "kept", content("m", " two"), end("m"), finished("kept", "run"))
	kept.want("TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "RUN_FINISHED")
	kept.rest()
	before.want("TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "RUN_FINISHED")
	before.rest()
	p.waitForReplica() // the server of both addresses
	resumed := p.stream("GET", "/threads/lost/events", "", "Last-Event-ID", ahead.lastID)
	resumed.want("RUN_STARTED", "MESSAGES_SNAPSHOT") // the history: what the client has seen is not in the log
	if snapshot := resumed.events[1]; !strings.Contains(snapshot, "one and found") {
		t.Errorf("the client that saw what is lost receives %s", snapshot)
	}
	resumed.rest()
}
