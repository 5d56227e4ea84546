package test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/recorded"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/jobs"
)

// readRecording returns the runs of a recording. An agent that resumes says the result of a tool before it begins the run.
func readRecording(t *testing.T, file string) []recorded.Run {
	t.Helper()
	runs := recorded.Read(t, file)
	for i := 1; i < len(runs); i++ {
		before := &runs[i-1]
		if last := len(before.Events) - 1; compaction.EventType(before.Events[last]) == "TOOL_CALL_RESULT" {
			runs[i].Events = slices.Insert(runs[i].Events, 0, before.Events[last])
			before.Events = before.Events[:last]
		}
	}
	return runs
}

// Every recording: what was appended is exported byte for byte, and restored, before and after either way of compaction, as the
// official client has it after replaying the lineage.
func TestRecordings(t *testing.T) {
	t.Parallel()
	compactions := map[string]func(t *testing.T, pool *pgxpool.Pool){
		"raw log": func(*testing.T, *pgxpool.Pool) {},
		"compacted in Go": func(t *testing.T, pool *pgxpool.Pool) {
			must.Have(jobs.Compact(context.Background(), pool, jobs.CompactOptions{Workers: 2}))(t)
		},
		"compacted in SQL": func(t *testing.T, pool *pgxpool.Pool) {
			testdb.Exec(t, pool, `call agui.compact()`)
		},
	}
	for name, compact := range compactions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := startOracle(t)
			pool := testdb.Pool(t)
			for _, file := range recorded.Files(t, "..") {
				appendRecording(t, pgagui.New(pool, &pgagui.Config{Scope: file}), readRecording(t, file))
			}
			compact(t, pool)
			for _, file := range recorded.Files(t, "..") {
				checkRecording(t, pgagui.New(pool, &pgagui.Config{Scope: file}), readRecording(t, file), client)
			}
		})
	}
}

func appendRecording(t *testing.T, store *pgagui.Store, runs []recorded.Run) {
	t.Helper()
	for _, run := range runs {
		var seq int64
		for batch := range slices.Chunk(run.Events, 7) {
			var err error
			if seq, err = store.Append(context.Background(), pgagui.RunRef{ThreadID: run.ThreadID, RunID: run.RunID}, batch, pgagui.AppendOptions{ParentRunID: run.ParentRunID, AfterSeq: new(seq)}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func checkRecording(t *testing.T, store *pgagui.Store, runs []recorded.Run, client *oracle) {
	t.Helper()
	ctx := context.Background()
	byID := map[string]recorded.Run{}
	for _, run := range runs {
		byID[run.ThreadID+"/"+run.RunID] = run
	}
	for _, run := range runs {
		position := 0
		for event, err := range store.Events(ctx, run.ThreadID, pgagui.EventsOptions{RunID: run.RunID, NoLineage: true}) {
			must.Do(t, err)
			if string(event.JSON) != string(run.Events[position]) {
				t.Errorf("run %s: event %d came back as %s", run.RunID, position, event.JSON)
			}
			position++
		}
		if position != len(run.Events) {
			t.Errorf("run %s: %d events, want %d", run.RunID, position, len(run.Events))
		}

		lineage := must.Have(store.Lineage(ctx, pgagui.RunRef{ThreadID: run.ThreadID, RunID: run.RunID}))(t)
		var replay []json.RawMessage
		for _, ancestor := range lineage {
			replay = append(replay, byID[run.ThreadID+"/"+ancestor.ID].Events...)
		}
		want := client.fold(t, replay)[0]
		if want.Error != "" {
			t.Errorf("run %s: the client says %s", run.RunID, want.Error)
		}
		restored := must.Have(store.Restore(ctx, run.ThreadID, pgagui.At{RunID: run.RunID}))(t)
		got := meaning{Messages: restored.Messages, State: restored.State, Interrupts: restored.Interrupts}
		if difference := differences(got.shown(), want); difference != "" {
			t.Errorf("run %s against the client: %s", run.RunID, difference)
		}
	}
	for thread, err := range store.ThreadIDs(ctx) {
		must.Do(t, err)
		problems := must.Have(store.Maintenance().Verify(ctx, thread))(t)
		for _, problem := range problems {
			if problem.Severity != pgagui.Note {
				t.Errorf("thread %s, run %s: %s", thread, problem.RunID, problem.Problem)
			}
		}
	}
}
