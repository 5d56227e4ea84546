package test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/sql/schema"
)

// A follower has seen the events of a thread up to a seq.
type follower struct {
	thread, scope *string
	after         *int64
	time          *time.Time
}

// A pollEvent is an event of the log, or the problem of a thread.
type pollEvent struct {
	run     string
	seq     int64
	time    time.Time
	payload string
	problem string
}

func (e pollEvent) String() string {
	return fmt.Sprint(e.seq, " ", e.run, " ", e.time.UTC().Format("15:04:05.000000"), " ", e.payload, e.problem)
}

// poll returns what is new to each follower, and in how many batches it came.
func poll(t *testing.T, pool *pgxpool.Pool, followers []follower, maxBatches int) (news [][]pollEvent, batches []int) {
	t.Helper()
	var threads, scopes []*string
	var after []*int64
	var times []*time.Time
	for _, follower := range followers {
		threads, scopes = append(threads, follower.thread), append(scopes, follower.scope)
		after, times = append(after, follower.after), append(times, follower.time)
	}
	rows, err := pool.Query(context.Background(), `
		select
			thread_no, coalesce(run_id, ''), coalesce(first_seq, 0), coalesce(n, 0), recorded_at, earlier_us,
			array(select value::text from json_array_elements(events)), coalesce(problem, '')
		from agui.poll($1, $2, $3, $5, scopes => $4)`, threads, after, times, scopes, maxBatches)
	must.Do(t, err)
	news, batches = make([][]pollEvent, len(followers)), make([]int, len(followers))
	var number, n int
	var run, problem string
	var firstSeq int64
	var recordedAt *time.Time
	var earlier []int64
	var payloads []string
	if _, err := pgx.ForEachRow(rows, []any{&number, &run, &firstSeq, &n, &recordedAt, &earlier, &payloads, &problem}, func() error {
		batches[number-1]++
		if problem != "" {
			news[number-1] = append(news[number-1], pollEvent{problem: problem})
			return nil
		}
		if len(payloads) != n || earlier != nil && len(earlier) != n {
			return fmt.Errorf("the batch at seq %d says that it has %d events, but has %d and %d times", firstSeq, n, len(payloads), len(earlier))
		}
		for i, payload := range payloads {
			event := pollEvent{run: run, seq: firstSeq + int64(i), time: *recordedAt, payload: payload}
			if earlier != nil {
				event.time = event.time.Add(-time.Duration(earlier[i]) * time.Microsecond)
			}
			news[number-1] = append(news[number-1], event)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return news, batches
}

// logOf is a thread's log as the view agui.event has it.
func logOf(t *testing.T, pool *pgxpool.Pool, thread, scope string) []pollEvent {
	t.Helper()
	rows, err := pool.Query(context.Background(), `
		select run_id, seq, recorded_at, payload::text from agui.event where thread_id = $1 and scope = $2 order by seq`, thread, scope)
	must.Do(t, err)
	log, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (event pollEvent, err error) {
		err = row.Scan(&event.run, &event.seq, &event.time, &event.payload)
		return event, err
	})
	must.Do(t, err)
	return log
}

// A poll gives what the log has behind each follower: the events with their runs, seqs and times, whatever batches they are in.
func TestPollGivesWhatIsNew(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool := testdb.Pool(t)
	conn := testdb.Acquire(t, pool)
	g := &callGenerator{Rand: rand.New(rand.NewPCG(*firstSeed, 2))}
	for range 400 {
		call, accepted := g.next()
		if answer := appendOne(t, conn, call, false); answer.code == "" {
			accepted(answer.seq)
		}
	}
	logs := map[[2]string][]pollEvent{}
	for _, thread := range []string{"a", "b", "c", "d", "not there yet"} {
		for _, scope := range []string{"", "s"} {
			logs[[2]string{thread, scope}] = logOf(t, pool, thread, scope)
		}
	}
	partial := 0
	for _, when := range []string{"as appended", "after repack"} {
		if when == "after repack" {
			var before, after int
			must.Do(t, pool.QueryRow(ctx, `select count(*) from agui.batch`).Scan(&before))
			testdb.Exec(t, pool, `select agui.abandon(thread.thread_id, run.run_id, scope => thread.scope) from agui.run as run join agui.thread as thread using (thread_key) where status = 'running'`)
			for key := range logs {
				logs[key] = logOf(t, pool, key[0], key[1])
			}
			testdb.Exec(t, pool, `select agui_internal.repack_run(thread_key, run_no) from agui.run`)
			must.Do(t, pool.QueryRow(ctx, `select count(*) from agui.batch`).Scan(&after))
			if after >= before {
				t.Fatalf("repack left %d of %d batches", after, before)
			}
		}
		for range 150 {
			var followers []follower
			var want [][]pollEvent
			for range 1 + g.IntN(6) {
				key := [2]string{oneOf(g, "a", "b", "c", "d", "not there yet"), oneOf(g, "", "s")}
				log := logs[key]
				seen := int64(g.IntN(len(log) + 1))
				follower := follower{thread: &key[0], scope: &key[1], after: &seen}
				if key[1] == "" && g.chance(50) {
					follower.scope = nil
				}
				if seen == 0 && g.chance(50) {
					follower.after = nil
				}
				if seen > 0 && g.chance(70) {
					follower.time = &log[seen-1].time
				}
				followers, want = append(followers, follower), append(want, log[seen:])
			}
			most := oneOf(g, 1, 2, 7, 1000)
			news, batches := poll(t, pool, followers, most)
			for i, got := range news {
				if batches[i] > most {
					t.Errorf("-seed %d, %s: %d batches of a thread, want %d at most", *firstSeed, when, batches[i], most)
				}
				complete := want[i]
				if batches[i] == most {
					partial++
					complete = complete[:min(len(got), len(complete))]
				}
				if !slices.EqualFunc(got, complete, func(a, b pollEvent) bool {
					return a.run == b.run && a.seq == b.seq && a.time.Equal(b.time) && a.payload == b.payload && a.problem == ""
				}) {
					t.Fatalf("-seed %d, %s: thread %s of scope %v after seq %v:\n%v\nwant\n%v", *firstSeed, when, *followers[i].thread, followers[i].scope, followers[i].after, got, want[i])
				}
			}
		}
	}
	if partial == 0 {
		t.Error("no poll was limited")
	}
}

// A follower is told when the log is not the one any more that it has followed.
func TestPollTellsOfARewoundLog(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool := testdb.Pool(t)
	for _, thread := range []string{"t", "erased", "allowed", "begun again"} {
		testdb.Exec(t, pool, `select agui.append($1, 'r', '[{"type":"RUN_STARTED"},{"type":"CUSTOM"}]'), agui.append($1, 'r', '[{"type":"CUSTOM"}]')`, thread)
	}
	log := logOf(t, pool, "t", "")
	was := logOf(t, pool, "begun again", "")
	for _, statement := range []string{
		`select agui.erase('erased'), agui.erase('allowed'), agui.erase('begun again')`,
		`select agui.lift_erasure('allowed'), agui.lift_erasure('begun again')`,
		`select agui.append('begun again', 'r', '[{"type":"RUN_STARTED"},{"type":"CUSTOM"},{"type":"CUSTOM"},{"type":"CUSTOM"}]')`,
	} {
		testdb.Exec(t, pool, statement)
	}
	microsecond := func(by int) *time.Time { return new(log[1].time.Add(time.Duration(by) * time.Microsecond)) }
	for _, test := range []struct {
		name     string
		follower follower
		want     string // the problem, or what is new
	}{
		{"nothing new", follower{thread: new("t"), after: new(int64(3)), time: &log[2].time}, ""},
		{"a seq that the log does not have", follower{thread: new("t"), after: new(int64(4))}, "UI017"},
		{"a seq that the log does not have, and a time", follower{thread: new("t"), after: new(int64(4)), time: &log[2].time}, "UI017"},
		{"an event of a later time", follower{thread: new("t"), after: new(int64(2)), time: microsecond(-1)}, "UI017"},
		{"an event of an earlier time", follower{thread: new("t"), after: new(int64(2)), time: microsecond(1)}, "UI017"},
		{"the event that it was", follower{thread: new("t"), after: new(int64(2)), time: microsecond(0)}, "3"},
		{"a time that is not known", follower{thread: new("t"), after: new(int64(2))}, "3"},
		{"a thread that was never seen", follower{thread: new("never"), after: new(int64(1))}, "UI017"},
		{"a thread that is not there yet", follower{thread: new("never"), after: new(int64(0)), time: &log[0].time}, ""},
		{"an erased thread", follower{thread: new("erased"), after: new(int64(3)), time: &log[2].time}, "UI014"},
		{"an erased thread of which nothing was seen", follower{thread: new("erased"), after: new(int64(0))}, ""},
		{"a thread that was erased, and may begin again", follower{thread: new("allowed"), after: new(int64(3))}, "UI017"},
		{"a thread that was erased, and has begun again", follower{thread: new("begun again"), after: new(int64(3)), time: &was[2].time}, "UI017"},
		{"a scope without such a thread", follower{thread: new("t"), scope: new("s"), after: new(int64(3))}, "UI017"},
	} {
		// Beside one that is all right.
		news, _ := poll(t, pool, []follower{test.follower, {thread: new("t"), after: new(int64(2)), time: &log[1].time}}, 10)
		var got []string
		for _, event := range news[0] {
			if got = append(got, event.problem); event.problem == "" {
				got[len(got)-1] = fmt.Sprint(event.seq)
			}
		}
		if strings.Join(got, " ") != test.want || len(news[1]) != 1 || news[1][0].seq != 3 {
			t.Errorf("%s: %v, want %q; beside it %v", test.name, got, test.want, news[1])
		}
	}
	for _, arguments := range []string{`'{t}', '{}'`, `'{t}', null`, `null, '{0}'`, `'{t}', '{0}', '{}'`, `'{t}', '{0}', scopes => '{a,b}'`} {
		_, err := pool.Exec(ctx, `select agui.poll(`+arguments+`)`)
		if testdb.State(err) != "UI008" {
			t.Errorf("agui.poll(%s): %v, want UI008", arguments, err)
		}
	}
}

// What a standby does not have yet is no news; what it has, it knows as well as the primary. After a promotion what is missing is lost.
func TestPollOnAStandby(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testdb.Server(t, nil)
	must.Do(t, schema.Up(ctx, server.URL("postgres")))
	pool := testdb.Connect(t, server.URL("postgres"))
	for _, statement := range []string{
		`select agui.append(thread, 'r', '[{"type":"RUN_STARTED"},{"type":"CUSTOM"}]') from (values ('t'), ('erased')) as item (thread)`,
		`select agui.erase('erased')`,
		`do $$ begin execute format('copy (select 1) to %L', current_setting('data_directory') || '/standby.signal'); end $$`,
	} {
		testdb.Exec(t, pool, statement)
	}
	log := logOf(t, pool, "t", "")
	must.Do(t, server.Restart(ctx))
	pool.Reset()
	followers := []follower{
		{thread: new("t"), after: new(int64(1)), time: &log[0].time},
		{thread: new("t"), after: new(int64(2)), time: new(log[1].time.Add(time.Microsecond))},
		{thread: new("erased"), after: new(int64(2))},
		{thread: new("t"), after: new(int64(3))},
		{thread: new("not there yet"), after: new(int64(1))},
	}
	told := func(want string) {
		t.Helper()
		news, _ := poll(t, pool, followers, 10)
		got := make([]string, len(news))
		for i, events := range news {
			for _, event := range events {
				got[i] += event.payload + event.problem
			}
		}
		if got := strings.Join(got, ", "); got != want {
			t.Errorf("told %s, want %s", got, want)
		}
	}
	told(`{"type":"CUSTOM"}, UI017, UI014, , `)
	testdb.Exec(t, pool, `select pg_promote()`)
	told(`{"type":"CUSTOM"}, UI017, UI014, UI017, UI017`)
}

// A thread without news costs a look at the end of its log, however long that and the others are; news cost what they bring.
func TestAPollOfQuietThreadsIsCheap(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	// 1,000 threads of 50 runs and 50 batches, written in turns; and one of 20,000 batches.
	for _, statement := range []string{
		`insert into agui.thread (thread_key, scope, thread_id) select agui.thread_key('', 't' || n), '', 't' || n from generate_series(0, 1000) as n`,
		`insert into agui.run (thread_key, run_no, run_id, status, first_seq, last_seq, started_at, ended_at)
		select agui.thread_key('', 't' || thread), run, 'r' || run, 'finished', run * 2 - 1, run * 2, now(), now()
		from generate_series(1, 50) as run, generate_series(1, 1000) as thread
		union all select agui.thread_key('', 't0'), 1, 'r1', 'running', 1, null, now(), null`,
		`insert into agui.batch (thread_key, first_seq, recorded_at, n, run_no, events)
		select agui.thread_key('', 't' || thread), run * 2 - 1, now(), 2, run, '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]'
		from generate_series(1, 50) as run, generate_series(1, 1000) as thread`,
		`insert into agui.batch (thread_key, first_seq, recorded_at, n, run_no, events)
		select agui.thread_key('', 't0'), seq, now(), 1, 1, '[{"type":"RUN_STARTED"}]' from generate_series(1, 20000) as seq`,
		`analyze`,
	} {
		testdb.Exec(t, pool, statement)
	}
	quiet := func(n int) string {
		return fmt.Sprintf(`agui.poll(array(select 't' || n from generate_series(1, %d) as n), array_fill(100::bigint, '{%[1]d}'))`, n)
	}
	for _, plan := range []string{"force_generic_plan", "force_custom_plan"} {
		for _, cost := range []struct {
			from          string
			batches, runs int64
		}{
			{quiet(1), 1, 0},
			{quiet(10), 10, 0},
			{quiet(1000), 1000, 0},
			{`agui.poll('{t0}', '{20000}')`, 1, 0},
			{`agui.poll('{t0}', '{19990}')`, 11, 10},
			{`agui.poll('{t0}', '{10000}', max_rows => 5)`, 6, 5},
			{`agui.poll('{t0}', '{0}', max_rows => 5)`, 5, 5},
			{`agui.poll('{not there yet}', '{0}')`, 0, 0},
		} {
			for table, most := range map[string]int64{"batch": cost.batches, "run": cost.runs} {
				statement := `select * from ` + cost.from
				if rows := rowsReadWith(t, pool, `set local plan_cache_mode = `+plan, table, statement); rows > most {
					t.Errorf("%s: %s reads %d rows of agui.%s, want %d at most", plan, statement, rows, table, most)
				}
			}
		}
	}
}

// An answer is bounded in bytes: large batches come one by one, and no thread has to wait until its neighbours have nothing more.
func TestPollAnswersAreBoundedInBytes(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool := testdb.Pool(t)
	for _, thread := range []string{"a", "b", "c"} {
		for n := range 6 {
			length := 1 << 20
			if thread == "c" {
				length = 10
			}
			events := fmt.Sprintf(`[{"type":"RAW","event":"%s"}]`, strings.Repeat(fmt.Sprint(n), length))
			testdb.Exec(t, pool, `select agui.append($1, 'r', $2, $3)`, thread, events, n)
		}
	}
	threads, after := []string{"a", "b", "c"}, []int64{0, 0, 0}
	got := make([]int, len(threads))
	for calls := 1; got[0]+got[1]+got[2] < 18; calls++ {
		rows, err := pool.Query(ctx, `
			select thread_no, coalesce(first_seq, 0), coalesce(n, 0), coalesce(octet_length(events::text), 0), problem is not null
			from agui.poll($1, $2, page_bytes => 2500000)`, threads, after)
		must.Do(t, err)
		bytes, batches := 0, 0
		isCut := map[int]bool{}
		var threadNo, n, length int
		var firstSeq int64
		var hasProblem bool
		if _, err := pgx.ForEachRow(rows, []any{&threadNo, &firstSeq, &n, &length, &hasProblem}, func() error {
			switch {
			case hasProblem || isCut[threadNo]:
				t.Errorf("call %d: thread %d has a problem, or a row behind the one that says that there is more", calls, threadNo)
			case n == 0:
				isCut[threadNo] = true
			case firstSeq != after[threadNo-1]+1:
				t.Errorf("call %d: thread %d goes on at seq %d behind %d", calls, threadNo, firstSeq, after[threadNo-1])
			default:
				after[threadNo-1] += int64(n)
				got[threadNo-1] += n
				bytes += length
				batches++
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if bytes > 2500000 || batches == 0 {
			t.Fatalf("call %d: %d bytes in %d batches", calls, bytes, batches)
		}
		for i := range threads {
			if isCut[i+1] != (got[i] < 6) {
				t.Errorf("call %d: thread %d has %d of 6 batches, and the answer says %v that there is more", calls, i+1, got[i], isCut[i+1])
			}
		}
		if calls == 1 && (got[0] != 1 || got[1] != 1 || got[2] != 6) {
			t.Errorf("the first answer has %v batches, want one of each large thread and the small ones", got)
		}
	}
	// One that is larger than an answer may be comes alone.
	var batches, all int
	must.Do(t, pool.QueryRow(ctx, `select count(events), count(*) from agui.poll('{a,b}', '{0,0}', page_bytes => 1000)`).Scan(&batches, &all))
	if batches != 1 || all != 3 {
		t.Errorf("%d batches in %d rows, want one and what says that both threads have more", batches, all)
	}
}
