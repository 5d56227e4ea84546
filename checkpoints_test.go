package pgagui_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

func mustCheckpoint(t testing.TB, store *pgagui.Store, threadID string, checkpoint pgagui.Checkpoint) int64 {
	t.Helper()
	number, err := store.Checkpoints().Save(context.Background(), threadID, checkpoint)
	if err != nil {
		t.Fatalf("save checkpoint %+v: %v", checkpoint, err)
	}
	return number
}

// idsOf are the ids of checkpoints in one line.
func idsOf(checkpoints []pgagui.Checkpoint, err error) string {
	if err != nil {
		return err.Error()
	}
	ids := make([]string, len(checkpoints))
	for i, checkpoint := range checkpoints {
		ids[i] = checkpoint.ID
	}
	return strings.Join(ids, " ")
}

func TestCheckpointsFormATreeInEachNamespace(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	ctx := context.Background()
	if none, err := store.Checkpoints().Load(ctx, "t", pgagui.CheckpointRef{}); !errors.Is(err, pgagui.ErrUnknownCheckpoint) {
		t.Errorf("the last of none is %+v, error %v", none, err)
	}
	for number, checkpoint := range []pgagui.Checkpoint{
		{ID: "a", JSON: json.RawMessage(` {"$type":"Checkpoint","x":"\u0000"} `)},
		{ID: "b", ParentID: "a", JSON: json.RawMessage(`1e400`)},
		{ID: "a", Namespace: "child", JSON: json.RawMessage(`{}`)},
		{ID: "c", ParentID: "a", JSON: json.RawMessage(`null`)},
		{ID: "d", ParentID: "b", JSON: json.RawMessage(`{"a":1,"a":2}`)},
	} {
		for range 2 { // the second one is a repeat
			if got := mustCheckpoint(t, store, "t", checkpoint); got != int64(number+1) {
				t.Errorf("%s of %q has number %d, want %d", checkpoint.ID, checkpoint.Namespace, got, number+1)
			}
		}
		loaded, err := store.Checkpoints().Load(ctx, "t", pgagui.CheckpointRef{Namespace: checkpoint.Namespace, ID: checkpoint.ID})
		if err != nil || string(loaded.JSON) != string(checkpoint.JSON) || loaded.ParentID != checkpoint.ParentID ||
			loaded.Number != int64(number+1) || loaded.SavedAt.IsZero() {
			t.Errorf("saved %+v, loaded %+v, error %v", checkpoint, loaded, err)
		}
	}
	child := "child"
	for what, test := range map[string]struct{ got, want string }{
		"all":              {idsOf(store.Checkpoints().List(ctx, "t", pgagui.CheckpointsOptions{})), "a b a c d"},
		"of a namespace":   {idsOf(store.Checkpoints().List(ctx, "t", pgagui.CheckpointsOptions{Namespace: &child})), "a"},
		"of no thread":     {idsOf(store.Checkpoints().List(ctx, "x", pgagui.CheckpointsOptions{})), ""},
		"to the last":      {idsOf(store.Checkpoints().Lineage(ctx, "t", pgagui.CheckpointRef{})), "a b d"},
		"to another":       {idsOf(store.Checkpoints().Lineage(ctx, "t", pgagui.CheckpointRef{ID: "c"})), "a c"},
		"to a root":        {idsOf(store.Checkpoints().Lineage(ctx, "t", pgagui.CheckpointRef{ID: "a"})), "a"},
		"in the namespace": {idsOf(store.Checkpoints().Lineage(ctx, "t", pgagui.CheckpointRef{Namespace: "child"})), "a"},
		"to none": {
			idsOf(store.Checkpoints().Lineage(ctx, "x", pgagui.CheckpointRef{})), `thread "x" has no checkpoint in the namespace ""`,
		},
	} {
		if test.got != test.want {
			t.Errorf("%s: %q, want %q", what, test.got, test.want)
		}
	}
	if last, err := store.Checkpoints().Load(ctx, "t", pgagui.CheckpointRef{}); err != nil || last.ID != "d" || last.ParentID != "b" {
		t.Errorf("the last is %+v, error %v", last, err)
	}
	mustVerify(t, store, "t")
}

func TestCheckpointsRefuse(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	ctx := context.Background()
	mustCheckpoint(t, store, "t", pgagui.Checkpoint{ID: "a", JSON: json.RawMessage(`{"a":1}`)})
	mustCheckpoint(t, store, "t", pgagui.Checkpoint{ID: "b", ParentID: "a", JSON: json.RawMessage(`{}`)})
	save := func(id, parent, document string) error {
		_, err := store.Checkpoints().Save(ctx, "t", pgagui.Checkpoint{ID: id, ParentID: parent, JSON: json.RawMessage(document)})
		return err
	}
	failure := func(_ any, err error) error { return err }
	for what, test := range map[string]struct{ got, want error }{
		"other bytes":              {save("a", "", `{"a": 1}`), pgagui.ErrConflictingRepeat},
		"another parent":           {save("b", "", `{}`), pgagui.ErrConflictingRepeat},
		"an unknown parent":        {save("c", "x", `{}`), pgagui.ErrUnknownParent},
		"no id":                    {save("", "", `{}`), pgagui.ErrInvalidEvents},
		"an id that is too long":   {save(strings.Repeat("x", 1025), "", `{}`), pgagui.ErrLimitExceeded},
		"no JSON":                  {save("c", "", `{`), pgagui.ErrInvalidEvents},
		"too deep":                 {save("c", "", strings.Repeat("[", 1001)+strings.Repeat("]", 1001)), pgagui.ErrLimitExceeded},
		"no document":              {failure(store.Checkpoints().Save(ctx, "t", pgagui.Checkpoint{ID: "c"})), pgagui.ErrInvalidEvents},
		"an unknown one":           {failure(store.Checkpoints().Load(ctx, "t", pgagui.CheckpointRef{ID: "x"})), pgagui.ErrUnknownCheckpoint},
		"one of a namespace":       {failure(store.Checkpoints().Load(ctx, "t", pgagui.CheckpointRef{Namespace: "n", ID: "a"})), pgagui.ErrUnknownCheckpoint},
		"an unknown one's lineage": {failure(store.Checkpoints().Lineage(ctx, "x", pgagui.CheckpointRef{ID: "a"})), pgagui.ErrUnknownCheckpoint},
	} {
		if !errors.Is(test.got, test.want) {
			t.Errorf("%s: error %v, want %v", what, test.got, test.want)
		}
	}
}

// Who has read up to N and sees N+1 has missed nothing.
func TestCheckpointsAreNumberedInCommitOrder(t *testing.T) {
	bothWays(t, checkpointsAreNumberedInCommitOrder)
}

func checkpointsAreNumberedInCommitOrder(t *testing.T, address string) {
	store := pgagui.New(testdb.Connect(t, address), nil)
	ctx := context.Background()
	const writers, each = 6, 12
	done := make(chan struct{})
	var group sync.WaitGroup
	for writer := range writers {
		group.Go(func() {
			namespace := fmt.Sprint("n", writer%2)
			for n := range each {
				checkpoint := pgagui.Checkpoint{ID: fmt.Sprint(writer, "-", n), Namespace: namespace, JSON: json.RawMessage(`{}`)}
				if _, err := store.Checkpoints().Save(ctx, "t", checkpoint); err != nil {
					t.Error(err)
				}
			}
		})
	}
	go func() {
		group.Wait()
		close(done)
	}()
	for seen, ended := 0, false; !ended; {
		select {
		case <-done:
			ended = true
		default:
		}
		all := must.Have(store.Checkpoints().List(ctx, "t", pgagui.CheckpointsOptions{}))(t)
		if len(all) < seen {
			t.Fatalf("%d checkpoints were there, now %d", seen, len(all))
		}
		for i, checkpoint := range all {
			if checkpoint.Number != int64(i+1) {
				t.Fatalf("checkpoint %d of %d has number %d", i+1, len(all), checkpoint.Number)
			}
		}
		if seen = len(all); ended && seen != writers*each {
			t.Errorf("%d checkpoints, want %d", seen, writers*each)
		}
	}
	mustVerify(t, store, "t")
}

func TestTheLineageOfManyCheckpoints(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	ctx := context.Background()
	// Two chains that alternate, so that the tree is no line.
	testdb.Exec(t, pool, `
		insert into agui.thread (thread_key, scope, thread_id) values (agui.thread_key('', 't'), '', 't');
		select agui_internal.rebuild_activity(agui.thread_key('', 't'));
		insert into agui.checkpoint (thread_key, checkpoint_no, namespace, checkpoint_id, parent_no, document)
		select agui.thread_key('', 't'), n, '', 'c' || n, nullif(greatest(n - 2, 0), 0), '{}' from generate_series(1, 20000) as n`)
	lineage, err := store.Checkpoints().Lineage(ctx, "t", pgagui.CheckpointRef{})
	if err != nil || len(lineage) != 10_000 || lineage[0].ID != "c2" || lineage[9999].ID != "c20000" || lineage[9999].ParentID != "c19998" {
		t.Errorf("%d checkpoints, error %v", len(lineage), err)
	}
	number := rand.IntN(20_000) + 1
	if one, err := store.Checkpoints().Load(ctx, "t", pgagui.CheckpointRef{ID: fmt.Sprint("c", number)}); err != nil || one.Number != int64(number) {
		t.Errorf("%+v, error %v", one, err)
	}
	mustVerify(t, store, "t")
}

// A branch of the conversation leads to the checkpoint that belongs to it: the last one at its run, or at the nearest run before.
func TestCheckpointsAreFoundByTheRunsOfABranch(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	mustCheckpoint(t, store, "t", pgagui.Checkpoint{ID: "begun before the run", RunID: "run-1", JSON: json.RawMessage(`1`)})
	for _, run := range []struct{ id, parent string }{{"run-1", ""}, {"run-2", "run-1"}, {"run-3", "run-2"}, {"edit of run-2", "run-1"}} {
		events := []json.RawMessage{json.RawMessage(`{"type":"RUN_STARTED"}`), json.RawMessage(`{"type":"RUN_FINISHED"}`)}
		mustAppend(t, store, "t", run.id, events, pgagui.AppendOptions{ParentRunID: run.parent, NoParent: run.parent == ""})
	}
	for _, id := range []string{"a", "b"} {
		mustCheckpoint(t, store, "t", pgagui.Checkpoint{ID: id, RunID: "run-2", JSON: json.RawMessage(`2`)})
	}
	mustCheckpoint(t, store, "t", pgagui.Checkpoint{ID: "of no run", JSON: json.RawMessage(`3`)})
	for run, want := range map[string]string{"run-1": "begun before the run", "run-2": "b", "run-3": "b", "edit of run-2": "begun before the run"} {
		if got, err := store.Checkpoints().Load(t.Context(), "t", pgagui.CheckpointRef{RunID: run}); err != nil || got.ID != want {
			t.Errorf("at %s there is %q (run %q), error %v, want %q", run, got.ID, got.RunID, err, want)
		}
	}
	for _, wrong := range []struct {
		reference pgagui.CheckpointRef
		want      error
	}{
		{pgagui.CheckpointRef{RunID: "unknown"}, pgagui.ErrUnknownRun},
		{pgagui.CheckpointRef{RunID: "run-1", ID: "a"}, pgagui.ErrInvalidEvents},
		{pgagui.CheckpointRef{RunID: "run-1", Namespace: "other"}, pgagui.ErrUnknownCheckpoint},
	} {
		if got, err := store.Checkpoints().Load(t.Context(), "t", wrong.reference); !errors.Is(err, wrong.want) {
			t.Errorf("%+v leads to %+v, error %v, want %v", wrong.reference, got, err, wrong.want)
		}
	}
}
