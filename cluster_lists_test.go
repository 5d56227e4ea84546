package pgagui_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
)

// sameThreads are the same threads on one database and on a cluster.
type sameThreads struct {
	t              *testing.T
	nodes          []testdb.Node
	single, spread *pgagui.Store
	runs           map[pgagui.RunRef]bool
	events         map[string]int // of the threads of the scope ""
}

func newSameThreads(t *testing.T, threads int) *sameThreads {
	t.Helper()
	pool := testdb.Pool(t)
	s := &sameThreads{t: t, nodes: testdb.Nodes(t, 3), single: pgagui.New(pool, nil), runs: map[pgagui.RunRef]bool{}, events: map[string]int{}}
	s.spread = onNodes(s.nodes, nil)
	random := rand.New(rand.NewPCG(3, 4))
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for n := range threads {
		scope := []string{"", "", "", "other"}[random.IntN(4)]
		threadID := fmt.Sprint("thread ", n)
		for run := range 1 + random.IntN(3) {
			// Whole hours, so that many things happen at the same time.
			at := begin.Add(time.Duration(random.IntN(40)) * time.Hour).UnixMilli()
			runID := fmt.Sprint("run ", run)
			words := []string{"alpha", "beta", "gamma"}[:1+random.IntN(3)]
			raw := []string{
				fmt.Sprintf(`{"type":"RUN_STARTED","runId":%q,"timestamp":%d}`, runID, at),
				fmt.Sprintf(`{"type":"TEXT_MESSAGE_CHUNK","messageId":"m%d","role":"assistant","delta":"The %s of %d.","timestamp":%d}`, run, strings.Join(words, " "), n, at+random.Int64N(3000)+1),
				fmt.Sprintf(`{"type":"TOOL_CALL_START","toolCallId":"c%d","toolCallName":"%s","timestamp":%d}`, run, []string{"buy", "sell"}[random.IntN(2)], at+4000),
				fmt.Sprintf(`{"type":"TOOL_CALL_END","toolCallId":"c%d","timestamp":%d}`, run, at+4000),
				fmt.Sprintf(`{"type":"TOOL_CALL_RESULT","messageId":"r%d","toolCallId":"c%d","content":"{\"error\":\"no %d\"}","timestamp":%d}`, run, run, n, at+4000+random.Int64N(9000)),
				fmt.Sprintf([]string{
					`{"type":"RUN_FINISHED","usage":[{"provider":"p","model":"m","inputTokens":7,"outputTokens":2}],"timestamp":%d}`,
					`{"type":"RUN_ERROR","message":"no","timestamp":%d}`,
					`{"type":"RUN_FINISHED","outcome":{"type":"cancelled"},"timestamp":%d}`,
					`{"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[{"id":"i1","reason":"tool_call","message":"may I?"}]},"timestamp":%d}`,
				}[random.IntN(4)], at+20000),
			}
			for _, store := range []*pgagui.Store{s.single, s.spread} {
				mustAppend(t, store.InScope(scope), threadID, runID, rawEvents(raw...), pgagui.AppendOptions{TimesFromEvents: true})
			}
			if scope == "" {
				s.runs[pgagui.RunRef{ThreadID: threadID, RunID: runID}] = true
				s.events[threadID] += len(raw)
			}
		}
		if random.IntN(3) == 0 {
			changes := pgagui.ThreadChanges{Title: new(fmt.Sprint("Title ", n)), Agent: new([]string{"x", "y"}[random.IntN(2)]), Archived: new(random.IntN(2) == 0)}
			for _, store := range []*pgagui.Store{s.single, s.spread} {
				must.Have(store.InScope(scope).SetThread(t.Context(), threadID, changes))(t)
			}
		}
	}
	for _, store := range []*pgagui.Store{s.single, s.spread} {
		must.Do(t, store.EnableSearch(t.Context(), "english"))
	}
	for _, on := range append([]testdb.Node{{Pool: pool}}, s.nodes...) {
		project(t, on.Pool)
	}
	return s
}

// project keeps the facts of all runs.
func project(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	wait.For(t, "the facts of all runs", func() bool {
		testdb.Exec(t, pool, `call agui.project()`)
		return testdb.Ask[bool](t, pool, `select (select count(*) from agui.run_fact) = (select count(*) from agui.run)`)
	})
}

// same compares what both say, page by page in pages of several sizes.
func same[T any](s *sameThreads, what string, page func(store *pgagui.Store, cursor string, limit int) (items []T, next string, err error)) {
	s.t.Helper()
	all := func(store *pgagui.Store, limit int) (items []T) {
		cursor := ""
		for {
			more, next, err := page(store, cursor, limit)
			if err != nil {
				s.t.Fatalf("%s: %v", what, err)
			}
			items = append(items, more...)
			if next == "" {
				return items
			}
			cursor = next
		}
	}
	want := asJSON(s.t, all(s.single, 100))
	if len(want) < 5 {
		s.t.Errorf("%s: there are %d only", what, len(want))
	}
	for _, limit := range []int{1, 3, 7, 100} {
		if got := asJSON(s.t, all(s.spread, limit)); !slices.Equal(got, want) {
			s.t.Errorf("%s in pages of %d:\n%s\nwant\n%s", what, limit, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

func asJSON[T any](t *testing.T, items []T) (texts []string) {
	t.Helper()
	for _, item := range items {
		text := must.Have(json.Marshal(item))(t)
		texts = append(texts, string(text))
	}
	return texts
}

// Lists, searches and facts of a cluster are those of one database that has all threads.
func TestListsOfAClusterAreThoseOfOneDatabase(t *testing.T) {
	t.Parallel()
	s := newSameThreads(t, 60)
	for what, options := range map[string]pgagui.ThreadsOptions{
		"all": {Archived: pgagui.WithArchived}, "not archived": {}, "of an agent": {Agent: "x", Archived: pgagui.WithArchived},
		"failed": {Status: pgagui.Failed, Archived: pgagui.WithArchived}, "with a title": {Title: "title", Archived: pgagui.WithArchived},
		"since": {Since: time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC), Archived: pgagui.WithArchived},
	} {
		same(s, "threads: "+what, func(store *pgagui.Store, cursor string, limit int) ([]pgagui.Thread, string, error) {
			options.Cursor, options.Limit = cursor, limit
			page, err := store.Threads(t.Context(), options)
			if page.HasMore != (page.Cursor != "") || len(page.Threads) > limit {
				t.Errorf("threads: %s: %+v", what, page)
			}
			for i := range page.Threads {
				page.Threads[i].CreatedAt = time.Time{} // of its first append
			}
			return page.Threads, page.Cursor, err
		})
	}
	// The cursor of a thread is a place in the list, too.
	same(s, "threads, one by one", func(store *pgagui.Store, cursor string, limit int) (ids []string, next string, err error) {
		page, err := store.Threads(t.Context(), pgagui.ThreadsOptions{Cursor: cursor, Limit: limit})
		for _, thread := range page.Threads {
			ids, next = append(ids, thread.ID), thread.Cursor
		}
		return ids, next, err
	})
	same(s, "runs", func(store *pgagui.Store, cursor string, limit int) ([]pgagui.ListedRun, string, error) {
		page, err := store.ListRuns(t.Context(), pgagui.ListRunsOptions{Status: []pgagui.Status{pgagui.Failed, pgagui.Cancelled, pgagui.Interrupted}, Cursor: cursor, Limit: limit})
		return page.Runs, page.Cursor, err
	})
	for _, allScopes := range []bool{false, true} {
		same(s, fmt.Sprint("search, all scopes ", allScopes), func(store *pgagui.Store, cursor string, limit int) ([]pgagui.FoundMessage, string, error) {
			page, err := store.Search(t.Context(), "beta or gamma", pgagui.SearchOptions{AllScopes: allScopes, Cursor: cursor, Limit: limit})
			return page.Messages, page.Cursor, err
		})
	}
	same(s, "ids", func(store *pgagui.Store, _ string, _ int) (ids []string, _ string, err error) {
		for id, failed := range store.ThreadIDs(t.Context()) {
			ids, err = append(ids, id), errors.Join(err, failed)
		}
		return ids, "", err
	})
	for _, limit := range []int{0, 1, 3, 7} {
		same(s, fmt.Sprint("waiting, ", limit), func(store *pgagui.Store, _ string, _ int) ([]pgagui.WaitingInterrupt, string, error) {
			all, err := store.Facts().Waiting(t.Context(), pgagui.WaitingOptions{})
			some, someErr := store.Facts().Waiting(t.Context(), pgagui.WaitingOptions{Limit: limit})
			if limit > 0 && !reflect.DeepEqual(some, all[:limit]) {
				t.Errorf("the first %d that wait are %+v, want %+v", limit, some, all[:limit])
			}
			return all, "", errors.Join(err, someErr)
		})
	}

	for what, facts := range map[string]func(*pgagui.Store) pgagui.Facts{"of the scope": (*pgagui.Store).Facts, "of all scopes": (*pgagui.Store).FactsOfAllScopes} {
		var reports []pgagui.Report // of the database, of the cluster, and of each node
		for _, store := range []*pgagui.Store{s.single, s.spread, s.spread.OnNode("a"), s.spread.OnNode("b"), s.spread.OnNode("c")} {
			report := must.Have(facts(store).Report(t.Context(), time.Time{}))(t)
			reports = append(reports, report)
		}
		checkDurations(t, reports)
		want, got := asJSON(t, reports[:1])[0], asJSON(t, reports[1:2])[0]
		if got != want || len(reports[0].Tools) != 2 || len(reports[0].Agents) != 3 || len(reports[0].Models) == 0 || len(reports[0].Days) < 2 {
			t.Errorf("facts %s:\n%s\nwant\n%s", what, got, want)
		}
	}
}

// checkDurations compares the durations of the cluster with those of all nodes and of one database, and removes them, and the last error,
// which is that of any node.
func checkDurations(t *testing.T, reports []pgagui.Report) {
	t.Helper()
	durationsOf := func(report *pgagui.Report) map[string]*time.Duration {
		durations := map[string]*time.Duration{}
		for i := range report.Agents {
			agent := &report.Agents[i]
			for name, of := range map[string]**time.Duration{"median": &agent.MedianDuration, "p95": &agent.P95Duration, "median token": &agent.MedianFirstToken, "p95 token": &agent.P95FirstToken} {
				durations["agent "+agent.Agent+" "+name], *of = *of, nil
			}
		}
		for i := range report.Tools {
			tool := &report.Tools[i]
			if tool.LastError == "" {
				t.Errorf("tool %s has no error", tool.Tool)
			}
			durations[tool.Tool+" median"], durations[tool.Tool+" p95"] = tool.MedianDuration, tool.P95Duration
			tool.MedianDuration, tool.P95Duration, tool.LastError = nil, nil, ""
		}
		return durations
	}
	one, spread := durationsOf(&reports[0]), durationsOf(&reports[1])
	longest := map[string]time.Duration{}
	for i := range reports[2:] {
		for name, duration := range durationsOf(&reports[2+i]) {
			longest[name] = max(longest[name], *duration)
		}
	}
	for name, duration := range spread {
		if *duration != longest[name] || *duration < *one[name] {
			t.Errorf("%s: %s, want the longest of the nodes, %s, and not less than %s", name, *duration, longest[name], *one[name])
		}
	}
}

func TestChangesOfACluster(t *testing.T) {
	t.Parallel()
	s := newSameThreads(t, 25)
	for _, limit := range []int{1, 3, 7, 0} {
		position, left := "", map[pgagui.RunRef]bool{}
		for run := range s.runs {
			left[run] = true
		}
		read := func() {
			t.Helper()
			changes, err := s.spread.Changes(t.Context(), pgagui.ChangesOptions{After: position, Limit: limit})
			if err != nil || limit > 0 && len(changes) > limit {
				t.Fatalf("%d changes of at most %d, error %v", len(changes), limit, err)
			}
			for _, change := range changes {
				run := pgagui.RunRef{ThreadID: change.ThreadID, RunID: change.RunID}
				if !s.runs[run] && change.RunID != "late" {
					t.Errorf("a change of %+v", run)
				}
				delete(left, run)
				position = change.Position
			}
		}
		wait.For(t, "all runs", func() bool { read(); return len(left) == 0 })
		for i := range 4 {
			run := pgagui.RunRef{ThreadID: fmt.Sprintf("late %d %d", limit, i), RunID: "late"}
			left[run] = true
			mustAppend(t, s.spread, run.ThreadID, run.RunID, rawEvents(started("late"), finished))
		}
		wait.For(t, "the new runs", func() bool { read(); return len(left) == 0 })
		for i := range 4 {
			s.events[fmt.Sprintf("late %d %d", limit, i)] = 2
		}
	}

	consumer := s.spread.Consumer("copy")
	events := map[string]int64{}
	wait.For(t, "all events", func() bool {
		for event, err := range consumer.Events(t.Context()) {
			must.Do(t, err)
			if events[event.ThreadID]++; events[event.ThreadID] != event.Seq {
				t.Fatalf("event %d of thread %q is number %d", event.Seq, event.ThreadID, events[event.ThreadID])
			}
		}
		return len(events) == len(s.events)
	})
	for thread, n := range s.events {
		if events[thread] != int64(n) {
			t.Errorf("thread %q: %d events, want %d", thread, events[thread], n)
		}
	}
	places, err := s.spread.Consumers(t.Context())
	if err != nil || len(places) != 1 || places[0].Consumer != "copy" || places[0].Position == "" || places[0].Behind > 5 {
		t.Errorf("%+v, error %v", places, err)
	}
	must.Report(t, consumer.Move(t.Context(), places[0].Position))
	must.Report(t, consumer.Move(t.Context(), ""))
	again, err := consumer.Changes(t.Context(), 5)
	if err != nil || len(again) != 5 {
		t.Errorf("%d changes after the beginning, error %v", len(again), err)
	}
	must.Report(t, consumer.Move(t.Context(), again[1].Position))
	if wasKnown, err := consumer.Remove(t.Context()); err != nil || !wasKnown {
		t.Error(wasKnown, err)
	}
	if places, err := s.spread.Consumers(t.Context()); err != nil || len(places) != 0 {
		t.Errorf("%+v, error %v", places, err)
	}

	// A position of one node leaves a new consumer at the beginning of the others, and moves no place back.
	for _, move := range []int{0, 1} {
		must.Report(t, consumer.Move(t.Context(), again[move].Position))
	}
	must.Report(t, consumer.Move(t.Context(), again[0].Position))
	places, err = s.spread.Consumers(t.Context())
	if want := int64(len(s.runs)) - 2; err != nil || len(places) != 1 || places[0].Behind < want {
		t.Errorf("%+v, want at least %d behind, error %v", places, want, err)
	}
	if next, err := consumer.Changes(t.Context(), 100); err != nil || slices.ContainsFunc(next, func(change pgagui.Change) bool {
		return change.ThreadID == again[1].ThreadID && change.RunID == again[1].RunID
	}) {
		t.Errorf("the consumer gets %+v once more, error %v", again[1], err)
	}
	if _, err := consumer.Remove(t.Context()); err != nil {
		t.Error(err)
	}

	single := must.Have(s.single.Changes(t.Context(), pgagui.ChangesOptions{Limit: 1}))(t)
	for position, want := range map[string]error{
		single[0].Position: pgagui.ErrOtherHistory, "x": pgagui.ErrInvalidArgument, "e30x": pgagui.ErrInvalidArgument, "bnVsbA": pgagui.ErrInvalidArgument,
		"eyJhIjoieCJ9": pgagui.ErrInvalidArgument,
	} {
		if _, err := s.spread.Changes(t.Context(), pgagui.ChangesOptions{After: position}); !errors.Is(err, want) {
			t.Errorf("after %q: %v, want %v", position, err, want)
		}
		if err := consumer.Move(t.Context(), position); !errors.Is(err, want) {
			t.Errorf("move to %q: %v, want %v", position, err, want)
		}
	}
	for _, limit := range []int{-1, 10_001} {
		if _, err := s.spread.Changes(t.Context(), pgagui.ChangesOptions{Limit: limit}); !errors.Is(err, pgagui.ErrLimitExceeded) {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
}

// A call for all nodes returns what those that answer say, and names the others.
func TestNodesThatDoNotAnswerAreNamed(t *testing.T) {
	t.Parallel()
	s := newSameThreads(t, 30)
	away := testdb.Connect(t, "postgres://127.0.0.1:1/none")
	ctx := t.Context()
	store := pgagui.NewCluster([]pgagui.Node{{Name: "a", Pool: s.nodes[0].Pool}, {Name: "b", Pool: s.nodes[1].Pool}, {Name: "c", Pool: away}}, &pgagui.Config{Logger: quiet})
	for _, ids := range threadsOn(t, s.nodes, 1) {
		mustAppend(t, s.spread, ids[0], "held", rawEvents(started("held"), finished))
		must.Have(s.spread.Maintenance().SetHold(ctx, ids[0], "a reason"))(t)
	}
	must.Do(t, s.spread.Consumer("copy").Move(ctx, ""))
	ids := func(store *pgagui.Store) (ids []string, err error) {
		for id, failed := range store.ThreadIDs(ctx) {
			if failed != nil {
				err = failed
			} else {
				ids = append(ids, id)
			}
		}
		return ids, err
	}
	events := func(store *pgagui.Store) (events []string, err error) {
		for event, failed := range store.Consumer(fmt.Sprintf("of %p", store)).Events(ctx) {
			if failed != nil {
				err = failed
			} else {
				events = append(events, fmt.Sprint(event.ThreadID, event.Seq))
			}
		}
		return events, err
	}
	for what, call := range map[string]func(store *pgagui.Store) (n int, err error){
		"Threads": func(store *pgagui.Store) (int, error) {
			page, err := store.Threads(ctx, pgagui.ThreadsOptions{})
			return len(page.Threads), err
		},
		"ListRuns": func(store *pgagui.Store) (int, error) {
			page, err := store.ListRuns(ctx, pgagui.ListRunsOptions{})
			return len(page.Runs), err
		},
		"ThreadIDs": func(store *pgagui.Store) (int, error) { ids, err := ids(store); return len(ids), err },
		"Search": func(store *pgagui.Store) (int, error) {
			page, err := store.Search(ctx, "alpha", pgagui.SearchOptions{Limit: 1000})
			return len(page.Messages), err
		},
		"Waiting": func(store *pgagui.Store) (int, error) {
			waiting, err := store.Facts().Waiting(ctx, pgagui.WaitingOptions{})
			return len(waiting), err
		},
		"Tools": func(store *pgagui.Store) (int, error) {
			tools, err := store.Facts().Tools(ctx, pgagui.Period{})
			return int(tools[0].Calls), err
		},
		"Agents": func(store *pgagui.Store) (int, error) {
			agents, err := store.Facts().Agents(ctx, pgagui.Period{})
			return int(agents[0].Runs), err
		},
		"Models": func(store *pgagui.Store) (int, error) {
			models, err := store.Facts().Models(ctx, pgagui.Period{})
			return int(models[0].Runs), err
		},
		"Days": func(store *pgagui.Store) (int, error) {
			days, err := store.Facts().Days(ctx, pgagui.Period{})
			return len(days) * int(days[0].Runs), err
		},
		"Report": func(store *pgagui.Store) (int, error) {
			report, err := store.Facts().Report(ctx, time.Time{})
			return int(report.Agents[0].Runs), err
		},
		"Holds": func(store *pgagui.Store) (int, error) {
			holds, err := store.Maintenance().Holds(ctx)
			return len(holds), err
		},
		"Consumers": func(store *pgagui.Store) (int, error) {
			places, err := store.Consumers(ctx)
			return int(places[0].Behind), err
		},
		"Changes": func(store *pgagui.Store) (int, error) {
			changes, err := store.Changes(ctx, pgagui.ChangesOptions{Limit: 9000})
			return len(changes), err
		},
		"Consumer.Changes": func(store *pgagui.Store) (int, error) {
			changes, err := store.Consumer("copy").Changes(ctx, 9000)
			return len(changes), err
		},
		"Consumer.Events": func(store *pgagui.Store) (int, error) { events, err := events(store); return len(events), err },
	} {
		n, err := call(store)
		if unanswered, ok := errors.AsType[*pgagui.UnansweredError](err); !ok || len(unanswered.Nodes) != 1 || unanswered.Nodes["c"] == nil || n == 0 {
			t.Errorf("%s: %d, error %v", what, n, err)
		}
		if !pgagui.IsTransient(err) {
			t.Errorf("%s: %v is not transient", what, err)
		}
		if all, err := call(s.spread); err != nil || all <= n {
			t.Errorf("%s: %d of two nodes, %d of all; error %v", what, n, all, err)
		}
	}
	// The last search call leaves search off on the nodes that answer.
	for _, change := range []struct {
		name string
		call func() error
	}{
		{"EnableSearch", func() error { return store.EnableSearch(ctx, "simple") }},
		{"DisableSearch", func() error { _, err := store.DisableSearch(ctx); return err }},
		{"Consumer.Move", func() error { return store.Consumer("copy").Move(ctx, "") }},
		{"Consumer.Remove", func() error { _, err := store.Consumer("copy").Remove(ctx); return err }},
	} {
		var unanswered *pgagui.UnansweredError
		if err := change.call(); !errors.As(err, &unanswered) || unanswered.Nodes["c"] == nil {
			t.Errorf("%s: %v", change.name, err)
		}
	}
	if limits, err := store.Maintenance().FoldLimits(ctx); err != nil || limits.FoldBytes == 0 {
		t.Errorf("%+v, error %v", limits, err)
	}
	// What a node refuses is no lack of an answer.
	if _, err := store.Threads(ctx, pgagui.ThreadsOptions{Cursor: "x"}); !errors.Is(err, pgagui.ErrInvalidArgument) {
		t.Error(err)
	}
	if _, err := store.Search(ctx, "alpha", pgagui.SearchOptions{}); !errors.Is(err, pgagui.ErrSearchOff) {
		t.Error(err)
	}
}

// A list without items is the same value in a cluster and on one database, so that JSON of both is alike.
func TestEmptyListsOfACluster(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	single, spread := pgagui.New(testdb.Pool(t), nil), onNodes(testdb.Nodes(t, 3), nil)
	for what, list := range map[string]func(store *pgagui.Store) (any, error){
		"Threads":   func(store *pgagui.Store) (any, error) { return store.Threads(ctx, pgagui.ThreadsOptions{}) },
		"ListRuns":  func(store *pgagui.Store) (any, error) { return store.ListRuns(ctx, pgagui.ListRunsOptions{}) },
		"Changes":   func(store *pgagui.Store) (any, error) { return store.Changes(ctx, pgagui.ChangesOptions{Limit: 9}) },
		"Holds":     func(store *pgagui.Store) (any, error) { return store.Maintenance().Holds(ctx) },
		"Consumers": func(store *pgagui.Store) (any, error) { return store.Consumers(ctx) },
		"Waiting":   func(store *pgagui.Store) (any, error) { return store.Facts().Waiting(ctx, pgagui.WaitingOptions{}) },
		"Tools":     func(store *pgagui.Store) (any, error) { return store.Facts().Tools(ctx, pgagui.Period{}) },
		"Agents":    func(store *pgagui.Store) (any, error) { return store.Facts().Agents(ctx, pgagui.Period{}) },
		"Models":    func(store *pgagui.Store) (any, error) { return store.Facts().Models(ctx, pgagui.Period{}) },
		"Days":      func(store *pgagui.Store) (any, error) { return store.Facts().Days(ctx, pgagui.Period{}) },
		"Report":    func(store *pgagui.Store) (any, error) { return store.Facts().Report(ctx, time.Time{}) },
	} {
		want, err := list(single)
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		got, err := list(spread)
		if err != nil || !reflect.DeepEqual(asJSON(t, []any{got}), asJSON(t, []any{want})) {
			t.Errorf("%s of a cluster: %s, of a database: %s; error %v", what, asJSON(t, []any{got}), asJSON(t, []any{want}), err)
		}
	}
}

// A consumer names a thread that no node has, and does not say that the history is another one: beginning again would not help.
func TestAConsumerNamesAThreadOnNoNode(t *testing.T) {
	t.Parallel()
	nodes := testdb.Nodes(t, 2)
	store := onNodes(nodes, nil)
	consumer := store.Consumer("warehouse")
	mustAppend(t, store, "t", "r", rawEvents(`{"type":"RUN_STARTED"}`, finished))
	for i, node := range nodes {
		testdb.Exec(t, node.Pool, `insert into agui_internal.moved_thread (thread_key, node) values (agui.thread_key('', 't'), $1)
			on conflict (thread_key) do update set node = excluded.node`, nodes[1-i].Name)
	}
	var last error
	wait.For(t, "the run", func() bool {
		for _, err := range consumer.Events(t.Context()) {
			last = err
		}
		return last != nil
	})
	if !errors.Is(last, pgagui.ErrMoved) || errors.Is(last, pgagui.ErrOtherHistory) || !strings.Contains(last.Error(), `thread "t"`) {
		t.Errorf("got %v", last)
	}
}
