package pgagui_test

// What a Recorder does about calls that fail for good, about outages, and about runs that were cut off.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
	"github.com/pgagui/pgagui/sql/schema"
)

// A run that was cut off is not the end of what its agent said: the caller has it, and appends it as a run that goes on from there.
func TestWhatACutOffRunCouldNotStoreIsAppendedAsARunOfItsOwn(t *testing.T) {
	bothWays(t, whatACutOffRunCouldNotStoreIsAppendedAsARunOfItsOwn)
}

func whatACutOffRunCouldNotStoreIsAppendedAsARunOfItsOwn(t *testing.T, address string) {
	store := pgagui.New(testdb.Connect(t, address), nil)
	for _, hasEnd := range []bool{true, false} {
		thread := fmt.Sprint("end ", hasEnd)
		recorder := newRecorder(t, store, &pgagui.RecorderConfig{CheckEvery: time.Hour, Logger: quiet})
		recording := mustBegin(t, recorder, pgagui.RunRef{ThreadID: thread, RunID: "r"}, pgagui.BeginOptions{})
		const stepBegins, messageBegins = `{"type":"STEP_STARTED","stepName":"write"}`, `{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}`
		mustRecord(t, recording, started("r"), stepBegins, messageBegins, token(1))
		mustFlush(t, recording)
		mustAbandon(t, store, pgagui.RunRef{ThreadID: thread, RunID: "r"}, pgagui.AbandonOptions{Reason: "we thought it gone"})
		mustAppend(t, store, thread, "other", rawEvents(started("other"))) // goes on from it, and is in progress
		rest := []string{token(2), token(3), `{"type":"TEXT_MESSAGE_END","messageId":"m"}`, `{"type":"STEP_FINISHED","stepName":"write"}`, finished}
		if !hasEnd {
			rest = rest[:2]
		}
		mustRecord(t, recording, rest...)
		if _, err := recording.AppendUnstored(t.Context(), "rest"); err == nil || !strings.Contains(err.Error(), "still open") {
			t.Errorf("while it is open: %v", err)
		}
		if err := recording.Close(t.Context()); !errors.Is(err, pgagui.ErrRunCutOff) {
			t.Fatalf("close: %v", err)
		}
		if got := joinLines(recording.Unstored()); got != strings.Join(rest, "\n") {
			t.Errorf("not stored: %s", got)
		}
		if _, err := recording.AppendUnstored(t.Context(), "r"); !errors.Is(err, pgagui.ErrRunCutOff) {
			t.Errorf("as the run itself: %v", err)
		}
		if len(recording.Unstored()) != len(rest) {
			t.Error("they are gone after a failure")
		}
		seq := must.Have(recording.AppendUnstored(t.Context(), "rest"))(t)
		want := append([]string{
			fmt.Sprintf(`{"type":"RUN_STARTED","threadId":%q,"runId":"rest","parentRunId":"r"}`, thread),
			`{"type":"CUSTOM","name":"pgagui.continues","value":{"afterSeq":4,"runId":"r"}}`,
			stepBegins, messageBegins,
		}, rest...)
		if !hasEnd {
			want = append(want, `{"type":"TEXT_MESSAGE_END","messageId":"m"}`, `{"type":"STEP_FINISHED","stepName":"write"}`,
				`{"type":"RUN_ERROR","message":"The run was cut off: run \"r\", whose events it has, was cut off","code":"RUN_CUT_OFF"}`)
		}
		if got := strings.Join(payloads(t, store, thread, "rest"), "\n"); got != strings.Join(want, "\n") {
			t.Errorf("the log has\n%s\nwant\n%s", got, strings.Join(want, "\n"))
		}
		status, err := store.Status(t.Context(), pgagui.RunRef{ThreadID: thread, RunID: "rest"})
		if err != nil || status.ParentRunID != "r" || status.LastSeq != seq || status.Status == pgagui.Running {
			t.Errorf("status %+v, last seq %d, error %v", status, seq, err)
		}
		restored := must.Have(store.Restore(t.Context(), thread, pgagui.At{RunID: "rest"}))(t)
		if got := joinLines(restored.Messages); strings.Count(got, "\n") != 0 || !strings.Contains(got, "token 1 token 2 token 3") {
			t.Errorf("the messages are %s", got)
		}
		if seq, err := recording.AppendUnstored(t.Context(), "rest"); seq != 0 || err != nil || recording.Unstored() != nil {
			t.Errorf("once more: seq %d, error %v", seq, err)
		}
		mustVerify(t, store, thread)
	}
}

// Of a call that was under way when the run was cut off, its answer decides what is stored.
func TestUnstoredHasNothingThatIsStored(t *testing.T) {
	t.Parallel()
	direct, pool := newStore(t)
	database := &lateAnswers{Pool: pool}
	recorder := newRecorder(t, pgagui.New(database, nil), &pgagui.RecorderConfig{CheckEvery: 10 * time.Millisecond, Logger: quiet})
	recording := mustBegin(t, recorder, pgagui.RunRef{ThreadID: "t", RunID: "r"}, pgagui.BeginOptions{})
	mustRecord(t, recording, started("r"))
	mustFlush(t, recording)
	answer := make(chan struct{})
	database.release = answer
	mustRecord(t, recording, token(1))
	wait.For(t, "it is stored", func() bool { return len(payloads(t, direct, "t", "r")) == 2 })
	mustRecord(t, recording, token(2))
	must.Have(direct.Abandon(t.Context(), pgagui.RunRef{ThreadID: "t", RunID: "r"}, pgagui.AbandonOptions{Reason: "we thought it gone"}))(t)
	<-recording.Context().Done()
	closed := make(chan error)
	go func() { closed <- recording.Close(t.Context()) }()
	select {
	case err := <-closed:
		t.Errorf("it is closed before the answer: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(answer)
	if err := <-closed; !errors.Is(err, pgagui.ErrRunCutOff) {
		t.Error(err)
	}
	if got := joinLines(recording.Unstored()); got != token(2) {
		t.Errorf("not stored: %s", got)
	}
}

// The server is away for longer than the lease. When it is back, those that would cut runs off come first.
func TestRecordingsOutlastAnOutageLongerThanTheLease(t *testing.T) {
	t.Parallel()
	server := testdb.Server(t, nil)
	address := server.URL("postgres")
	must.Do(t, schema.Up(t.Context(), address))
	set(t, address, []string{"lease = 10min", "heartbeat_lease = 10min"})
	pool := testdb.Connect(t, address)
	store := pgagui.New(pool, &pgagui.Config{Logger: quiet})
	recorder := newRecorder(t, store, &pgagui.RecorderConfig{CheckEvery: 100 * time.Millisecond, Logger: quiet})
	aging := must.Have(pgx.Connect(t.Context(), address))(t)
	defer aging.Close(context.Background())
	const runs, tokens = 20, 40
	recordings := make([]*pgagui.Recording, runs)
	for i := range recordings {
		recordings[i] = mustBegin(t, recorder, pgagui.RunRef{ThreadID: fmt.Sprint("t", i), RunID: "r"}, pgagui.BeginOptions{})
		mustRecord(t, recordings[i], started("r"))
		mustFlush(t, recordings[i])
	}
	// The outage begins an hour ago.
	for _, statement := range []string{
		`set session_replication_role = replica`, // the log is guarded
		`update agui.run set seen_at = seen_at - interval '1 hour' where has_heartbeat`,
		`update agui.batch set recorded_at = recorded_at - interval '1 hour'`,
	} {
		testdb.Exec(t, aging, statement)
	}
	must.Do(t, server.Kill())
	for n := range tokens {
		for _, recording := range recordings {
			mustRecord(t, recording, token(n))
		}
	}
	must.Do(t, server.Restart(t.Context()))
	first := must.Have(pgx.Connect(t.Context(), address))(t)
	defer first.Close(context.Background())
	for i := range recordings {
		if _, err := pgagui.New(first, nil).Append(t.Context(), pgagui.RunRef{ThreadID: fmt.Sprint("t", i), RunID: "next"}, rawEvents(started("next")), pgagui.AppendOptions{}); !errors.Is(err, pgagui.ErrRunInProgress) {
			t.Errorf("the next run of thread %d: %v", i, err)
		}
	}
	testdb.Exec(t, first, `call agui.reap()`)
	for i, recording := range recordings {
		mustRecord(t, recording, finished)
		if err := recording.Close(t.Context()); err != nil {
			t.Errorf("run %d: %v", i, err)
		}
		if got := payloads(t, store, fmt.Sprint("t", i), "r"); len(got) != tokens+2 {
			t.Errorf("run %d has %d events, want %d", i, len(got), tokens+2)
		}
	}
}

// A recorder that is gone, as one whose process was killed, keeps its threads for heartbeat_lease; a run that it has detached has the lease.
func TestTheThreadsOfARecorderThatIsGoneAreFreeSoon(t *testing.T) {
	t.Parallel()
	proxy, through, beside := newNetwork(t, "heartbeat_lease = 1s")
	recorder := newRecorder(t, through, &pgagui.RecorderConfig{CheckEvery: 20 * time.Millisecond, CallTimeout: givesUpSoon, Logger: quiet})
	var recordings []*pgagui.Recording
	for _, thread := range []string{"gone", "detached"} {
		recording := mustBegin(t, recorder, pgagui.RunRef{ThreadID: thread, RunID: "r"}, pgagui.BeginOptions{})
		mustRecord(t, recording, started("r"))
		mustFlush(t, recording)
		recordings = append(recordings, recording)
	}
	wait.For(t, "a heartbeat", func() bool {
		status, err := beside.Status(t.Context(), pgagui.RunRef{ThreadID: "detached"})
		return err == nil && status.HasHeartbeat
	})
	must.Do(t, recordings[1].Detach(t.Context()))
	if _, err := beside.Append(t.Context(), pgagui.RunRef{ThreadID: "gone", RunID: "next"}, rawEvents(started("next")), pgagui.AppendOptions{}); !errors.Is(err, pgagui.ErrRunInProgress) {
		t.Errorf("while it is recorded: %v", err)
	}
	proxy.Refuse(true)
	proxy.CutNow()
	mustRecord(t, recordings[0], token(1))
	wait.For(t, "the next run begins", func() bool {
		_, err := beside.Append(t.Context(), pgagui.RunRef{ThreadID: "gone", RunID: "next"}, rawEvents(started("next")), pgagui.AppendOptions{})
		return err == nil
	})
	status, err := beside.Status(t.Context(), pgagui.RunRef{ThreadID: "detached"})
	if err != nil || status.Stale {
		t.Errorf("the run that was detached: %+v, %v", status, err)
	}
	proxy.Refuse(false)
	if err := recordings[0].Close(t.Context()); !errors.Is(err, pgagui.ErrRunCutOff) {
		t.Errorf("close: %v", err)
	}
	if got := joinLines(recordings[0].Unstored()); got != token(1) {
		t.Errorf("not stored: %s", got)
	}
}

// failing is a database whose calls of a function fail.
type failing struct {
	*pgxpool.Pool
	mu    sync.Mutex
	calls int
	fail  func(call int) error
}

func (f *failing) Query(ctx context.Context, sql string, arguments ...any) (pgx.Rows, error) {
	if strings.Contains(sql, "agui.append_many") {
		f.mu.Lock()
		f.calls++
		err := f.fail(f.calls)
		f.mu.Unlock()
		if err != nil {
			return nil, err
		}
	}
	return f.Pool.Query(ctx, sql, arguments...)
}

func TestWhatCannotSucceedIsNotRepeatedForEver(t *testing.T) {
	t.Parallel()
	state := func(code string) error { return &pgconn.PgError{Code: code, Message: "no luck"} }
	for _, test := range []struct {
		name    string
		failure error
		atMost  int // calls; 0: it is repeated until it succeeds
	}{
		{"an argument that does not encode", errorOfQuery(t, "select $1::int", "one"), 10},
		{"a connection in use", errorOfBusyConnection(t), 10},
		{"an ended transaction", pgx.ErrTxClosed, 1},
		{"a failed transaction", state("25P02"), 1},
		{"statement_timeout", state("57014"), 10},
		{"out of memory", state("53200"), 10},
		{"a limit of the server", state("54000"), 1},
		{"no privilege", state("42501"), 1},
		{"an unknown error", errors.New("strange"), 10},
		{"a lost connection", fmt.Errorf("read: %w", context.DeadlineExceeded), 0},
		{"a server that stops", state("57P01"), 0},
		{"a full disk", state("53100"), 0},
		{"a deadlock", state("40P01"), 0},
		{"a standby", state("25006"), 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			database := &failing{Pool: testdb.Pool(t)}
			const longOutage = 12
			database.fail = func(call int) error {
				if test.atMost == 0 && call > longOutage {
					return nil
				}
				return test.failure
			}
			recorder := newRecorder(t, pgagui.New(database, nil), &pgagui.RecorderConfig{Logger: quiet})
			recording := mustBegin(t, recorder, pgagui.RunRef{ThreadID: "t", RunID: "r"}, pgagui.BeginOptions{})
			mustRecord(t, recording, started("r"), finished)
			err := recording.Close(t.Context())
			switch {
			case test.atMost == 0:
				if err != nil || database.calls <= longOutage {
					t.Errorf("%d calls, error %v", database.calls, err)
				}
			case !errors.Is(err, test.failure):
				t.Errorf("it ended with %v", err)
			case database.calls > test.atMost:
				t.Errorf("%d calls", database.calls)
			case len(recording.Unstored()) != 2:
				t.Errorf("%d events are left", len(recording.Unstored()))
			}
		})
	}
}

func errorOfQuery(t *testing.T, sql string, argument any) error {
	t.Helper()
	_, err := testdb.Pool(t).Exec(t.Context(), sql, argument)
	if err == nil {
		t.Fatalf("%s took %v", sql, argument)
	}
	return err
}

func errorOfBusyConnection(t *testing.T) error {
	t.Helper()
	conn := must.Have(testdb.Pool(t).Acquire(t.Context()))(t)
	defer conn.Release()
	rows, err := conn.Query(t.Context(), "select 1")
	must.Do(t, err)
	defer rows.Close()
	if _, err = conn.Exec(t.Context(), "select 1"); err == nil {
		t.Fatal("a connection made two calls at once")
	}
	return err
}

// A call that takes too long, by the server's clock or by ours, is that of one run. Its neighbours go on.
func TestACallThatIsTooSlowDoesNotHoldUpItsNeighbours(t *testing.T) {
	t.Parallel()
	for name, setting := range map[string]string{"by statement_timeout": "1s", "by CallTimeout": "0"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := testdb.New(t)
			beside := testdb.Connect(t, address)
			testdb.Exec(t, beside, `
				create function slow() returns trigger language plpgsql as $$
				begin
					if new.events::text like '%"slow"%' then perform pg_sleep(600); end if;
					return new;
				end $$`)
			testdb.Exec(t, beside, `create trigger slow before insert on agui.batch for each row execute function slow()`)
			pool := testdb.ConnectWith(t, address, func(config *pgxpool.Config) { config.ConnConfig.RuntimeParams["statement_timeout"] = setting })
			store := pgagui.New(pool, nil)
			recorder := newRecorder(t, store, &pgagui.RecorderConfig{
				Linger: 50 * time.Millisecond, CallTimeout: 2 * time.Second, CheckEvery: 20 * time.Millisecond, Logger: quiet,
			})
			var recordings []*pgagui.Recording
			for n := range 20 {
				recording := mustBegin(t, recorder, pgagui.RunRef{ThreadID: fmt.Sprint("t", n), RunID: "r"}, pgagui.BeginOptions{})
				mustRecord(t, recording, started("r"))
				mustFlush(t, recording)
				recordings = append(recordings, recording)
			}
			const slow = `{"type":"CUSTOM","name":"slow"}`
			mustRecord(t, recordings[0], slow)
			for _, recording := range recordings[1:] { // in the same call
				mustRecord(t, recording, token(1))
			}
			for _, recording := range recordings[1:] {
				mustFlush(t, recording)
			}
			if recordings[0].Context().Err() != nil {
				t.Error("the neighbours waited until the slow one had failed")
			}
			for _, recording := range recordings[1:] {
				mustRecord(t, recording, finished)
			}
			for _, recording := range recordings[1:] {
				must.Report(t, recording.Close(t.Context()))
			}
			<-recordings[0].Context().Done()
			err := recordings[0].Close(t.Context())
			if err == nil || !strings.Contains(err.Error(), "its events were tried 3 times") {
				t.Errorf("the slow one: %v", err)
			}
			if got := joinLines(recordings[0].Unstored()); got != slow {
				t.Errorf("not stored: %s", got)
			}
		})
	}
}

// countedAppends counts the calls of agui.append_many.
type countedAppends struct {
	*pgxpool.Pool
	calls atomic.Int64
}

func (c *countedAppends) Query(ctx context.Context, sql string, arguments ...any) (pgx.Rows, error) {
	if strings.Contains(sql, "append_many") {
		c.calls.Add(1)
	}
	return c.Pool.Query(ctx, sql, arguments...)
}

// A thread that is locked for longer than a call may take is waited for: that is not the call's fault.
func TestALockThatLastsIsNoFailure(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	database := &countedAppends{Pool: pool}
	recorder := newRecorder(t, pgagui.New(database, nil), &pgagui.RecorderConfig{CallTimeout: time.Second, CheckEvery: 10 * time.Millisecond, Logger: quiet})
	recording := mustBegin(t, recorder, pgagui.RunRef{ThreadID: "t", RunID: "r"}, pgagui.BeginOptions{})
	mustRecord(t, recording, started("r"))
	mustFlush(t, recording)
	unlock := lockThread(t, pool, "t")
	before := database.calls.Load()
	mustRecord(t, recording, token(1))
	wait.For(t, "several calls run out of time", func() bool { return database.calls.Load() > before+4 })
	unlock()
	mustRecord(t, recording, finished)
	must.Report(t, recording.Close(t.Context()))
}

// The obvious way is the safe one: deferred, Close often has a context that has ended.
func TestCloseStoresAllAlthoughItsContextHasEnded(t *testing.T) {
	bothWays(t, closeStoresAllAlthoughItsContextHasEnded)
}

func closeStoresAllAlthoughItsContextHasEnded(t *testing.T, address string) {
	store := pgagui.New(testdb.Connect(t, address), nil)
	const runs, tokens = 20, 10
	for _, what := range []string{"recorder", "recordings"} {
		func() {
			ctx, cancel := context.WithCancel(t.Context())
			recorder := store.NewRecorder(&pgagui.RecorderConfig{Linger: time.Hour})
			defer func() {
				must.Report(t, recorder.Close(ctx))
			}()
			for n := range runs {
				recording := mustBegin(t, recorder, pgagui.RunRef{ThreadID: fmt.Sprint(what, n), RunID: "r"}, pgagui.BeginOptions{})
				if what == "recordings" {
					defer func() {
						must.Report(t, recording.Close(ctx))
					}()
				}
				mustRecord(t, recording, started("r"))
				for n := range tokens {
					mustRecord(t, recording, token(n))
				}
			}
			cancel()
		}()
		for n := range runs {
			thread := fmt.Sprint(what, n)
			if got := payloads(t, store, thread, "r"); len(got) != tokens+2 {
				t.Errorf("thread %s has %d events, want %d and the end", thread, len(got), tokens+1)
			}
		}
	}
}

func TestARefusedRecordingIsReportedOnce(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	mustAppend(t, store, "busy", "other", rawEvents(started("other")))
	for _, test := range []struct {
		how  string
		use  func(*pgagui.Recording)
		want bool // by Recorder.Close
	}{
		{"no method has returned it", func(*pgagui.Recording) {}, true},
		{"Flush has said it", func(recording *pgagui.Recording) { recording.Flush(t.Context()) }, false},
		{"Record has said it", func(recording *pgagui.Recording) { recording.Record(t.Context(), rawEvents(token(1))...) }, false},
		{"Close has said it", func(recording *pgagui.Recording) { recording.Close(t.Context()) }, false},
	} {
		var log bytes.Buffer
		recorder := store.NewRecorder(&pgagui.RecorderConfig{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		recording := mustBegin(t, recorder, pgagui.RunRef{ThreadID: "busy", RunID: "r"}, pgagui.BeginOptions{})
		mustRecord(t, recording, started("r"))
		<-recording.Context().Done()
		test.use(recording)
		if err := recorder.Close(t.Context()); errors.Is(err, pgagui.ErrRunInProgress) != test.want || err != nil && !test.want {
			t.Errorf("%s: the recorder says %v", test.how, err)
		}
		if n := strings.Count(log.String(), "a recording ended early"); n != 1 || !strings.Contains(log.String(), "thread=busy run=r unstored=1") {
			t.Errorf("%s: %d lines in the log:\n%s", test.how, n, &log)
		}
		if recorder.Stats().Failed != 1 {
			t.Errorf("%s: %+v", test.how, recorder.Stats())
		}
	}
}

func TestARecorderAndAFollowerNeedAPool(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	mustAppend(t, store, "t", "r", rawEvents(started("r")))
	tx := testdb.Begin(t, pool)
	defer tx.Rollback(context.Background())
	conn := testdb.Acquire(t, pool)
	for name, store := range map[string]*pgagui.Store{
		"WithTx": store.WithTx(tx), "a transaction": pgagui.New(tx, nil), "a connection": pgagui.New(conn.Conn(), nil),
		"a connection of a pool": pgagui.New(conn, nil), "a connection in a type of the caller": pgagui.New(struct{ *pgx.Conn }{conn.Conn()}, nil),
	} {
		recorder := store.NewRecorder(&pgagui.RecorderConfig{Logger: quiet})
		run := pgagui.RunRef{ThreadID: "t", RunID: "s"}
		if _, err := recorder.Begin(t.Context(), run, pgagui.BeginOptions{}); !errors.Is(err, pgagui.ErrNeedsPool) {
			t.Errorf("%s: begin: %v", name, err)
		}
		if err := recorder.Close(t.Context()); err != nil {
			t.Errorf("%s: close: %v", name, err)
		}
		for _, err := range store.Follow(t.Context(), "t", pgagui.FollowOptions{}) {
			if !errors.Is(err, pgagui.ErrNeedsPool) {
				t.Errorf("%s: follow: %v", name, err)
			}
		}
		store.Wake("t")
	}
}

// unreachable is a database that cannot be reached.
type unreachable struct{ cause error }

func (u *unreachable) Exec(context.Context, string, ...any) (pgconn.CommandTag, error) {
	return pgconn.CommandTag{}, u.cause
}
func (u *unreachable) Query(context.Context, string, ...any) (pgx.Rows, error) { return nil, u.cause }
func (u *unreachable) QueryRow(context.Context, string, ...any) pgx.Row        { return nil }
func (u *unreachable) SendBatch(context.Context, *pgx.Batch) pgx.BatchResults  { return nil }

func TestAnOutageIsSaidEveryMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		database := &unreachable{&pgconn.PgError{Severity: "FATAL", Code: "57P03", Message: "the database system is starting up"}}
		recorder := pgagui.New(database, nil).NewRecorder(&pgagui.RecorderConfig{
			CloseTimeout: time.Second, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		recording := mustBegin(t, recorder, pgagui.RunRef{ThreadID: "t", RunID: "r"}, pgagui.BeginOptions{})
		mustRecord(t, recording, started("r"), token(1))
		begin := time.Now()
		time.Sleep(5*time.Minute + 30*time.Second)
		synctest.Wait()
		stats := recorder.Stats()
		if stats.RetryingSince.Sub(begin) > time.Second || stats.RetryingSince.IsZero() || !strings.Contains(stats.RetryCause, "starting up") || stats.Buffered != 2 {
			t.Errorf("%+v", stats)
		}
		if n := strings.Count(log.String(), "still retries a call"); n != 5 {
			t.Errorf("it is said %d times:\n%s", n, &log)
		}
		if !strings.Contains(log.String(), "level=ERROR") || !strings.Contains(log.String(), "for=5m") || !strings.Contains(log.String(), "starting up") {
			t.Errorf("the log: %s", &log)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := recorder.Close(ended); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("close: %v", err)
		}
		if stats := recorder.Stats(); !stats.RetryingSince.IsZero() {
			t.Errorf("after Close: %+v", stats)
		}
		if len(recording.Unstored()) != 2 {
			t.Errorf("not stored: %s", recording.Unstored())
		}
	})
}

func TestAnErrorWithoutADatabaseCauseHasNone(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	recorder := newRecorder(t, store, &pgagui.RecorderConfig{Logger: quiet})
	_, ofAppend := store.Append(t.Context(), pgagui.RunRef{ThreadID: "t", RunID: "r"}, rawEvents(token(1)), pgagui.AppendOptions{})
	recording := mustBegin(t, recorder, pgagui.RunRef{ThreadID: "t", RunID: "r"}, pgagui.BeginOptions{})
	var ofFollow error
	for _, err := range store.Follow(t.Context(), "nowhere", pgagui.FollowOptions{}) {
		ofFollow = err
	}
	_, ofBegin := recorder.Begin(t.Context(), pgagui.RunRef{ThreadID: "t", RunID: "r"}, pgagui.BeginOptions{Input: json.RawMessage(`no`)})
	for name, test := range map[string]struct {
		err      error
		hasCause bool
	}{
		"Append": {ofAppend, true},
		"Record": {recording.Record(t.Context(), json.RawMessage(`no`)), false},
		"Begin":  {ofBegin, false},
		"Follow": {ofFollow, false},
		"none":   {&pgagui.Error{}, false},
	} {
		var cause *pgconn.PgError
		if found := errors.As(test.err, &cause); found != test.hasCause || found && cause.Code == "" {
			t.Errorf("%s: %v: found %t, %v", name, test.err, found, cause)
		}
	}
}

// A run whose end cannot be stored yet is not left without heartbeats.
func TestARunWhoseEndWaitsToBeStoredIsKeptAlive(t *testing.T) {
	t.Parallel()
	address := testdb.New(t)
	set(t, address, []string{"heartbeat_lease = 600ms"})
	pool := testdb.Connect(t, address)
	store := pgagui.New(pool, nil)
	recorder := newRecorder(t, store, &pgagui.RecorderConfig{CheckEvery: 20 * time.Millisecond, Logger: quiet})
	recording := mustBegin(t, recorder, pgagui.RunRef{ThreadID: "t", RunID: "r"}, pgagui.BeginOptions{})
	mustRecord(t, recording, started("r"))
	mustFlush(t, recording)
	unlock := lockThread(t, pool, "t")
	aliveAt := func() time.Time {
		t.Helper()
		status := must.Have(store.Status(t.Context(), pgagui.RunRef{ThreadID: "t", RunID: "r"}))(t)
		return status.AliveAt
	}
	began := aliveAt()
	mustRecord(t, recording, finished)
	wait.For(t, "heartbeats for several leases", func() bool { return aliveAt().Sub(began) > 2*time.Second })
	unlock()
	must.Report(t, recording.Close(t.Context()))
}

// slowForLarge is a database that takes its time for calls with large events.
type slowForLarge struct {
	*pgxpool.Pool
	release chan struct{}
}

func (s *slowForLarge) Query(ctx context.Context, sql string, arguments ...any) (pgx.Rows, error) {
	for _, argument := range arguments {
		if texts, isText := argument.([]string); isText && len(strings.Join(texts, "")) > 1<<20 {
			<-s.release
		}
	}
	return s.Pool.Query(ctx, sql, arguments...)
}

func TestALargeEventDoesNotHoldUpItsNeighbours(t *testing.T) {
	t.Parallel()
	database := &slowForLarge{testdb.Pool(t), make(chan struct{})}
	recorder := newRecorder(t, pgagui.New(database, nil), &pgagui.RecorderConfig{Linger: 50 * time.Millisecond, Logger: quiet})
	large := mustBegin(t, recorder, pgagui.RunRef{ThreadID: "large", RunID: "r"}, pgagui.BeginOptions{})
	small := mustBegin(t, recorder, pgagui.RunRef{ThreadID: "small", RunID: "r"}, pgagui.BeginOptions{})
	for _, recording := range []*pgagui.Recording{large, small} {
		mustRecord(t, recording, started("r"))
		mustFlush(t, recording)
	}
	mustRecord(t, large, fmt.Sprintf(`{"type":"CUSTOM","value":%q}`, strings.Repeat("x", 2<<20)), token(1))
	mustRecord(t, small, token(1))
	mustFlush(t, small)
	if large.Seq() != 1 {
		t.Errorf("the large event is stored: seq %d", large.Seq())
	}
	close(database.release)
	for _, recording := range []*pgagui.Recording{large, small} {
		mustRecord(t, recording, finished)
		must.Report(t, recording.Close(t.Context()))
	}
	if large.Seq() != 4 || small.Seq() != 3 {
		t.Errorf("seqs %d and %d", large.Seq(), small.Seq())
	}
}
