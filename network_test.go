package pgagui_test

// Recorder and Follow over a network that cuts connections, refuses them, or hangs.

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/cutproxy"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
)

var (
	quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

	// givesUpSoon is for tests in which the network hangs. A call that does not hang takes less, also on a busy machine and with a new
	// connection.
	givesUpSoon = 2 * time.Second
)

// newNetwork makes a database with settings, a proxy in front of it, a store through the proxy, and one beside it.
func newNetwork(t testing.TB, settings ...string) (proxy *cutproxy.Proxy, through, beside *pgagui.Store) {
	t.Helper()
	address := testdb.New(t)
	set(t, address, settings)
	proxy = cutproxy.Start(t, address)
	config := &pgagui.Config{Logger: quiet, CallTimeout: givesUpSoon}
	return proxy, pgagui.New(testdb.Connect(t, proxy.URL()), config), pgagui.New(testdb.Connect(t, address), config)
}

// agents stream runs, each in a thread of its own, until they shall end.
type agents struct {
	threads []string
	tokens  []int // of each, once they have ended
	end     chan struct{}
	group   errgroup.Group
}

// startAgents lets a number of agents stream to recorders, which they take in turn. Each waits now and then until all of its events are stored.
func startAgents(t testing.TB, n int, recorders ...*pgagui.Recorder) *agents {
	a := &agents{threads: make([]string, n), tokens: make([]int, n), end: make(chan struct{})}
	for i := range n {
		a.threads[i] = fmt.Sprint("t", i)
		recording := mustBegin(t, recorders[i%len(recorders)], pgagui.RunRef{ThreadID: a.threads[i], RunID: "r"}, pgagui.BeginOptions{})
		a.group.Go(func() error {
			if err := recording.Record(t.Context(), rawEvents(started("r"))...); err != nil {
				return err
			}
			for n := 0; ; n++ {
				select {
				case <-a.end:
					a.tokens[i] = n
					if err := recording.Record(t.Context(), rawEvents(finished)...); err != nil {
						return err
					}
					return recording.Close(t.Context())
				default:
				}
				if err := recording.Record(t.Context(), rawEvents(token(n))...); err != nil {
					return err
				}
				if n%(2+i%5) == 0 {
					if err := recording.Flush(t.Context()); err != nil {
						return err
					}
				}
			}
		})
	}
	return a
}

// stop lets the agents end their runs, and checks that the log has what they emitted.
func (a *agents) stop(t testing.TB, store *pgagui.Store) {
	t.Helper()
	close(a.end)
	must.Do(t, a.group.Wait())
	for i, thread := range a.threads {
		got := payloads(t, store, thread, "r")
		if len(got) != a.tokens[i]+2 {
			t.Fatalf("thread %s has %d events, its agent emitted %d", thread, len(got), a.tokens[i]+2)
		}
		for n := range a.tokens[i] {
			if got[n+1] != token(n) {
				t.Fatalf("thread %s: event %d is %s", thread, n+2, got[n+1])
			}
		}
	}
	mustVerify(t, store, a.threads[0])
}

func TestWhatIsCutBetweenCommitAndAnswerIsStoredOnce(t *testing.T) {
	t.Parallel()
	proxy, through, beside := newNetwork(t)
	recorder := newRecorder(t, through, &pgagui.RecorderConfig{Linger: time.Millisecond, Logger: quiet})
	agents := startAgents(t, 32, recorder)
	const times, cuts = 10, 3 // the call, and then its repeats
	for range times {
		proxy.CutBeforeAnswer(cuts, "AppendMany")
		wait.For(t, "the cuts are made", func() bool { return proxy.CutsLeft() == 0 })
		commits := recorder.Stats().Commits
		wait.For(t, "the recorder goes on", func() bool { return recorder.Stats().Commits > commits })
	}
	agents.stop(t, beside)
	if stats := recorder.Stats(); stats.Retries < times*cuts {
		t.Errorf("%+v: %d answers did not come", stats, times*cuts)
	}
}

func TestWhatIsCutAtAnyMomentIsStoredOnce(t *testing.T) {
	t.Parallel()
	proxy, through, beside := newNetwork(t)
	recorder := newRecorder(t, through, &pgagui.RecorderConfig{Linger: time.Millisecond, CheckEvery: 5 * time.Millisecond, Logger: quiet})
	agents := startAgents(t, 32, recorder)
	for range 12 {
		commits := recorder.Stats().Commits
		wait.For(t, "the recorder goes on", func() bool { return recorder.Stats().Commits > commits })
		time.Sleep(rand.N(5 * time.Millisecond)) // to cut in the midst of whatever it does
		proxy.CutNow()
	}
	agents.stop(t, beside)
	if stats := recorder.Stats(); stats.Retries == 0 {
		t.Errorf("%+v: no cut had an effect", stats)
	}
}

func TestWhatANetworkThatHangsHoldsBackIsStoredOnce(t *testing.T) {
	t.Parallel()
	proxy, through, beside := newNetwork(t)
	recorder := newRecorder(t, through, &pgagui.RecorderConfig{Linger: time.Millisecond, CallTimeout: givesUpSoon, Logger: quiet})
	agents := startAgents(t, 32, recorder)
	for range 3 {
		commits := recorder.Stats().Commits
		wait.For(t, "the recorder goes on", func() bool { return recorder.Stats().Commits > commits })
		repeats := recorder.Stats().Retries
		proxy.Hold()
		wait.For(t, "a call is given up", func() bool { return recorder.Stats().Retries > repeats })
		proxy.Release() // now the database gets the call that was given up as well as the one that repeats it
	}
	agents.stop(t, beside)
}

func TestRecordingsOutlastADatabaseThatIsAway(t *testing.T) {
	t.Parallel()
	proxy, through, beside := newNetwork(t)
	const runs, maxBuffer = 30, 1000
	recorder := newRecorder(t, through, &pgagui.RecorderConfig{
		Linger: time.Millisecond, MaxBufferBytes: maxBuffer, CloseTimeout: 100 * time.Millisecond, Logger: quiet,
	})
	recordings := make([]*pgagui.Recording, runs)
	for i := range recordings {
		recordings[i] = mustBegin(t, recorder, pgagui.RunRef{ThreadID: fmt.Sprint("t", i), RunID: "r"}, pgagui.BeginOptions{})
		mustRecord(t, recordings[i], started("r"))
		mustFlush(t, recordings[i])
	}
	proxy.Refuse(true)
	proxy.CutNow()

	// Each takes what it may keep, then it waits.
	taken := 0
	for size := len(token(0)); size <= maxBuffer; size += len(token(taken)) {
		for _, recording := range recordings {
			mustRecord(t, recording, token(taken))
		}
		taken++
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	notStored := fmt.Sprintf("%d events", taken)
	for _, recording := range recordings {
		err := recording.Record(ended, rawEvents(token(taken))...)
		if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), notStored+" are not stored yet") {
			t.Fatalf("record: %v", err)
		}
		if err := recording.Flush(ended); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), notStored+" are not stored") {
			t.Fatalf("flush: %v", err)
		}
	}
	first := recordings[0]
	if err := first.Close(ended); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), notStored+" are not stored") {
		t.Errorf("close: %v", err)
	}
	if err := first.Record(t.Context(), rawEvents(token(taken))...); !errors.Is(err, pgagui.ErrClosed) {
		t.Errorf("record to one that is being closed: %v", err)
	}
	waiting := make(chan error)
	go func() { waiting <- recordings[1].Record(t.Context(), rawEvents(token(taken))...) }()

	proxy.Refuse(false)
	if err := <-waiting; err != nil {
		t.Errorf("the one that waits: %v", err)
	}
	if err := first.Close(t.Context()); err != nil {
		t.Errorf("close again: %v", err)
	}
	for i, recording := range recordings[1:] {
		mustRecord(t, recording, finished)
		if err := recording.Close(t.Context()); err != nil {
			t.Errorf("run %d: %v", i+1, err)
		}
	}
	for i := range recordings {
		want := taken + 2 // the first with the RUN_ERROR that closing it appended
		if i == 1 {
			want++
		}
		if got := payloads(t, beside, fmt.Sprint("t", i), "r"); len(got) != want || got[taken] != token(taken-1) {
			t.Errorf("run %d has %d events, want %d", i, len(got), want)
		}
	}
}

// All events are stored, but the run is to be ended in the log, too.
func TestCloseWhileTheDatabaseIsAwayCanBeRepeated(t *testing.T) {
	t.Parallel()
	proxy, through, beside := newNetwork(t)
	recording := mustBegin(t, newRecorder(t, through, &pgagui.RecorderConfig{Logger: quiet}), pgagui.RunRef{ThreadID: "t", RunID: "r"}, pgagui.BeginOptions{})
	mustRecord(t, recording, started("r"))
	mustFlush(t, recording)
	proxy.Refuse(true)
	proxy.CutNow()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := recording.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "could not be ended") {
		t.Errorf("close: %v", err)
	}
	proxy.Refuse(false)
	proxy.CutBeforeAnswer(1, "Abandon")
	if err := recording.Close(t.Context()); err != nil || proxy.CutsLeft() != 0 {
		t.Errorf("close again: %v", err)
	}
	if got := payloads(t, beside, "t", "r"); len(got) != 2 {
		t.Errorf("the log has %s", got)
	}
}

// The call that ends the run hangs: it is given up and made again.
func TestCloseGivesUpACallThatHangs(t *testing.T) {
	t.Parallel()
	address := testdb.New(t)
	proxy := cutproxy.Start(t, address)
	pool := testdb.Connect(t, proxy.URL())
	recorder := newRecorder(t, pgagui.New(pool, nil), &pgagui.RecorderConfig{CheckEvery: time.Hour, CallTimeout: givesUpSoon, Logger: quiet})
	recording := mustBegin(t, recorder, pgagui.RunRef{ThreadID: "t", RunID: "r"}, pgagui.BeginOptions{})
	mustRecord(t, recording, started("r"))
	mustFlush(t, recording)
	proxy.Hold()
	closed := make(chan error, 1)
	go func() { closed <- recording.Close(t.Context()) }()
	wait.For(t, "the call is made again, on another connection", func() bool { return pool.Stat().CanceledAcquireCount() > 0 })
	proxy.CutNow()
	proxy.Release()
	must.Report(t, <-closed)
	if got := payloads(t, pgagui.New(testdb.Connect(t, address), nil), "t", "r"); len(got) != 2 {
		t.Errorf("the log has %s", got)
	}
}

func TestARecorderThatIsClosedWhileTheDatabaseIsAwaySaysWhatIsLost(t *testing.T) {
	t.Parallel()
	proxy, through, beside := newNetwork(t)
	recorder := through.NewRecorder(&pgagui.RecorderConfig{CallTimeout: time.Hour, Logger: quiet})
	one := mustBegin(t, recorder, pgagui.RunRef{ThreadID: "t1", RunID: "r"}, pgagui.BeginOptions{})
	two := mustBegin(t, recorder, pgagui.RunRef{ThreadID: "t2", RunID: "r"}, pgagui.BeginOptions{})
	mustRecord(t, one, started("r"))
	mustFlush(t, one)
	proxy.Hold()
	defer proxy.Release()
	mustRecord(t, one, token(1), token(2))
	mustRecord(t, two, started("r"), token(1), token(2))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := recorder.Close(ctx)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), `thread "t1": 2 events`) || !strings.Contains(err.Error(), `thread "t2": 3 events`) {
		t.Errorf("close: %v", err)
	}
	for _, recording := range []*pgagui.Recording{one, two} {
		<-recording.Context().Done() // the agent learns that nothing more is stored
		if err := recording.Record(t.Context(), rawEvents(token(3))...); err == nil {
			t.Error("it records after that")
		}
	}
	proxy.CutNow()
	if got := payloads(t, beside, "t1", "r"); len(got) != 1 {
		t.Errorf("the log has %s", got)
	}

	// Once the database is back the run can still be ended in the log.
	proxy.Release()
	if again := recorder.Close(t.Context()); !errors.Is(again, context.DeadlineExceeded) {
		t.Errorf("close again: %v", again)
	}
	if got := payloads(t, beside, "t1", "r"); len(got) != 2 || !strings.Contains(got[1], "2 events are not stored") {
		t.Errorf("the log has %s", got)
	}
}

func TestARunIsAliveAgainAfterAnOutageAndHearsThatItShallStop(t *testing.T) {
	t.Parallel()
	proxy, through, beside := newNetwork(t, "lease = 300ms")
	recorder := newRecorder(t, through, &pgagui.RecorderConfig{CheckEvery: 5 * time.Millisecond, CallTimeout: givesUpSoon, Logger: quiet})
	recording := mustBegin(t, recorder, pgagui.RunRef{ThreadID: "t", RunID: "r"}, pgagui.BeginOptions{})
	mustRecord(t, recording, started("r"))
	mustFlush(t, recording)
	status := func() *pgagui.RunStatus {
		status := must.Have(beside.Status(t.Context(), pgagui.RunRef{ThreadID: "t", RunID: "r"}))(t)
		return status
	}
	outage := func(begin, end func()) {
		t.Helper()
		repeats := recorder.Stats().Retries
		begin()
		wait.For(t, "the recorder calls in vain", func() bool { return recorder.Stats().Retries > repeats })
		wait.For(t, "the run seems to be left", func() bool { return status().Stale })
		end()
		wait.For(t, "the run is alive again", func() bool { return !status().Stale })
	}
	refuse, accept := func() { proxy.Refuse(true); proxy.CutNow() }, func() { proxy.Refuse(false) }
	outage(refuse, accept)
	outage(proxy.Hold, proxy.Release)
	outage(refuse, func() {
		if n, err := beside.RequestStop(t.Context(), pgagui.RunRef{ThreadID: "t", RunID: "r"}, pgagui.RequestStopOptions{Reason: "enough"}); n != 1 || err != nil {
			t.Errorf("%d runs, %v", n, err)
		}
		accept()
	})
	<-recording.Context().Done()
	if cause := context.Cause(recording.Context()); !errors.Is(cause, pgagui.ErrStopRequested) {
		t.Error(cause)
	}
	mustRecord(t, recording, finished)
	mustFlush(t, recording)
}

// followAll follows threads with a few followers each, at different paces. They end with the threads' runs.
func followAll(t testing.TB, store *pgagui.Store, threads []string) (seen *atomic.Int64, followers *errgroup.Group) {
	seen, followers = &atomic.Int64{}, &errgroup.Group{}
	for _, thread := range threads {
		for pace := range 3 {
			options := pgagui.FollowOptions{RunID: "r", Stay: true}
			followers.Go(func() error {
				var last int64
				for event, err := range store.Follow(t.Context(), thread, options) {
					if err != nil {
						return fmt.Errorf("thread %s after seq %d: %w", thread, last, err)
					}
					if event.Seq != last+1 {
						return fmt.Errorf("thread %s: seq %d after %d", thread, event.Seq, last)
					}
					last = event.Seq
					seen.Add(1)
					if pace == 2 && last%50 == 0 {
						time.Sleep(20 * time.Millisecond) // a slow one
					}
				}
				if status, err := store.Status(t.Context(), pgagui.RunRef{ThreadID: thread, RunID: "r"}); err != nil || status.LastSeq != last {
					return fmt.Errorf("thread %s: ended after seq %d, %+v, %w", thread, last, status, err)
				}
				return nil
			})
		}
	}
	return seen, followers
}

func TestFollowersOutlastABadNetwork(t *testing.T) {
	t.Parallel()
	proxy, through, beside := newNetwork(t)
	recorder := newRecorder(t, beside, &pgagui.RecorderConfig{Linger: 5 * time.Millisecond})
	agents := startAgents(t, 6, recorder)
	seen, followers := followAll(t, through, agents.threads)
	goOn := func() {
		t.Helper()
		before := seen.Load()
		wait.For(t, "the followers go on", func() bool { return seen.Load() > before })
	}
	for range 10 {
		goOn()
		time.Sleep(rand.N(5 * time.Millisecond)) // to cut in the midst of whatever they do
		proxy.CutNow()
	}
	stored := func(events int64) {
		t.Helper()
		before := recorder.Stats().Events
		wait.For(t, "more events are stored", func() bool { return recorder.Stats().Events > before+events })
	}
	goOn()
	proxy.Refuse(true)
	proxy.CutNow()
	stored(500)
	proxy.Refuse(false)
	goOn()
	for range 2 {
		proxy.Hold()
		stored(500)
		proxy.Release()
		goOn()
	}
	agents.stop(t, beside)
	must.Report(t, followers.Wait())
}

func TestAFollowerThatCannotBeginSaysSo(t *testing.T) {
	t.Parallel()
	address := testdb.New(t)
	proxy := cutproxy.Start(t, address)
	mustAppend(t, pgagui.New(testdb.Connect(t, address), nil), "t", "r", rawEvents(started("r"), finished))
	lines, log := io.Pipe()
	defer lines.Close()
	store := pgagui.New(testdb.Connect(t, proxy.URL()), &pgagui.Config{Logger: slog.New(slog.NewTextHandler(log, nil))})
	proxy.Refuse(true)
	ended := make(chan error, 1)
	go func() {
		_, err := follow(t.Context(), store, "t", pgagui.FollowOptions{RunID: "r"})
		ended <- err
		log.Close()
	}()
	var said []string
	for scanner := bufio.NewScanner(lines); scanner.Scan(); {
		said = append(said, scanner.Text())
		proxy.Refuse(false)
	}
	must.Report(t, <-ended)
	if len(said) != 2 || !strings.Contains(said[0], "followers get no new events") || !strings.Contains(said[1], "followers get new events again") {
		t.Errorf("it said %q", said)
	}
}

// queries counts what is asked of the database.
type queries struct{ begun, underWay atomic.Int64 }

func (q *queries) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	q.begun.Add(1)
	q.underWay.Add(1)
	return ctx
}

func (q *queries) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {
	q.underWay.Add(-1)
}

// connectCounted returns a pool whose queries are counted.
func connectCounted(t testing.TB, address string, maxConns int32) (*pgxpool.Pool, *queries) {
	t.Helper()
	counted := &queries{}
	pool := testdb.ConnectWith(t, address, func(config *pgxpool.Config) {
		config.ConnConfig.Tracer = counted
		config.MaxConns = maxConns
	})
	return pool, counted
}

func TestAFollowerEndsWithItsContextWhileTheNetworkIsBad(t *testing.T) {
	t.Parallel()
	address := testdb.New(t)
	mustAppend(t, pgagui.New(testdb.Connect(t, address), nil), "t", "r", rawEvents(started("r")))
	for what, break_ := range map[string]func(*cutproxy.Proxy){
		"hangs":   (*cutproxy.Proxy).Hold,
		"refuses": func(proxy *cutproxy.Proxy) { proxy.Refuse(true); proxy.CutNow() },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			proxy := cutproxy.Start(t, address)
			pool, counted := connectCounted(t, proxy.URL(), 8)
			defer proxy.Release() // what was given up says good-bye
			store := pgagui.New(pool, &pgagui.Config{CallTimeout: time.Hour, Logger: quiet})
			ctx, cancel := context.WithCancel(t.Context())
			ended, live := make(chan error, 3), make(chan struct{})
			follow := func(options pgagui.FollowOptions, began func()) {
				for _, err := range store.Follow(ctx, "t", options) {
					if err != nil {
						ended <- err
						return
					}
					began()
				}
				ended <- nil
			}
			go follow(pgagui.FollowOptions{}, func() { close(live) })
			<-live
			begun := counted.begun.Load()
			wait.For(t, "it is live", func() bool { return counted.begun.Load() > begun+3 })
			break_(proxy)
			go follow(pgagui.FollowOptions{}, func() { t.Error("an event came through") })
			go follow(pgagui.FollowOptions{RunID: "r"}, func() { t.Error("an event came through") })
			if what == "hangs" {
				wait.For(t, "all of them ask", func() bool { return counted.underWay.Load() >= 1 })
			}
			cancel()
			for range cap(ended) {
				if err := <-ended; !errors.Is(err, context.Canceled) {
					t.Errorf("it ended by %v", err)
				}
			}
			// What asks for all of them ends with the last, too: it keeps no connection.
			wait.For(t, "nothing is asked any more", func() bool { return counted.underWay.Load() == 0 })
		})
	}
}
