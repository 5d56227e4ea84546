package crash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
)

// writerTask is what a writer has to do: run after run in each of its threads.
type writerTask struct {
	URL     string   `json:"url"`
	Name    string   `json:"name"` // begins the ids of its runs
	Threads []string `json:"threads"`
	Seed    uint64   `json:"seed"`
	Relaxed bool     `json:"relaxed"`
}

func (t writerTask) databaseURL() string { return t.URL }

// outcome is what a writer knows of a run.
type outcome string

const (
	stored    outcome = "stored" // up to an index
	completed outcome = "completed"
	cutOff    outcome = "cut off"
	rewound   outcome = "rewound"
)

// writerLine is what a writer prints: what it was told of a run.
type writerLine struct {
	Thread  string  `json:"thread"`
	Run     string  `json:"run"`
	Outcome outcome `json:"outcome"`
	// Index and Seq are those of the last event that is stored.
	Index int   `json:"index"`
	Seq   int64 `json:"seq"`
	// Problem is what must not happen.
	Problem string `json:"problem,omitempty"`
}

// callTimeout is after how long a writer takes a call for lost.
const callTimeout = time.Second

// closeTimeout is after how long a run that cannot be closed counts as a failure.
const closeTimeout = 2 * time.Minute

func write(task writerTask, pool *pgxpool.Pool, stage *stage) error {
	config := pgagui.RecorderConfig{CheckEvery: 100 * time.Millisecond, CallTimeout: callTimeout}
	if task.Relaxed {
		config.Durability = pgagui.Relaxed
	}
	recorder := pgagui.New(pool, nil).NewRecorder(&config)
	var threads sync.WaitGroup
	for i, thread := range task.Threads {
		threads.Go(func() {
			random := rand.New(rand.NewPCG(task.Seed, uint64(i)))
			for n := 0; stage.finish.Err() == nil; n++ {
				agent := agent{
					stage: stage, random: random,
					thread: thread, run: fmt.Sprintf("%s-%d-%d", task.Name, i, n),
				}
				agent.emit(recorder)
			}
		})
	}
	threads.Wait()
	return recorder.Close(context.Background())
}

// agent is one run.
type agent struct {
	stage       *stage
	random      *rand.Rand
	thread, run string
	recording   *pgagui.Recording

	isLate bool      // it continues after its end
	index  int       // of the last event
	open   []opening // innermost last
}

// emit records a run from its beginning to its end.
func (a *agent) emit(recorder *pgagui.Recorder) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	var err error
	a.recording, err = recorder.Begin(ctx, pgagui.RunRef{ThreadID: a.thread, RunID: a.run}, pgagui.BeginOptions{Input: inputOf(a.run)})
	if err != nil {
		panic(err) // the recorder is open, and the input is JSON
	}
	err = a.events(ctx)
	if closeErr := a.recording.Close(ctx); err == nil {
		err = closeErr
	}
	switch {
	case err == nil:
		a.print(completed)
	case errors.Is(err, pgagui.ErrRunInProgress):
		// Of a process that was killed: it is stale soon.
		a.stage.pause(50*time.Millisecond + rand.N(100*time.Millisecond))
	case errors.Is(err, pgagui.ErrRunEnded) && a.isLate:
		// Another process has begun the next run of the thread, which took this one's end for the last word.
	case errors.Is(err, pgagui.ErrRunCutOff):
		a.print(cutOff)
	case errors.Is(err, pgagui.ErrLogRewound):
		a.print(rewound)
	default:
		a.stage.print(writerLine{Thread: a.thread, Run: a.run, Problem: err.Error()})
	}
}

// events records the events of the run.
func (a *agent) events(ctx context.Context) error {
	if err := a.record(ctx, "RUN_STARTED", fmt.Sprintf(`"runId":%q`, a.run)); err != nil {
		return err
	}
	for left := 5 + a.random.IntN(60); left > 0 && a.stage.finish.Err() == nil; left-- {
		if a.random.IntN(3) > 0 {
			a.stage.pause(time.Duration(a.random.IntN(100)) * time.Millisecond)
		}
		if err := a.next(ctx); err != nil {
			return err
		}
		if a.random.IntN(6) == 0 {
			if err := a.recording.Flush(ctx); err != nil {
				return err
			}
			a.print(stored)
		}
	}
	for len(a.open) > 0 {
		if err := a.end(ctx); err != nil {
			return err
		}
	}
	if err := a.record(ctx, "RUN_FINISHED", fmt.Sprintf(`"runId":%q`, a.run)); err != nil || a.random.IntN(3) > 0 {
		return err
	}
	return a.goOn(ctx)
}

// goOn records what some agents have to say after their end.
func (a *agent) goOn(ctx context.Context) error {
	a.isLate = true
	for range 1 + a.random.IntN(8) {
		err := a.record(ctx, "CUSTOM", `"name":"late"`)
		switch {
		case err != nil:
		case a.random.IntN(4) == 0:
			err = a.record(ctx, "RUN_STARTED", fmt.Sprintf(`"runId":%q`, a.run))
		case a.random.IntN(4) == 0:
			err = a.record(ctx, "RUN_FINISHED", fmt.Sprintf(`"runId":%q`, a.run))
		case a.random.IntN(2) == 0:
			if err = a.recording.Flush(ctx); err == nil {
				a.print(stored)
			}
		}
		if err != nil {
			return err
		}
	}
	if a.random.IntN(3) == 0 {
		return a.record(ctx, "RUN_ERROR", `"message":"late"`)
	}
	return nil
}

// inputOf is the input of a run, which the log keeps beside its events; every second run has one.
func inputOf(run string) json.RawMessage {
	if run[len(run)-1]%2 == 0 {
		return nil
	}
	return json.RawMessage(fmt.Sprintf("{ \"run\": %q }", run))
}

// next records any event that may come next.
func (a *agent) next(ctx context.Context) error {
	switch choice := a.random.IntN(8); {
	case choice == 0 || len(a.open) == 0:
		kind := kinds[a.random.IntN(len(kinds))]
		opened := opening{kind.closes, fmt.Sprintf(`%q:"%s-%d"`, kind.field, a.run, a.index+1)}
		a.open = append(a.open, opened)
		return a.record(ctx, kind.opens, opened.named+`,"role":"assistant","toolCallName":"search"`)
	case choice == 1:
		return a.end(ctx)
	default:
		return a.record(ctx, "CUSTOM", fmt.Sprintf(`"name":"token","value":%d`, a.random.IntN(1_000_000)))
	}
}

// kinds are what a run opens, and is to be ended in its place when its writer is gone.
var kinds = []struct{ opens, closes, field string }{
	{"STEP_STARTED", "STEP_FINISHED", "stepName"},
	{"TEXT_MESSAGE_START", "TEXT_MESSAGE_END", "messageId"},
	{"TOOL_CALL_START", "TOOL_CALL_END", "toolCallId"},
}

// opening is what is open: the type of the event that ends it, and the field of that event that names it.
type opening struct{ closes, named string }

// end ends what was opened last.
func (a *agent) end(ctx context.Context) error {
	last := a.open[len(a.open)-1]
	a.open = a.open[:len(a.open)-1]
	return a.record(ctx, last.closes, last.named)
}

// record records an event that tells where it belongs.
func (a *agent) record(ctx context.Context, eventType, fields string) error {
	a.index++
	return a.recording.Record(ctx, json.RawMessage(fmt.Sprintf(
		`{"type":%q,%s,"ofThread":%q,"ofRun":%q,"index":%d}`, eventType, fields, a.thread, a.run, a.index)))
}

func (a *agent) print(outcome outcome) {
	a.stage.print(writerLine{Thread: a.thread, Run: a.run, Outcome: outcome, Index: a.index, Seq: a.recording.Seq()})
}
