package test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction/compactiontest"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/jobs"
)

// foldInPieces lets folds look at the clock after each so many batches.
func foldInPieces(t *testing.T, pool *pgxpool.Pool, batches int) {
	t.Helper()
	definition := testdb.Ask[string](t, pool, `select pg_get_functiondef('agui_internal.fold_piece_end(uuid, int, bigint, bigint)'::regprocedure)`)
	const constant = "max_batches constant int := 1000"
	if !strings.Contains(definition, constant) {
		t.Fatalf("agui_internal.fold_piece_end does not have %q", constant)
	}
	definition = strings.Replace(definition, constant, fmt.Sprint("max_batches constant int := ", batches), 1)
	testdb.Exec(t, pool, definition)
}

func compactInGo(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	must.Have(jobs.Compact(t.Context(), pool, jobs.CompactOptions{}))(t)
}

// If a fold runs out of time, the next call continues it, in pieces of one batch here. Readers get the same bytes all the time, and at the end
// the snapshots are those that a single call makes.
func TestACallThatRunsOutOfTimeIsGoneOnFrom(t *testing.T) {
	t.Parallel()
	const seeds = 1
	const snapshots = `
		select concat_ws(' ', thread.thread_id, run_no, through_seq, state, interrupts, lanes, (
			select string_agg(message.body::text, ' ' order by part.position, message.message_no)
			from unnest(snapshot.message_nos) with ordinality as part (message_nos, position)
			join agui.message on message.thread_key = snapshot.thread_key and message.message_no <@ part.message_nos
		))
		from agui.snapshot join agui.thread using (thread_key)
		order by thread.thread_id, run_no`
	for kind, streams := range kindsOfStreams {
		if isLeftOut(kind) {
			continue
		}
		t.Run(streams.name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			pool := testdb.Pool(t)
			for seed := *firstSeed; seed < *firstSeed+seeds; seed++ {
				appendTree(t, pool, fmt.Sprint(streams.name, " ", seed), startOf(compactiontest.Stream(seed<<8+uint64(kind)+77, streams.options)), seed)
			}
			do := func(query string, arguments ...any) {
				t.Helper()
				testdb.Exec(t, pool, query, arguments...)
			}
			forget := func() {
				t.Helper()
				do(`delete from agui.snapshot`)
				do(`delete from agui.message_version`)
				do(`update agui.run set log_bytes = null, n = null where log_bytes is not null`)
			}
			want := restores(t, pool)
			check := func(after string) {
				t.Helper()
				got := restores(t, pool)
				for _, reader := range slices.Sorted(maps.Keys(want)) {
					if got[reader] != want[reader] {
						t.Fatalf("after %s, %s:\n%s\nbefore:\n%s", after, reader, got[reader], want[reader])
					}
				}
				for _, problem := range testdb.List[string](t, pool, `
					select thread_id || ', ' || problem.run_id || ': ' || problem.problem
					from agui.thread cross join lateral agui_internal.verify_snapshots(thread.thread_key) as problem`) {
					t.Fatalf("after %s: %s", after, problem)
				}
			}
			partial := func() int {
				t.Helper()
				return testdb.Ask[int](t, pool, `
					select count(*) from agui.snapshot join agui.run using (thread_key, run_no) where run.log_bytes is null`)
			}
			do(`call agui.compact()`)
			whole := testdb.List[string](t, pool, snapshots)
			foldInPieces(t, pool, 1)

			forget()
			do(`call agui.compact(max_time => '1 hour')`)
			check("compaction in pieces")
			if got := testdb.List[string](t, pool, snapshots); !slices.Equal(got, whole) {
				t.Errorf("compaction in pieces made\n%s\nin one piece\n%s", strings.Join(got, "\n"), strings.Join(whole, "\n"))
			}

			forget()
			partials, calls := 0, 0
			for waits := true; waits; calls++ {
				if calls == 1000 {
					t.Fatal("compaction comes to no end")
				}
				do(`call agui.compact(max_time => '1 microsecond')`)
				n := partial()
				partials += n
				if n > 0 && calls%4 == 0 {
					check(fmt.Sprint(calls+1, " calls"))
				}
				must.Do(t, pool.QueryRow(ctx, `select exists (select from agui.run where log_bytes is null)`).Scan(&waits))
			}
			check("all calls")
			if partials == 0 {
				t.Error("no call ended within a run")
			}
			if notes := testdb.List[string](t, pool, `select job_note::text from agui_internal.job_note`); len(notes) > 0 {
				t.Errorf("notes are left: %s", notes)
			}
			got := testdb.List[string](t, pool, snapshots)
			// Each call also decides whether existing snapshots stay, so these are compared with those of calls that compact one run each.
			forget()
			for range testdb.List[string](t, pool, `select run_id from agui.run`) {
				do(`call agui.compact(1)`)
			}
			if whole = testdb.List[string](t, pool, snapshots); !slices.Equal(got, whole) {
				t.Errorf("%d calls made\n%s\none call for each run\n%s", calls, strings.Join(got, "\n"), strings.Join(whole, "\n"))
			}

			// What the procedure has begun, the Go job finishes.
			forget()
			for range 9 {
				do(`call agui.compact(max_time => '1 microsecond')`)
			}
			compactInGo(t, pool)
			check("compaction in Go of what SQL has begun")

			// As if the last runs were in progress.
			forget()
			do(`update agui.run set status = 'running', last_seq = null, ended_at = null
				where run_no = (select max(run_no) from agui.run as r where r.thread_key = run.thread_key)`)
			want = restores(t, pool)
			for range 40 {
				do(`call agui.compact_running(1, max_time => '1 microsecond')`)
			}
			check("compact_running")
			behind := testdb.List[string](t, pool, `
				select run_id from agui.run
				left join agui.snapshot using (thread_key, run_no)
				where status = 'running' and snapshot.through_seq is distinct from (
					select max(first_seq + n - 1) from agui.batch where batch.thread_key = run.thread_key and batch.run_no = run.run_no)`)
			if len(behind) > 0 {
				t.Errorf("compact_running came to no end at %s", behind)
			}
		})
	}
}

// What the events of a run mean before its RUN_STARTED, which the input beside them counts at, is no base to go on from.
func TestNoFoldStopsBeforeTheStartOfItsRun(t *testing.T) {
	t.Parallel()
	for name, hasStart := range map[string]bool{"late": true, "never": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := testdb.Pool(t)
			// Past agui.append, which refuses a run that begins so.
			testdb.Exec(t, pool, `
				insert into agui.thread (thread_key, scope, thread_id) values (agui.thread_key('', 't'), '', 't');
				insert into agui.run (thread_key, run_no, run_id, status, first_seq, last_seq, started_at, ended_at)
				values (agui.thread_key('', 't'), 1, 'r', 'finished', 1, 6, now(), now());
				insert into agui.run_input (thread_key, run_no, input)
				values (agui.thread_key('', 't'), 1, '{"messages":[{"id":"u","role":"user","content":"hello"}],"state":{"n":1}}')`)
			for seq := 1; seq <= 6; seq++ {
				event := fmt.Sprintf(`[{"type":"TEXT_MESSAGE_CHUNK","messageId":"m%d","delta":"x"}]`, seq)
				if seq == 4 && hasStart {
					event = `[{"type":"RUN_STARTED"}]`
				}
				testdb.Exec(t, pool, `
					insert into agui.batch (thread_key, first_seq, recorded_at, n, run_no, events)
					values (agui.thread_key('', 't'), $1, now(), 1, 1, $2)`, seq, json.RawMessage(event))
			}
			foldInPieces(t, pool, 1)
			want := readers(t, pool)
			var through []string
			for range 5 {
				testdb.Exec(t, pool, `call agui.compact(max_time => '1 microsecond')`)
				if got := readers(t, pool); !maps.Equal(got, want) {
					t.Fatalf("reads as %s, want %s", got, want)
				}
				through = append(through, testdb.List[string](t, pool, `select coalesce(snapshot.through_seq, 0) || ' ' || (log_bytes is not null)
					from agui.run left join agui.snapshot using (thread_key, run_no)`)...)
			}
			wanted := []string{"4 false", "5 false", "6 true", "6 true", "6 true"}
			if !hasStart {
				wanted = []string{"0 true", "0 true", "0 true", "0 true", "0 true"}
			}
			if !slices.Equal(through, wanted) {
				t.Errorf("after each call the snapshot went through %q, want %q", through, wanted)
			}
		})
	}
}

// A call without any time does nothing; any other comes further.
func TestACallWithoutTimeDoesNothing(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	mustAppend(t, store, "t", "r", rawEvents(`{"type":"RUN_STARTED"}`, `{"type":"STATE_SNAPSHOT","snapshot":{"n":1}}`))
	for _, call := range []string{`agui.compact(max_time => '0')`, `agui.compact_running(1, max_time => '-1 second')`} {
		testdb.Exec(t, pool, `call `+call)
	}
	if kept := testdb.List[string](t, pool, `select thread_key::text from agui.snapshot`); len(kept) > 0 {
		t.Error("there is a snapshot")
	}
}
