package pgagui_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/compaction/compactiontest"
	"github.com/pgagui/pgagui/internal/jsontree"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

func TestDiff(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	add := func(runID string, events ...string) {
		t.Helper()
		batch := rawEvents(events...)
		mustAppend(t, store, "t", runID, batch)
	}
	add("r1", `{"type":"RUN_STARTED"}`,
		`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"a","role":"user","content":"1"},{"id":"b","role":"user","content":"2"},{"id":"c","role":"user","content":"3"}]}`,
		`{"type":"STATE_SNAPSHOT","snapshot":{"n":1,"list":[1,2]}}`, `{"type":"RUN_FINISHED"}`)
	add("r2", `{"type":"RUN_STARTED","parentRunId":"r1"}`,
		`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"c","role":"user","content":"3"},{"id":"a","role":"user","content":"1!"},{"id":"d","role":"user","content":"4"}]}`,
		`{"type":"STATE_SNAPSHOT","snapshot":{"n":null,"list":[1,2,3]}}`, `{"type":"RUN_FINISHED"}`)
	add("r3", `{"type":"RUN_STARTED","parentRunId":"r1"}`, `{"type":"STATE_SNAPSHOT","snapshot":{"list":[1,2]}}`, `{"type":"RUN_FINISHED"}`)

	diff, err := store.Diff(t.Context(), "t", pgagui.DiffOptions{From: pgagui.At{RunID: "r1"}, To: pgagui.At{RunID: "r2"}})
	must.Do(t, err)
	var got []string
	for _, message := range diff.Messages {
		got = append(got, fmt.Sprint(message.ID, " ", message.Change, " ", message.Index))
	}
	if want := "[b removed 1 a changed 0 d added 2]"; fmt.Sprint(got) != want {
		t.Errorf("messages: %v, want %s", got, want)
	}
	if want := `[{"op":"replace","path":"/n","value":null},{"op":"add","path":"/list/2","value":3}]`; string(diff.StatePatch) != want {
		t.Errorf("state: %s, want %s", diff.StatePatch, want)
	}
	if string(diff.StateMergePatch) != "null" {
		t.Errorf("merge patch: %s, want null: it cannot set n to null", diff.StateMergePatch)
	}
	if diff.From != (pgagui.DiffPoint{RunID: "r1", Seq: 4}) || diff.To != (pgagui.DiffPoint{RunID: "r2", Seq: 8}) {
		t.Errorf("points: %+v, %+v", diff.From, diff.To)
	}
	// From one branch to another, and to the head.
	diff, err = store.Diff(t.Context(), "t", pgagui.DiffOptions{From: pgagui.At{RunID: "r2"}})
	if err != nil || diff.To.RunID != "r3" || len(diff.Messages) != 3 || !jsontree.Equal(diff.StateMergePatch, []byte(`{"n":null,"list":[1,2]}`)) {
		t.Errorf("from one branch to another: %+v, error %v", diff, err)
	}
	// Of two roots, which have their messages in another order.
	other := []json.RawMessage{
		json.RawMessage(`{"type":"RUN_STARTED"}`),
		json.RawMessage(`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"c","role":"user","content":"3"},{"id":"a","role":"user","content":"1"},{"id":"b","role":"user","content":"2"}]}`),
		json.RawMessage(`{"type":"RUN_FINISHED"}`),
	}
	mustAppend(t, store, "t", "r4", other, pgagui.AppendOptions{NoParent: true})
	diff, err = store.Diff(t.Context(), "t", pgagui.DiffOptions{From: pgagui.At{RunID: "r1"}, To: pgagui.At{RunID: "r4"}})
	if err != nil || len(diff.Messages) != 1 || diff.Messages[0].ID != "c" || diff.Messages[0].Change != pgagui.MessageMoved {
		t.Errorf("two roots: %+v, error %v", diff, err)
	}
	if _, err := store.Diff(t.Context(), "t", pgagui.DiffOptions{From: pgagui.At{RunID: "no"}}); !errors.Is(err, pgagui.ErrUnknownRun) {
		t.Errorf("unknown run: error %v", err)
	}
}

// Both forms of the difference give the state, in SQL and with another implementation; the merge patch where it is not null.
func TestDiffOfGeneratedStates(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	var mergePatches, applied int
	for seed := range uint64(60) {
		thread := fmt.Sprint("t", seed)
		events := []json.RawMessage{json.RawMessage(`{"type":"RUN_STARTED"}`)}
		options := compactiontest.Options{Wild: true, Events: 100, Unicode: seed%3 == 0, Numbers: seed%3 == 1}
		for _, event := range compactiontest.Stream(seed, options) {
			if kind := compaction.EventType(event); kind == "STATE_SNAPSHOT" || kind == "STATE_DELTA" {
				events = append(events, event)
			}
		}
		mustAppend(t, store, thread, "r", events)
		for seq := 1; seq < len(events); seq += 2 {
			at := pgagui.At{Seq: int64(seq)}
			diff := must.Have(store.Diff(t.Context(), thread, pgagui.DiffOptions{From: at}))(t)
			from := must.Have(store.State(t.Context(), thread, at))(t)
			to := must.Have(store.State(t.Context(), thread, pgagui.At{}))(t)
			var patched []byte
			if err := pool.QueryRow(t.Context(), `select agui.json_patch($1, $2)`, from, diff.StatePatch).Scan(&patched); err == nil {
				applied++
				if !jsontree.Equal(patched, to) {
					t.Errorf("%s: in SQL %s of %s gives %s, want %s", thread, diff.StatePatch, from, patched, to)
				}
			}
			if string(diff.StateMergePatch) != "null" {
				mergePatches++
				if merged, err := jsonpatch.MergePatch(from, diff.StateMergePatch); err != nil || !jsontree.Equal(merged, to) {
					t.Errorf("%s: %s of %s gives %s, want %s, error %v", thread, diff.StateMergePatch, from, merged, to, err)
				}
			}
		}
	}
	t.Logf("%d patches applied in SQL, %d merge patches", applied, mergePatches)
	if applied < 200 || mergePatches < 100 {
		t.Errorf("only %d patches were applied in SQL, and %d merge patches", applied, mergePatches)
	}
}
