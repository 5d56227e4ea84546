package pgagui_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
)

// follow collects what Follow yields until it ends.
func follow(ctx context.Context, store *pgagui.Store, threadID string, options pgagui.FollowOptions) ([]pgagui.Event, error) {
	var seen []pgagui.Event
	for event, err := range store.Follow(ctx, threadID, options) {
		if err != nil {
			return seen, err
		}
		seen = append(seen, event)
	}
	return seen, nil
}

// wantSeqs checks that the seqs are first, first+1, … last.
func wantSeqs(t testing.TB, what string, seen []pgagui.Event, first, last int64) {
	t.Helper()
	if len(seen) != int(last-first+1) {
		t.Fatalf("%s: %d events, want those from %d to %d", what, len(seen), first, last)
	}
	for i, event := range seen {
		if event.Seq != first+int64(i) {
			t.Fatalf("%s: event %d has seq %d", what, i+1, event.Seq)
		}
	}
}

func TestFollowersSeeEveryEventOnceWhereverTheyBegin(t *testing.T) {
	bothWays(t, followersSeeEveryEventOnceWhereverTheyBegin)
}

func followersSeeEveryEventOnceWhereverTheyBegin(t *testing.T, address string) {
	store := pgagui.New(testdb.Connect(t, address), nil)
	others := pgagui.New(testdb.Connect(t, address), &pgagui.Config{PollInterval: time.Millisecond}) // in another process: it hears nothing of the recorder
	recorder := newRecorder(t, store, &pgagui.RecorderConfig{Linger: 2 * time.Millisecond})
	const tokens = 300
	recording := mustBegin(t, recorder, pgagui.RunRef{ThreadID: "t", RunID: "r"}, pgagui.BeginOptions{})
	var group errgroup.Group
	following := func(what string, store *pgagui.Store, options pgagui.FollowOptions) {
		group.Go(func() error {
			seen, err := follow(t.Context(), store, "t", options)
			if err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
			if len(seen) != tokens+2-int(options.After.Seq) {
				return fmt.Errorf("%s: %d events", what, len(seen))
			}
			for i, event := range seen {
				if event.Seq != options.After.Seq+int64(i)+1 || event.RunID != "r" || event.RecordedAt.IsZero() {
					return fmt.Errorf("%s: event %d is %+v", what, i+1, event)
				}
			}
			return nil
		})
	}
	mustRecord(t, recording, started("r"))
	mustFlush(t, recording)
	for n := range tokens {
		mustRecord(t, recording, token(n))
		if n%30 == 0 {
			mustFlush(t, recording)
			for _, process := range []*pgagui.Store{store, others} {
				following(fmt.Sprint("thread, at ", n), process, pgagui.FollowOptions{})
				following(fmt.Sprint("run, at ", n), process, pgagui.FollowOptions{RunID: "r"})
				following(fmt.Sprint("from the middle, at ", n), process, pgagui.FollowOptions{After: pgagui.Position{Seq: int64(n)/2 + 1}})
			}
		}
	}
	mustRecord(t, recording, finished)
	must.Do(t, recording.Close(t.Context()))
	following("after the end", store, pgagui.FollowOptions{})
	following("the run after its end", others, pgagui.FollowOptions{RunID: "r"})
	following("behind the end", others, pgagui.FollowOptions{After: pgagui.Position{Seq: tokens + 2}})
	must.Report(t, group.Wait())
}

func TestASlowFollowerReadsFromTheDatabaseAndHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	const calls = 60
	large := `{"type":"CUSTOM","value":"` + strings.Repeat("x", 20_000) + `"}` // 60 of them are more than a topic keeps
	mustAppend(t, store, "t", "r", rawEvents(started("r")))
	slowBegan, go_on := make(chan struct{}), make(chan struct{})
	var group errgroup.Group
	group.Go(func() error {
		var last int64
		for event, err := range store.Follow(t.Context(), "t", pgagui.FollowOptions{}) {
			if err != nil {
				return err
			}
			if event.Seq != last+1 {
				return fmt.Errorf("the slow one got seq %d after %d", event.Seq, last)
			}
			if last = event.Seq; last == 2 {
				close(slowBegan)
				<-go_on
			}
		}
		if last != calls+2 {
			return fmt.Errorf("the slow one ended at seq %d", last)
		}
		return nil
	})
	mustAppend(t, store, "t", "r", rawEvents(large))
	<-slowBegan
	group.Go(func() error {
		seen, err := follow(t.Context(), store, "t", pgagui.FollowOptions{})
		close(go_on) // it got all while the slow one did nothing
		if err == nil {
			wantSeqs(t, "the other", seen, 1, calls+2)
		}
		return err
	})
	for range calls - 1 {
		mustAppend(t, store, "t", "r", rawEvents(large))
	}
	mustAppend(t, store, "t", "r", rawEvents(finished))
	must.Report(t, group.Wait())
}

func TestAFollowerStaysForTheNextRun(t *testing.T) { bothWays(t, aFollowerStaysForTheNextRun) }

func aFollowerStaysForTheNextRun(t *testing.T, address string) {
	store := pgagui.New(testdb.Connect(t, address), nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := make(chan pgagui.Event)
	ended := make(chan error, 1)
	go func() {
		_, err := func() (any, error) {
			for event, err := range store.Follow(ctx, "t", pgagui.FollowOptions{Stay: true}) { // before the thread is there
				if err != nil {
					return nil, err
				}
				seen <- event
			}
			return nil, nil
		}()
		ended <- err
	}()
	for n := range 3 {
		run := fmt.Sprint("r", n)
		mustAppend(t, store, "t", run, rawEvents(started(run), finished))
		for range 2 {
			if event := <-seen; event.RunID != run {
				t.Fatalf("event of %s while %s runs", event.RunID, run)
			}
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestARunIsFollowedAmongOthers(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	mustAppend(t, store, "t", "root", rawEvents(started("root"), finished))
	var group errgroup.Group
	waiting := func(run string, alone bool, want ...string) {
		if !alone && run != "root" {
			want = append([]string{started("root"), finished}, want...)
		}
		group.Go(func() error {
			seen, err := follow(t.Context(), store, "t", pgagui.FollowOptions{RunID: run, NoLineage: alone, Stay: true})
			if err != nil {
				return err
			}
			got := make([]string, len(seen))
			for i, event := range seen {
				got[i] = string(event.JSON)
			}
			if strings.Join(got, "\n") != strings.Join(want, "\n") {
				return fmt.Errorf("run %s (alone: %t): %s", run, alone, got)
			}
			return nil
		})
	}
	waiting("a", true, startedFrom("a", "root"), token(1), token(3), finished)
	waiting("a", false, startedFrom("a", "root"), token(1), token(3), finished)
	waiting("b", true, startedFrom("b", "root"), token(2), failed)
	waiting("b", false, startedFrom("b", "root"), token(2), failed)
	mustAppend(t, store, "t", "a", rawEvents(startedFrom("a", "root"), token(1)))
	mustAppend(t, store, "t", "b", rawEvents(startedFrom("b", "root"), token(2)), pgagui.AppendOptions{Parallel: true})
	mustAppend(t, store, "t", "a", rawEvents(token(3), finished))
	mustAppend(t, store, "t", "b", rawEvents(failed))
	must.Report(t, group.Wait())
	waiting("root", true, started("root"), finished)
	waiting("root", false, started("root"), finished)
	waiting("a", true, startedFrom("a", "root"), token(1), token(3), finished)
	waiting("a", false, startedFrom("a", "root"), token(1), token(3), finished)
	must.Report(t, group.Wait())
	for _, test := range []struct {
		options pgagui.FollowOptions
		want    []int64
	}{
		{pgagui.FollowOptions{RunID: "b"}, []int64{1, 2, 5, 6, 9}},
		{pgagui.FollowOptions{RunID: "b", After: pgagui.Position{Seq: 1}}, []int64{2, 5, 6, 9}},
		{pgagui.FollowOptions{RunID: "a", After: pgagui.Position{Seq: 4}}, []int64{7, 8}},
		{pgagui.FollowOptions{RunID: "b", NoLineage: true, After: pgagui.Position{Seq: 5}}, []int64{6, 9}},
		{pgagui.FollowOptions{NoLineage: true}, []int64{5, 6, 9}}, // the head
	} {
		seen := must.Have(follow(t.Context(), store, "t", test.options))(t)
		var seqs []int64
		for _, event := range seen {
			seqs = append(seqs, event.Seq)
		}
		if !slices.Equal(seqs, test.want) {
			t.Errorf("%+v: %d, want %d", test.options, seqs, test.want)
		}
	}
}

// Who waits for a run gets its history when it begins, and one who waits for the first run of a thread that run.
func TestFollowersThatWaitForARunGetItsHistory(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	mustAppend(t, store, "t", "root", rawEvents(started("root"), `{"type":"TEXT_MESSAGE_CHUNK","messageId":"m1","delta":"a"}`, finished))
	var group errgroup.Group
	waiting := func(thread string, options pgagui.FollowOptions, want string) {
		options.Stay = true
		ctx, cancel := context.WithCancel(t.Context())
		group.Go(func() error {
			defer cancel()
			var seen []string
			for event, err := range store.Follow(ctx, thread, options) {
				if err != nil {
					return err
				}
				seen = append(seen, fmt.Sprint(event.Type, " ", event.RunID))
				if event.Type == "RUN_FINISHED" {
					break
				}
			}
			if got := strings.Join(seen, ", "); got != want {
				return fmt.Errorf("%+v: %s, want %s", options, got, want)
			}
			return nil
		})
	}
	waiting("t", pgagui.FollowOptions{RunID: "next", History: compaction.SnapshotShape}, "RUN_STARTED next, MESSAGES_SNAPSHOT next, STATE_SNAPSHOT next, RUN_FINISHED next")
	waiting("u", pgagui.FollowOptions{NoLineage: true}, "RUN_STARTED first, RUN_FINISHED first")
	waiting("u", pgagui.FollowOptions{RunID: "first"}, "RUN_STARTED first, RUN_FINISHED first")
	mustAppend(t, store, "t", "other", rawEvents(startedFrom("other", "root"), finished))
	// In one call: the history of a run in progress is that of its parent, and then its own events.
	mustAppend(t, store, "t", "next", rawEvents(startedFrom("next", "root"), finished))
	mustAppend(t, store, "u", "first", rawEvents(started("first"), finished))
	must.Report(t, group.Wait())
}

func TestAThreadIsFollowedUntilNoRunIsInProgress(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	mustAppend(t, store, "t", "root", rawEvents(started("root"), finished))
	mustAppend(t, store, "t", "a", rawEvents(startedFrom("a", "root")))
	mustAppend(t, store, "t", "b", rawEvents(startedFrom("b", "root")), pgagui.AppendOptions{Parallel: true})
	var last int64
	for event, err := range store.Follow(t.Context(), "t", pgagui.FollowOptions{}) {
		must.Do(t, err)
		last = event.Seq
		switch last {
		case 4:
			mustAppend(t, store, "t", "a", rawEvents(finished))
		case 5:
			mustAppend(t, store, "t", "b", rawEvents(token(1), finished))
		}
	}
	if last != 7 {
		t.Errorf("it ended at seq %d", last)
	}
}

// OnIdle is called for a follower that has all events when it begins, also if another follower has brought them.
func TestAFollowerAtTheEndIsIdle(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	mustAppend(t, store, "t", "r", rawEvents(started("r"), finished))
	first, leave := context.WithCancel(t.Context())
	isIdle := false
	if _, err := follow(first, store, "t", pgagui.FollowOptions{Stay: true, OnIdle: func() {
		defer leave()
		second, leave := context.WithTimeout(first, 10*time.Second)
		defer leave()
		_, err := follow(second, store, "t", pgagui.FollowOptions{After: pgagui.Position{Seq: 2}, Stay: true, OnIdle: func() {
			isIdle = true
			leave()
		}})
		if !isIdle {
			t.Errorf("the second is not idle: %v", err)
		}
	}}); !isIdle {
		t.Errorf("the first is not idle: %v", err)
	}
}

func TestFollowWhatIsNotThere(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	mustAppend(t, store, "t", "r", rawEvents(started("r"), finished))
	for _, test := range []struct {
		thread  string
		options pgagui.FollowOptions
		want    error
	}{
		{"nobody", pgagui.FollowOptions{}, pgagui.ErrUnknownThread},
		{"nobody", pgagui.FollowOptions{RunID: "r"}, pgagui.ErrUnknownThread},
		{"t", pgagui.FollowOptions{RunID: "x"}, pgagui.ErrUnknownRun},
		{"t", pgagui.FollowOptions{After: pgagui.Position{Seq: 3}}, pgagui.ErrLogRewound},
		{"nobody", pgagui.FollowOptions{After: pgagui.Position{Seq: 3}, Stay: true}, pgagui.ErrLogRewound},
		{"t", pgagui.FollowOptions{After: pgagui.Position{Seq: 1, RecordedAt: time.Now()}}, pgagui.ErrLogRewound},
	} {
		isIdle := false // a server would write its header, and then no other answer
		test.options.OnIdle = func() { isIdle = true }
		if seen, err := follow(t.Context(), store, test.thread, test.options); !errors.Is(err, test.want) || len(seen) > 0 || isIdle {
			t.Errorf("%s %+v: %d events, %v, want %v; idle: %t", test.thread, test.options, len(seen), err, test.want, isIdle)
		}
	}
	must.Have(store.Erase(t.Context(), "t", pgagui.EraseOptions{}))(t)
	if _, err := follow(t.Context(), store, "t", pgagui.FollowOptions{After: pgagui.Position{Seq: 1}}); !errors.Is(err, pgagui.ErrThreadErased) {
		t.Error(err)
	}
	tx := testdb.Begin(t, pool)
	defer tx.Rollback(context.Background())
	if _, err := follow(t.Context(), store.WithTx(tx), "t", pgagui.FollowOptions{}); err == nil {
		t.Error("it follows in a transaction")
	}
}

// A log that goes on otherwise than a follower has seen, as after a crash without synchronous_commit.
func TestARewoundLogIsNoticed(t *testing.T) { bothWays(t, aRewoundLogIsNoticed) }

func aRewoundLogIsNoticed(t *testing.T, address string) {
	pool := testdb.Connect(t, address)
	store := pgagui.New(pool, nil)
	rewind := func(behind int) {
		t.Helper()
		testdb.Exec(t, pool, fmt.Sprintf(`
			set session_replication_role = replica;
			delete from agui.batch where first_seq > %d;
			reset session_replication_role`, behind))
	}
	mustAppend(t, store, "t", "r", rawEvents(started("r")))
	mustAppend(t, store, "t", "r", rawEvents(token(1)))
	live := make(chan error, 1)
	reached := make(chan struct{})
	go func() {
		var err error
		for event, failure := range store.Follow(t.Context(), "t", pgagui.FollowOptions{}) {
			if err = failure; err == nil && event.Seq == 3 {
				close(reached)
			}
		}
		live <- err
	}()
	mustAppend(t, store, "t", "r", rawEvents(token(2)))
	<-reached
	var resume pgagui.Position
	for event, err := range store.Follow(t.Context(), "t", pgagui.FollowOptions{}) {
		must.Do(t, err)
		if resume = event.Position(); resume.Seq == 3 {
			break
		}
	}
	rewind(2)
	if err := <-live; !errors.Is(err, pgagui.ErrLogRewound) {
		t.Errorf("the one that is live: %v", err)
	}
	if _, err := follow(t.Context(), store, "t", pgagui.FollowOptions{After: resume}); !errors.Is(err, pgagui.ErrLogRewound) {
		t.Errorf("one that comes back: %v", err)
	}
	// Grown again: the seqs are there, but not the events.
	mustAppend(t, store, "t", "r", rawEvents(token(3), token(4), finished))
	for _, position := range []pgagui.Position{resume, {Seq: 9}} {
		if seen, err := follow(t.Context(), store, "t", pgagui.FollowOptions{After: position}); !errors.Is(err, pgagui.ErrLogRewound) || len(seen) > 0 {
			t.Errorf("one that comes back later, at %v: %d events, %v", position, len(seen), err)
		}
	}
}

func TestAFollowerAheadOfARewoundLogIsToldWhileOthersFollow(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	mustAppend(t, store, "t", "r", rawEvents(started("r")))
	seen := make(chan pgagui.Event)
	following, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		for event, err := range store.Follow(following, "t", pgagui.FollowOptions{}) {
			if err == nil {
				seen <- event
			}
		}
	}()
	<-seen
	mustAppend(t, store, "t", "r", rawEvents(token(1)))
	<-seen // the hub asks for news of the thread
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := follow(ctx, store, "t", pgagui.FollowOptions{After: pgagui.Position{Seq: 9}}); !errors.Is(err, pgagui.ErrLogRewound) {
		t.Errorf("error %v, want ErrLogRewound", err)
	}
}

// A follower that was busy while the log was rewound finds the topic that it shares in order again, opened by another one.
func TestARewoundLogIsNoticedByThoseWhoComeLate(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		what         string
		before, then []string // what the log gets before the other one begins, and after that
	}{
		{"the log is shorter", nil, nil},
		{"the log ends with another event", []string{token(3)}, []string{token(4)}},
		{"the log has another event in between", nil, []string{token(3), token(4)}},
		{"the log is longer", []string{token(3), token(4)}, []string{token(5)}},
	} {
		t.Run(test.what, func(t *testing.T) {
			t.Parallel()
			store, pool := newStore(t)
			ctx, cancel := context.WithCancel(t.Context())
			mustAppend(t, store, "t", "r", rawEvents(started("r")))
			mustAppend(t, store, "t", "r", rawEvents(token(1)))
			mustAppend(t, store, "t", "r", rawEvents(token(2)))
			late, other := make(chan error, 1), make(chan error, 1)
			isBusy, goOn, isLive := make(chan struct{}), make(chan struct{}), make(chan struct{})
			go func() {
				for event, err := range store.Follow(ctx, "t", pgagui.FollowOptions{}) {
					switch {
					case err != nil:
						late <- err
					case event.Seq == 3:
						close(isBusy)
						<-goOn
					case event.Seq > 3:
						late <- fmt.Errorf("it got seq %d, although seq 3 is not what it was", event.Seq)
						return
					}
				}
			}()
			<-isBusy
			idle := make(chan error, 1)
			go func() {
				_, err := follow(ctx, store, "t", pgagui.FollowOptions{After: pgagui.Position{Seq: 3}})
				idle <- err
			}()
			testdb.Exec(t, pool, `
				set session_replication_role = replica;
				delete from agui.batch where first_seq = 3;
				reset session_replication_role`)
			if err := <-idle; !errors.Is(err, pgagui.ErrLogRewound) {
				t.Fatalf("the one that waits for news: %v", err)
			}
			for _, event := range test.before {
				mustAppend(t, store, "t", "r", rawEvents(event))
			}
			end := int64(2 + len(test.before))
			go func() {
				isAtEnd := false
				for event, err := range store.Follow(ctx, "t", pgagui.FollowOptions{}) {
					if err != nil {
						other <- err
						return
					}
					if event.Seq == end && !isAtEnd {
						isAtEnd = true
						close(isLive)
					}
				}
			}()
			<-isLive
			for _, event := range test.then {
				mustAppend(t, store, "t", "r", rawEvents(event))
			}
			close(goOn)
			if err := <-late; !errors.Is(err, pgagui.ErrLogRewound) {
				t.Errorf("the one that comes late: %v", err)
			}
			cancel()
			if err := <-other; !errors.Is(err, context.Canceled) {
				t.Errorf("the one that began anew: %v", err)
			}
		})
	}
}

// countedPolls is a database that counts what is asked for news, by the seq behind which they are.
type countedPolls struct {
	*pgxpool.Pool
	mu    sync.Mutex
	polls map[int64]int
}

func (c *countedPolls) Query(ctx context.Context, sql string, arguments ...any) (pgx.Rows, error) {
	if strings.Contains(sql, "agui.poll") {
		for _, argument := range arguments {
			if afterSeqs, ok := argument.([]int64); ok {
				c.mu.Lock()
				c.polls[afterSeqs[0]]++
				c.mu.Unlock()
			}
		}
	}
	return c.Pool.Query(ctx, sql, arguments...)
}

func (c *countedPolls) count(afterSeq int64) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.polls[afterSeq]
}

// What a follower has of the log at once is bounded by its size: few large batches, or many small ones.
func TestTheLogIsReadInPagesOfAboutTheSameSize(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		what        string
		batches     int
		event       string
		least, most int // queries
	}{
		{"small batches", 2500, token(1), 4, 6},
		{"large batches", 60, `{"type":"CUSTOM","value":"` + strings.Repeat("x", 60_000) + `"}`, 6, 8},
		{"batches of which two do not fit", 8, `{"type":"CUSTOM","value":"` + strings.Repeat("x", 2_500_000) + `"}`, 8, 10},
	} {
		t.Run(test.what, func(t *testing.T) {
			t.Parallel()
			writer, pool := newStore(t)
			mustAppend(t, writer, "t", "r", rawEvents(started("r")))
			err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
				for range test.batches {
					mustAppend(t, writer.WithTx(tx), "t", "r", rawEvents(test.event))
				}
				return nil
			})
			must.Do(t, err)
			mustAppend(t, writer, "t", "r", rawEvents(finished))
			database := &countedPolls{Pool: pool, polls: map[int64]int{}}
			seen := must.Have(follow(t.Context(), pgagui.New(database, nil), "t", pgagui.FollowOptions{}))(t)
			wantSeqs(t, "the follower", seen, 1, int64(test.batches+2))
			if n := len(database.polls); n < test.least || n > test.most {
				t.Errorf("%d batches were read with %d queries, want %d to %d", test.batches+2, n, test.least, test.most)
			}
		})
	}
}

// A follower comes to a standby from a server that had more. The others there go on sharing one query.
func TestAFollowerThatIsAheadOfAStandbyCostsTheOthersNothing(t *testing.T) {
	t.Parallel()
	servers := testdb.NewReplicated(t)
	store := pgagui.New(servers.PrimaryPool, nil)
	mustAppend(t, store, "t", "r", rawEvents(started("r"), token(1)))
	database := &countedPolls{Pool: servers.StandbyPool, polls: map[int64]int{}}
	wait.For(t, "the log on the standby", func() bool {
		return testdb.Ask[bool](t, database, `select exists (select from agui.batch)`)
	})
	testdb.Exec(t, database, `select pg_wal_replay_pause()`)
	mustAppend(t, store, "t", "r", rawEvents(token(2), finished))

	followers := pgagui.New(database, nil)
	var group errgroup.Group
	following := func(after int64) {
		group.Go(func() error {
			for event, err := range followers.Follow(t.Context(), "t", pgagui.FollowOptions{After: pgagui.Position{Seq: after}, Stay: true}) {
				if err != nil || event.Seq == 5 {
					return err
				}
			}
			return nil
		})
	}
	following(4)
	wait.For(t, "the one ahead finds out", func() bool { return database.count(4) >= 2 })
	following(0)
	before := database.count(4)
	wait.For(t, "the one ahead asks five times", func() bool { return database.count(4) >= before+5 })
	if ahead, others := database.count(4), database.count(2); others > 10*ahead {
		t.Errorf("the one ahead asked %d times, in which the other made %d queries", ahead, others)
	}
	testdb.Exec(t, database, `select pg_wal_replay_resume()`)
	mustAppend(t, store, "t", "next", rawEvents(started("next")))
	must.Report(t, group.Wait())
}

func TestShortHistoryLeadsIntoTheRunInProgress(t *testing.T) {
	bothWays(t, shortHistoryLeadsIntoTheRunInProgress)
}

func shortHistoryLeadsIntoTheRunInProgress(t *testing.T, address string) {
	store := pgagui.New(testdb.Connect(t, address), nil)
	mustAppend(t, store, "t", "one", rawEvents(started("one"), `{"type":"TEXT_MESSAGE_START","messageId":"m1","role":"assistant"}`,
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":"a"}`, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":"b"}`,
		`{"type":"TEXT_MESSAGE_END","messageId":"m1"}`, finished))
	mustAppend(t, store, "t", "two", rawEvents(started("two"), `{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}`, token(1)))
	for _, shape := range []compaction.Shape{compaction.SnapshotShape, compaction.StreamShape} {
		for _, run := range []string{"", "two"} {
			var all []string
			var position pgagui.Position
			for event, err := range store.Follow(t.Context(), "t", pgagui.FollowOptions{RunID: run, History: shape, Stay: true}) {
				must.Do(t, err)
				all = append(all, string(event.JSON))
				if position = event.Position(); position.Seq == 9 {
					break
				}
			}
			want := must.Have(store.Replay(t.Context(), "t", pgagui.ReplayOptions{At: pgagui.At{RunID: "two"}, Shape: shape}))(t)
			if got := strings.Join(all, "\n"); got != joinLines(want) || !strings.Contains(all[len(all)-1], `"messageId":"m"`) {
				t.Errorf("%s %s:\n%s\nwant\n%s", shape, run, got, want)
			}
		}
	}
	// However much the run in progress has had, it comes in a few events, and then one by one.
	for n := range 50 {
		mustAppend(t, store, "t", "two", rawEvents(token(n), token(n)))
	}
	var short []pgagui.Event
	for event, err := range store.Follow(t.Context(), "t", pgagui.FollowOptions{RunID: "two", History: compaction.SnapshotShape}) {
		must.Do(t, err)
		short = append(short, event)
		switch event.Seq {
		case 109:
			mustAppend(t, store, "t", "two", rawEvents(token(50)))
		case 110:
			mustAppend(t, store, "t", "two", rawEvents(`{"type":"TEXT_MESSAGE_END","messageId":"m"}`, finished))
		}
	}
	if n := len(short); n != 9 || short[n-3].Seq != 110 || string(short[n-3].JSON) != token(50) || short[n-4].RecordedAt.IsZero() {
		t.Errorf("%d events: %+v", n, short)
	}

	seen, err := follow(t.Context(), store, "t", pgagui.FollowOptions{History: compaction.SnapshotShape})
	want, _ := store.Replay(t.Context(), "t", pgagui.ReplayOptions{At: pgagui.At{RunID: "two"}, Shape: compaction.SnapshotShape})
	if err != nil || len(seen) != len(want) || seen[len(seen)-1].Seq != 112 {
		t.Errorf("%d events, %v", len(seen), err)
	}
}

func TestRunsSideBySideComeEventByEvent(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	mustAppend(t, store, "t", "root", rawEvents(started("root"), finished))
	mustAppend(t, store, "t", "a", rawEvents(startedFrom("a", "root")))
	mustAppend(t, store, "t", "b", rawEvents(startedFrom("b", "root")), pgagui.AppendOptions{Parallel: true})
	mustAppend(t, store, "t", "a", rawEvents(token(1), token(1)))
	mustAppend(t, store, "t", "b", rawEvents(token(2), token(3)))
	var live []pgagui.Event
	for event, err := range store.Follow(t.Context(), "t", pgagui.FollowOptions{History: compaction.StreamShape}) {
		must.Do(t, err)
		if event.RunID != "root" {
			live = append(live, event)
		}
		if event.Seq == 8 {
			mustAppend(t, store, "t", "a", rawEvents(finished))
			mustAppend(t, store, "t", "b", rawEvents(finished))
		}
	}
	wantSeqs(t, "the runs that go on side by side", live, 3, 10)

	// One that has ended is no part of the head's history.
	mustAppend(t, store, "t", "c", rawEvents(startedFrom("c", "root")))
	var history []string
	for event, err := range store.Follow(t.Context(), "t", pgagui.FollowOptions{History: compaction.StreamShape, Stay: true}) {
		must.Do(t, err)
		history = append(history, fmt.Sprint(event.RunID, " ", event.Seq))
		if event.Seq > 0 {
			break
		}
	}
	if got := strings.Join(history, ", "); got != "root 0, root 0, c 11" {
		t.Errorf("the history of c: %s", got)
	}
}

func TestNoGoroutineIsLeftByFollowersThatLeave(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	mustAppend(t, store, "t", "r", rawEvents(started("r"), token(1), token(2)))
	for range 20 {
		for event, err := range store.Follow(t.Context(), "t", pgagui.FollowOptions{Stay: true}) {
			must.Do(t, err)
			if event.Seq == 2 {
				break
			}
		}
	}
}

func TestManyFollowersShareOneConnection(t *testing.T) {
	t.Parallel()
	address := testdb.New(t)
	pool, _ := connectCounted(t, address, 1)
	store := pgagui.New(pool, nil)
	beside := pgagui.New(testdb.Connect(t, address), nil)
	recorder := newRecorder(t, beside, &pgagui.RecorderConfig{Linger: 20 * time.Millisecond})
	agents := startAgents(t, 20, recorder)
	const followersEach = 10
	var quick, slow errgroup.Group
	quickEnded := make(chan struct{})
	for _, thread := range agents.threads {
		following := func(pause func()) func() error {
			return func() error {
				var last int64
				for event, err := range store.Follow(t.Context(), thread, pgagui.FollowOptions{RunID: "r", Stay: true}) {
					if err != nil {
						return err
					}
					if event.Seq != last+1 {
						return fmt.Errorf("thread %s: seq %d after %d", thread, event.Seq, last)
					}
					if last = event.Seq; last == 2 {
						pause()
					}
				}
				if status, err := beside.Status(t.Context(), pgagui.RunRef{ThreadID: thread, RunID: "r"}); err != nil || status.LastSeq != last {
					return fmt.Errorf("thread %s: ended after seq %d, %+v, %w", thread, last, status, err)
				}
				return nil
			}
		}
		for range followersEach - 1 {
			quick.Go(following(func() {}))
		}
		slow.Go(following(func() { <-quickEnded }))
	}
	wait.For(t, "there is much to follow", func() bool { return recorder.Stats().Events > 10_000 })
	agents.stop(t, beside)
	must.Report(t, quick.Wait())
	close(quickEnded)
	must.Report(t, slow.Wait())
}

// counting is a database that counts who asks which runs are in progress.
type counting struct {
	pgagui.DB
	asked atomic.Int64
}

func (c *counting) QueryRow(ctx context.Context, sql string, arguments ...any) pgx.Row {
	if strings.Contains(sql, "name: RunsInProgress") {
		c.asked.Add(1)
	}
	return c.DB.QueryRow(ctx, sql, arguments...)
}

// A page that is loaded by many costs the database one read each, and not one more to find out whether the run goes on.
func TestWhatTheHubKnowsOfARunIsNotAskedForAgain(t *testing.T) {
	t.Parallel()
	writer, pool := newStore(t)
	database := &counting{DB: pool}
	store := pgagui.New(database, &pgagui.Config{PollInterval: time.Millisecond})
	mustAppend(t, writer, "t", "r", rawEvents(started("r")))
	const followers = 20
	seen, group := make(chan pgagui.Event), errgroup.Group{}
	join := func() {
		group.Go(func() error {
			for event, err := range store.Follow(t.Context(), "t", pgagui.FollowOptions{}) {
				if err != nil {
					return err
				}
				seen <- event
			}
			return nil
		})
	}
	join()
	<-seen
	mustAppend(t, writer, "t", "r", rawEvents(token(1)))
	<-seen // the hub asks for news of the thread
	before := database.asked.Load()
	for range followers {
		join()
	}
	for range 2 * followers {
		<-seen
	}
	mustAppend(t, writer, "t", "r", rawEvents(token(2)))
	for range 1 + followers {
		<-seen
	}
	if asked := database.asked.Load() - before; asked > 0 {
		t.Errorf("%d followers that joined asked %d times", followers, asked)
	}
	mustAppend(t, writer, "t", "r", rawEvents(finished))
	for range 1 + followers {
		<-seen
	}
	must.Report(t, group.Wait())
	if asked := database.asked.Load() - before; asked == 0 {
		t.Error("nobody asked whether another run is in progress")
	}
}

// meanwhile is a database where something happens when a query has been answered, and before the caller has the answer.
type meanwhile struct {
	pgagui.DB
	polls  atomic.Int64
	happen func(poll int64)
}

func (m *meanwhile) Query(ctx context.Context, sql string, arguments ...any) (pgx.Rows, error) {
	rows, err := m.DB.Query(ctx, sql, arguments...)
	if err != nil || !strings.Contains(sql, "agui.poll") {
		return rows, err
	}
	return &answered{Rows: rows, happen: sync.OnceFunc(func() { m.happen(m.polls.Add(1)) })}, nil
}

type answered struct {
	pgx.Rows
	happen func()
}

func (a *answered) Next() bool {
	more := a.Rows.Next()
	a.happen()
	return more
}

func TestAWakeWhileTheHubAsksIsNotLost(t *testing.T) {
	t.Parallel()
	writer, pool := newStore(t)
	mustAppend(t, writer, "t", "r", rawEvents(started("r")))
	database := &meanwhile{DB: pool}
	store := pgagui.New(database, &pgagui.Config{PollInterval: time.Hour}) // it lives by what it is told
	database.happen = func(poll int64) {
		switch poll {
		case 2: // the first one was the follower's
			mustAppend(t, writer, "t", "r", rawEvents(token(1)))
			store.Wake("t")
		case 3:
			mustAppend(t, writer, "t", "r", rawEvents(finished))
			store.Wake("t")
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	seen := must.Have(follow(ctx, store, "t", pgagui.FollowOptions{}))(t)
	wantSeqs(t, "the follower", seen, 1, 3)
}
