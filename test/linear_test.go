package test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/internal/testdb"
)

// A fold costs what it reads: ten times the events take ten times the work, with a state of constant size and whatever the number
// of messages. Work is counted, for time is noisy: in Go by the bytes that are allocated, in SQL by the pages that are touched.
func TestFoldingIsLinear(t *testing.T) {
	pool := testdb.Pool(t)
	sizes := []int{1_000, 10_000, 100_000}
	inGo, inSQL, seconds := make([]float64, len(sizes)), make([]float64, len(sizes)), make([]float64, len(sizes))
	for i, size := range sizes {
		thread := fmt.Sprint("thread-", size)
		appendLongRun(t, pool, thread, size)
		inGo[i] = float64(bytesAllocated(t, batchesOf(t, pool, thread))) / float64(size)
		inSQL[i] = float64(pagesTouched(t, pool, `select agui.restore('`+thread+`')`)) / float64(size)
		seconds[i] = quickest(t, pool, `select agui.restore('`+thread+`')`) / float64(size)
	}
	t.Logf("bytes allocated an event in Go: %.0f", inGo)
	t.Logf("pages touched an event in SQL: %.3f", inSQL)
	t.Logf("microseconds an event in SQL: %.1f", []float64{seconds[0] * 1e6, seconds[1] * 1e6, seconds[2] * 1e6})
	// Work inside of PL/pgSQL touches no pages. What grows with the square would take ten times as long here: no noise looks like that.
	if ratio := seconds[2] / seconds[1]; ratio > 4 {
		t.Errorf("SQL: an event of %d takes %.1f times as long as one of %d", sizes[2], ratio, sizes[1])
	}
	for i := range sizes[1:] {
		for name, work := range map[string][]float64{"Go": inGo, "SQL": inSQL} {
			if ratio := work[i+1] / work[i]; ratio > 1.5 {
				t.Errorf("%s: an event of %d takes %.2f times the work of one of %d", name, sizes[i+1], ratio, sizes[i])
			}
		}
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
					if err := fold.ApplyBatch(batch); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(size*b.N)/b.Elapsed().Seconds(), "events/s")
		})
		b.Run(fmt.Sprintf("SQL/%d", size), func(b *testing.B) {
			for b.Loop() {
				if _, err := pool.Exec(context.Background(), `select agui.restore($1)`, thread); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(size*b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// appendLongRun makes a run of messages of 48 tokens each, two at a time interleaved, with a state delta in each.
func appendLongRun(t testing.TB, pool *pgxpool.Pool, thread string, size int) {
	t.Helper()
	ctx := context.Background()
	if _, err := pool.Exec(ctx, `select agui.append($1, 'r', '[{"type":"RUN_STARTED"},{"type":"STATE_SNAPSHOT","snapshot":{"n":0}}]')`, thread); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(ctx, `
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
		group by pair`, thread, size); err != nil {
		t.Fatal(err)
	}
}

func batchesOf(t testing.TB, pool *pgxpool.Pool, thread string) []json.RawMessage {
	t.Helper()
	rows, err := pool.Query(context.Background(), `
		select events from agui.batch where thread_key = agui.thread_key('', $1) order by first_seq`, thread)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var batches []json.RawMessage
	for rows.Next() {
		var batch json.RawMessage
		if err := rows.Scan(&batch); err != nil {
			t.Fatal(err)
		}
		batches = append(batches, batch)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return batches
}

func bytesAllocated(t *testing.T, batches []json.RawMessage) uint64 {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fold := compaction.New()
	for _, batch := range batches {
		if err := fold.ApplyBatch(batch); err != nil {
			t.Fatal(err)
		}
	}
	for _, message := range fold.Messages() {
		message.JSON()
	}
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func quickest(t *testing.T, pool *pgxpool.Pool, query string) (seconds float64) {
	t.Helper()
	best := time.Hour
	for range 3 {
		begin := time.Now()
		if _, err := pool.Exec(context.Background(), query); err != nil {
			t.Fatal(err)
		}
		best = min(best, time.Since(begin))
	}
	return best.Seconds()
}

func pagesTouched(t *testing.T, pool *pgxpool.Pool, query string) int64 {
	t.Helper()
	var plan []struct {
		Plan struct {
			Hit  int64 `json:"Shared Hit Blocks"`
			Read int64 `json:"Shared Read Blocks"`
		}
	}
	// The first execution fills the caches of the session.
	var pages int64
	connection, err := pool.Acquire(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Release()
	for range 2 {
		var text json.RawMessage
		if err := connection.QueryRow(context.Background(), `explain (analyze, buffers, format json) `+query).Scan(&text); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &plan); err != nil {
			t.Fatal(err)
		}
		pages = plan[0].Plan.Hit + plan[0].Plan.Read
	}
	return pages
}
