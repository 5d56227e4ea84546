package test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

// An appendCall is what one call of agui.append is given; null is a nil pointer.
type appendCall struct {
	thread, run, events *string
	after               *int64
	input, parent       *string
	scope               *string
	parallel            *bool
}

// An appendAnswer is what became of a call.
type appendAnswer struct {
	seq       int64
	code, why string
}

func (a appendAnswer) String() string {
	if a.code != "" {
		return a.code + " " + a.why
	}
	return fmt.Sprint("seq ", a.seq)
}

func appendOne(t *testing.T, db *pgxpool.Conn, call appendCall, strict bool) appendAnswer {
	t.Helper()
	var answer appendAnswer
	// A scope or parallel that is null means the default to append_many.
	err := db.QueryRow(context.Background(), `
		select agui.append(
			$1, $2, $3::text::json, $4, $5::text::json, $6, parallel => coalesce($7, false), strict => $8, scope => coalesce($9, '')
		)`,
		call.thread, call.run, call.events, call.after, call.input, call.parent, call.parallel, strict, call.scope).Scan(&answer.seq)
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		answer.code, answer.why = refused.Code, refused.Message
	} else if err != nil {
		t.Fatal(err)
	}
	return answer
}

// A querier is a pool, a connection or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, arguments ...any) (pgx.Rows, error)
}

// appendMany returns the answers in the order of the calls; options are further arguments in SQL.
func appendMany(db querier, calls []appendCall, options string) ([]appendAnswer, error) {
	var threads, runs, events, inputs, parents, scopes []*string
	var after []*int64
	var parallel []*bool
	for _, call := range calls {
		threads, runs, events = append(threads, call.thread), append(runs, call.run), append(events, call.events)
		after, scopes, parallel = append(after, call.after), append(scopes, call.scope), append(parallel, call.parallel)
		inputs, parents = append(inputs, call.input), append(parents, call.parent)
	}
	rows, err := db.Query(context.Background(), `
		select (answer).call_no, coalesce((answer).last_seq, 0), coalesce((answer).error_code, ''), coalesce((answer).error, '')
		from agui.append_many(
			$1, $2, cast($3::text[] as json[]), $4, cast($5::text[] as json[]), $6, parallel => $7, scopes => $8`+options+`
		) as answer`,
		threads, runs, events, after, inputs, parents, parallel, scopes)
	if err != nil {
		return nil, err
	}
	answers := make([]appendAnswer, len(calls))
	answered := make([]int, len(calls))
	var number int
	var answer appendAnswer
	_, err = pgx.ForEachRow(rows, []any{&number, &answer.seq, &answer.code, &answer.why}, func() error {
		answers[number-1] = answer
		answered[number-1]++
		return nil
	})
	if err == nil && slices.ContainsFunc(answered, func(times int) bool { return times != 1 }) {
		err = fmt.Errorf("the calls were answered %v times", answered)
	}
	return answers, err
}

// callGenerator makes calls of a few threads with what their writers know of them.
type callGenerator struct {
	*rand.Rand
	runs  []*writtenRun
	token int
}

type writtenRun struct {
	thread, run, scope string
	input, parent      *string
	known              int64 // the last seq that its writer knows of
	sent               []sentCall
}

// A sentCall is a call that was accepted.
type sentCall struct {
	after  int64
	events []string
}

func (g *callGenerator) chance(percent int) bool { return g.IntN(100) < percent }

func oneOf[T any](g *callGenerator, choices ...T) T { return choices[g.IntN(len(choices))] }

func (g *callGenerator) event() string {
	g.token++
	token := fmt.Sprint("token ", g.token)
	return oneOf(g,
		fmt.Sprintf(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":%q}`, token),
		fmt.Sprintf(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":%q}`, token),
		fmt.Sprintf(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":%q}`, token),
		fmt.Sprintf(`{"type":"TEXT_MESSAGE_START","messageId":%q}`, token),
		fmt.Sprintf(`{"type": "TOOL_CALL_START","toolCallId":%q,"toolCallName":"f"}`, token),
		fmt.Sprintf(`{"delta":"%s \u0000 \ud83d","type":"TEXT_MESSAGE_CONTENT"}`, token),
		fmt.Sprintf(`{"t\u0079pe":"CUSTOM","name":%q,"value":{"type":"RUN_FINISHED"}}`, token),
		fmt.Sprintf(`{"type":"CUSTOM","name":"RUN_ERROR","value":{"type":%q}}`, token),
		fmt.Sprintf(`{"type":"RUN_FINISHED","type":"CUSTOM","name":%q}`, token),
		fmt.Sprintf(`{"type":"RUN_PAUSED","name":%q}`, token),
		fmt.Sprintf("{\"type\":\"CUSTOM\",\n \"name\":\"%s%s\"}", token, strings.Repeat(" long", 400*g.IntN(2))),
	)
}

func (g *callGenerator) ending() string {
	return oneOf(g, `{"type":"RUN_FINISHED"}`, `{"type": "RUN_FINISHED"}`, `{"type":"RUN_ERROR","message":"no"}`, `{"type":"RUN\u005fERROR"}`, `{"type":"CUSTOM","type":"RUN_FINISHED"}`)
}

// invalid is what is no array of events.
func (g *callGenerator) invalid() *string {
	deep := `[{"type":"CUSTOM","value":` + strings.Repeat("[", 1001) + strings.Repeat("]", 1001) + `}]`
	return oneOf(g, nil, &deep, new(`null`), new(`{}`), new(`"text"`), new(`5`), new(`[]`), new(`[ ]`), new(`[1]`), new(`[null]`), new(`[{}]`), new(`[{"type":null}]`),
		new(`[{"type":1}]`), new(`[{"type":"CUSTOM"},null]`), new(`[{"type":"CUSTOM"},{"name":"type"}]`), new(`{"type":"CUSTOM"}`), new(`[{"\u0000type":"CUSTOM"}]`))
}

// next makes a call; accepted is to be told of it when it was.
func (g *callGenerator) next() (call appendCall, accepted func(seq int64)) {
	thread, scope := oneOf(g, "a", "b", "c", "d"), oneOf(g, "", "", "s")
	call.scope = &scope
	if scope == "" && g.chance(50) {
		call.scope = nil
	}
	if g.chance(20) {
		call.parallel = new(g.chance(70))
	}
	accepted = func(int64) {}

	var mine []*writtenRun
	for _, run := range g.runs {
		if run.thread == thread && run.scope == scope {
			mine = append(mine, run)
		}
	}
	if len(mine) == 0 || g.chance(12) {
		run := &writtenRun{thread: thread, run: fmt.Sprintf("r%d", g.IntN(40)), scope: scope}
		begin := fmt.Sprintf(oneOf(g, `{"type":"RUN_STARTED","runId":%q}`, `{"type":"RUN_STARTED","runId":%q}`, `{"type": "RUN_STARTED","runId":%q}`, `{"type":"RUN\u005fSTARTED","runId":%q}`), run.run)
		if g.chance(10) {
			begin = oneOf(g, `{"type":"RUN_STARTED","runId":"another"}`, `{"type":"RUN_STARTED","runId":"an\u006fther"}`)
		} else if g.chance(40) {
			parent := "unknown"
			if len(mine) > 0 && g.chance(80) {
				parent = oneOf(g, mine...).run
			}
			begin = fmt.Sprintf(`{"type":"RUN_STARTED","runId":%q,"parentRunId":%q}`, run.run, parent)
		}
		if g.chance(10) {
			begin = strings.Replace(begin, `"runId"`, `"threadId":"z","runId"`, 1)
		}
		events := []string{begin}
		for range g.IntN(3) {
			events = append(events, g.event())
		}
		if g.chance(10) {
			events = append(events, g.ending())
		}
		if g.chance(15) { // as some agents begin
			events = events[1:]
		}
		if g.chance(15) || len(events) == 0 {
			events = append(events, begin)
		}
		if g.chance(15) {
			run.input = new(fmt.Sprintf(`{"messages": [{"role":"user","id":"u%d"}]}`, g.IntN(3)))
		}
		if g.chance(5) {
			run.input = oneOf(g, new(`[]`), new(`null`), new(`{"deep":`+strings.Repeat("[", 1001)+strings.Repeat("]", 1001)+`}`))
		}
		if g.chance(20) {
			run.parent = oneOf(g, new(""), new("unknown"), new(""))
			if len(mine) > 0 {
				run.parent = oneOf(g, run.parent, &oneOf(g, mine...).run)
			}
		}
		call.after = oneOf(g, nil, new(int64(0)), new(int64(0)), new(int64(0)), new(int64(7)))
		call.input, call.parent = run.input, run.parent
		return g.given(call, run, events, func(seq int64) {
			run.known, run.sent = seq, []sentCall{{0, events}}
			g.runs = append(g.runs, run)
		})
	}

	// Most events are of runs in progress, which are the youngest.
	run := mine[len(mine)-1]
	if g.chance(20) {
		run = oneOf(g, mine...)
	}
	if g.chance(10) {
		call.thread, call.run = &thread, &run.run
		call.events = g.invalid()
		return call, accepted
	}
	if g.chance(8) {
		event := "[" + g.event() + "]"
		call.thread, call.run, call.events = oneOf(g, nil, new(""), new("unknown"), new(strings.Repeat("t", 1025))), oneOf(g, nil, new(""), new("unknown"), new(strings.Repeat("r", 1025))), &event
		return call, accepted
	}
	var events []string
	for range oneOf(g, 1, 1, 1, 2, 5) {
		events = append(events, g.event())
	}
	if g.chance(8) {
		events = append(events, g.ending())
	}
	if g.chance(10) { // as some agents go on
		events = append(events, oneOf(g, g.event(), g.ending(), `{"type":"RUN_STARTED"}`))
	}
	if g.chance(3) {
		events = slices.Insert(events, 0, oneOf(g, `{"type":"RUN_STARTED"}`, `{"type":"RUN_STARTED","threadId":"z"}`))
	}
	after := run.known
	if len(run.sent) > 0 && g.chance(25) {
		last := run.sent[len(run.sent)-1]
		after = last.after
		switch g.IntN(6) {
		case 0: // the whole call
			events = slices.Clone(last.events)
		case 1: // what was stored, and more
			events = slices.Concat(last.events, events)
		case 2: // a piece of it
			events = slices.Clone(last.events[:1+g.IntN(len(last.events))])
		case 3: // this one and the one before
			before := run.sent[max(0, len(run.sent)-2)]
			after, events = before.after, slices.Concat(before.events, last.events, events)
		case 4: // something else
			events = slices.Concat(events, last.events)
		case 5:
			after = run.known + int64(g.IntN(4)) - 1
		}
	}
	if g.chance(70) {
		call.after = &after
	}
	if after == 0 && g.chance(90) {
		call.input = run.input
	} else if g.chance(2) {
		call.input = new(`{}`)
	}
	if g.chance(5) {
		call.parent = oneOf(g, run.parent, new(""), new("unknown"))
	}
	return g.given(call, run, events, func(seq int64) {
		run.known, run.sent = seq, append(run.sent, sentCall{after, events})
	})
}

func (g *callGenerator) given(call appendCall, run *writtenRun, events []string, accepted func(int64)) (appendCall, func(int64)) {
	array := "[" + strings.Join(events, oneOf(g, ",", ", ", ",\n")) + "]"
	call.thread, call.run, call.events = &run.thread, &run.run, &array
	return call, accepted
}

// storedLog is all that appending writes but the times.
func storedLog(t *testing.T, db querier) []string {
	t.Helper()
	return testdb.List[string](t, db, `
		select concat_ws(' ', 'thread', thread_key, scope, thread_id) from agui.thread
		union all
		select concat_ws(' ', 'input', thread_key, run_no, input) from agui.run_input
		union all
		select concat_ws(' ', 'run', thread_key, run_no, parent_no, parent_given, run_id, status, first_seq, last_seq, ended_at is null, cut_off_reason) from agui.run
		union all
		select concat_ws(' ', 'batch', thread_key, to_char(first_seq, '000000'), n, run_no, events) from agui.batch
		order by 1`)
}

// One call of agui.append_many does what its calls of agui.append do one after the other, and answers the same.
func TestAppendManyIsAppendManyTimes(t *testing.T) {
	t.Parallel()
	one := testdb.Acquire(t, testdb.Pool(t))
	many := testdb.Acquire(t, testdb.Pool(t))
	// The calls are such as say something: each of these is the answer of one.
	answered := map[string]int{}
	missing := func() string {
		for _, code := range []string{"", "UI002", "UI003", "UI004", "UI005", "UI006", "UI007", "UI008", "UI009", "UI011", "UI016", "UI017", "UI021"} {
			if answered[code] == 0 {
				return cmp.Or(code, "a seq")
			}
		}
		return ""
	}
	for seed := *firstSeed; seed < *firstSeed+uint64(streamsOfAKind(5)) || missing() != ""; seed++ {
		if seed == *firstSeed+1000 {
			t.Fatalf("no call was answered with %s: %v", missing(), answered)
		}
		for _, db := range []*pgxpool.Conn{one, many} {
			testdb.Exec(t, db, `select agui_internal.erase_thread(thread_key, null) from agui.thread; delete from agui.erasure`)
		}
		g := &callGenerator{Rand: rand.New(rand.NewPCG(seed, 1))}
		for range 20 {
			// Now and then a run counts as stale at once.
			lease := oneOf(g, "0 seconds", "", "", "", "", "", "", "")
			for _, db := range []*pgxpool.Conn{one, many} {
				testdb.Exec(t, db, `select agui.set_setting('lease', nullif($1, ''))`, lease)
			}
			// Or its writer is taken for gone.
			if len(g.runs) > 0 && g.chance(20) {
				gone := oneOf(g, g.runs...)
				for _, db := range []*pgxpool.Conn{one, many} {
					testdb.Exec(t, db, `select agui.abandon($1, $2, scope => $3)`, gone.thread, gone.run, gone.scope)
				}
			}
			strict := g.chance(20)
			var calls []appendCall
			var want []appendAnswer
			for range 1 + g.IntN(12) {
				call, accepted := g.next()
				answer := appendOne(t, one, call, strict)
				if answer.code == "" {
					accepted(answer.seq)
				}
				answered[answer.code]++
				calls, want = append(calls, call), append(want, answer)
			}
			got, err := appendMany(many, calls, fmt.Sprint(", strict => ", strict))
			if err != nil {
				t.Fatalf("-seed %d: %v", seed, err)
			}
			for i := range calls {
				if got[i] != want[i] {
					t.Fatalf("-seed %d: call %d of %d, %s, answered %s, want %s", seed, i+1, len(calls), pretty(calls[i]), got[i], want[i])
				}
			}
		}
		if got, want := storedLog(t, many), storedLog(t, one); !slices.Equal(got, want) {
			t.Fatalf("-seed %d: stored\n%s\nwant\n%s", seed, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

func pretty(call appendCall) string {
	text, err := json.Marshal([]any{call.thread, call.run, call.events, call.after, call.input, call.parent, call.scope, call.parallel})
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// What agui.append_many cannot take as a whole stores nothing.
func TestAppendManyRefusesAsAWhole(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	const begin = `array['[{"type":"RUN_STARTED"}]']::json[]`
	for arguments, want := range map[string]string{
		`array['t','t'], array['r'], ` + begin:                                "UI008",
		`array['t'], array['r','r'], ` + begin:                                "UI008",
		`array['t'], array['r'], null`:                                        "UI008",
		`null, array['r'], ` + begin:                                          "UI008",
		`array['t'], array['r'], ` + begin + `, after_seqs => '{}'`:           "UI008",
		`array['t'], array['r'], ` + begin + `, scopes => array['s','s']`:     "UI008",
		`array['t'], array['r'], ` + begin + `, parallel => array[true,true]`: "UI008",
		`array_fill('t'::text, '{1001}'), array_fill('r'::text, '{1001}'), array_fill('[{"type":"RUN_STARTED"}]'::json, '{1001}')`: "UI011",
		// Each of them below the limit, not both.
		`array['t','u'], array['r','r'], array_fill(('[{"type":"RUN_STARTED","x":"' || repeat('x', 33 * 1024 * 1024) || '"}]')::json, '{2}')`: "UI011",
	} {
		_, err := pool.Exec(context.Background(), `select agui.append_many(`+arguments+`)`)
		if testdb.State(err) != want {
			t.Errorf("%.200s: %v, want %s", arguments, err, want)
		}
	}
	if stored := storedLog(t, pool); len(stored) > 0 {
		t.Errorf("stored %s", stored)
	}
	if answers, err := appendMany(pool, nil, ""); err != nil || len(answers) > 0 {
		t.Errorf("no call at all: %v, error %v", answers, err)
	}
}

// The items of arrays belong together by their place, wherever an array begins to count.
func TestAppendManyTakesItemsByTheirPlace(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	for range 2 { // the second time as the next events of a run in progress
		testdb.Exec(t, pool, `
			select agui.append_many(
				'[0:1]={t,t}', '[5:6]={r,r}', array['[{"type":"RUN_STARTED"}]', '[{"type":"RUN_STARTED"}]']::json[], scopes => '[0:1]={one,two}'),
				agui.append_many('{{t},{t}}', '{r,r}', array['[{"type":"CUSTOM"}]', '[{"type":"TOKEN"}]']::json[], scopes => '[0:1]={one,two}')`)
	}
	logs := testdb.Ask[string](t, pool, `
		select string_agg(concat_ws(' ', scope, thread_id, run_id, seq, type), ', ' order by scope, seq) from agui.event`)
	const want = "one t r 1 RUN_STARTED, one t r 2 CUSTOM, one t r 3 CUSTOM, two t r 1 RUN_STARTED, two t r 2 TOKEN, two t r 3 TOKEN"
	if logs != want {
		t.Errorf("stored %s, want %s", logs, want)
	}
}

func tokens(run string, from, n int) string {
	events := make([]string, n)
	for i := range events {
		events[i] = fmt.Sprintf(`{"type":"CUSTOM","name":%q,"value":%d}`, run, from+i)
	}
	return "[" + strings.Join(events, ",") + "]"
}

// Writers of the same threads, each in an order of its own, half of them without waiting for locks: no writer blocks another one for good,
// and all that each of them wrote is in the log once, in its order.
func TestManyWritersOfManyThreads(t *testing.T) {
	t.Parallel()
	const writers, threads, rounds = 8, 6, 30
	pool := testdb.Pool(t)
	var begin []appendCall
	for thread := range threads {
		begin = append(begin, appendCall{thread: new(fmt.Sprint("t", thread)), run: new("root"), events: new(`[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]`)})
	}
	must.Have(appendMany(pool, begin, ""))(t)
	sent := make([][threads]int, writers)
	var waitGroup sync.WaitGroup
	for writer := range writers {
		waitGroup.Go(func() {
			random := rand.New(rand.NewPCG(*firstSeed, uint64(writer)))
			run := fmt.Sprint("w", writer)
			var known [threads]int64
			for range rounds {
				var calls []appendCall
				order := random.Perm(threads)[:1+random.IntN(threads)]
				for _, thread := range order {
					call := appendCall{thread: new(fmt.Sprint("t", thread)), run: &run, after: new(known[thread])}
					n := 1 + random.IntN(3)
					call.events = new(tokens(run, sent[writer][thread], n))
					if known[thread] == 0 {
						call.events, n = new(`[{"type":"RUN_STARTED","parentRunId":"root"}]`), 0
						call.parallel = new(true)
					}
					sent[writer][thread] += n
					calls = append(calls, call)
				}
				// Until every call is answered with its seq, and then a second time, as if the answer had been lost.
				for pending, again := calls, 2; len(pending) > 0; {
					answers, err := appendMany(pool, pending, fmt.Sprint(", wait => ", writer%2 == 0))
					if err != nil {
						t.Errorf("%s: %v", run, err)
						return
					}
					var left []appendCall
					for i, answer := range answers {
						switch {
						case answer.code == "55P03" && writer%2 == 1:
							left = append(left, pending[i])
						case answer.code != "":
							t.Errorf("%s: %s answered %s", run, pretty(pending[i]), answer)
							return
						default:
							var thread int
							fmt.Sscanf(*pending[i].thread, "t%d", &thread)
							known[thread] = answer.seq
						}
					}
					if pending = left; len(pending) == 0 && again > 0 {
						if again--; again > 0 && random.IntN(3) == 0 {
							pending = calls
						}
					}
				}
			}
		})
	}
	waitGroup.Wait()
	if t.Failed() {
		return
	}
	for thread := range threads {
		id := fmt.Sprint("t", thread)
		rows := must.Have(pool.Query(context.Background(), `select seq, run_id, (payload ->> 'value')::int from agui.event where thread_id = $1 order by seq`, id))(t)
		var seq, last int64
		var run string
		var value *int
		next := map[string]int{}
		if _, err := pgx.ForEachRow(rows, []any{&seq, &run, &value}, func() error {
			if last++; seq != last {
				return fmt.Errorf("seq %d follows %d", seq, last-1)
			}
			if value != nil {
				if *value != next[run] {
					return fmt.Errorf("event %d of run %s follows %d of them", *value, run, next[run])
				}
				next[run]++
			}
			return nil
		}); err != nil {
			t.Errorf("thread %s: %v", id, err)
		}
		for writer := range writers {
			if run := fmt.Sprint("w", writer); next[run] != sent[writer][thread] {
				t.Errorf("thread %s has %d events of run %s, want %d", id, next[run], run, sent[writer][thread])
			}
		}
		wantNoProblem(t, pool, id)
	}
}

func wantNoProblem(t *testing.T, db querier, thread string) {
	t.Helper()
	problems := testdb.List[string](t, db, `select problem from agui.verify($1)`, thread)
	for _, problem := range problems {
		t.Errorf("verify thread %s: %s", thread, problem)
	}
}

func begin(t *testing.T, pool *pgxpool.Pool, level pgx.TxIsoLevel) pgx.Tx {
	t.Helper()
	tx := must.Have(pool.BeginTx(context.Background(), pgx.TxOptions{IsoLevel: level}))(t)
	t.Cleanup(func() { tx.Rollback(context.Background()) })
	return tx
}

// Without waiting, only the calls to the threads that another transaction writes to are left undone.
func TestAppendManyNeedNotWait(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool := testdb.Pool(t)
	call := func(thread, events string) appendCall {
		return appendCall{thread: &thread, run: new("r"), events: &events}
	}
	must.Have(appendMany(pool, []appendCall{call("a", `[{"type":"RUN_STARTED"}]`), call("b", `[{"type":"RUN_STARTED"}]`)}, ""))(t)
	other := begin(t, pool, pgx.ReadCommitted)
	testdb.Exec(t, other, `select agui.append('a', 'r', '[{"type":"CUSTOM"}]')`)
	calls := []appendCall{
		call("b", `[{"type":"CUSTOM"}]`), call("a", `[{"type":"CUSTOM"}]`), call("c", `[{"type":"RUN_STARTED"}]`),
		call("a", `[{"type":"RUN_FINISHED"}]`), call("b", `[{"type":"RUN_FINISHED"}]`), call("b", `[{"type":"CUSTOM"}]`),
	}
	busy := appendAnswer{0, "55P03", `run "r" of thread "a": another transaction holds the lock of the thread`}
	want := []appendAnswer{{seq: 2}, busy, {seq: 1}, busy, {seq: 3},
		{0, "UI005", `run "r" of thread "b" is already finished: the log accepts no more events of it`}}
	got, err := appendMany(pool, calls, ", wait => false")
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("answered %v, error %v, want %v", got, err, want)
	}
	must.Do(t, other.Commit(ctx))
	if got, err := appendMany(pool, calls[1:2], ", wait => false"); err != nil || got[0].seq != 3 {
		t.Errorf("when the other had committed: %v, error %v, want seq 3", got, err)
	}
}

// Whoever works with an old snapshot is refused as a whole, and never given a seq that another has.
func TestAppendManyWithAnOldSnapshot(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool := testdb.Pool(t)
	for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
		call := func(thread, events string) appendCall {
			return appendCall{thread: new(thread + string(level)), run: new("r"), events: &events}
		}
		mustAppendMany := func(db querier, calls ...appendCall) []appendAnswer {
			t.Helper()
			answers := must.Have(appendMany(db, calls, ""))(t)
			for _, answer := range answers {
				if answer.code != "" {
					t.Fatal(answer)
				}
			}
			return answers
		}
		mustAppendMany(pool, call("a", `[{"type":"RUN_STARTED"}]`), call("b", `[{"type":"RUN_STARTED"}]`))
		for _, since := range []struct {
			what string
			call appendCall
		}{
			{"an event", call("b", `[{"type":"CUSTOM"}]`)},
			{"another thread", call("c", `[{"type":"RUN_STARTED"}]`)},
			{"the end of the run", call("b", `[{"type":"RUN_FINISHED"}]`)},
		} {
			tx := begin(t, pool, level)
			testdb.Exec(t, tx, `select count(*) from agui.batch`)
			mustAppendMany(pool, since.call)
			mine := call("b", `[{"type":"CUSTOM"}]`)
			if since.what == "another thread" {
				mine = call("c", `[{"type":"RUN_STARTED"}]`)
			}
			answers, err := appendMany(tx, []appendCall{call("a", `[{"type":"CUSTOM"}]`), mine}, "")
			if testdb.State(err) != "40001" {
				t.Errorf("%s, %s since: answered %v, error %v, want 40001", level, since.what, answers, err)
			}
			tx.Rollback(ctx)
		}
		tx := begin(t, pool, level)
		answers := mustAppendMany(tx, call("a", `[{"type":"CUSTOM"}]`), call("c", `[{"type":"CUSTOM"}]`))
		if err := tx.Commit(ctx); err != nil || answers[0].seq != 2 || answers[1].seq != 2 {
			t.Errorf("%s: answered %v, error %v, want seq 2 twice", level, answers, err)
		}
		for _, thread := range []string{"a", "b", "c"} {
			wantNoProblem(t, pool, thread+string(level))
		}
	}
}

// Only the transaction of the call does not wait for the disk.
func TestAppendManyNeedNotBeDurable(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	conn := testdb.Acquire(t, testdb.Pool(t))
	commits := func(db testdb.Querier) string {
		t.Helper()
		return testdb.Ask[string](t, db, `select current_setting('synchronous_commit')`)
	}
	for _, durable := range []bool{false, true} {
		tx := testdb.Begin(t, conn)
		defer tx.Rollback(ctx)
		// One of the calls is refused, which rolls back a part of what the function did.
		if _, err := appendMany(tx, []appendCall{
			{thread: new("t"), run: new(fmt.Sprint(durable)), events: new(`[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]`)},
			{thread: new("t"), run: new("unknown"), events: new(`[{"type":"CUSTOM"}]`)},
		}, fmt.Sprint(", durable => ", durable)); err != nil {
			t.Fatal(err)
		}
		if got, want := commits(tx), map[bool]string{false: "off", true: "on"}[durable]; got != want {
			t.Errorf("durable => %t: the transaction commits with synchronous_commit %s, want %s", durable, got, want)
		}
		must.Do(t, tx.Commit(ctx))
		if got := commits(conn); got != "on" {
			t.Errorf("durable => %t: the next transaction commits with synchronous_commit %s, want on", durable, got)
		}
	}
}
