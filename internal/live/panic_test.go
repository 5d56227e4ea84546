package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/panics"
)

// A panickyLog panics in each call that has events of one run, and in the first heartbeat.
type panickyLog struct {
	modelLog
	of    string
	beats int
}

func (l *panickyLog) AppendMany(ctx context.Context, params db.AppendManyParams) ([]db.AppendManyRow, error) {
	if slices.Contains(params.RunIds, l.of) {
		var none []int
		_ = none[len(params.RunIds)]
	}
	return l.modelLog.AppendMany(ctx, params)
}

func (l *panickyLog) KeepAlive(context.Context, db.KeepAliveParams) ([]db.KeepAliveRow, error) {
	if l.beats++; l.beats == 1 {
		panic("a heartbeat")
	}
	return nil, nil
}

func TestAPanicEndsOneRecordingWithItsEventsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &panickyLog{modelLog: modelLog{random: rand.New(rand.NewPCG(1, 1)), events: map[string][]string{}}, of: "1"}
		sender := NewSender(NewHub(HubConfig{}), SenderConfig{
			Calls: log, Linger: 2 * time.Millisecond, MaxBatchEvents: 4, MaxBatchBytes: 1 << 20, MaxBufferBytes: 1 << 20,
			CheckEvery: time.Second, CallTimeout: time.Minute, Logger: slog.New(slog.DiscardHandler), ErrorOf: func(err error) error { return err },
		})
		sender.Start()
		defer sender.Stop()
		var runs [3]*Run
		for i := range runs {
			runs[i] = sender.Begin(t.Context(), RunConfig{Key: Key{ThreadID: fmt.Sprint(i)}, RunID: fmt.Sprint(i), IsClaimed: true})
			mustAdd(t, runs[i], json.RawMessage(`{"type":"CUSTOM"}`))
		}
		time.Sleep(3 * time.Second) // heartbeats, too; in the bubble it takes no time
		for i, run := range runs {
			state, err := run.Finish(t.Context())
			switch {
			case i == 1 && (!errors.Is(err, panics.Err) || !errors.Is(context.Cause(run.Context()), panics.Err) || len(state.Pending) != 1):
				t.Errorf("the run whose call panics: %v, %+v", err, state)
			case i != 1 && (err != nil || state.Seq != 1):
				t.Errorf("run %d: %v, %+v", i, err, state)
			}
		}
		if log.beats < 2 {
			t.Errorf("%d heartbeats", log.beats)
		}
	})
}

// A panickyPoller panics in its first query.
type panickyPoller struct {
	Calls   // no more of them
	queries int
}

func (p *panickyPoller) Poll(context.Context, db.PollParams) ([]db.PollRow, error) {
	if p.queries++; p.queries == 1 {
		panic("a query")
	}
	return nil, nil
}

func TestAPanicInAPollLeavesTheHubPolling(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		poller := &panickyPoller{}
		h := NewHub(HubConfig{Calls: func(string) Calls { return poller }, Logger: slog.New(slog.DiscardHandler)})
		topic := h.Join(Key{ThreadID: "t"})
		defer h.Leave(topic)
		h.Open(topic, Position{}, nil)
		_, changed, _ := h.After(topic, Position{})
		<-changed // its followers read from the database
		h.Open(topic, Position{}, nil)
		time.Sleep(time.Second)
		synctest.Wait()
		if poller.queries < 2 {
			t.Errorf("the hub has polled %d times", poller.queries)
		}
	})
}
