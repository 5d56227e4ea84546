package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/pgagui/pgagui"
)

// emitters are the agents of one process. It records their runs, each in its own thread.
type emitters struct {
	pool     *pgxpool.Pool
	recorder *pgagui.Recorder
	stored   *storedTimes
	all      []*emitter
}

// emitter simulates an agent: it emits the events of one run.
type emitter struct {
	threadID  string
	recording *pgagui.Recording
	body      []json.RawMessage
	emitted   int

	// The last call of emit: the seq before it, and the time of each event.
	before int64
	times  []time.Time
}

// openEmitters begins a run in each of a number of new threads. The emitters have their own
// connections.
func (s *stage) openEmitters(ctx context.Context, name string, threads int, config *pgagui.RecorderConfig) (*emitters, error) {
	e := &emitters{stored: &storedTimes{}}
	settings := s.Config()
	settings.ConnConfig.Tracer = e.stored
	var err error
	if e.pool, err = pgxpool.NewWithConfig(ctx, settings); err != nil {
		return nil, err
	}
	e.recorder = pgagui.New(e.pool, nil).NewRecorder(config)
	for i := range threads {
		threadID := fmt.Sprintf("thread_%024d_%s", i, name)
		one := &emitter{
			threadID: threadID, body: s.bodies[i%len(s.bodies)].events,
		}
		run := pgagui.RunRef{ThreadID: threadID, RunID: threadID + "-run"}
		if one.recording, err = e.recorder.Begin(ctx, run, pgagui.BeginOptions{}); err != nil {
			return nil, errors.Join(err, e.close(ctx))
		}
		e.all = append(e.all, one)
		begins := fmt.Appendf(nil, `{"type":"RUN_STARTED","threadId":%q,"runId":"%s-run"}`, threadID, threadID)
		if err := one.recording.Record(ctx, begins); err != nil {
			return nil, errors.Join(err, e.close(ctx))
		}
	}
	for _, one := range e.all {
		if err := one.recording.Flush(ctx); err != nil {
			return nil, errors.Join(err, e.close(ctx))
		}
	}
	return e, nil
}

// emit makes all emitters emit events for the duration, and returns when the events are stored.
// perSecond is the pace of each emitter in events per second; nil means full speed.
func (e *emitters) emit(ctx context.Context, duration time.Duration, perSecond func(number int) float64) error {
	e.stored.reset()
	begin := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	for i, one := range e.all {
		one.before, one.times = one.recording.Seq(), one.times[:0]
		pace := 0.0
		if perSecond != nil {
			pace = perSecond(i)
		}
		group.Go(func() error {
			err := atPace(ctx, begin, duration, pace, float64(i)/float64(len(e.all)), func() error {
				event := one.body[one.emitted%len(one.body)]
				one.emitted++
				one.times = append(one.times, time.Now())
				return one.recording.Record(ctx, event)
			})
			if err != nil {
				return err
			}
			return one.recording.Flush(ctx)
		})
	}
	return group.Wait()
}

func (e *emitters) threads() []string {
	threads := make([]string, len(e.all))
	for i, one := range e.all {
		threads[i] = one.threadID
	}
	return threads
}

func (e *emitters) lastSeqs() []int64 {
	seqs := make([]int64, len(e.all))
	for i, one := range e.all {
		seqs[i] = one.recording.Seq()
	}
	return seqs
}

// delays returns how many milliseconds events took to reach followers: since the call of Record,
// and since the database confirmed that they are stored.
func (e *emitters) delays(audience *audience) (sinceRecord, sinceStored []float64) {
	for _, f := range audience.followers {
		one := e.all[f.thread]
		for _, arrival := range f.arrivals {
			if i := arrival.seq - one.before - 1; i >= 0 {
				sinceRecord = append(sinceRecord, milliseconds(arrival.at.Sub(one.times[i])))
				// An event may arrive before the confirmation reaches the writer; that counts as 0.
				sinceStored = append(sinceStored, max(0, milliseconds(arrival.at.Sub(e.stored.of(one.threadID, arrival.seq)))))
			}
		}
	}
	return sinceRecord, sinceStored
}

// delaysUntilStored returns how many milliseconds each event waited until it was stored.
func (e *emitters) delaysUntilStored() []float64 {
	var delays []float64
	for _, one := range e.all {
		for i, emitted := range one.times {
			delays = append(delays, milliseconds(e.stored.of(one.threadID, one.before+int64(i)+1).Sub(emitted)))
		}
	}
	return delays
}

// close ends the runs and closes the connections.
func (e *emitters) close(ctx context.Context) error {
	err := e.recorder.Close(ctx)
	e.pool.Close()
	return err
}

// discard closes the connections after an error, without waiting for the runs. After close it does
// nothing.
func (e *emitters) discard() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = e.close(ctx)
}

// storedTimes records when the database confirmed that events are stored. It traces the connections
// of a Recorder.
type storedTimes struct {
	mu    sync.Mutex
	calls map[string][]storedCall // by thread, in order
}

// storedCall is an append of the events after a seq.
type storedCall struct {
	afterSeq    int64
	confirmedAt time.Time
}

func (s *storedTimes) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = map[string][]storedCall{}
}

type argumentsKey struct{}

func (s *storedTimes) TraceQueryStart(ctx context.Context, _ *pgx.Conn, query pgx.TraceQueryStartData) context.Context {
	if !strings.Contains(query.SQL, "agui.append_many") {
		return ctx
	}
	return context.WithValue(ctx, argumentsKey{}, query.Args)
}

func (s *storedTimes) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, query pgx.TraceQueryEndData) {
	arguments, isAppend := ctx.Value(argumentsKey{}).([]any)
	if !isAppend || query.Err != nil {
		return
	}
	threads, afterSeqs := arguments[0].([]string), arguments[3].([]int64) // as in db.AppendManyParams
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, thread := range threads {
		if s.calls != nil {
			s.calls[thread] = append(s.calls[thread], storedCall{afterSeqs[i], now})
		}
	}
}

// of returns when an event was stored. The event must have been stored since the last reset.
func (s *storedTimes) of(threadID string, seq int64) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := s.calls[threadID]
	next, _ := slices.BinarySearchFunc(calls, seq, func(call storedCall, seq int64) int { return cmp.Compare(call.afterSeq, seq) })
	return calls[next-1].confirmedAt
}

func milliseconds(duration time.Duration) float64 {
	return float64(duration) / float64(time.Millisecond)
}
