package jobs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
	"github.com/pgagui/pgagui/jobs"
)

func settle(t *testing.T, pool *pgxpool.Pool, thread string) (isDone bool) {
	t.Helper()
	isDone = must.Have(pgagui.New(pool, nil).Settle(t.Context(), thread))(t)
	return isDone
}

// appendText appends a whole run with a text of so many KB.
func appendText(ctx context.Context, pool *pgxpool.Pool, thread, run string, kilobytes int) error {
	events := []json.RawMessage{json.RawMessage(`{"type":"RUN_STARTED"}`)}
	for range kilobytes {
		events = append(events, json.RawMessage(`{"type":"TEXT_MESSAGE_CHUNK","messageId":"`+run+`","delta":"`+strings.Repeat("text of 16 bytes", 64)+`"}`))
	}
	_, err := pgagui.New(pool, nil).Append(ctx, pgagui.RunRef{ThreadID: thread, RunID: run}, append(events, json.RawMessage(`{"type":"RUN_FINISHED"}`)), pgagui.AppendOptions{})
	return err
}

const toCompact = `select count(*) from agui.run where log_bytes is null`

// Settle does what the job would do, once that is worth a step, and holds up no writer.
func TestSettle(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	if !settle(t, pool, "unknown") {
		t.Error("a thread that does not exist has something left to settle")
	}
	for _, run := range []string{"1", "2"} {
		must.Do(t, appendText(t.Context(), pool, "t", run, 10))
	}
	if !settle(t, pool, "t") || count(t, pool, toCompact) != 2 {
		t.Error("20 KB are settled at once")
	}
	must.Do(t, appendText(t.Context(), pool, "t", "3", 40))

	other := must.Have(pool.Begin(t.Context()))(t)
	defer func() { _ = other.Rollback(context.WithoutCancel(t.Context())) }()
	if isDone, err := pgagui.New(other, nil).Settle(t.Context(), "t"); err != nil || !isDone {
		t.Errorf("settle: %t, %v", isDone, err)
	}
	if settle(t, pool, "t") {
		t.Error("settle says that all is done while another transaction holds the thread")
	}
	if err := appendText(t.Context(), pool, "t", "4", 1); err != nil {
		t.Errorf("an append beside it: %v", err)
	}
	must.Do(t, other.Commit(t.Context()))
	if n := count(t, pool, toCompact); n != 1 {
		t.Errorf("%d runs are left, want the one that was appended meanwhile", n)
	}
	if n := count(t, pool, `select count(*) from agui.snapshot`); n != 1 {
		t.Errorf("%d snapshots, want 1", n)
	}

	// A run that is too long for one call is settled by several.
	piece := `{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"` + strings.Repeat("text of 16 bytes", 80<<10) + `"}`
	for _, events := range []string{`[{"type":"RUN_STARTED"},` + piece + `]`, `[` + piece + `]`, `[` + piece + `,{"type":"RUN_FINISHED"}]`} {
		testdb.Exec(t, pool, `select agui.append('long', '1', $1)`, events)
	}
	calls := 0
	for ; count(t, pool, `select count(*) from agui.run join agui.thread using (thread_key) where thread_id = 'long' and log_bytes is null`) > 0; calls++ {
		testdb.Exec(t, pool, `select agui.settle('long', max_time => '0')`)
	}
	if calls < 3 {
		t.Errorf("a run of three pieces took %d calls of no time", calls)
	}

	if found, err := jobs.Verify(t.Context(), pool, jobs.VerifyOptions{}); err != nil || found.Problems > 0 {
		t.Errorf("verify: %+v, %v", found, err)
	}
}

// A run whose fold exceeds a limit is left to the job, which notes it. Then its thread costs settle no more attempts.
func TestSettleLeavesFailuresToTheJob(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	testdb.Exec(t, pool, `select agui.set_setting('fold_bytes', '65536')`)
	must.Do(t, appendText(t.Context(), pool, "t", "1", 100))
	_, err := pgagui.New(pool, nil).Settle(t.Context(), "t")
	if !errors.Is(err, pgagui.ErrFoldLimit) {
		t.Errorf("settle: %v, want ErrFoldLimit", err)
	}
	if n := count(t, pool, `select count(*) from agui_internal.job_note`) + count(t, pool, `select count(*) from agui.snapshot`); n != 0 {
		t.Errorf("a failure left %d rows", n)
	}
	if _, err := pool.Exec(t.Context(), `call agui.compact()`); err == nil {
		t.Error("the job does not say that the fold failed")
	}
	if !settle(t, pool, "t") {
		t.Error("a run in quarantine is tried by settle")
	}
}

// Writers, those that settle behind each run, and both jobs work at the same time.
func TestSettleBesideTheJobs(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	const threads, runs = 4, 12
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var writers, compacting sync.WaitGroup
	for _, compact := range []func() error{
		func() error { _, err := pool.Exec(ctx, `call agui.compact()`); return err },
		func() error { _, err := jobs.Compact(ctx, pool, jobs.CompactOptions{}); return err },
	} {
		compacting.Go(func() {
			for ctx.Err() == nil {
				if err := compact(); err != nil && ctx.Err() == nil {
					t.Errorf("compaction: %v", err)
					return
				}
			}
		})
	}
	for thread := range threads {
		writers.Go(func() {
			name := fmt.Sprint("t", thread)
			for run := range runs {
				if err := appendWithInput(t, pool, name, fmt.Sprint(run), turn(run+1)); err != nil {
					t.Error(err)
					return
				}
				if err := appendText(ctx, pool, name, fmt.Sprint("text ", run), 20); err != nil {
					t.Error(err)
					return
				}
				if _, err := pgagui.New(pool, nil).Settle(ctx, name); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	writers.Wait()
	cancel()
	compacting.Wait()
	// A call that was cancelled may hold the lock of the job a little longer. Then the next one does nothing.
	wait.For(t, "all runs to be compacted", func() bool {
		testdb.Exec(t, pool, `call agui.compact()`)
		return count(t, pool, toCompact) == 0
	})
	if found, err := jobs.Verify(t.Context(), pool, jobs.VerifyOptions{}); err != nil || found.Problems > 0 || found.Threads != threads {
		t.Errorf("verify: %+v, %v", found, err)
	}
	if n := count(t, pool, `select count(*) from agui_internal.job_note where code is not null`); n > 0 {
		t.Errorf("%d failures are noted", n)
	}
}

// inputOfHistory writes an input as a client does that sends its whole conversation, which it has changed since the last one.
func inputOfHistory(random *rand.Rand, history []string) (input []byte, changed []string) {
	message := func() string {
		word := []string{"word ", `\n`, `\u0000`, `\ud83d`, `\ud83d\ude00`, `\"`, "é", "😀", "[", `\\`}[random.IntN(10)]
		id := fmt.Sprintf("m%d", random.IntN(1000))
		return fmt.Sprintf(`{"id":"%s","role":"user","content":"%s"}`, id, strings.Repeat(word, 300+random.IntN(1000)))
	}
	changed = slices.Clone(history)
	for range 1 + random.IntN(3) {
		changed = append(changed, message())
	}
	switch random.IntN(16) {
	case 0: // a window
		changed = changed[random.IntN(len(changed)):]
	case 1: // an edit
		changed[random.IntN(len(changed))] = message()
	case 2: // a repeated one
		changed = append(changed, changed[0])
	}
	comma := []string{",", ",", ",", ",", ",", ",", ", ", ",\n"}[random.IntN(8)]
	list := []string{`"messages":[`, `"messages": [`}[random.IntN(2)] + strings.Join(changed, comma) + "]"
	members := []string{`"threadId":"t"`, fmt.Sprintf(`"runId":"%d"`, random.IntN(1e9)), list, fmt.Sprintf(`"state":{"step":%d}`, random.IntN(100))}
	if random.IntN(6) == 0 {
		members = append(members, `"forwardedProps":{"messages":[]}`)
	}
	if random.IntN(6) == 0 { // a copy of the history, or of a part of it
		members = append(members, `"context":{`+strings.Replace(list, strings.Join(changed, comma), strings.Join(changed[:random.IntN(len(changed)+1)], comma), 1)+`}`)
	}
	if random.IntN(2) == 0 {
		random.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	}
	return []byte("{" + strings.Join(members, comma) + "}"), changed
}

// An input that begins like an earlier one takes the bytes of the rest. It comes back byte for byte, and means what it means whole.
func TestInputsThatBeginLikeEarlierOnes(t *testing.T) {
	t.Parallel()
	for name, compact := range compactors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, whole := testdb.Pool(t), testdb.Pool(t) // whole is never settled
			seed := *firstSeed
			random := rand.New(rand.NewPCG(seed, 1))
			restored := func(pool *pgxpool.Pool) (text string) {
				t.Helper()
				if err := pool.QueryRow(t.Context(), `
					select string_agg(restored::text, e'\n' order by thread_id, run_no)
					from agui.run join agui.thread using (thread_key), agui.restore(thread_id, run_id) as restored`).Scan(&text); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				return text
			}
			type given struct{ thread, run string }
			inputs := map[given][]byte{}
			shared := 0
			for thread := range 2 {
				var history []string
				for run := range 12 {
					at := given{fmt.Sprint("t", thread), fmt.Sprint(run)}
					inputs[at], history = inputOfHistory(random, history)
					for _, pool := range []*pgxpool.Pool{pool, whole} {
						if err := appendWithInput(t, pool, at.thread, at.run, inputs[at]); err != nil {
							t.Fatalf("seed %d: %v", seed, err)
						}
					}
					if text, inParts, _ := inputOf(t, pool, at.thread, at.run); text != string(inputs[at]) {
						t.Errorf("seed %d: %v: the input\n%s\ncame back as\n%s", seed, at, inputs[at], text)
					} else if inParts {
						shared++
					}
					if random.IntN(3) > 0 {
						settle(t, pool, at.thread)
					}
				}
			}
			t.Logf("%d of %d inputs referred to parts before they were split", shared, len(inputs))
			if shared < len(inputs)/6 {
				t.Errorf("seed %d: only %d of %d inputs referred to parts", seed, shared, len(inputs))
			}
			if n := count(t, pool, `select count(*) from agui.run_input where sections @> '[{"kind":"beginning"}]' and split_at is null`); n == 0 {
				t.Errorf("seed %d: no input waits to be split", seed)
			}
			want := restored(whole)
			for _, when := range []string{"settled", "compacted", "compacted without snapshots"} {
				if restored(pool) != want {
					t.Errorf("seed %d: %s, the inputs mean something else", seed, when)
				}
				if found, err := jobs.Verify(t.Context(), pool, jobs.VerifyOptions{}); err != nil || found.Problems > 0 {
					t.Errorf("seed %d: %s: verify: %+v, %v", seed, when, found, err)
				}
				for at, input := range inputs {
					if text, _, _ := inputOf(t, pool, at.thread, at.run); text != string(input) {
						t.Errorf("seed %d: %s: %v: the input\n%s\ncame back as\n%s", seed, when, at, input, text)
					}
				}
				if when == "compacted" { // anew, from the parts
					testdb.Exec(t, pool, `delete from agui.snapshot; delete from agui.message_version; update agui.run set log_bytes = null`)
				}
				compact(t, pool)
			}
			if n := count(t, pool, `select count(*) from agui.run_input where split_at is null or sections @> '[{"kind":"beginning"}]'`); n > 0 {
				t.Errorf("seed %d: %d inputs are not split", seed, n)
			}
		})
	}
}
