package live

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pgagui/pgagui/db"
)

// A modelLog is the log of a cluster: what agui.append_many does for runs of one thread each, where a call may take any time before and
// after it stores.
type modelLog struct {
	Calls  // no more of them
	mu     sync.Mutex
	random *rand.Rand
	events map[string][]string // by run
}

func (l *modelLog) delay(most int) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Duration(l.random.IntN(most)) * time.Millisecond
}

func (l *modelLog) AppendMany(_ context.Context, params db.AppendManyParams) (answers []db.AppendManyRow, err error) {
	time.Sleep(l.delay(30))
	l.mu.Lock()
	for i, run := range params.RunIds {
		var events []json.RawMessage
		if err := json.Unmarshal([]byte(params.Events[i]), &events); err != nil {
			return nil, err
		}
		answer := db.AppendManyRow{CallNo: int32(i + 1)}
		stored := l.events[run]
		for n, event := range events {
			switch at := int(params.AfterSeqs[i]) + n; {
			case at < len(stored) && stored[at] == string(event): // a repeat
			case at == len(stored):
				stored = append(stored, string(event))
			default:
				answer.ErrorCode, answer.Error = "UI006", "another event has the seq"
			}
		}
		if answer.ErrorCode == "" {
			l.events[run] = stored
			answer.LastSeq = params.AfterSeqs[i] + int64(len(events))
		}
		answers = append(answers, answer)
	}
	l.mu.Unlock()
	time.Sleep(l.delay(30))
	return answers, nil
}

func (l *modelLog) KeepAlive(context.Context, db.KeepAliveParams) ([]db.KeepAliveRow, error) {
	return nil, nil
}

// lanesOf are lanes of one database.
type lanesOf struct {
	Calls
	laneOf func(Key) string
}

func (l lanesOf) LaneOf(key Key) string    { return l.laneOf(key) }
func (l lanesOf) OnLane(_, _ string) Calls { return l.Calls }

// While the map of a cluster changes, a run may be in another lane at each step. Its events are stored once, in their order, and none is
// dropped that no call has stored.
func TestARunIsInOneCallWhateverItsLane(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) {
			log := &modelLog{random: rand.New(rand.NewPCG(seed, 1)), events: map[string][]string{}}
			random := rand.New(rand.NewPCG(seed, 2))
			var lanes [3]string // of the runs; the sender's lock guards it
			sender := NewSender(NewHub(HubConfig{}), SenderConfig{
				Calls: log, Lanes: lanesOf{log, func(key Key) string { return lanes[key.ThreadID[0]-'0'] }},
				Linger: 2 * time.Millisecond, MaxBatchEvents: 4, MaxBatchBytes: 1 << 20, MaxBufferBytes: 1 << 20,
				CheckEvery: time.Hour, CallTimeout: time.Minute, Logger: slog.New(slog.DiscardHandler), ErrorOf: func(err error) error { return err },
			})
			sender.Start()
			defer sender.Stop()
			want := map[string][]string{}
			var runs [3]*Run
			for i := range runs {
				id := fmt.Sprint(i)
				runs[i] = sender.Begin(t.Context(), RunConfig{Key: Key{ThreadID: id}, RunID: id})
			}
			for n := range 60 {
				i := random.IntN(len(runs))
				event := json.RawMessage(fmt.Sprintf(`{"type":"CUSTOM","n":%d}`, n))
				if err := runs[i].Add(t.Context(), []json.RawMessage{event}, false); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				want[fmt.Sprint(i)] = append(want[fmt.Sprint(i)], string(event))
				if random.IntN(3) == 0 {
					sender.mu.Lock()
					lanes[random.IntN(len(lanes))] = fmt.Sprint("node ", random.IntN(3))
					sender.mu.Unlock()
				}
				time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
			}
			for i, run := range runs {
				state, err := run.Finish(t.Context())
				id := fmt.Sprint(i)
				log.mu.Lock()
				stored := log.events[id]
				log.mu.Unlock()
				if err != nil || !slices.Equal(stored, want[id]) || state.Seq != int64(len(want[id])) || len(state.Pending) > 0 {
					t.Fatalf("seed %d: run %s: the log has\n%v\nwant\n%v\nstate %+v, %v", seed, id, stored, want[id], state, err)
				}
				sender.End(run)
			}
		})
	}
}
