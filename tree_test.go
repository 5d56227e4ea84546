package pgagui_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
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

		branches := must.Have(store.Branches(ctx, thread))(t)
		if want := model.branches(); !slices.Equal(branches, want) {
			t.Errorf("seed %d: branches\n%v\nwant\n%v", seed, branches, want)
		}
		for range 20 {
			a, b := 1+random.IntN(60), 1+random.IntN(60)
			lineage := must.Have(store.Lineage(ctx, pgagui.RunRef{ThreadID: thread, RunID: runName(a)}))(t)
			if got, want := runIDs(lineage), model.lineage(a); !slices.Equal(got, want) {
				t.Errorf("seed %d: lineage of %d is %s, want %s", seed, a, got, want)
			}
			base, err := store.MergeBase(ctx, thread, pgagui.RunPair{A: runName(a), B: runName(b)})
			if want := model.mergeBase(a, b); base != want || (want == "") != errors.Is(err, pgagui.ErrUnrelatedRuns) || want != "" && err != nil {
				t.Errorf("seed %d: merge base of %d and %d is %s (%v), want %s", seed, a, b, base, err, want)
			}
		}
		runs := must.Have(store.Runs(ctx, thread))(t)
		for _, run := range runs {
			if want := len(model.lineage(run.Number)); run.Depth != want {
				t.Errorf("seed %d: depth of %s is %d, want %d", seed, run.ID, run.Depth, want)
			}
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
