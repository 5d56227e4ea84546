package test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction/compactiontest"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/recorded"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/jobs"
)

// What readers get of a run that has ended stays the same to the byte, whatever the upkeep does: an ETag made of it holds.
func TestCompactionKeepsTheBytes(t *testing.T) {
	t.Parallel()
	seeds := uint64(streamsOfAKind(30))
	pools := map[string]func(t *testing.T, pool *pgxpool.Pool){
		"recordings": func(t *testing.T, pool *pgxpool.Pool) {
			for _, file := range recorded.Files(t, "..") {
				appendRecording(t, pgagui.New(pool, &pgagui.Config{Scope: file}), readRecording(t, file))
			}
		},
		// A list takes a message for its own version of it, however close the other one was.
		"spellings": func(t *testing.T, pool *pgxpool.Pool) {
			store := pgagui.New(pool, nil)
			spellings := []string{"100", "1e2", "100.0", "1.0E+2", "-0", "0", `{"a":1,"b":[100]}`, `{"b": [100], "a": 1}`, `"a"`, `"\u0061"`}
			for i, patched := range spellings {
				for j, listed := range spellings {
					mustAppend(t, store, fmt.Sprint(i, " and ", j), "r", rawEvents(
						`{"type":"RUN_STARTED"}`,
						`{"type":"ACTIVITY_SNAPSHOT","messageId":"patched","activityType":"PLAN","content":{}}`,
						`{"type":"ACTIVITY_DELTA","messageId":"patched","activityType":"PLAN","patch":[{"op":"add","path":"/n","value":`+patched+`}]}`,
						`{"type":"ACTIVITY_SNAPSHOT","messageId":"given","activityType":"PLAN","content":{"n":`+patched+`}}`,
						`{"type":"MESSAGES_SNAPSHOT","messages":[`+
							`{"id":"patched","role":"activity","activityType":"PLAN","content":{"n":`+listed+`}},`+
							`{"id":"given","role":"activity","activityType":"PLAN","content":{"n": `+listed+`}}]}`,
						`{"type":"RUN_FINISHED"}`,
					))
					for _, message := range testdb.List[string](t, pool, `select message.message::text from agui.messages($1) as message`, fmt.Sprint(i, " and ", j)) {
						if !strings.Contains(message, listed) {
							t.Errorf("%s, listed as %s, is %s", patched, listed, message)
						}
					}
				}
			}
		},
		"generated": func(t *testing.T, pool *pgxpool.Pool) {
			for kind, streams := range kindsOfStreams {
				if isLeftOut(kind) {
					continue
				}
				for seed := *firstSeed; seed < *firstSeed+seeds; seed++ {
					thread := fmt.Sprint(streams.name, " ", seed)
					appendTree(t, pool, thread, startOf(compactiontest.Stream(seed<<8+uint64(kind), streams.options)), seed)
				}
			}
		},
	}
	for name, load := range pools {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			pool := testdb.Pool(t)
			load(t, pool)
			want := readers(t, pool)
			check := func(after string, read func(*testing.T, *pgxpool.Pool) map[string]string) {
				t.Helper()
				got := read(t, pool)
				failures := 0
				for _, reader := range slices.Sorted(maps.Keys(got)) {
					if got[reader] != want[reader] && failures < 3 {
						failures++
						t.Errorf("after %s, %s:\n%s\nbefore:\n%s", after, reader, got[reader], want[reader])
					}
				}
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
			compactInGo := func() {
				t.Helper()
				must.Have(jobs.Compact(ctx, pool, jobs.CompactOptions{Workers: 1}))(t)
			}

			do(`call agui.compact()`)
			check("compaction in SQL", readers)
			forget()
			compactInGo()
			check("compaction in Go", readers)
			do(`select agui_internal.compact_sequence(thread_key, array[run_no]) from agui.run order by thread_key, run_no`)
			check("compaction in SQL, from snapshots that Go made", restores)
			forget()
			do(`call agui.compact(5)`)
			compactInGo()
			check("compaction in Go, from snapshots that SQL made", restores)
			if name == "recordings" {
				do(`select agui.rebuild_snapshots(thread_id, scope) from agui.thread`)
				check("rebuild_snapshots", restores)
			}

			// As if the last runs were in progress.
			forget()
			do(`update agui.run set status = 'running', last_seq = null, ended_at = null
				where run_no = (select max(run_no) from agui.run as r where r.thread_key = run.thread_key)`)
			want = readers(t, pool)
			do(`call agui.compact_running(1)`)
			check("compact_running", readers)
			do(`update agui.run set status = 'finished', ended_at = now() - interval '1 day',
				last_seq = (select max(first_seq + n - 1) from agui.batch where batch.thread_key = run.thread_key and batch.run_no = run.run_no)
				where status = 'running'`)
			want = restores(t, pool)
			do(`update agui.run set ended_at = now() - interval '1 day'`)
			do(`call agui.repack()`)
			check("repack", restores)
		})
	}
}

// readers has what agui.restore, agui.messages, agui.state and agui.interrupts give of each run, to the byte.
func readers(t *testing.T, pool *pgxpool.Pool) map[string]string {
	t.Helper()
	return readRuns(t, pool, true)
}

// restores has what agui.restore gives, which folds each run once.
func restores(t *testing.T, pool *pgxpool.Pool) map[string]string {
	t.Helper()
	return readRuns(t, pool, false)
}

func readRuns(t *testing.T, pool *pgxpool.Pool, all bool) map[string]string {
	t.Helper()
	rows, _ := pool.Query(t.Context(), `
		select concat_ws(' ', reader, 'of', thread.scope, thread.thread_id, run.run_id), answer
		from agui.thread
		join agui.run using (thread_key)
		cross join lateral (values
			('restore', agui.restore(thread.thread_id, run.run_id, scope => thread.scope)::text),
			('state', case when $1 then agui.state(thread.thread_id, run.run_id, scope => thread.scope)::text end),
			('interrupts', case when $1 then (select string_agg(interrupt::text, ',') from agui.interrupts(thread.thread_id, run.run_id, scope => thread.scope)) end),
			('messages', case when $1 then (select string_agg(message::text, e'\n') from agui.messages(thread.thread_id, run.run_id, scope => thread.scope) as message) end)
		) as read (reader, answer)
		where answer is not null`, all)
	read := map[string]string{}
	var reader, answer string
	must.Have(pgx.ForEachRow(rows, []any{&reader, &answer}, func() error { read[reader] = answer; return nil }))(t)
	return read
}

// Values in odd spellings come out in the same one, whichever reducer folded them.
func TestBothReducersSpellAlike(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	for i, value := range []string{
		`{"a":"\u005c\u0041\/x\u005C"}`, `{ "a" : "\uD83D" , "b":"\\" }`, `"\u005c"`, `"\u0041"`, `{"a":"\ud83d\uDE00\u0000\uDE00"}`, `["\uD83Dx\\u005c"]`,
	} {
		thread := fmt.Sprint("t", i)
		events := fmt.Sprintf(`[{"type":"RUN_STARTED","input":{"state":%[1]s}},{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"m\u005c","role":"user","x":%[1]s}]},
			{"type":"TEXT_MESSAGE_END","messageId":"m\\","metadata":{"k":%[1]s}},{"type":"TEXT_MESSAGE_END","messageId":"m\\","metadata":{"k":%[1]s,"l":%[1]s}},
			{"type":"TEXT_MESSAGE_CONTENT","messageId":"m\\","delta":"\u005c\ud83d"},
			{"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[%[1]s,{"x":%[1]s}]}}]`, value)
		testdb.Exec(t, pool, `select agui.append($1, 'r', $2)`, thread, events)
		must.Have(store.Restore(t.Context(), thread, pgagui.At{}))(t)
	}
	inSQL := readers(t, pool)
	compactInGo(t, pool)
	for reader, inGo := range readers(t, pool) {
		if inGo != inSQL[reader] {
			t.Errorf("%s: in Go\n%s\nin SQL\n%s", reader, inGo, inSQL[reader])
		}
	}
}
