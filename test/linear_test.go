package test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/internal/memory"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

// A fold costs what it reads: ten times the events take ten times the work, with a state of constant size and whatever the number
// of messages. In Go that is counted by the bytes that are allocated, in SQL by the pages of the log that are read, and by the time of
// the session's own process, for work inside of PL/pgSQL reads no pages.
// It is alone in its process, whose allocations it counts.
func TestFoldingIsLinear(t *testing.T) {
	pool := testdb.Pool(t)
	const size, times = 10_000, 10
	var inGo, pages, cpu [2]float64
	for i, size := range []int{size, size * times} {
		thread := fmt.Sprint("thread-", size)
		appendLongRun(t, pool, thread, size)
		inGo[i] = float64(bytesAllocated(t, batchesOf(t, pool, thread)))
		tx := testdb.Begin(t, pool)
		session := int(tx.Conn().PgConn().PID())
		before := memory.CPU(session)
		pages[i] = float64(pagesRead(t, tx, `select agui.restore('`+thread+`')`))
		cpu[i] = (memory.CPU(session) - before).Seconds()
		tx.Rollback(t.Context())
	}
	t.Logf("%.0f bytes are allocated in Go; in SQL %.0f pages are read, in %.2f seconds of work", inGo, pages, cpu)
	for name, work := range map[string][2]float64{"Go": inGo, "SQL": pages} {
		if ratio := work[1] / work[0]; ratio > 1.5*times {
			t.Errorf("%s: %d times the events take %.1f times the work", name, times, ratio)
		}
	}
	// What grows with the square takes a hundred times as long. A server elsewhere shows no time.
	if ratio := cpu[1] / max(cpu[0], 0.01); ratio > 4*times {
		t.Errorf("SQL: %d times the events take %.1f times as long", times, ratio)
	}
}

// Rates of both folds on threads of three sizes: go test ./test -run xxx -bench Fold
func BenchmarkFold(b *testing.B) {
	pool := testdb.Pool(b)
	for _, size := range []int{1_000, 10_000, 100_000} {
		thread := fmt.Sprint("thread-", size)
		appendLongRun(b, pool, thread, size)
		batches := batchesOf(b, pool, thread)
		b.Run(fmt.Sprintf("Go/%d", size), func(b *testing.B) {
			for b.Loop() {
				fold := compaction.New()
				for _, batch := range batches {
					must.Have(fold.ApplyBatch(batch))(b)
				}
			}
			b.ReportMetric(float64(size*b.N)/b.Elapsed().Seconds(), "events/s")
		})
		b.Run(fmt.Sprintf("SQL/%d", size), func(b *testing.B) {
			for b.Loop() {
				testdb.Exec(b, pool, `select agui.restore($1)`, thread)
			}
			b.ReportMetric(float64(size*b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// appendLongRun makes a run of messages of 48 tokens each, two at a time interleaved, with a state delta in each.
func appendLongRun(t testing.TB, pool *pgxpool.Pool, thread string, size int) {
	t.Helper()
	testdb.Exec(t, pool, `select agui.append($1, 'r', '[{"type":"RUN_STARTED"},{"type":"STATE_SNAPSHOT","snapshot":{"n":0}}]')`, thread)
	testdb.Exec(t, pool, `
		insert into agui.batch (thread_key, first_seq, recorded_at, n, run_no, events)
		select agui.thread_key('', $1), 3 + pair * 100, now(), 100, 1, (
			'[' || string_agg(
				case
					when i < 2 then format('{"type":"TEXT_MESSAGE_START","messageId":"m%s-%s"}', pair, i)
					when i = 50 then format('{"type":"STATE_DELTA","delta":[{"op":"replace","path":"/n","value":%s}]}', pair)
					when i >= 98 then format('{"type":"TEXT_MESSAGE_END","messageId":"m%s-%s"}', pair, i % 2)
					else format('{"type":"TEXT_MESSAGE_CONTENT","messageId":"m%s-%s","delta":" token %s"}', pair, i / 7 % 2, i)
				end, ',' order by i)
			|| ']')::json
		from generate_series(0, $2::int / 100 - 1) as pair, generate_series(0, 99) as i
		group by pair`, thread, size)
}

func batchesOf(t testing.TB, pool *pgxpool.Pool, thread string) []json.RawMessage {
	t.Helper()
	return testdb.List[json.RawMessage](t, pool, `
		select events from agui.batch where thread_key = agui.thread_key('', $1) order by first_seq`, thread)
}

func bytesAllocated(t *testing.T, batches []json.RawMessage) uint64 {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fold := compaction.New()
	for _, batch := range batches {
		must.Have(fold.ApplyBatch(batch))(t)
	}
	for _, message := range fold.Messages() {
		message.JSON()
	}
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
