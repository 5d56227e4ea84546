package pgagui_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/internal/testdb"
)

// treeModel is a thread's tree in the plainest form: the parent of each run by number, 0 for a root.
type treeModel struct{ parents []int }

func (m treeModel) lineage(run int) []string {
	var ids []string
	for ; run != 0; run = m.parents[run] {
		ids = append(ids, runName(run))
	}
	slices.Reverse(ids)
	return ids
}

func (m treeModel) mergeBase(a, b int) string {
	inA := map[string]bool{}
	for _, id := range m.lineage(a) {
		inA[id] = true
	}
	base := ""
	for _, id := range m.lineage(b) {
		if inA[id] {
			base = id
		}
	}
	return base
}

func (m treeModel) branches() []pgagui.Branch {
	children := make([]int, len(m.parents))
	for _, parent := range m.parents[1:] {
		children[parent]++
	}
	var branches []pgagui.Branch
	for run := 1; run < len(m.parents); run++ {
		if children[run] > 0 {
			continue
		}
		branch := pgagui.Branch{RunID: runName(run), Runs: len(m.lineage(run)), Status: pgagui.Finished, IsHead: run == len(m.parents)-1}
		branch.LastSeq = int64(2 * run)
		for ancestor := m.parents[run]; ancestor != 0; ancestor = m.parents[ancestor] {
			if children[ancestor] > 1 {
				branch.ForkedFrom = runName(ancestor)
				break
			}
		}
		branches = append(branches, branch)
	}
	return branches
}

func runName(run int) string { return fmt.Sprint("run-", run) }

// appendTree appends a run of two events for each node.
func appendTree(t *testing.T, pool *pgxpool.Pool, threadID string, model treeModel) {
	t.Helper()
	var ids, parents []string
	for run := 1; run < len(model.parents); run++ {
		ids = append(ids, runName(run))
		parent := "missing"
		if model.parents[run] != 0 {
			parent = runName(model.parents[run])
		}
		parents = append(parents, parent)
	}
	// Only the first run can be a root: a run that names no parent follows the head.
	testdb.Exec(t, pool, `
		select agui.append($1, run.id, json_build_array(
			case when run.parent = 'missing' then json_build_object('type', 'RUN_STARTED', 'runId', run.id)
				else json_build_object('type', 'RUN_STARTED', 'runId', run.id, 'parentRunId', run.parent) end,
			json_build_object('type', 'RUN_FINISHED')))
		from unnest($2::text[], $3::text[]) with ordinality as run (id, parent, position)
		order by run.position`, threadID, ids, parents)
}

func TestTreesAgreeWithAPlainModel(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	ctx := context.Background()
	for seed := range uint64(8) {
		random := rand.New(rand.NewPCG(seed, 1))
		model := treeModel{parents: []int{0, 0}}
		for run := 2; run <= 60; run++ {
			// Some seeds give long branches, others many short ones.
			reach := 1 + random.IntN(1+int(seed)*4)
			model.parents = append(model.parents, max(1, run-reach))
		}
		thread := fmt.Sprint("seed-", seed)
		appendTree(t, pool, thread, model)

		branches, err := store.Branches(ctx, thread)
		if err != nil {
			t.Fatal(err)
		}
		if want := model.branches(); !slices.Equal(branches, want) {
			t.Errorf("seed %d: branches\n%v\nwant\n%v", seed, branches, want)
		}
		for range 20 {
			a, b := 1+random.IntN(60), 1+random.IntN(60)
			lineage, err := store.Lineage(ctx, pgagui.RunRef{ThreadID: thread, RunID: runName(a)})
			if err != nil {
				t.Fatal(err)
			}
			if got, want := runIDs(lineage), model.lineage(a); !slices.Equal(got, want) {
				t.Errorf("seed %d: lineage of %d is %s, want %s", seed, a, got, want)
			}
			base, err := store.MergeBase(ctx, thread, pgagui.RunPair{A: runName(a), B: runName(b)})
			if want := model.mergeBase(a, b); base != want || (want == "") != errors.Is(err, pgagui.ErrUnrelatedRuns) || want != "" && err != nil {
				t.Errorf("seed %d: merge base of %d and %d is %s (%v), want %s", seed, a, b, base, err, want)
			}
		}
		runs, err := store.Runs(ctx, thread)
		if err != nil {
			t.Fatal(err)
		}
		for _, run := range runs {
			if want := len(model.lineage(run.Number)); run.Depth != want {
				t.Errorf("seed %d: depth of %s is %d, want %d", seed, run.ID, run.Depth, want)
			}
		}
	}
}

// A tree of 10,000 runs, 1,000 deep: a stem with ten branches of 900 runs that leave it at its 100th run.
func TestALargeTree(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	ctx := context.Background()
	const runs, depth = 3000, 1000
	model := treeModel{parents: []int{0}}
	for run := range depth {
		model.parents = append(model.parents, run)
	}
	for len(model.parents) <= runs {
		parent := 100
		for range 400 {
			model.parents = append(model.parents, parent)
			parent = len(model.parents) - 1
		}
	}
	appendTree(t, pool, "t", model)
	// What autovacuum does in time for a table of this size.
	testdb.Exec(t, pool, `analyze agui.run, agui.batch`)

	tx := testdb.Begin(t, pool)
	defer tx.Rollback(ctx)
	runsRead := func() int64 {
		t.Helper()
		return testdb.Ask[int64](t, tx, `
			select seq_tup_read + idx_tup_fetch from pg_stat_xact_user_tables where relid = 'agui.run'::regclass`)
	}
	before := runsRead()
	lineage, err := pgagui.New(tx, nil).Lineage(ctx, pgagui.RunRef{ThreadID: "t", RunID: runName(depth)})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := runIDs(lineage), model.lineage(depth); !slices.Equal(got, want) {
		t.Fatalf("lineage has %d runs, want %d", len(got), len(want))
	}
	if rows := runsRead() - before; rows > 2*depth+10 {
		t.Errorf("the lineage of a run that is %d deep reads %d runs", depth, rows)
	}

	branches, err := store.Branches(ctx, "t")
	if err != nil {
		t.Fatal(err)
	}
	if want := model.branches(); !slices.Equal(branches, want) {
		t.Errorf("branches\n%v\nwant\n%v", branches, want)
	}
	for _, pair := range [][2]int{{depth, runs}, {1400, 1800}, {50, runs}, {runs, runs}} {
		base, err := store.MergeBase(ctx, "t", pgagui.RunPair{A: runName(pair[0]), B: runName(pair[1])})
		if err != nil {
			t.Fatal(err)
		}
		if want := model.mergeBase(pair[0], pair[1]); base != want {
			t.Errorf("merge base of %v is %s, want %s", pair, base, want)
		}
	}
}

// However many runs the store has, the steps of the tree go by index.
func TestTheTreeIsReadByIndex(t *testing.T) {
	t.Parallel()
	_, pool := newStore(t)
	model := treeModel{parents: []int{0}}
	for run := range 2000 {
		model.parents = append(model.parents, run)
	}
	for _, thread := range []string{"a", "b", "c"} {
		appendTree(t, pool, thread, model)
	}
	testdb.Exec(t, pool, `analyze agui.run, agui.batch, agui.thread`)
	plans := map[string]string{
		"lineage":      `select * from agui.run where thread_key = agui.thread_key('', 'b') and run_no = 7`,
		"end of a log": `select * from agui.batch where thread_key = agui.thread_key('', 'b') order by first_seq desc limit 1`,
		"in progress":  `select * from agui.run where thread_key = agui.thread_key('', 'b') and status = 'running'`,
		"queue":        `select * from agui.run where log_bytes is null and status <> 'running' order by thread_key, run_no limit 1`,
	}
	for name, query := range plans {
		plan := testdb.List[string](t, pool, `explain `+query)
		if text := strings.Join(plan, "\n"); strings.Contains(text, "Seq Scan") || !strings.Contains(text, "Index") {
			t.Errorf("%s:\n%s", name, text)
		}
	}
}

func TestUnknownThreadsAndRuns(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	ctx := context.Background()
	mustAppend(t, store, "t", "r", rawEvents(started("r"), finished))
	reads := map[string]func(thread, run string) error{
		"lineage": func(thread, run string) error {
			_, err := store.Lineage(ctx, pgagui.RunRef{ThreadID: thread, RunID: run})
			return err
		},
		"merge base": func(thread, run string) error {
			_, err := store.MergeBase(ctx, thread, pgagui.RunPair{A: run, B: run})
			return err
		},
		"messages": func(thread, run string) error {
			_, err := store.Messages(ctx, thread, pgagui.At{RunID: run})
			return err
		},
		"state": func(thread, run string) error {
			_, err := store.State(ctx, thread, pgagui.At{RunID: run})
			return err
		},
		"interrupts": func(thread, run string) error {
			_, err := store.Interrupts(ctx, thread, pgagui.At{RunID: run})
			return err
		},
		"restore": func(thread, run string) error {
			_, err := store.Restore(ctx, thread, pgagui.At{RunID: run})
			return err
		},
		"abandon": func(thread, run string) error {
			_, err := store.Abandon(ctx, pgagui.RunRef{ThreadID: thread, RunID: run}, pgagui.AbandonOptions{Reason: "gone"})
			return err
		},
		"events": func(thread, run string) error {
			for _, err := range store.Events(ctx, thread, pgagui.EventsOptions{RunID: run}) {
				return err
			}
			return nil
		},
	}
	for name, read := range reads {
		if err := read("nobody's", "r"); !errors.Is(err, pgagui.ErrUnknownThread) {
			t.Errorf("%s of an unknown thread: error %v", name, err)
		}
		if err := read("t", "nobody"); !errors.Is(err, pgagui.ErrUnknownRun) {
			t.Errorf("%s of an unknown run: error %v", name, err)
		}
	}
	for name, read := range map[string]func() error{
		"runs":     func() error { _, err := store.Runs(ctx, "nobody's"); return err },
		"branches": func() error { _, err := store.Branches(ctx, "nobody's"); return err },
		"head":     func() error { _, err := store.Head(ctx, "nobody's"); return err },
		"verify":   func() error { _, err := store.Maintenance().Verify(ctx, "nobody's"); return err },
	} {
		if err := read(); !errors.Is(err, pgagui.ErrUnknownThread) {
			t.Errorf("%s of an unknown thread: error %v", name, err)
		}
	}
}

func TestReplayGivesWhatRestoreGives(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	ctx := context.Background()
	mustAppend(t, store, "t", "r", rawEvents(started("r"), `{"type":"TEXT_MESSAGE_START","messageId":"m"}`, token(1), token(2),
		`{"type":"TEXT_MESSAGE_END","messageId":"m"}`, `{"type":"STATE_DELTA","delta":[{"op":"add","path":"/a","value":1}]}`, finished))
	restored, err := store.Restore(ctx, "t", pgagui.At{})
	if err != nil {
		t.Fatal(err)
	}
	for _, shape := range []compaction.Shape{compaction.StreamShape, compaction.SnapshotShape} {
		replay, err := store.Replay(ctx, "t", pgagui.ReplayOptions{Shape: shape})
		if err != nil {
			t.Fatal(err)
		}
		fold := compaction.New()
		for _, event := range replay {
			fold.Apply(event)
		}
		if len(fold.Messages()) != 1 || string(fold.Messages()[0].JSON()) != string(restored.Messages[0]) || string(restored.State) != string(fold.State()) {
			t.Errorf("%s: %s means %s and state %s, want %s", shape, replay, fold.Messages()[0].JSON(), fold.State(), restored.JSON)
		}
	}
	if _, err := store.Replay(ctx, "t", pgagui.ReplayOptions{Shape: "small"}); !errors.Is(err, pgagui.ErrUnknownShape) {
		t.Errorf("an unknown shape: error %v", err)
	}
}

// What an answer is to, and which run answered it: a run that failed answers nothing, another branch has answers of its own.
func TestAnswered(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	run := func(id, parent, events string) {
		t.Helper()
		testdb.Exec(t, pool, `select agui.append('t', $1, ('[{"type":"RUN_STARTED"},' || $2 || ']')::json, parent_run_id => $3)`, id, events, parent)
	}
	asks := func(interrupt string) string {
		return `{"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[{"id":"` + interrupt + `"}]}}`
	}
	const fails, finishes = `{"type":"RUN_ERROR","message":"no"}`, `{"type":"RUN_FINISHED"}`
	run("r0", "", finishes)
	run("r1", "r0", asks("i"))
	run("r1-answer-a", "r1", fails)
	run("r1-answer-b", "r1-answer-a", asks("k"))
	run("r2", "r1-answer-b", finishes)
	run("branch", "r0", finishes)
	run("q1", "r0", `{"type":"CUSTOM","name":"on_interrupt","value":{"a":1,"b":"?"}},`+finishes)
	run("q1-answer-a", "q1", `{"type":"CUSTOM","name":"on_interrupt","value":"Sure?"},`+finishes)
	for _, test := range []struct {
		after, askedBy, interrupt string
		asking, by                string
	}{
		{"r1", "", "", "r1", ""},
		{"r1-answer-a", "r1", "", "r1", ""},
		{"r1-answer-b", "", "i", "r1", "r1-answer-b"},
		{"r1-answer-b", "r1", "k", "r1-answer-b", ""},
		{"r1-answer-b", "r1", "", "r1-answer-b", ""},
		{"r1-answer-b", "r1", "unknown", "r1-answer-b", ""},
		{"r2", "r1", "k", "r1-answer-b", "r2"},
		{"r2", "", "", "r1-answer-b", "r2"},
		{"r2", "", "unknown", "", ""},
		{"r2", "r0", "", "r0", "r1"},
		{"branch", "r1", "i", "", ""},
		{"", "q1", `{"b": "?", "a": 1}`, "q1", "q1-answer-a"},
		{"", "", `{"b": "?", "a": 1}`, "q1", "q1-answer-a"},
		{"", "q1", `"Sure?"`, "q1-answer-a", ""},
		{"", "q1", `"Else?"`, "q1-answer-a", ""},
		{"", "", `"Else?"`, "q1-answer-a", ""},
		{"", "", `null`, "q1-answer-a", ""},
	} {
		question := pgagui.Question{AskedBy: test.askedBy}
		if json.Valid([]byte(test.interrupt)) {
			question.Value = json.RawMessage(test.interrupt)
		} else if test.interrupt != "" {
			question.InterruptIDs = []string{test.interrupt}
		}
		got, err := store.Answered(t.Context(), pgagui.RunRef{ThreadID: "t", RunID: test.after}, question)
		if err != nil || got.AskingRunID != test.asking || got.RunID != test.by || got.At.IsZero() != (test.by == "") {
			t.Errorf("after %s, %+v: %+v, %v", test.after, question, got, err)
		}
	}
}
