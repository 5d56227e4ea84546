package live

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/refusal"
)

func newTestSender(t *testing.T) *Sender {
	t.Helper()
	s := NewSender(NewHub(HubConfig{}), SenderConfig{MaxBatchEvents: 3, MaxBatchBytes: 100, MaxBufferBytes: 64 << 20, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(s.Stop)
	return s
}

// onlyLane is that of all runs.
func (s *Sender) onlyLane() *lane { return s.laneOf(&Run{}) }

func eventOf(size int) json.RawMessage {
	return json.RawMessage(`{"a":"` + strings.Repeat("x", size-len(`{"a":""}`)) + `"}`)
}

func mustAdd(t *testing.T, run *Run, events ...json.RawMessage) {
	t.Helper()
	must.Do(t, run.Add(t.Context(), events, false))
}

func TestACallTakesTheRunsThatWaitLongest(t *testing.T) {
	t.Parallel()
	s := newTestSender(t)
	for n := range maxCallRuns + 2 {
		mustAdd(t, s.Begin(t.Context(), RunConfig{RunID: fmt.Sprint(n)}), eventOf(10))
	}
	first, second := s.nextCall(s.onlyLane()), s.nextCall(s.onlyLane())
	if len(first.runs) != maxCallRuns || first.params.RunIds[0] != "0" || first.params.RunIds[maxCallRuns-1] != fmt.Sprint(maxCallRuns-1) {
		t.Errorf("the first call has %d runs", len(first.runs))
	}
	if want := []string{fmt.Sprint(maxCallRuns), fmt.Sprint(maxCallRuns + 1)}; !reflect.DeepEqual(second.params.RunIds, want) {
		t.Errorf("the second call has runs %v, want %v", second.params.RunIds, want)
	}
	if third := s.nextCall(s.onlyLane()); len(third.runs) != 0 {
		t.Errorf("the third call has %d runs", len(third.runs))
	}
}

func TestTheBytesOfACallAreBounded(t *testing.T) {
	t.Parallel()
	s := newTestSender(t)
	const size = maxSharedBytes
	for n := range 2 * maxCallBytes / size {
		mustAdd(t, s.Begin(t.Context(), RunConfig{RunID: fmt.Sprint(n)}), eventOf(size))
	}
	if next := s.nextCall(s.onlyLane()); len(next.runs) != maxCallBytes/size {
		t.Errorf("a call has %d runs of %d bytes", len(next.runs), size)
	}
}

func TestABatchIsBounded(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		sizes []int
		want  int // events of the first batch
	}{
		"the number of events": {[]int{10, 10, 10, 10}, 3},
		"their bytes":          {[]int{60, 40, 10}, 2},
		"a large one is alone": {[]int{150, 10}, 1},
		"all fit":              {[]int{50, 50}, 2},
	} {
		s := newTestSender(t)
		run := s.Begin(t.Context(), RunConfig{})
		for _, size := range test.sizes {
			mustAdd(t, run, eventOf(size))
		}
		if next := s.nextCall(s.onlyLane()); next.counts[0] != test.want || run.inCall != test.want {
			t.Errorf("%s: the batch has %d events, want %d", name, next.counts[0], test.want)
		}
	}
}

// At full speed a commit brings a full batch of each run.
func TestRunsWithFullBuffersShareEachCall(t *testing.T) {
	t.Parallel()
	const runs, batches = 8, 4
	s := newTestSender(t)
	for n := range runs {
		run := s.Begin(t.Context(), RunConfig{RunID: fmt.Sprint(n)})
		for range batches * s.config.MaxBatchEvents {
			mustAdd(t, run, eventOf(10))
		}
	}
	calls := 0
	for next := s.nextCall(s.onlyLane()); len(next.runs) > 0; next = s.nextCall(s.onlyLane()) {
		calls++
		s.mu.Lock()
		for i, run := range next.runs {
			run.inCall = 0
			run.stored(run.seq, next.counts[i], db.AppendManyRow{LastSeq: run.seq + int64(next.counts[i])})
		}
		s.mu.Unlock()
	}
	if calls != batches {
		t.Errorf("%d runs of %d batches took %d calls", runs, batches, calls)
	}
}

// Inputs and parents are rare: an ordinary call has no arrays of them.
func TestOnlyBeginningsBringInputsAndParents(t *testing.T) {
	t.Parallel()
	s := newTestSender(t)
	add := func(configs ...RunConfig) call {
		for _, config := range configs {
			mustAdd(t, s.Begin(t.Context(), config), eventOf(10))
		}
		next := s.nextCall(s.onlyLane())
		next.fill()
		return next
	}
	root, parent := "", "p"
	next := add(RunConfig{}, RunConfig{Parent: &parent}, RunConfig{Parent: &root, Input: json.RawMessage(`{}`)}, RunConfig{})
	if want := []*string{nil, &parent, &root, nil}; !reflect.DeepEqual(next.params.ParentRunIds, want) {
		t.Errorf("the parents are not %v", want)
	}
	if want := []*string{nil, nil, new("{}"), nil}; !reflect.DeepEqual(next.params.Inputs, want) {
		t.Errorf("the inputs are not %v", want)
	}
	next = add(RunConfig{}, RunConfig{Seq: 7, Parent: &parent, Input: json.RawMessage(`{}`)})
	if next.params.ParentRunIds != nil || next.params.Inputs != nil {
		t.Error("no run begins, but the call has a parent or an input")
	}
}

// deadlines is a database that says how much time a call has.
type deadlines struct {
	Calls   // no more of them
	appends chan time.Duration
}

func (d deadlines) AppendMany(ctx context.Context, _ db.AppendManyParams) ([]db.AppendManyRow, error) {
	end, _ := ctx.Deadline()
	d.appends <- time.Until(end)
	return nil, nil
}

func (deadlines) KeepAlive(context.Context, db.KeepAliveParams) ([]db.KeepAliveRow, error) {
	return nil, nil
}

func TestALargeCallHasMoreTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		database := deadlines{appends: make(chan time.Duration, 1)}
		s := newTestSender(t)
		s.config.Calls, s.config.CallTimeout = database, 30*time.Second
		for _, test := range []struct {
			input, event int
			want         time.Duration
		}{
			{0, 100, 30 * time.Second},
			{60 << 20, 3 << 20, 93 * time.Second},
		} {
			run := s.Begin(t.Context(), RunConfig{Input: make([]byte, test.input)})
			mustAdd(t, run, eventOf(test.event))
			next := call{lane: s.onlyLane(), calls: database}
			next.add(run)
			must.Do(t, s.send(next))
			if got := <-database.appends; got != test.want {
				t.Errorf("a call with %d bytes has %s, want %s", test.input+test.event, got, test.want)
			}
		}
	})
}

// moving is a node that loses the thread of all calls to another one, while a connection to it breaks.
type moving struct {
	Calls // no more of them
	calls int
}

func (m *moving) AppendMany(context.Context, db.AppendManyParams) ([]db.AppendManyRow, error) {
	if m.calls++; m.calls == 1 {
		return nil, io.ErrUnexpectedEOF
	}
	return []db.AppendManyRow{{CallNo: 1, ErrorCode: refusal.Moved.State}}, nil
}

func (*moving) KeepAlive(context.Context, db.KeepAliveParams) ([]db.KeepAliveRow, error) {
	return nil, &pgconn.PgError{Code: refusal.Moved.State}
}

// cluster finds the thread of a call.
type cluster struct{ Calls }

func (cluster) AppendMany(_ context.Context, params db.AppendManyParams) ([]db.AppendManyRow, error) {
	return []db.AppendManyRow{{CallNo: 1, LastSeq: params.AfterSeqs[0] + 1}}, nil
}

func (cluster) KeepAlive(context.Context, db.KeepAliveParams) ([]db.KeepAliveRow, error) {
	return nil, nil
}

// The heartbeat before a repeated call is refused because the thread is being moved: the call finds it.
func TestACallIsRepeatedWhileItsThreadIsMoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTestSender(t)
		s.config.CallTimeout, s.config.CheckEvery = time.Second, time.Hour
		s.config.ErrorOf = func(err error) error { return err }
		s.config.Calls, s.config.Lanes = cluster{}, lanesOf{&moving{}, func(Key) string { return "a" }}
		s.Start()
		run := s.Begin(t.Context(), RunConfig{RunID: "r", Seq: 1})
		mustAdd(t, run, eventOf(10))
		if err := run.Flush(t.Context()); err != nil || run.Seq() != 2 {
			t.Errorf("the event has seq %d, error %v", run.Seq(), err)
		}
		s.Stop()
	})
}
