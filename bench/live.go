package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pgagui/pgagui"
)

// liveWriters is the number of connections of the writers, as in the phase append. Audiences have
// their own.
const liveWriters = 8

// live measures runs in progress: the delay until followers receive an event, the cost of followers
// for writers and in memory, and the number of runs that one process records.
//
// Recorders, writers and followers are in this process. Followers have a separate Store and
// connection, so they receive events only through the database. Everything, including the server,
// shares the cores of one machine.
func (b *bench) live(ctx context.Context) error {
	database, err := b.server.create(ctx, liveWriters)
	if err != nil {
		return err
	}
	if _, err := database.Exec(ctx, notifyTrigger); err != nil {
		return err
	}
	s := &stage{bench: b, database: database, bodies: b.bodies()}
	for _, measure := range []func(context.Context) error{s.latency, s.appendWhileFollowed, s.recordWhileFollowed, s.joining, s.manyRuns} {
		if err := measure(ctx); err != nil {
			return err
		}
	}
	return database.drop(ctx)
}

// stage is the database in which the runs are in progress.
type stage struct {
	*bench
	*database
	bodies []body
}

// notifyTrigger is the usual alternative to polling: each commit notifies which threads have new
// events. It is off except while it is measured.
const notifyTrigger = `
	create function notify_followers() returns trigger language plpgsql as $$
	begin
		perform pg_notify('agui', new.thread_key::text);
		return null;
	end $$;
	create trigger notify_followers after insert on agui.batch for each row execute function notify_followers();
	alter table agui.batch disable trigger notify_followers`

// way is the way in which followers receive new events.
type way struct {
	name     string
	interval time.Duration // polling interval; 0 means the default
	notified bool
}

var (
	polling   = way{name: "polling"}
	notifying = way{name: "NOTIFY", interval: time.Second, notified: true}
)

// set turns the trigger on or off.
func (s *stage) set(ctx context.Context, by way) error {
	state := "disable"
	if by.notified {
		state = "enable"
	}
	_, err := s.Exec(ctx, "alter table agui.batch "+state+" trigger notify_followers")
	return err
}

// latency measures the delay from the agent to all followers of its run.
func (s *stage) latency(ctx context.Context) error {
	const limit = 50 // milliseconds: the documented maximum for followers
	process, err := s.openEmitters(ctx, "watched", s.sizes.liveThreads, nil)
	if err != nil {
		return err
	}
	defer process.discard()
	var delays notes
	measured := func(by way) side {
		return side{by.name, func(ctx context.Context) (p99 float64, err error) {
			if err := s.set(ctx, by); err != nil {
				return 0, err
			}
			audience, err := s.gather(ctx, by, process.threads(), s.sizes.liveFollowers, true)
			if err != nil {
				return 0, err
			}
			defer func() { err = errors.Join(err, audience.leave()) }()
			if err := process.emit(ctx, s.sizes.liveFor, func(number int) float64 { return float64(20 + number%31) }); err != nil {
				return 0, err
			}
			if err := audience.catchUp(process.lastSeqs()); err != nil {
				return 0, err
			}
			if err := audience.leave(); err != nil {
				return 0, err
			}
			sinceRecord, sinceStored := process.delays(audience)
			delays.addDelays("from Record to followers, "+by.name, sinceRecord)
			delays.addDelays("from append to followers, "+by.name, sinceStored)
			return percentile(sinceStored, 0.99), nil
		}}
	}
	what := fmt.Sprintf("%d threads in progress, %d followers", s.sizes.liveThreads, s.followers())
	figures, err := s.rounds(ctx, what, measured(polling), measured(notifying))
	if err != nil {
		return err
	}
	limits := slices.Repeat([]float64{limit}, s.Repeat)
	s.report.add(Measurement{
		Phase: "live", What: fmt.Sprintf("from append to %d followers, p99", s.followers()), Unit: "ms",
		Ours: Side{Name: "pgagui"}, Against: Side{Name: "promised"}, Target: atMost("L1", 1),
	}, figures[polling.name], limits)
	s.report.add(Measurement{
		Phase: "live", What: "the same, beside NOTIFY", Unit: "ms", Ours: Side{Name: "pgagui"}, Against: Side{Name: notifying.name},
	}, figures[polling.name], figures[notifying.name])
	s.report.addFigures("live", delays)
	return process.close(ctx)
}

// followers returns the number of followers in an audience.
func (s *stage) followers() int { return s.sizes.liveThreads * s.sizes.liveFollowers }

// appendWhileFollowed measures the cost of followers for writers that append a few events per call.
func (s *stage) appendWhileFollowed(ctx context.Context) error {
	const batch = 4
	streams := newStreams(s.sizes.liveThreads, batch, s.bodies)
	threads := make([]string, len(streams))
	for i, stream := range streams {
		threads[i] = stream.threadID
	}
	write := func(ctx context.Context) (float64, error) {
		return appendRate(ctx, s.sizes.liveSlice, streams, func(ctx context.Context, stream *stream, call call) error {
			_, err := s.store.Append(ctx, pgagui.RunRef{ThreadID: stream.threadID, RunID: call.runID}, call.events, pgagui.AppendOptions{})
			return err
		})
	}
	// Create the threads, so that they can be followed.
	if _, err := write(ctx); err != nil {
		return err
	}
	return s.whileFollowed(ctx, fmt.Sprintf("append %d events a call, %d writers, %d followers", batch, liveWriters, s.followers()), threads, write)
}

// recordWhileFollowed measures the same for a process that records runs at full speed.
func (s *stage) recordWhileFollowed(ctx context.Context) error {
	// The buffer is small, so that events recorded in a slice are also stored in it.
	process, err := s.openEmitters(ctx, "recorded", s.sizes.liveThreads, &pgagui.RecorderConfig{MaxBufferBytes: 32 << 10})
	if err != nil {
		return err
	}
	defer process.discard()
	write := func(ctx context.Context) (float64, error) {
		before, begin := process.recorder.Stats().Events, time.Now()
		err := process.emit(ctx, s.sizes.liveSlice, nil)
		return float64(process.recorder.Stats().Events-before) / time.Since(begin).Seconds(), err
	}
	what := fmt.Sprintf("record %d runs, %d followers", s.sizes.liveThreads, s.followers())
	if err := s.whileFollowed(ctx, what, process.threads(), write); err != nil {
		return err
	}
	return process.close(ctx)
}

// whileFollowed measures writers with and without followers.
func (s *stage) whileFollowed(ctx context.Context, what string, threads []string, write func(context.Context) (float64, error)) error {
	const unfollowed = "without followers"
	alone := side{unfollowed, func(ctx context.Context) (float64, error) {
		if err := s.set(ctx, polling); err != nil {
			return 0, err
		}
		return write(ctx)
	}}
	followed := func(by way) side {
		return side{by.name, func(ctx context.Context) (rate float64, err error) {
			if err := s.set(ctx, by); err != nil {
				return 0, err
			}
			audience, err := s.gather(ctx, by, threads, s.sizes.liveFollowers, false)
			if err != nil {
				return 0, err
			}
			defer func() { err = errors.Join(err, audience.leave()) }()
			if rate, err = write(ctx); err != nil {
				return 0, err
			}
			// All followers must catch up; otherwise their cost would not be measured.
			ends, err := s.ends(ctx, threads)
			if err != nil {
				return 0, err
			}
			return rate, audience.catchUp(ends)
		}}
	}
	figures, err := s.rounds(ctx, what, alone, followed(polling), followed(notifying))
	if err != nil {
		return err
	}
	s.report.add(Measurement{
		Phase: "live", What: what, Unit: "events/s", Ours: Side{Name: "pgagui"}, Against: Side{Name: unfollowed}, Target: atLeast("L2", 0.75),
	}, figures[polling.name], figures[unfollowed])
	s.report.add(Measurement{
		Phase: "live", What: "the same, with NOTIFY", Unit: "events/s", Ours: Side{Name: notifying.name}, Against: Side{Name: unfollowed},
	}, figures[notifying.name], figures[unfollowed])
	return nil
}

// joining measures the time and the memory that additional followers need.
func (s *stage) joining(ctx context.Context) (err error) {
	if err := s.set(ctx, polling); err != nil {
		return err
	}
	process, err := s.openEmitters(ctx, "weighed", s.sizes.liveThreads, nil)
	if err != nil {
		return err
	}
	defer process.discard()
	audience, err := s.gather(ctx, polling, process.threads(), s.sizes.liveFollowers, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, audience.leave()) }()
	var costs notes
	for round := range 1 + s.Repeat {
		s.Progress(fmt.Sprintf("followers join, round %d of %d", round, s.Repeat))
		before, begin := memoryInUse(), time.Now()
		if err := audience.join(ctx, process.threads(), s.sizes.liveFollowers); err != nil {
			return err
		}
		costs.add(fmt.Sprintf("until %d more followers are there", s.followers()), "ms", milliseconds(time.Since(begin)))
		costs.add(fmt.Sprintf("memory of a follower, of %d more", s.followers()), "bytes", max(0, memoryInUse()-before)/float64(s.followers()))
	}
	s.report.addFigures("live", costs)
	return process.close(ctx)
}

// memoryInUse returns the bytes of heap and stacks after a garbage collection.
func memoryInUse() float64 {
	runtime.GC()
	runtime.GC() // frees what finalizers and pools kept in the first collection
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapInuse + stats.StackInuse)
}

// manyRuns records many runs in one process at the pace of models, and compares this with one
// append per token.
func (s *stage) manyRuns(ctx context.Context) error {
	const tokensPerSecond = 50
	runs := s.sizes.liveRuns
	pace := func(int) float64 { return tokensPerSecond }
	var notes notes
	var processes []*emitters
	recorded := func(name string, durability pgagui.Durability) (side, error) {
		process, err := s.openEmitters(ctx, name, runs, &pgagui.RecorderConfig{Durability: durability})
		if err != nil {
			return side{}, err
		}
		processes = append(processes, process)
		return side{name, func(ctx context.Context) (float64, error) {
			before, begin := process.recorder.Stats(), time.Now()
			err := process.emit(ctx, s.sizes.liveFor, pace)
			seconds, after := time.Since(begin).Seconds(), process.recorder.Stats()
			if err != nil {
				return 0, err
			}
			events, commits := float64(after.Events-before.Events), float64(after.Commits-before.Commits)
			notes.addDelays("from Record to stored, "+name, process.delaysUntilStored())
			notes.add("commits, "+name, "a second", commits/seconds)
			notes.add("events a commit, "+name, "events", events/commits)
			return events / seconds, nil
		}}, nil
	}
	const durable, relaxed, oneByOne = "durable", "relaxed", "a call a token"
	ours, err := recorded(durable, pgagui.Durable)
	defer func() {
		for _, process := range processes {
			process.discard()
		}
	}()
	if err != nil {
		return err
	}
	oursRelaxed, err := recorded(relaxed, pgagui.Relaxed)
	if err != nil {
		return err
	}
	streams := newStreams(runs, 1, s.bodies)
	calls := side{oneByOne, func(ctx context.Context) (float64, error) {
		rate, err := s.appendAtPace(ctx, streams, tokensPerSecond)
		notes.add("commits, "+oneByOne, "a second", rate)
		return rate, err
	}}

	what := fmt.Sprintf("record %d runs of %d tokens/s", runs, tokensPerSecond)
	figures, err := s.rounds(ctx, what, ours, oursRelaxed, calls)
	if err != nil {
		return err
	}
	emitted := slices.Repeat([]float64{float64(runs * tokensPerSecond)}, s.Repeat)
	s.report.add(Measurement{
		Phase: "live", What: what, Unit: "events/s", Ours: Side{Name: "pgagui"}, Against: Side{Name: "emitted"}, Target: atLeast("L3", 0.95),
	}, figures[durable], emitted)
	s.report.add(Measurement{
		Phase: "live", What: "the same, beside Append", Unit: "events/s", Ours: Side{Name: "pgagui"}, Against: Side{Name: oneByOne},
	}, figures[durable], figures[oneByOne])
	s.report.addFigures("live", notes)
	for _, process := range processes {
		if err := process.close(ctx); err != nil {
			return err
		}
	}
	return nil
}

// appendAtPace appends each token in its own call. It returns the tokens per second, which is less
// than the pace if the database is too slow.
func (s *stage) appendAtPace(ctx context.Context, streams []*stream, perSecond float64) (float64, error) {
	begin := time.Now()
	counts := make([]int, len(streams))
	group, ctx := errgroup.WithContext(ctx)
	for i, stream := range streams {
		group.Go(func() error {
			return atPace(ctx, begin, s.sizes.liveFor, perSecond, float64(i)/float64(len(streams)), func() error {
				call := stream.next()
				_, err := s.store.Append(ctx, pgagui.RunRef{ThreadID: stream.threadID, RunID: call.runID}, call.events, pgagui.AppendOptions{})
				counts[i]++
				return err
			})
		})
	}
	err := group.Wait()
	total := 0
	for _, count := range counts {
		total += count
	}
	return float64(total) / time.Since(begin).Seconds(), err
}

// atPace calls do perSecond times per second for the duration. The first call comes after a share
// of the interval between two calls. If a call is late, the next one follows at once. With
// perSecond 0 it never pauses.
func atPace(ctx context.Context, begin time.Time, duration time.Duration, perSecond, share float64, do func() error) error {
	for i := 0; ; i++ {
		if perSecond > 0 {
			due := begin.Add(time.Duration((float64(i) + share) / perSecond * float64(time.Second)))
			select {
			case <-time.After(time.Until(due)):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if i > 0 && time.Since(begin) >= duration {
			return nil
		}
		if err := do(); err != nil {
			return err
		}
	}
}
