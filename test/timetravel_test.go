package test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/compaction/compactiontest"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

// Restored as of any seq, a stream means what its events up to there mean: before compaction, and with a snapshot in its middle.
func TestTimeTravelToEverySeq(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool := testdb.Pool(t)
	judges := reducers{pool: pool}
	const streamsOfAKind = 1
	for i, kind := range kindsOfStreams {
		if isLeftOut(i) {
			continue
		}
		for seed := range uint64(streamsOfAKind) {
			stream := startOf(compactiontest.Stream(seed<<8+uint64(i), kind.options))
			judges.foldInSQL(t, [][]json.RawMessage{stream})
			thread := judges.lastThread()
			for _, when := range []string{"from the log", "from a snapshot in the middle"} {
				fold := compaction.New()
				rows, err := pool.Query(ctx, `
					select agui.restore($1, at_seq => seq) from generate_series(1, $2::int) as seq order by seq`, thread, len(stream))
				must.Do(t, err)
				for seq := 1; rows.Next(); seq++ {
					var document json.RawMessage
					var restored struct {
						meaning
						Seq int
					}
					must.Do(t, rows.Scan(&document))
					must.Do(t, json.Unmarshal(document, &restored))
					fold.Locate("r", int64(seq))
					fold.Apply(stream[seq-1])
					if difference := differences(restored.meaning, meaningOf(t, fold)); difference != "" || restored.Seq != seq {
						t.Errorf("%s stream, seed %d, %s, at seq %d of %d (restored %d): %s", kind.name, seed, when, seq, len(stream), restored.Seq, difference)
					}
				}
				must.Do(t, rows.Err())
				testdb.Exec(t, pool, `
					select agui_internal.write_snapshot(thread_key, run_no, agui_internal.fold_run(thread_key, run_no, last_seq / 2))
					from agui.run where thread_key = agui.thread_key('', $1)`, thread)
			}
		}
	}
}

// What is read at a point in time is what is read at the last event that had been recorded by then, in all ways to read, on every branch, and
// also once a repack has joined the batches.
func TestTimeTravelByTime(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	// Two branches. The batches came a second apart from one another, but every third one at the time of the one before.
	random := rand.New(rand.NewPCG(*firstSeed, 1))
	var all []json.RawMessage
	for seed := range uint64(4) {
		all = append(all, compactiontest.Stream(seed, kindsOfStreams[0].options)...)
	}
	log := appendRunByRun(t, store, "t", random, all)
	branch := []json.RawMessage{json.RawMessage(`{"type":"RUN_STARTED","runId":"branch","parentRunId":"` + firstRun(t, store, "t") + `"}`)}
	for n := range 9 {
		branch = append(branch, fmt.Appendf(nil, `{"type":"TEXT_MESSAGE_CHUNK","messageId":"of the branch","role":"assistant","delta":"%d"}`, n))
	}
	for _, event := range append(branch, json.RawMessage(`{"type":"RUN_FINISHED"}`)) {
		mustAppend(t, store, "t", "branch", []json.RawMessage{event})
	}
	if err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		_, allowed := tx.Exec(ctx, `select agui_internal.allow_log_change(true)`)
		_, err := tx.Exec(ctx, `
			update agui.batch set recorded_at = '2026-11-01 10:00+00'::timestamptz + (place.n - place.n / 3) * interval '1 second'
			from (select first_seq, row_number() over (order by first_seq) as n from agui.batch) as place
			where batch.first_seq = place.first_seq`)
		return errors.Join(allowed, err)
	}); err != nil {
		t.Fatal(err)
	}
	reads := []string{
		"agui.restore(%s)", "agui.state(%s)", "(select json_agg(row) from agui.interrupts(%s) as row)", "agui.attach(%s)", "(select json_agg(row) from agui.messages(%s) as row)",
		"(select json_agg(row) from agui.tool_calls(%s) as row)", "(select json_agg(row) from agui.activities(%s) as row)",
		"(select json_agg(row) from agui.session_messages(%s) as row)", "(select json_agg(row) from agui.replay(%s) as row)",
		"(select json_agg(row) from agui.subagents(%s) as row)", "(select json_agg(row) from agui.run_tool_calls(%s) as row)",
		"(select json_agg(row) from agui.last_messages(%s) as row)",
	}
	for _, when := range []string{"as appended", "repacked"} {
		events := eventsOf(t, pool, "t")
		if len(events) != len(log)+11 {
			t.Fatalf("%d events", len(events))
		}
		first, last := events[0].RecordedAt, events[len(events)-1].RecordedAt
		points := []time.Time{first.Add(-time.Microsecond), first, last, last.Add(time.Hour)}
		for range 6 {
			point := events[random.IntN(len(events))].RecordedAt
			points = append(points, point, point.Add([]time.Duration{-time.Microsecond, time.Microsecond}[random.IntN(2)]))
		}
		for _, point := range points {
			last := 0
			for _, event := range events {
				if !event.RecordedAt.After(point) {
					last = int(event.Seq)
				}
			}
			for _, run := range []string{"null", "'" + firstRun(t, store, "t") + "'"} {
				for _, read := range reads {
					var agree bool
					bySeq := fmt.Sprintf(read, fmt.Sprintf("'t', %s, at_seq => %d", run, last))
					byTime := fmt.Sprintf(read, fmt.Sprintf("'t', %s, at_time => $1", run))
					must.Do(t, pool.QueryRow(ctx, "select "+bySeq+"::text is not distinct from "+byTime+"::text", point).Scan(&agree))
					if !agree {
						t.Errorf("%s: %s is not %s, at %s", when, byTime, bySeq, point)
					}
				}
			}
			// Of both the earlier counts.
			if agree := testdb.Ask[bool](t, pool, `
				select agui.restore('t', at_seq => $2 - 3, at_time => $1)::text = agui.restore('t', at_seq => $2 - 3)::text
					and agui.restore('t', at_seq => $2 + 3, at_time => $1)::text = agui.restore('t', at_seq => $2)::text`, point, last); !agree {
				t.Errorf("%s: seq and time together, at %s", when, point)
			}
			restored := must.Have(store.Restore(ctx, "t", pgagui.At{Time: point}))(t)
			want := must.Have(store.Restore(ctx, "t", pgagui.At{Seq: int64(max(1, last))}))(t)
			if last > 0 && string(restored.JSON) != string(want.JSON) || last == 0 && (restored.Seq != 0 || len(restored.Messages) > 0 || string(restored.State) != "{}") {
				t.Errorf("%s: Restore at %s: %s", when, point, restored.JSON)
			}
		}
		testdb.Exec(t, pool, `call agui.repack(older_than => '0')`)
		if joined := integers(t, pool, `select count(*)::int from agui.batch where earlier_us is not null`); joined == "{0}" {
			t.Fatal("no batch was joined")
		}
	}
}

// A search for the last event at a point in time ends in a log that has lost batches, too.
func TestTimeTravelInADamagedLog(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	tx := must.Have(testdb.Pool(t).Begin(ctx))(t)
	defer tx.Rollback(context.Background())
	exec := func(statement string, arguments ...any) {
		t.Helper()
		testdb.Exec(t, tx, statement, arguments...)
	}
	exec(`set local statement_timeout = '10s'`)
	exec(`select agui_internal.allow_log_change(true)`)
	const batches = 9 // of two events each
	for first := 1; first <= batches; first++ {
		for last := first; last <= batches; last++ {
			exec(`delete from agui.batch`)
			exec(`
				insert into agui.batch (thread_key, first_seq, recorded_at, n, run_no, events)
				select agui.thread_key('', 't'), 2 * no - 1, to_timestamp(no), 2, 1, '[{"type":"CUSTOM"},{"type":"CUSTOM"}]'
				from generate_series(1, $1::int) as no
				where no not between $2 and $3`, batches, first, last)
			wrong := testdb.Ask[string](t, tx, `
				select coalesce(string_agg(format('at second %s event %s', second, found.seq), ', '), '')
				from generate_series(0, $1::int) as second
				cross join lateral agui_internal.last_seq_by(agui.thread_key('', 't'), to_timestamp(second)) as found (seq)
				where exists (
					select from agui.batch where (batch.first_seq <= found.seq) <> (batch.recorded_at <= to_timestamp(second))
				)`, batches)
			if wrong != "" {
				t.Errorf("without the batches %d to %d: %s", first, last, wrong)
			}
		}
	}
}

func firstRun(t *testing.T, store *pgagui.Store, thread string) string {
	t.Helper()
	runs := must.Have(store.Runs(t.Context(), thread))(t)
	return runs[0].ID
}
