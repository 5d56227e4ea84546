package jobs_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/jobs"
)

// makeOlder sets back the times of a thread.
func makeOlder(t *testing.T, pool *pgxpool.Pool, scope, threadID string, by time.Duration) {
	t.Helper()
	for _, statement := range []string{
		`update agui.thread set created_at = created_at - $3::interval where thread_key = agui.thread_key($1, $2)`,
		`update agui.batch set recorded_at = recorded_at - $3::interval where thread_key = agui.thread_key($1, $2)`,
	} {
		err := pgx.BeginFunc(context.Background(), pool, func(tx pgx.Tx) error {
			_, allowed := tx.Exec(context.Background(), `select agui_internal.allow_log_change(true)`)
			_, err := tx.Exec(context.Background(), statement, scope, threadID, by)
			return errors.Join(allowed, err)
		})
		must.Do(t, err)
	}
}

func TestEraseRemovesThreadsWithoutNews(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	for _, thread := range []string{"old", "older", "new"} {
		appendRun(t, store, thread, "r1", "", message("m", 5)...)
		appendRun(t, store, thread, "r2", "", message("n", 5)...)
	}
	appendRun(t, store.InScope("other"), "old", "r1", "", message("m", 5)...)
	mustCompact(t, pool, jobs.CompactOptions{})
	makeOlder(t, pool, "", "old", 48*time.Hour)
	makeOlder(t, pool, "", "older", 96*time.Hour)
	makeOlder(t, pool, "other", "old", 96*time.Hour)

	var named []string
	each := func(thread jobs.ErasedThread) { named = append(named, thread.ThreadID) }
	options := jobs.EraseOptions{OlderThan: 24 * time.Hour, Reason: "kept long enough", DryRun: true, Each: each}
	done, err := jobs.Erase(ctx, pool, options)
	if err != nil || done.Threads != 2 || done.Events != 36 || len(named) != 2 || count(t, pool, `select count(*) from agui.thread`) != 4 {
		t.Errorf("dry run: %+v, %v, error %v", done, named, err)
	}
	options.DryRun, options.MaxThreads = false, 1
	if done, err = jobs.Erase(ctx, pool, options); err != nil || done.Threads != 1 || done.Stopped != jobs.StoppedAtLimit {
		t.Errorf("with a limit of 1: %+v, error %v", done, err)
	}
	options.MaxThreads = 0
	if done, err = jobs.Erase(ctx, pool, options); err != nil || done.Threads != 1 || done.Stopped != "" {
		t.Errorf("the rest: %+v, error %v", done, err)
	}
	testdb.Exec(t, pool, `call agui.erase_older('24 hours', scope => 'other')`)
	for table, want := range map[string]int64{"thread": 1, "run": 2, "erasure": 3} {
		if n := count(t, pool, `select count(*) from agui.`+table); n != want {
			t.Errorf("agui.%s has %d rows, want %d", table, n, want)
		}
	}
	if n := count(t, pool, `select count(*) from agui.erasure
		where erased_by = session_user and coalesce(reason, '') in ('kept long enough', '') and events in (9, 18)`); n != 3 {
		t.Errorf("%d erasures are noted as they should be, want 3", n)
	}
	checkSnapshots(t, pool, store)
	if _, err := jobs.Erase(ctx, pool, jobs.EraseOptions{}); err == nil {
		t.Error("erased threads of any age")
	}
}

func TestAnErasedThreadTakesNoEventsUntilItIsAllowed(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	appendRun(t, store, "t", "r1", "", message("m", 5)...)
	appendRun(t, store, "unrelated", "r1", "", message("m", 5)...)
	must.Have(store.Append(ctx, pgagui.RunRef{ThreadID: "t", RunID: "r2"}, []json.RawMessage{json.RawMessage(`{"type":"RUN_STARTED"}`)}, pgagui.AppendOptions{}))(t)
	erased, err := store.Erase(ctx, "t", pgagui.EraseOptions{Reason: "asked to"})
	if err != nil || erased != (pgagui.Erased{Runs: 2, Events: 10}) {
		t.Errorf("erased %+v, error %v", erased, err)
	}
	if _, err := store.Erase(ctx, "t", pgagui.EraseOptions{}); !errors.Is(err, pgagui.ErrUnknownThread) {
		t.Errorf("erased again: error %v", err)
	}
	if _, err := store.Restore(ctx, "t", pgagui.At{}); !errors.Is(err, pgagui.ErrUnknownThread) {
		t.Errorf("restore: error %v", err)
	}
	// A new run; one that starts from the beginning; the writer of the run that was in progress, which may know its seq or not.
	for run, option := range map[string]pgagui.AppendOptions{"r3": pgagui.AppendOptions{AfterSeq: new(int64(0))}, "r1": pgagui.AppendOptions{Parallel: true}, "r2": pgagui.AppendOptions{AfterSeq: new(int64(10))}} {
		for _, event := range []string{`{"type":"RUN_STARTED"}`, `{"type":"CUSTOM"}`} {
			_, err := store.Append(ctx, pgagui.RunRef{ThreadID: "t", RunID: run}, []json.RawMessage{json.RawMessage(event)}, option)
			if !errors.Is(err, pgagui.ErrThreadErased) {
				t.Errorf("append %s to %s: error %v, want ErrThreadErased", event, run, err)
			}
		}
	}
	for i, want := range []bool{true, false} {
		if refused, err := store.Maintenance().LiftErasure(ctx, "t"); err != nil || refused != want {
			t.Errorf("allow, time %d: %t, error %v", i+1, refused, err)
		}
	}
	appendRun(t, store, "t", "r1", "", message("m", 1)...)
	if doc := restored(t, store, "t", "r1"); doc == "" {
		t.Error("nothing restored")
	}
	if _, err := store.Erase(ctx, "t", pgagui.EraseOptions{Reason: "again"}); err != nil {
		t.Errorf("erase after it began anew: %v", err)
	}
	checkSnapshots(t, pool, store)
}
