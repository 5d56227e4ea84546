package jobs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/jobs"
)

// repackers are the two ways to repack all runs that have ended; they must come to the same.
var repackers = map[string]func(t *testing.T, pool *pgxpool.Pool){
	"Go": func(t *testing.T, pool *pgxpool.Pool) {
		must.Have(jobs.Repack(context.Background(), pool, jobs.RepackOptions{OlderThan: new(time.Duration)}))(t)
	},
	"SQL": func(t *testing.T, pool *pgxpool.Pool) {
		testdb.Exec(t, pool, `call agui.repack(older_than => '0')`)
	},
}

func batches(t *testing.T, pool *pgxpool.Pool) int64 {
	t.Helper()
	return count(t, pool, `select count(*) from agui.batch`)
}

func TestRepackedEventsComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	for name, repack := range repackers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			pool := testdb.Pool(t)
			store := pgagui.New(pool, nil)
			appendInBatches(t, store, "t", "a", "", 3, append(message("m1", 300),
				`{ "type" : "CUSTOM",  "value": 1.50, "value": "\u0000\ud83d" }`, `{"type":"TOOL_CALL_ARGS","delta":"\ude00\\u0041"}`)...)
			testdb.Exec(t, pool, `select agui.append('t', 'b', E'[ {"type":"RUN_STARTED"} ,\n\t{ "type":"CUSTOM"}\n]')`)
			// Two runs in parallel: only what is adjacent can be joined.
			for i, run := range []string{"c", "b", "c", "c", "b", "b", "b"} {
				event := fmt.Sprintf(`{"type":"CUSTOM","value":%d}`, i)
				if i == 0 {
					event = `{"type":"RUN_STARTED","parentRunId":"a"}`
				}
				must.Have(store.Append(ctx, pgagui.RunRef{ThreadID: "t", RunID: run}, []json.RawMessage{json.RawMessage(event)}, pgagui.AppendOptions{Parallel: true}))(t)
			}
			for _, run := range []string{"b", "c"} {
				must.Have(store.Append(ctx, pgagui.RunRef{ThreadID: "t", RunID: run}, []json.RawMessage{json.RawMessage(`{"type":"RUN_FINISHED"}`)}, pgagui.AppendOptions{}))(t)
			}
			appendInBatches(t, store, "t", "running", "a", 1, message("m2", 5)...)
			mustCompact(t, pool, jobs.CompactOptions{})
			log, read, before := eventLog(t, pool, "t"), readEvents(t, store, "t"), batches(t, pool)

			repack(t, pool)
			if after := batches(t, pool); after > before/10 {
				t.Errorf("%d batches of %d are left", after, before)
			}
			if eventLog(t, pool, "t") != log {
				t.Error("the log has changed")
			}
			if readEvents(t, store, "t") != read {
				t.Error("the Go reader finds other events or times")
			}
			checkSnapshots(t, pool, store)
			if waiting := count(t, pool, `select count(*) from agui.run where status <> 'running' and repacked_at is null`); waiting != 0 {
				t.Errorf("%d runs are not marked as repacked", waiting)
			}

			before = batches(t, pool)
			repack(t, pool)
			if after := batches(t, pool); after != before {
				t.Errorf("a second time it joined %d batches", before-after)
			}
		})
	}
}

func readEvents(t *testing.T, store *pgagui.Store, threadID string) string {
	t.Helper()
	runs := must.Have(store.Runs(context.Background(), threadID))(t)
	text := ""
	for _, run := range runs {
		for event, err := range store.Events(context.Background(), threadID, pgagui.EventsOptions{RunID: run.ID, NoLineage: true}) {
			must.Do(t, err)
			text += fmt.Sprintln(event.Seq, event.RunID, event.RecordedAt.UnixMicro(), string(event.JSON))
		}
	}
	return text
}

// A run with more events than a transaction joins is repacked in several.
func TestLongRunsAreRepackedInPieces(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	ctx := context.Background()
	testdb.Exec(t, pool, `
		do $$ begin
			perform agui.append('t', 'r', '[{"type":"RUN_STARTED"}]');
			for i in 1 .. 6000 loop
				perform agui.append('t', 'r', ('[{"type":"CUSTOM","value":' || i || '}' || repeat(',{"type":"CUSTOM"}', 9) || ']')::json);
			end loop;
			perform agui.append('t', 'r', '[{"type":"RUN_FINISHED"}]');
		end $$`)
	log := eventLog(t, pool, "t")
	var first struct {
		nextSeq *int64
		joined  int
	}
	err := pool.QueryRow(ctx, `select next_seq, joined from agui_internal.repack_run(agui.thread_key('','t'), 1)`).Scan(&first.nextSeq, &first.joined)
	must.Do(t, err)
	if first.nextSeq == nil || *first.nextSeq < 50_000 || *first.nextSeq > 60_000 {
		t.Errorf("the first piece ends before seq %v, want a bounded piece of the 60,002 events", first.nextSeq)
	}
	if eventLog(t, pool, "t") != log {
		t.Error("the log has changed after the first piece")
	}
	repackers["Go"](t, pool)
	if eventLog(t, pool, "t") != log {
		t.Error("the log has changed")
	}
	if left := batches(t, pool); left > 100 {
		t.Errorf("%d batches are left", left)
	}
}

// A caller that reads, or repeats an append, while a run is repacked sees no difference.
func TestNobodySeesARepack(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	body := message("m", 400)
	appendInBatches(t, store, "t", "r", "", 2, body...)
	log, document, read := eventLog(t, pool, "t"), restored(t, store, "t", "r"), readEvents(t, store, "t")

	reads := make(chan error)
	look := func() error {
		switch {
		case eventLog(t, pool, "t") != log:
			return errors.New("the log differs")
		case restored(t, store, "t", "r") != document:
			return errors.New("what is restored differs")
		case readEvents(t, store, "t") != read:
			return errors.New("the Go reader finds other events or times")
		}
		_, err := store.Append(ctx, pgagui.RunRef{ThreadID: "t", RunID: "r"}, []json.RawMessage{json.RawMessage(body[10]), json.RawMessage(body[11])}, pgagui.AppendOptions{AfterSeq: new(int64(11))})
		return err
	}
	go func() {
		for ctx.Err() == nil {
			reads <- look()
		}
		close(reads)
	}()
	must.Do(t, <-reads)
	for range 10 {
		repackers["Go"](t, pool)
		must.Do(t, errors.Join(<-reads, <-reads))
		// Apart again, as they were appended.
		if _, err := pool.Exec(ctx, `
			select agui_internal.allow_log_change(true);
			with gone as (delete from agui.batch returning *)
			insert into agui.batch (thread_key, first_seq, recorded_at, n, run_no, events)
			select thread_key, first_seq + position - 1, agui_internal.event_time(recorded_at, us), 1, run_no, ('[' || payload || ']')::json
			from gone cross join lateral rows from (json_array_elements(events), unnest(earlier_us)) with ordinality as e (payload, us, position);
			update agui.run set repacked_at = null;
			select agui_internal.allow_log_change(false)`); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	for range reads {
	}
}

// A transaction whose snapshot is older than the repack must not append at a place that it sees wrongly.
func TestAnAppendThatCannotSeeTheRepackFails(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	appendInBatches(t, store, "t", "r", "", 1, message("m", 5)...)
	tx, err := pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	must.Do(t, err)
	defer tx.Rollback(ctx)
	testdb.Exec(t, tx, `select count(*) from agui.batch`)
	repackers["Go"](t, pool)
	_, err = store.WithTx(tx).Append(ctx, pgagui.RunRef{ThreadID: "t", RunID: "next"}, []json.RawMessage{json.RawMessage(`{"type":"RUN_STARTED"}`)}, pgagui.AppendOptions{})
	var failure *pgconn.PgError
	if !errors.As(err, &failure) || failure.Code != "40001" {
		t.Errorf("error %v, want a serialization failure", err)
	}
}

// Snapshots were weighed against a log that took more; once it is repacked, those that take too much of it go.
func TestRepackDropsSnapshotsThatTheLogNoLongerPaysFor(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	for run := range 12 {
		appendInBatches(t, store, "t", fmt.Sprint("r", run), "", 1, message(fmt.Sprint("m", run), 100)...)
		mustCompact(t, pool, jobs.CompactOptions{})
	}
	before := count(t, pool, `select count(*) from agui.snapshot`)
	logBytes := count(t, pool, `select sum(log_bytes) from agui.run`)
	repackers["SQL"](t, pool)
	if after := count(t, pool, `select count(*) from agui.snapshot`); before < 4 || after >= before {
		t.Errorf("%d snapshots of %d are left", after, before)
	}
	if after := count(t, pool, `select sum(log_bytes) from agui.run`); after > logBytes/4 {
		t.Errorf("the log takes %d bytes of %d", after, logBytes)
	}
	checkSnapshots(t, pool, store)
}

func TestRepackLeavesRecentRunsAlone(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	appendInBatches(t, store, "t", "r", "", 1, message("m", 5)...)
	before := batches(t, pool)
	if done, err := jobs.Repack(ctx, pool, jobs.RepackOptions{}); err != nil || done.Runs != 0 {
		t.Errorf("done %+v, error %v, want no run, for none ended 10 minutes ago", done, err)
	}
	if _, err := pool.Exec(ctx, `call agui.repack()`); err != nil || batches(t, pool) != before {
		t.Errorf("agui.repack joined batches of a run that ended just now (error %v)", err)
	}
	// The setting says when it is time.
	testdb.Exec(t, pool, `begin; set local agui.repack_after = '0'; select * from agui_internal.next_to_repack(null, null); commit`)
	if due := count(t, pool, `select count(*) from agui_internal.next_to_repack(null, '0') where thread_key is not null`); due != 1 {
		t.Errorf("%d runs are due at once, want 1", due)
	}
}

// Repack stops within a run when its time is over, and the next call continues: at the end the batches are those that a single call makes.
func TestMaxTimeEndsRepackWithinARun(t *testing.T) {
	t.Parallel()
	calls := map[string]func(t *testing.T, pool *pgxpool.Pool){
		"Go": func(t *testing.T, pool *pgxpool.Pool) {
			must.Have(jobs.Repack(context.Background(), pool, jobs.RepackOptions{OlderThan: new(time.Duration), MaxTime: 900 * time.Millisecond}))(t)
		},
		"SQL": func(t *testing.T, pool *pgxpool.Pool) {
			testdb.Exec(t, pool, `call agui.repack(max_time => '1 microsecond', older_than => '0')`)
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := testdb.Pool(t)
			store := pgagui.New(pool, nil)
			for _, thread := range []string{"once", "in pieces"} {
				appendInBatches(t, store, thread, "r", "", 1, message("m", 60)...)
			}
			// Batches of up to 10 events, pieces of 20; and the time is over with each piece.
			definition := testdb.Ask[string](t, pool, `select pg_get_functiondef('agui_internal.repack_run'::regproc)`)
			definition = strings.NewReplacer("constant int := 50000", "constant int := 20", "constant int := 1000", "constant int := 10").Replace(definition)
			testdb.Exec(t, pool, definition)
			layout := func(thread string) string {
				t.Helper()
				return testdb.Ask[string](t, pool, `
					select string_agg(first_seq || '+' || n, ' ' order by first_seq) from agui.batch where thread_key = agui.thread_key('', $1)`, thread)
			}
			testdb.Exec(t, pool, `update agui.run set repacked_at = now() where thread_key = agui.thread_key('', 'in pieces')`)
			testdb.Exec(t, pool, `call agui.repack(older_than => '0')`)
			testdb.Exec(t, pool, `update agui.run set repacked_at = null where thread_key = agui.thread_key('', 'in pieces')`)
			testdb.Exec(t, pool, strings.Replace(definition, "\nbegin\n", "\nbegin\nperform pg_sleep(1);\n", 1))
			before, stages := layout("in pieces"), 0
			for waits := int64(1); waits > 0; waits = count(t, pool, `select count(*) from agui.run where repacked_at is null`) {
				call(t, pool)
				after := layout("in pieces")
				if stages++; after == before && stages > 1 && after != layout("once") {
					t.Fatalf("call %d did nothing: %s", stages, after)
				}
				before = after
				checkSnapshots(t, pool, store)
			}
			if before != layout("once") || stages < 3 {
				t.Errorf("%d calls made %s, one call %s", stages, before, layout("once"))
			}
			if notes := count(t, pool, `select count(*) from agui_internal.job_note`); notes != 0 {
				t.Errorf("%d notes are left", notes)
			}
		})
	}
}
