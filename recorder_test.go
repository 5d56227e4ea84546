package pgagui_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
)

func newRecorder(t testing.TB, store *pgagui.Store, config *pgagui.RecorderConfig) *pgagui.Recorder {
	t.Helper()
	recorder := store.NewRecorder(config)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := recorder.Close(ctx); err != nil && !t.Failed() {
			t.Error("close the recorder:", err)
		}
	})
	return recorder
}

func mustRecord(t testing.TB, recording *pgagui.Recording, raw ...string) {
	t.Helper()
	must.Do(t, recording.Record(t.Context(), rawEvents(raw...)...))
}

func mustFlush(t testing.TB, recording *pgagui.Recording) {
	t.Helper()
	must.Do(t, recording.Flush(t.Context()))
}

// lockThread is a transaction that writes to a thread, until it is unlocked.
func lockThread(t testing.TB, pool *pgxpool.Pool, threadID string) (unlock func()) {
	t.Helper()
	tx := testdb.Begin(t, pool)
	testdb.Exec(t, tx, `select pg_advisory_xact_lock(agui_internal.thread_lock_id(agui.thread_key('', $1)))`, threadID)
	unlock = sync.OnceFunc(func() { tx.Rollback(context.Background()) })
	t.Cleanup(unlock)
	return unlock
}

func TestRunsThatAreRecordedAtOnceShareCommits(t *testing.T) {
	bothWays(t, runsThatAreRecordedAtOnceShareCommits)
}

func runsThatAreRecordedAtOnceShareCommits(t *testing.T, address string) {
	store := pgagui.New(testdb.Connect(t, address), nil)
	recorder := newRecorder(t, store, &pgagui.RecorderConfig{Linger: 10 * time.Millisecond})
	const runs, tokens = 100, 40
	var group errgroup.Group
	for n := range runs {
		group.Go(func() error {
			recording := mustBegin(t, recorder, pgagui.RunRef{ThreadID: fmt.Sprint("t", n), RunID: "r"}, pgagui.BeginOptions{})
			if err := recording.Record(t.Context(), rawEvents(started("r"))...); err != nil {
				return err
			}
			for i := range tokens {
				if err := recording.Record(t.Context(), rawEvents(token(i))...); err != nil {
					return err
				}
				if i%10 == 0 {
					if err := recording.Flush(t.Context()); err != nil {
						return err
					}
				}
			}
			if err := recording.Record(t.Context(), rawEvents(finished)...); err != nil {
				return err
			}
			return recording.Close(t.Context())
		})
	}
	must.Do(t, group.Wait())
	for n := range runs {
		got := payloads(t, store, fmt.Sprint("t", n), "r")
		if len(got) != tokens+2 {
			t.Fatalf("thread %d has %d events", n, len(got))
		}
		for i := range tokens {
			if got[i+1] != token(i) {
				t.Fatalf("thread %d: event %d is %s", n, i+1, got[i+1])
			}
		}
	}
	stats := recorder.Stats()
	if stats.Events != runs*(tokens+2) || stats.Commits >= stats.Batches {
		t.Errorf("%+v: %d events were recorded", stats, runs*(tokens+2))
	}
	mustVerify(t, store, "t0")
}

// Without Linger an event is sent at once, and what arrives during the call shares the next one.
func TestWhatArrivesDuringACallSharesTheNextOne(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	answer := make(chan struct{})
	database := &lateAnswers{Pool: pool, release: answer}
	recorder := newRecorder(t, pgagui.New(database, nil), nil)
	direct := pgagui.New(pool, nil)
	recordings := map[string]*pgagui.Recording{}
	for n := range 5 {
		thread := fmt.Sprint("t", n)
		recordings[thread] = mustBegin(t, recorder, pgagui.RunRef{ThreadID: thread, RunID: "r"}, pgagui.BeginOptions{})
	}
	mustRecord(t, recordings["t0"], started("r"))
	for { // no Flush, and no other event: it is sent by itself
		if status, err := direct.Status(t.Context(), pgagui.RunRef{ThreadID: "t0", RunID: "r"}); err == nil && status.LastSeq == 1 {
			break
		} else if err != nil && !errors.Is(err, pgagui.ErrUnknownThread) {
			t.Fatal(err)
		}
	}
	mustRecord(t, recordings["t0"], token(1))
	for thread, recording := range recordings {
		if thread != "t0" {
			mustRecord(t, recording, started("r"))
		}
		mustRecord(t, recording, token(2))
		mustRecord(t, recording, token(3))
	}
	close(answer)
	for _, recording := range recordings {
		mustFlush(t, recording)
	}
	if stats := recorder.Stats(); stats.Commits != 2 || stats.Batches != 6 || stats.Events != 1+3+4*3 {
		t.Errorf("%+v, want two calls: the second one has a batch of each run", stats)
	}
}

func TestFlushMeansThatAllIsStored(t *testing.T) { bothWays(t, flushMeansThatAllIsStored) }

func flushMeansThatAllIsStored(t *testing.T, address string) {
	store := pgagui.New(testdb.Connect(t, address), nil)
	recorder := newRecorder(t, store, &pgagui.RecorderConfig{Linger: time.Hour}) // so only Flush has it sent
	recording := mustBegin(t, recorder, pgagui.RunRef{ThreadID: "t", RunID: "r"}, pgagui.BeginOptions{})
	mustRecord(t, recording, started("r"), token(1))
	mustFlush(t, recording)
	if got := payloads(t, store, "t", "r"); len(got) != 2 || recording.Seq() != 2 {
		t.Errorf("the log has %d events, seq is %d", len(got), recording.Seq())
	}
	mustFlush(t, recording) // nothing to do
	for n := range 1000 {
		mustRecord(t, recording, token(n))
	}
	mustRecord(t, recording, finished)
	must.Do(t, recording.Close(t.Context()))
	if got := payloads(t, store, "t", "r"); len(got) != 1003 {
		t.Errorf("the log has %d events", len(got))
	}
	if err := recording.Record(t.Context(), rawEvents(token(1))...); !errors.Is(err, pgagui.ErrClosed) {
		t.Errorf("record after close: %v", err)
	}
	if err := recording.Close(t.Context()); err != nil {
		t.Errorf("close again: %v", err)
	}
}

func TestARunThatIsClosedBeforeItsEndIsEnded(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	recorder := newRecorder(t, store, nil)
	recording := mustBegin(t, recorder, pgagui.RunRef{ThreadID: "t", RunID: "r"}, pgagui.BeginOptions{})
	mustRecord(t, recording, started("r"), `{"type":"TEXT_MESSAGE_START","messageId":"m"}`, token(1))
	must.Do(t, recording.Close(t.Context()))
	got := payloads(t, store, "t", "r")
	if len(got) != 5 || got[3] != `{"type":"TEXT_MESSAGE_END","messageId":"m"}` || !strings.Contains(got[4], "its recording was closed") {
		t.Errorf("the log has %s", strings.Join(got, "\n"))
	}
	if recording.Context().Err() == nil {
		t.Error("its context has not ended")
	}

	// One that was never begun leaves nothing.
	must.Report(t, mustBegin(t, recorder, pgagui.RunRef{ThreadID: "nothing", RunID: "r"}, pgagui.BeginOptions{}).Close(t.Context()))
	if _, err := store.Head(t.Context(), "nothing"); !errors.Is(err, pgagui.ErrUnknownThread) {
		t.Error(err)
	}
}

func TestARunIsHandedOverToAnotherRecorder(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	first := mustBegin(t, newRecorder(t, store, nil), pgagui.RunRef{ThreadID: "t", RunID: "r"}, pgagui.BeginOptions{})
	mustRecord(t, first, started("r"), token(1))
	must.Do(t, first.Detach(t.Context()))
	status, err := store.Status(t.Context(), pgagui.RunRef{ThreadID: "t"})
	if err != nil || status.Status != pgagui.Running || status.LastSeq != 2 {
		t.Fatalf("%+v, %v", status, err)
	}
	second := mustBegin(t, newRecorder(t, store, nil), pgagui.RunRef{ThreadID: "t", RunID: "r"}, pgagui.BeginOptions{AfterSeq: status.LastSeq})
	mustRecord(t, second, token(2), finished)
	must.Do(t, second.Close(t.Context()))
	if got := payloads(t, store, "t", "r"); len(got) != 4 {
		t.Errorf("the log has %d events", len(got))
	}
}

func TestWhatIsRefusedEndsOnlyItsOwnRecording(t *testing.T) {
	bothWays(t, whatIsRefusedEndsOnlyItsOwnRecording)
}

func whatIsRefusedEndsOnlyItsOwnRecording(t *testing.T, address string) {
	store := pgagui.New(testdb.Connect(t, address), nil)
	recorder := newRecorder(t, store, &pgagui.RecorderConfig{Linger: 50 * time.Millisecond})
	mustAppend(t, store, "busy", "other", rawEvents(started("other")))
	deep := `{"type":"CUSTOM","value":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}`
	cases := []struct {
		thread string
		events []string
		want   error
	}{
		{"busy", []string{started("r")}, pgagui.ErrRunInProgress},
		{"unknown", []string{startedFrom("r", "unknown")}, pgagui.ErrUnknownParent},
		{"named otherwise", []string{started("x")}, pgagui.ErrRunIDInUse},
		{"no type", []string{started("r"), `{"no":"type"}`}, pgagui.ErrInvalidEvents},
		{"too deep", []string{started("r"), deep}, pgagui.ErrLimitExceeded},
		{"nul in the id\x00", []string{started("r")}, pgagui.ErrInvalidEvents},
		{"good", []string{started("r"), token(1)}, nil},
		{"good too", []string{started("r"), token(1)}, nil},
	}
	recordings := make([]*pgagui.Recording, len(cases))
	for i, test := range cases { // all of them in one call
		recordings[i] = mustBegin(t, recorder, pgagui.RunRef{ThreadID: test.thread, RunID: "r"}, pgagui.BeginOptions{})
		mustRecord(t, recordings[i], test.events...)
	}
	for i, test := range cases {
		recording := recordings[i]
		if err := recording.Flush(t.Context()); !errors.Is(err, test.want) {
			t.Errorf("%s: flush: %v, want %v", test.thread, err, test.want)
		}
		if test.want == nil {
			if recording.Seq() != 2 || recording.Context().Err() != nil {
				t.Errorf("%s: seq %d, %v", test.thread, recording.Seq(), recording.Context().Err())
			}
			mustRecord(t, recording, finished)
		} else {
			if err := recording.Record(t.Context(), rawEvents(token(2))...); !errors.Is(err, test.want) {
				t.Errorf("%s: record: %v, want %v", test.thread, err, test.want)
			}
			if cause := context.Cause(recording.Context()); !errors.Is(cause, test.want) {
				t.Errorf("%s: its context ended by %v", test.thread, cause)
			}
		}
		if err := recording.Close(t.Context()); !errors.Is(err, test.want) {
			t.Errorf("%s: close: %v, want %v", test.thread, err, test.want)
		}
	}
	if got := payloads(t, store, "busy", ""); len(got) != 1 {
		t.Errorf("the run of another writer has %d events", len(got))
	}
}

func TestRecordRefusesWhatIsNoEventAtOnce(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	recording := mustBegin(t, newRecorder(t, store, nil), pgagui.RunRef{ThreadID: "t", RunID: "r"}, pgagui.BeginOptions{})
	mustRecord(t, recording, started("r"))
	for _, bad := range []string{``, `{`, `{"type":"A"} {}`, `[]`, `"text"`, "{\"type\":\"\xff\"}", "{\"type\":\"A\x00\"}"} {
		if err := recording.Record(t.Context(), rawEvents(token(1), bad)...); !errors.Is(err, pgagui.ErrInvalidEvents) || !strings.Contains(err.Error(), "event 2 of those to record") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	mustRecord(t, recording, "\n {\"type\":\"CUSTOM\", \"value\":\"\\u0000\\ud800\"} ", finished)
	must.Do(t, recording.Close(t.Context()))
	if got := payloads(t, store, "t", "r"); len(got) != 3 || got[1] != `{"type":"CUSTOM", "value":"\u0000\ud800"}` {
		t.Errorf("the log has %s", got)
	}
}

// A thread that another transaction writes to keeps only its own run waiting.
func TestAThreadThatIsLockedKeepsNoOtherRunWaiting(t *testing.T) {
	bothWays(t, aThreadThatIsLockedKeepsNoOtherRunWaiting)
}

func aThreadThatIsLockedKeepsNoOtherRunWaiting(t *testing.T, address string) {
	pool := testdb.Connect(t, address)
	store := pgagui.New(pool, nil)
	recorder := newRecorder(t, store, nil)
	locked := mustBegin(t, recorder, pgagui.RunRef{ThreadID: "locked", RunID: "r"}, pgagui.BeginOptions{})
	free := mustBegin(t, recorder, pgagui.RunRef{ThreadID: "free", RunID: "r"}, pgagui.BeginOptions{})
	mustRecord(t, locked, started("r"))
	mustFlush(t, locked)
	unlock := lockThread(t, pool, "locked")
	mustRecord(t, locked, token(1))
	mustRecord(t, free, started("r"))
	mustFlush(t, free)
	for n := range 3 {
		mustRecord(t, locked, token(n+2))
		mustRecord(t, free, token(n))
		mustFlush(t, free)
	}
	if locked.Seq() != 1 {
		t.Errorf("the run of the locked thread is at seq %d", locked.Seq())
	}
	unlock()
	mustRecord(t, locked, finished)
	mustFlush(t, locked)
	if got := payloads(t, store, "locked", "r"); len(got) != 6 || got[1] != token(1) || got[4] != token(4) {
		t.Errorf("the log has %s", got)
	}
}

// What comes while a call is under way, and while the run waits for its thread's lock, is sent once and by one.
func TestALockedThreadGetsEveryEventOnce(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	recorder := newRecorder(t, store, &pgagui.RecorderConfig{Linger: time.Microsecond, MaxBatchEvents: 3})
	recording := mustBegin(t, recorder, pgagui.RunRef{ThreadID: "t", RunID: "r"}, pgagui.BeginOptions{})
	mustRecord(t, recording, started("r"))
	mustFlush(t, recording)
	const times, tokens = 5, 300
	for n := range times {
		unlock := lockThread(t, pool, "t")
		for i := range tokens {
			mustRecord(t, recording, token(n*tokens+i))
			runtime.Gosched()
		}
		unlock()
		mustFlush(t, recording)
	}
	mustRecord(t, recording, finished)
	mustFlush(t, recording)
	got := payloads(t, store, "t", "r")
	if len(got) != times*tokens+2 {
		t.Fatalf("the log has %d events", len(got))
	}
	for i := range times * tokens {
		if got[i+1] != token(i) {
			t.Fatalf("event %d is %s", i+1, got[i+1])
		}
	}
}

// While the database does not take events, an agent is slowed down and memory stays bounded.
func TestBackPressure(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	recorder := newRecorder(t, store, &pgagui.RecorderConfig{MaxBufferBytes: 1000, CloseTimeout: 50 * time.Millisecond})
	recording := mustBegin(t, recorder, pgagui.RunRef{ThreadID: "t", RunID: "r"}, pgagui.BeginOptions{})
	mustRecord(t, recording, started("r"))
	mustFlush(t, recording)
	unlock := lockThread(t, pool, "t")
	taken := 0
	for ; ; taken++ {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		err := recording.Record(ctx, json.RawMessage(token(taken)))
		cancel()
		if err != nil {
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "the buffer takes no more") {
				t.Fatal(err)
			}
			break
		}
		if taken*len(token(0)) > 2000 {
			t.Fatal("it takes more than it may keep")
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := recording.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "are not stored") {
		t.Errorf("flush: %v", err)
	}
	if err := recording.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("close: %v", err)
	}
	unlock()
	mustFlush(t, recording)
	if recording.Seq() != int64(1+taken) {
		t.Errorf("seq %d, %d were taken", recording.Seq(), taken)
	}
	if err := recording.Close(t.Context()); err != nil { // the second time it can
		t.Error(err)
	}
}

func TestAStopRequestReachesTheRecorder(t *testing.T) { bothWays(t, aStopRequestReachesTheRecorder) }

func aStopRequestReachesTheRecorder(t *testing.T, address string) {
	store := pgagui.New(testdb.Connect(t, address), nil)
	recorder := newRecorder(t, store, &pgagui.RecorderConfig{CheckEvery: 10 * time.Millisecond})
	recording := mustBegin(t, recorder, pgagui.RunRef{ThreadID: "t", RunID: "r"}, pgagui.BeginOptions{})
	mustRecord(t, recording, started("r"))
	mustFlush(t, recording)
	if n, err := store.RequestStop(t.Context(), pgagui.RunRef{ThreadID: "t"}, pgagui.RequestStopOptions{Reason: "the user pressed stop"}); n != 1 || err != nil {
		t.Fatalf("%d runs, %v", n, err)
	}
	<-recording.Context().Done()
	if cause := context.Cause(recording.Context()); !errors.Is(cause, pgagui.ErrStopRequested) || !strings.HasSuffix(cause.Error(), "the user pressed stop") {
		t.Errorf("it ended by %v", cause)
	}
	// The agent has the last word.
	mustRecord(t, recording, `{"type":"RUN_ERROR","message":"stopped"}`)
	must.Do(t, recording.Close(t.Context()))
	status, err := store.Status(t.Context(), pgagui.RunRef{ThreadID: "t", RunID: "r"})
	if err != nil || status.Status != pgagui.Failed || status.StopReason != "the user pressed stop" || status.CutOffReason != "" {
		t.Errorf("%+v, %v", status, err)
	}
	if n, err := store.RequestStop(t.Context(), pgagui.RunRef{ThreadID: "t"}, pgagui.RequestStopOptions{}); n != 0 || err != nil {
		t.Errorf("a run that has ended: %d, %v", n, err)
	}
}

func TestAnIdleRunStaysAliveAndASilentOneIsCutOff(t *testing.T) {
	bothWays(t, anIdleRunStaysAliveAndASilentOneIsCutOff, "lease = 3s")
}

func anIdleRunStaysAliveAndASilentOneIsCutOff(t *testing.T, address string) {
	pool := testdb.Connect(t, address)
	store := pgagui.New(pool, nil)
	idle := mustBegin(t, newRecorder(t, store, &pgagui.RecorderConfig{CheckEvery: 10 * time.Millisecond}), pgagui.RunRef{ThreadID: "idle", RunID: "r"}, pgagui.BeginOptions{})
	silent := mustBegin(t, newRecorder(t, store, &pgagui.RecorderConfig{CheckEvery: time.Hour}), pgagui.RunRef{ThreadID: "silent", RunID: "r"}, pgagui.BeginOptions{})
	for _, recording := range []*pgagui.Recording{idle, silent} {
		mustRecord(t, recording, started("r"))
		mustFlush(t, recording)
	}
	// A pause of the whole machine does not count, so a run that was stale may be alive when the job looks at it.
	wait.For(t, "the silent run is cut off", func() bool {
		testdb.Exec(t, pool, `call agui.reap()`)
		status := must.Have(store.Status(t.Context(), pgagui.RunRef{ThreadID: "silent"}))(t)
		return status.Status == pgagui.CutOff
	})
	mustRecord(t, silent, token(1))
	if err := silent.Flush(t.Context()); !errors.Is(err, pgagui.ErrRunCutOff) {
		t.Errorf("the silent writer comes back late: %v", err)
	}
	if err := silent.Close(t.Context()); !errors.Is(err, pgagui.ErrRunCutOff) {
		t.Errorf("close: %v", err)
	}
	mustRecord(t, idle, finished)
	if err := idle.Close(t.Context()); err != nil {
		t.Errorf("the idle one: %v", err)
	}
}

// An empty reason is none. The run was cut off all the same, which is not what it is to have ended by itself.
func TestARunThatWasCutOffWithoutAReason(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	recording := mustBegin(t, newRecorder(t, store, &pgagui.RecorderConfig{CheckEvery: 10 * time.Millisecond}), pgagui.RunRef{ThreadID: "t", RunID: "r"}, pgagui.BeginOptions{})
	mustRecord(t, recording, started("r"))
	mustFlush(t, recording)
	testdb.Exec(t, pool, `select agui.request_stop('t', 'r', '')`)
	<-recording.Context().Done()
	if cause := context.Cause(recording.Context()); cause != pgagui.ErrStopRequested {
		t.Errorf("it ended by %v", cause)
	}
	mustAbandon(t, store, pgagui.RunRef{ThreadID: "t", RunID: "r"}, pgagui.AbandonOptions{Reason: ""})
	status, err := store.Status(t.Context(), pgagui.RunRef{ThreadID: "t", RunID: "r"})
	if err != nil || status.CutOffReason != "its writer is gone" || status.StopReason != "" {
		t.Errorf("status %+v, error %v", status, err)
	}
	for err == nil { // until the recorder has heard of it
		err = recording.Record(t.Context(), json.RawMessage(token(1)))
	}
	if err := recording.Close(t.Context()); !errors.Is(err, pgagui.ErrRunCutOff) {
		t.Errorf("it ended with %v, want %v", err, pgagui.ErrRunCutOff)
	}
	_, err = store.Append(t.Context(), pgagui.RunRef{ThreadID: "t", RunID: "r"}, rawEvents(token(1)), pgagui.AppendOptions{})
	if !errors.Is(err, pgagui.ErrRunCutOff) {
		t.Errorf("a late event: %v, want %v", err, pgagui.ErrRunCutOff)
	}
}

// lateAnswers is a database whose answers to appends come late.
type lateAnswers struct {
	*pgxpool.Pool
	release <-chan struct{} // nil: they are in time
}

func (l *lateAnswers) Query(ctx context.Context, sql string, arguments ...any) (pgx.Rows, error) {
	rows, err := l.Pool.Query(ctx, sql, arguments...)
	if strings.Contains(sql, "agui.append_many") && l.release != nil {
		<-l.release
	}
	return rows, err
}

func TestACutOffIsHeardBeforeTheAnswerToTheLastCall(t *testing.T) {
	t.Parallel()
	direct, pool := newStore(t)
	database := &lateAnswers{Pool: pool}
	recorder := newRecorder(t, pgagui.New(database, nil), &pgagui.RecorderConfig{CheckEvery: 10 * time.Millisecond})
	recording := mustBegin(t, recorder, pgagui.RunRef{ThreadID: "t", RunID: "r"}, pgagui.BeginOptions{})
	mustRecord(t, recording, started("r"))
	mustFlush(t, recording)

	answer := make(chan struct{})
	database.release = answer
	mustRecord(t, recording, token(1))
	for len(payloads(t, direct, "t", "r")) < 2 {
	}
	must.Have(direct.Abandon(t.Context(), pgagui.RunRef{ThreadID: "t", RunID: "r"}, pgagui.AbandonOptions{Reason: "we thought it gone"}))(t)
	<-recording.Context().Done()
	if cause := context.Cause(recording.Context()); !errors.Is(cause, pgagui.ErrRunCutOff) || !strings.Contains(cause.Error(), "we thought it gone") {
		t.Errorf("it ended by %v", cause)
	}
	close(answer)
	if err := recording.Close(t.Context()); !errors.Is(err, pgagui.ErrRunCutOff) {
		t.Error(err)
	}
	// The recorder goes on with others.
	next := mustBegin(t, recorder, pgagui.RunRef{ThreadID: "t", RunID: "next"}, pgagui.BeginOptions{})
	mustRecord(t, next, started("next"), finished)
	mustFlush(t, next)
}

func TestAClosedRecorderHasStoredAll(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	recorder := store.NewRecorder(nil)
	for n := range 20 {
		mustRecord(t, mustBegin(t, recorder, pgagui.RunRef{ThreadID: fmt.Sprint("t", n), RunID: "r"}, pgagui.BeginOptions{}), started("r"), token(n))
	}
	must.Do(t, recorder.Close(t.Context()))
	for n := range 20 {
		if got := payloads(t, store, fmt.Sprint("t", n), "r"); len(got) != 3 || got[1] != token(n) {
			t.Errorf("thread %d has %s", n, got)
		}
	}
	if _, err := recorder.Begin(t.Context(), pgagui.RunRef{ThreadID: "t", RunID: "late"}, pgagui.BeginOptions{}); !errors.Is(err, pgagui.ErrClosed) {
		t.Errorf("a recording that begins late: %v", err)
	}
	must.Report(t, recorder.Close(t.Context()))
}

func TestARunThatEndedIsSettledWithoutAJob(t *testing.T) {
	bothWays(t, aRunThatEndedIsSettledWithoutAJob)
}

func aRunThatEndedIsSettledWithoutAJob(t *testing.T, address string) {
	pool := testdb.Connect(t, address)
	recorder := newRecorder(t, pgagui.New(pool, nil), nil)
	const isSettled = `select log_bytes is not null from agui.run join agui.thread using (thread_key) where thread_id = $1`
	record := func(thread string) *pgagui.Recording {
		recording := mustBegin(t, recorder, pgagui.RunRef{ThreadID: thread, RunID: "r"}, pgagui.BeginOptions{})
		mustRecord(t, recording, started("r"))
		for range 100 {
			mustRecord(t, recording, fmt.Sprintf(`{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":%q}`, strings.Repeat("text of 16 bytes", 64)))
		}
		return recording
	}
	ended := record("ended")
	mustRecord(t, ended, finished)
	must.Do(t, ended.Close(t.Context()))
	wait.For(t, "the thread to be settled", func() bool { return testdb.Ask[bool](t, pool, isSettled, "ended") })

	// So is a run that the recorder ends because it is closed.
	record("open")
	must.Do(t, recorder.Close(t.Context()))
	if !testdb.Ask[bool](t, pool, isSettled, "open") {
		t.Error("a recorder that is closed leaves a thread to the job")
	}
}

func TestDurabilityIsTheRecorders(t *testing.T) { bothWays(t, durabilityIsTheRecorders) }

func durabilityIsTheRecorders(t *testing.T, address string) {
	pool := testdb.Connect(t, address)
	store := pgagui.New(pool, nil)
	// A trigger sees how the transaction will be committed.
	testdb.Exec(t, pool, `
		create table seen (setting text);
		create function see() returns trigger language plpgsql as $$
		begin insert into public.seen values (current_setting('synchronous_commit')); return null; end $$;
		create trigger see after insert on agui.batch for each statement execute function see()`)
	for durability, want := range map[pgagui.Durability]string{pgagui.Durable: "on", pgagui.Relaxed: "off"} {
		recording := mustBegin(t, newRecorder(t, store, &pgagui.RecorderConfig{Durability: durability}), pgagui.RunRef{ThreadID: fmt.Sprint("t", durability), RunID: "r"}, pgagui.BeginOptions{})
		testdb.Exec(t, pool, `truncate seen`)
		mustRecord(t, recording, started("r"))
		mustFlush(t, recording)
		mustRecord(t, recording, token(1))
		mustFlush(t, recording)
		var got string
		if err := pool.QueryRow(t.Context(), `select string_agg(distinct setting, ',') from seen`).Scan(&got); err != nil || got != want {
			t.Errorf("durability %d commits with synchronous_commit = %s (%v), want %s", durability, got, err, want)
		}
		mustRecord(t, recording, finished)
		mustFlush(t, recording) // before the other one begins
	}
}

// A call that runs while the schema is upgraded may find that a function has gone. A retry finds the new one.
func TestARecorderSurvivesAnUpgrade(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	for name, refusal := range map[string]struct{ code, message string }{
		"function": {"42883", "function agui_internal.gone() does not exist"},
		"type":     {"XX000", "cache lookup failed for type 16385"},
		"relation": {"XX000", "could not open relation with OID 16385"},
		"plan":     {"0A000", "cached plan must not change result type"},
	} {
		// A sequence keeps its count when the call is rolled back.
		testdb.Exec(t, pool, fmt.Sprintf(`
			create sequence public.calls_%[1]s;
			create function public.upgrade_%[1]s() returns trigger language plpgsql as $$
			begin
				if new.run_id = 'r-%[1]s' and nextval('public.calls_%[1]s') < 3 then
					raise exception using errcode = '%[2]s', message = '%[3]s';
				end if;
				return new;
			end $$;
			create trigger upgrade_%[1]s before insert on agui.run for each row execute function public.upgrade_%[1]s()`,
			name, refusal.code, refusal.message),
			pgx.QueryExecModeSimpleProtocol)
		run := pgagui.RunRef{ThreadID: "upgrade-" + name, RunID: "r-" + name}
		recording := mustBegin(t, newRecorder(t, store, nil), run, pgagui.BeginOptions{})
		mustRecord(t, recording, `{"type":"RUN_STARTED"}`, `{"type":"RUN_FINISHED"}`)
		mustFlush(t, recording)
		status, err := store.Status(t.Context(), run)
		if err != nil || status.Status != pgagui.Finished {
			t.Errorf("%s: %+v, %v", name, status, err)
		}
	}
}
