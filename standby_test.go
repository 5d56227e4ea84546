package pgagui_test

// Recorder and Follow with a standby: one that lags, one that is promoted, one that missed the end.

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
)

// replicated is a primary with the schema, and a standby of it.
type replicated struct {
	*testdb.Replicated
	// onPrimary and onStandby are stores of different processes.
	onPrimary, onStandby *pgagui.Store
	asked                *queries // of the standby
}

func newReplicated(t testing.TB) *replicated {
	t.Helper()
	r := &replicated{Replicated: testdb.NewReplicated(t)}
	config := &pgagui.Config{Logger: quiet}
	r.onPrimary = pgagui.New(r.PrimaryPool, config)
	pool, asked := connectCounted(t, r.Standby.URL("postgres"), 8)
	r.onStandby, r.asked = pgagui.New(pool, config), asked
	return r
}

// logEnd is the last seq of thread t that a store shows; 0: none.
func logEnd(t testing.TB, store *pgagui.Store) int64 {
	t.Helper()
	status, err := store.Status(t.Context(), pgagui.RunRef{ThreadID: "t"})
	if errors.Is(err, pgagui.ErrUnknownThread) {
		return 0
	}
	must.Do(t, err)
	return status.LastSeq
}

func TestAStandby(t *testing.T) {
	t.Parallel()
	r := newReplicated(t) // one for all, for it takes longer than they do
	t.Run("threads are followed and restored", func(t *testing.T) { followAndRestoreOnAStandby(t, r) })
	t.Run("followers wait while it lags", func(t *testing.T) { waitForAStandbyThatLags(t, r) })
	t.Run("followers hear that their thread was erased", func(t *testing.T) { hearOfAnErasedThreadOnAStandby(t, r) })
}

func followAndRestoreOnAStandby(t *testing.T, r *replicated) {
	agents := startAgents(t, 8, newRecorder(t, r.onPrimary, &pgagui.RecorderConfig{Linger: 5 * time.Millisecond}))
	seen, followers := followAll(t, r.onStandby, agents.threads)
	wait.For(t, "the followers get events", func() bool { return seen.Load() > 500 })
	r.Pause(t)
	before := seen.Load()
	r.Resume(t)
	wait.For(t, "they go on after a pause", func() bool { return seen.Load() > before+500 })
	agents.stop(t, r.onPrimary)
	must.Report(t, followers.Wait())
	for _, thread := range agents.threads {
		want := must.Have(r.onPrimary.Restore(t.Context(), thread, pgagui.At{}))(t)
		got, err := r.onStandby.Restore(t.Context(), thread, pgagui.At{})
		if err != nil || string(got.JSON) != string(want.JSON) {
			t.Errorf("thread %s: the standby restores %.200s, %v", thread, got.JSON, err)
		}
		status, err := r.onStandby.Status(t.Context(), pgagui.RunRef{ThreadID: thread, RunID: "r"})
		if err != nil || status.Status != pgagui.Finished || status.LastSeq != want.Seq {
			t.Errorf("thread %s: %+v, %v", thread, status, err)
		}
	}
}

// What followers have seen on the primary, and a standby that lags has not.
func waitForAStandbyThatLags(t *testing.T, r *replicated) {
	r.Pause(t)
	mustAppend(t, r.onPrimary, "t", "one", rawEvents(started("one"), token(1), finished))
	mustAppend(t, r.onPrimary, "t", "two", rawEvents(started("two"), token(1)))
	mustAppend(t, r.onPrimary, "t", "two", rawEvents(token(2), finished))
	seen, err := follow(t.Context(), r.onPrimary, "t", pgagui.FollowOptions{})
	if err != nil || len(seen) != 7 {
		t.Fatalf("%d events, %v", len(seen), err)
	}
	// A reader who has seen more than the standby has gets nothing of it yet, and goes on where it was.
	attached, err := r.onStandby.Attach(t.Context(), "t", pgagui.AttachOptions{Shape: pgagui.EventsShape, AfterSeq: 7})
	if err != nil || len(attached.Events) > 0 || attached.Position.Seq != 7 {
		t.Errorf("attached to the standby: %+v, %v", attached, err)
	}
	type outcome struct {
		what string
		seqs []int64
		err  error
	}
	cases := []struct {
		after   int64
		options pgagui.FollowOptions
		want    []int64
	}{
		{5, pgagui.FollowOptions{}, []int64{6, 7}},
		{7, pgagui.FollowOptions{}, nil},
		{2, pgagui.FollowOptions{RunID: "one"}, []int64{3}},
		{3, pgagui.FollowOptions{RunID: "one"}, nil},
		{3, pgagui.FollowOptions{RunID: "one", Stay: true}, nil},
		{5, pgagui.FollowOptions{RunID: "two"}, []int64{6, 7}},
		{3, pgagui.FollowOptions{RunID: "two", Stay: true}, []int64{4, 5, 6, 7}},
		{7, pgagui.FollowOptions{RunID: "two"}, nil},
	}
	outcomes := make([]chan outcome, len(cases))
	ended := make(chan string, len(cases))
	for i, test := range cases {
		outcomes[i] = make(chan outcome, 1)
		test.options.After = seen[test.after-1].Position()
		what := fmt.Sprintf("after %d, %+v", test.after, test.options)
		go func() {
			events, err := follow(t.Context(), r.onStandby, "t", test.options)
			result := outcome{what: what, err: err}
			for _, event := range events {
				result.seqs = append(result.seqs, event.Seq)
			}
			outcomes[i] <- result
			ended <- what
		}()
	}
	// They ask now and then. Those that ask without a pause would ask several times each while this asks once.
	before := r.asked.begun.Load()
	wait.For(t, "they ask", func() bool { return r.asked.begun.Load() > before+int64(4*len(cases)) })
	const questions = 100
	before = r.asked.begun.Load()
	for range questions {
		if end := logEnd(t, r.onStandby); end != 0 {
			t.Fatalf("the standby is at seq %d", end)
		}
	}
	if asked := r.asked.begun.Load() - before - questions; asked > 2*questions {
		t.Errorf("%d followers that wait asked %d times, while %d other questions were asked", len(cases), asked, questions)
	}
	select {
	case what := <-ended:
		t.Errorf("ended early: %s", what)
	default:
	}
	r.Resume(t)
	for i, test := range cases {
		if got := <-outcomes[i]; got.err != nil || fmt.Sprint(got.seqs) != fmt.Sprint(test.want) {
			t.Errorf("%s: %v, %v, want %v", got.what, got.seqs, got.err, test.want)
		}
	}
}

func hearOfAnErasedThreadOnAStandby(t *testing.T, r *replicated) {
	const thread = "erased"
	mustAppend(t, r.onPrimary, thread, "r", rawEvents(started("r"), token(1)))
	live, ended := make(chan pgagui.Position, 2), make(chan error, 1)
	go func() {
		var err error
		for event, failure := range r.onStandby.Follow(t.Context(), thread, pgagui.FollowOptions{Stay: true}) {
			if err = failure; err == nil {
				live <- event.Position()
			}
		}
		ended <- err
	}()
	<-live
	resume := <-live
	must.Have(r.onPrimary.Erase(t.Context(), thread, pgagui.EraseOptions{}))(t)
	if err := <-ended; !errors.Is(err, pgagui.ErrThreadErased) {
		t.Errorf("the one that is live: %v", err)
	}
	if _, err := follow(t.Context(), r.onStandby, thread, pgagui.FollowOptions{After: resume}); !errors.Is(err, pgagui.ErrThreadErased) {
		t.Errorf("one that comes back: %v", err)
	}
}

func TestARecorderOnAStandbyGoesOnWhenItIsPromoted(t *testing.T) {
	t.Parallel()
	r := newReplicated(t)
	first := mustBegin(t, newRecorder(t, r.onPrimary, nil), pgagui.RunRef{ThreadID: "t", RunID: "r"}, pgagui.BeginOptions{})
	mustRecord(t, first, started("r"), token(1))
	mustFlush(t, first)
	wait.For(t, "the standby has it", func() bool { return logEnd(t, r.onStandby) == 2 })
	r.Pause(t)
	mustRecord(t, first, token(2))
	must.Do(t, first.Detach(t.Context()))

	// The standby lags: what the recorder knows of may still come.
	recorder := newRecorder(t, r.onStandby, &pgagui.RecorderConfig{CheckEvery: 10 * time.Millisecond, Logger: quiet})
	other := mustBegin(t, recorder, pgagui.RunRef{ThreadID: "other", RunID: "r"}, pgagui.BeginOptions{})
	recording := mustBegin(t, recorder, pgagui.RunRef{ThreadID: "t", RunID: "r"}, pgagui.BeginOptions{AfterSeq: first.Seq()})
	mustRecord(t, recording, token(3))
	mustRecord(t, other, started("r"))
	wait.For(t, "it tries", func() bool { return recorder.Stats().Retries > 3 })
	seen := make(chan pgagui.Event, 10)
	go func() {
		for event, err := range r.onStandby.Follow(t.Context(), "t", pgagui.FollowOptions{}) {
			if err != nil {
				t.Error(err)
			}
			seen <- event
		}
		close(seen)
	}()
	lsn := testdb.Ask[string](t, r.PrimaryPool, `select pg_current_wal_flush_lsn()::text`)
	wait.For(t, "the standby receives all", func() bool {
		return testdb.Ask[bool](t, r.StandbyPool, `select coalesce(pg_last_wal_receive_lsn() >= '`+lsn+`', false)`)
	})
	must.Do(t, r.Primary.Kill())
	must.Do(t, r.Standby.Promote(t.Context()))
	mustFlush(t, recording)
	mustRecord(t, recording, finished)
	mustRecord(t, other, finished)
	for _, recording := range []*pgagui.Recording{recording, other} {
		must.Report(t, recording.Close(t.Context()))
	}
	if got := payloads(t, r.onStandby, "t", "r"); len(got) != 5 || got[3] != token(3) {
		t.Errorf("the log has %s", got)
	}
	var last int64
	for event := range seen {
		if last++; event.Seq != last {
			t.Errorf("seq %d, want %d", event.Seq, last)
		}
	}
	if last != 5 {
		t.Errorf("the follower ended after seq %d", last)
	}
}

func TestFailoverToAStandbyThatMissedTheEnd(t *testing.T) {
	t.Parallel()
	r := newReplicated(t)
	// Clients reach the server that the name currently leads to.
	failedOver := make(chan struct{})
	server := func() string {
		select {
		case <-failedOver:
			return r.Standby.URL("postgres")
		default:
			return r.Primary.URL("postgres")
		}
	}
	pool := connectTo(t, server)
	store := pgagui.New(pool, &pgagui.Config{Logger: quiet})
	recorder := newRecorder(t, store, &pgagui.RecorderConfig{Logger: quiet})
	recording := mustBegin(t, recorder, pgagui.RunRef{ThreadID: "t", RunID: "r"}, pgagui.BeginOptions{})
	idle := mustBegin(t, recorder, pgagui.RunRef{ThreadID: "idle", RunID: "r"}, pgagui.BeginOptions{})
	mustRecord(t, recording, started("r"), token(1))
	mustRecord(t, idle, started("r"))
	mustFlush(t, recording)
	mustFlush(t, idle)

	// One follower keeps up. Another is slow: it stops at seq 2.
	reached := make(chan struct{})
	ahead := make(chan error, 1)
	go func() {
		var err error
		for event, failure := range store.Follow(t.Context(), "t", pgagui.FollowOptions{}) {
			if err = failure; failure == nil && event.Seq == 4 {
				close(reached)
			}
		}
		ahead <- err
	}()
	slowAt2, goOn := make(chan struct{}), make(chan struct{})
	slow := make(chan error, 1)
	go func() {
		var got []string
		for event, err := range store.Follow(t.Context(), "t", pgagui.FollowOptions{}) {
			if err != nil {
				slow <- err
				return
			}
			if got = append(got, string(event.JSON)); event.Seq == 2 {
				close(slowAt2)
				<-goOn
			}
		}
		if want := fmt.Sprint([]string{started("r"), token(1), token(9), finished}); fmt.Sprint(got) != want {
			slow <- fmt.Errorf("the slow one got %s", got)
			return
		}
		slow <- nil
	}()
	<-slowAt2
	wait.For(t, "the standby has the beginning", func() bool { return logEnd(t, r.onStandby) == 2 })
	r.Disconnect(t)
	mustRecord(t, recording, token(2), token(3))
	mustFlush(t, recording)
	<-reached
	var resume pgagui.Position
	for event, err := range store.Follow(t.Context(), "t", pgagui.FollowOptions{After: pgagui.Position{Seq: 3}}) {
		must.Do(t, err)
		resume = event.Position()
		break
	}

	must.Do(t, r.Primary.Kill())
	must.Do(t, r.Standby.Promote(t.Context()))
	close(failedOver)
	if err := <-ahead; !errors.Is(err, pgagui.ErrLogRewound) {
		t.Errorf("the follower that saw what is gone: %v", err)
	}
	for _, options := range []pgagui.FollowOptions{{After: resume}, {After: resume, RunID: "r"}, {After: resume, Stay: true}} {
		if seen, err := follow(t.Context(), store, "t", options); !errors.Is(err, pgagui.ErrLogRewound) || len(seen) > 0 {
			t.Errorf("one that comes back, %+v: %d events, %v", options, len(seen), err)
		}
	}
	mustRecord(t, recording, token(4))
	if err := recording.Flush(t.Context()); !errors.Is(err, pgagui.ErrLogRewound) {
		t.Errorf("the recording: %v", err)
	}
	if cause := context.Cause(recording.Context()); !errors.Is(cause, pgagui.ErrLogRewound) {
		t.Errorf("its agent is told %v", cause)
	}
	mustRecord(t, idle, finished) // one that lost nothing
	if err := idle.Close(t.Context()); err != nil {
		t.Errorf("the other recording: %v", err)
	}

	// Somebody goes on from what is left, before the recording is closed.
	mustAppend(t, store, "t", "r", rawEvents(token(9), finished))
	close(goOn)
	if err := <-slow; err != nil {
		t.Errorf("the follower that saw less: %v", err)
	}
	if err := recording.Close(t.Context()); !errors.Is(err, pgagui.ErrLogRewound) {
		t.Errorf("close: %v", err)
	}
	if got := payloads(t, store, "t", "r"); len(got) != 4 {
		t.Errorf("the log has %s", got)
	}
}

// connectTo returns a pool of connections to the server that the function names when they are made.
func connectTo(t testing.TB, server func() string) *pgxpool.Pool {
	t.Helper()
	pool := testdb.ConnectWith(t, server(), func(config *pgxpool.Config) { config.BeforeConnect = beforeConnect(server) })
	return pool
}

func beforeConnect(server func() string) func(context.Context, *pgx.ConnConfig) error {
	return func(_ context.Context, config *pgx.ConnConfig) error {
		current, err := pgx.ParseConfig(server())
		if err == nil {
			config.Host, config.Port, config.Password, config.Fallbacks = current.Host, current.Port, current.Password, nil
		}
		return err
	}
}

// A standby that is promoted begins another history of transactions at once, not only once its first checkpoint is done.
func TestChangesNoticeAFailover(t *testing.T) {
	t.Parallel()
	r := newReplicated(t)
	mustAppend(t, r.onPrimary, "kept", "r", rawEvents(started("r"), finished))
	lastOf := func(store *pgagui.Store, after, thread string) (position string) {
		t.Helper()
		wait.For(t, "the run of thread "+thread, func() bool {
			changes := must.Have(store.Changes(t.Context(), pgagui.ChangesOptions{After: after}))(t)
			for _, change := range changes {
				if after = change.Position; change.ThreadID == thread {
					position = after
				}
			}
			return position != ""
		})
		return position
	}
	beginning := lastOf(r.onPrimary, "", "kept")
	wait.For(t, "the standby has the beginning", func() bool {
		return testdb.Ask[bool](t, r.StandbyPool, `select exists (select from agui.thread)`)
	})
	if changes, err := r.onStandby.Changes(t.Context(), pgagui.ChangesOptions{After: beginning}); err != nil || len(changes) > 1 {
		t.Errorf("a position of the primary, on the standby: %v, %v", changes, err)
	}
	r.Disconnect(t)
	mustAppend(t, r.onPrimary, "lost", "r", rawEvents(started("r"), finished))
	seen := lastOf(r.onPrimary, beginning, "lost")
	must.Do(t, r.Primary.Kill())
	must.Do(t, r.Standby.Promote(t.Context()))
	for i := range 5 { // their transactions have the numbers of those that are lost
		mustAppend(t, r.onStandby, fmt.Sprint("new ", i), "r", rawEvents(started("r"), finished))
	}
	if changes, err := r.onStandby.Changes(t.Context(), pgagui.ChangesOptions{After: seen}); !errors.Is(err, pgagui.ErrOtherHistory) {
		t.Errorf("behind what is gone: %d changes, %v", len(changes), err)
	}
	after := lastOf(r.onStandby, "", "new 4")
	testdb.Exec(t, r.StandbyPool, `checkpoint`)
	if _, err := r.onStandby.Changes(t.Context(), pgagui.ChangesOptions{After: after}); err != nil {
		t.Errorf("a position from before the first checkpoint: %v", err)
	}
}
