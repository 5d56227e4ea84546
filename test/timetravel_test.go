package test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/compaction/compactiontest"
	"github.com/pgagui/pgagui/internal/testdb"
)

// Restored as of any seq, a stream means what its events up to there mean: before compaction, and with a snapshot in its middle.
func TestTimeTravelToEverySeq(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool := testdb.Pool(t)
	judges := reducers{pool: pool}
	const streamsOfAKind = 3
	for i, kind := range kindsOfStreams {
		for seed := range uint64(streamsOfAKind) {
			stream := compactiontest.Stream(seed<<8+uint64(i), kind.options)
			judges.foldInSQL(t, [][]json.RawMessage{stream})
			thread := judges.lastThread()
			for _, when := range []string{"from the log", "from a snapshot in the middle"} {
				fold := compaction.New()
				rows, err := pool.Query(ctx, `
					select agui.restore($1, at_seq => seq) from generate_series(1, $2::int) as seq order by seq`, thread, len(stream))
				if err != nil {
					t.Fatal(err)
				}
				for seq := 1; rows.Next(); seq++ {
					var document json.RawMessage
					var restored struct {
						meaning
						Seq int
					}
					if err := rows.Scan(&document); err != nil {
						t.Fatal(err)
					}
					if err := json.Unmarshal(document, &restored); err != nil {
						t.Fatal(err)
					}
					fold.Apply(stream[seq-1])
					if difference := differences(restored.meaning, meaningOf(t, fold)); difference != "" || restored.Seq != seq {
						t.Errorf("%s stream, seed %d, %s, at seq %d of %d (restored %d): %s", kind.name, seed, when, seq, len(stream), restored.Seq, difference)
					}
				}
				if err := rows.Err(); err != nil {
					t.Fatal(err)
				}
				if _, err := pool.Exec(ctx, `
					select agui_internal.write_snapshot(thread_key, run_no, agui_internal.fold_run(thread_key, run_no, last_seq / 2))
					from agui.run where thread_key = agui.thread_key('', $1)`, thread); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}
