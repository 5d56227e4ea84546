package test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/internal/eventfile"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/jobs"
)

// recordedRun is a run as a recording has it.
type recordedRun struct {
	threadID, runID, parentID string
	events                    []json.RawMessage
}

// recordings are the streams of real servers: the project's own, and more where the folder ../shared/recordings is there.
func recordings(t *testing.T) []string {
	t.Helper()
	own, err := filepath.Glob("../testdata/recordings/*.ndjson")
	if err != nil || len(own) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	shared, err := filepath.Glob("../../shared/recordings/*.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(append(own, shared...), func(file string) bool {
		return strings.HasSuffix(file, ".requests.ndjson")
	})
}

func readRecording(t *testing.T, file string) []recordedRun {
	t.Helper()
	source, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	var runs []recordedRun
	for event, err := range eventfile.Read(file, source) {
		if err != nil {
			t.Fatal(err)
		}
		var opening struct{ Type, ThreadID, RunID, ParentRunID string }
		if err := json.Unmarshal(event.Raw, &opening); err != nil {
			t.Fatal(err)
		}
		if opening.Type == "RUN_STARTED" {
			run := recordedRun{threadID: opening.ThreadID, runID: opening.RunID, parentID: opening.ParentRunID}
			// An agent that resumes says the result of the tool first.
			if before := len(runs) - 1; before >= 0 {
				if last := len(runs[before].events) - 1; compaction.EventType(runs[before].events[last]) == "TOOL_CALL_RESULT" {
					run.events = append(run.events, runs[before].events[last])
					runs[before].events = runs[before].events[:last]
				}
			}
			runs = append(runs, run)
		}
		last := &runs[len(runs)-1]
		last.events = append(last.events, event.Raw)
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
			if _, err := jobs.Compact(context.Background(), pool, jobs.CompactOptions{Workers: 2}); err != nil {
				t.Fatal(err)
			}
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
			for _, file := range recordings(t) {
				appendRecording(t, pgagui.New(pool, &pgagui.Config{Scope: file}), readRecording(t, file))
			}
			compact(t, pool)
			for _, file := range recordings(t) {
				checkRecording(t, pgagui.New(pool, &pgagui.Config{Scope: file}), readRecording(t, file), client)
			}
		})
	}
}

func appendRecording(t *testing.T, store *pgagui.Store, runs []recordedRun) {
	t.Helper()
	for _, run := range runs {
		var seq int64
		for batch := range slices.Chunk(run.events, 7) {
			var err error
			if seq, err = store.Append(context.Background(), pgagui.RunRef{ThreadID: run.threadID, RunID: run.runID}, batch, pgagui.AppendOptions{ParentRunID: run.parentID, AfterSeq: new(seq)}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func checkRecording(t *testing.T, store *pgagui.Store, runs []recordedRun, client *oracle) {
	t.Helper()
	ctx := context.Background()
	byID := map[string]recordedRun{}
	for _, run := range runs {
		byID[run.threadID+"/"+run.runID] = run
	}
	for _, run := range runs {
		position := 0
		for event, err := range store.Events(ctx, run.threadID, pgagui.EventsOptions{RunID: run.runID, NoLineage: true}) {
			if err != nil {
				t.Fatal(err)
			}
			if string(event.JSON) != string(run.events[position]) {
				t.Errorf("run %s: event %d came back as %s", run.runID, position, event.JSON)
			}
			position++
		}
		if position != len(run.events) {
			t.Errorf("run %s: %d events, want %d", run.runID, position, len(run.events))
		}

		lineage, err := store.Lineage(ctx, pgagui.RunRef{ThreadID: run.threadID, RunID: run.runID})
		if err != nil {
			t.Fatal(err)
		}
		var replay []json.RawMessage
		for _, ancestor := range lineage {
			replay = append(replay, byID[run.threadID+"/"+ancestor.ID].events...)
		}
		want := client.fold(t, replay)[0]
		if want.Error != "" {
			t.Errorf("run %s: the client says %s", run.runID, want.Error)
		}
		restored, err := store.Restore(ctx, run.threadID, pgagui.At{RunID: run.runID})
		if err != nil {
			t.Fatal(err)
		}
		got := meaning{Messages: restored.Messages, State: restored.State, Interrupts: restored.Interrupts}
		if difference := differences(got, want); difference != "" {
			t.Errorf("run %s against the client: %s", run.runID, difference)
		}
	}
	for thread, err := range store.ThreadIDs(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		problems, err := store.Maintenance().Verify(ctx, thread)
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range problems {
			if problem.Severity != pgagui.Note {
				t.Errorf("thread %s, run %s: %s", thread, problem.RunID, problem.Problem)
			}
		}
	}
}
