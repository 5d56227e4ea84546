package worker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
	"github.com/pgagui/pgagui/jobs"
	"github.com/pgagui/pgagui/worker"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// logLines collects what a logger writes.
type logLines struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (l *logLines) Write(line []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.Write(line)
}

// has reports whether there is a line with a message about a job.
func (l *logLines) has(t *testing.T, message, job string) bool {
	t.Helper()
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for line := range strings.Lines(l.text.String()) {
		var entry struct{ Msg, Job string }
		must.Do(t, json.Unmarshal([]byte(line), &entry))
		if entry.Msg == message && entry.Job == job {
			return true
		}
	}
	return false
}

func (l *logLines) logger() *slog.Logger { return slog.New(slog.NewJSONHandler(l, nil)) }

func TestJobsAreDoneWhenTheyAreDue(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	var log logLines
	ctx, stop := context.WithCancel(t.Context())
	failed, slow, release := make(chan struct{}), make(chan struct{}), make(chan struct{})
	times := 0
	tasks := []worker.Task{
		{Schedule: "@every 1s", Job: jobs.Job{Name: "failing", Work: func(context.Context) (any, error) {
			if times++; times == 2 {
				close(failed)
			}
			return nil, errors.New("no luck")
		}}},
		// It is due again while it is in progress.
		{Schedule: "@every 1s", Job: jobs.Job{Name: "slow", Work: func(context.Context) (any, error) {
			close(slow)
			<-release
			return "done at last", nil
		}}},
		{Schedule: "0 0 1 1 *", Job: jobs.Job{Name: "idle", Work: func(context.Context) (any, error) {
			t.Error("a job was done that was not due")
			return nil, nil
		}}},
	}
	ended := make(chan error)
	go func() {
		ended <- worker.Run(ctx, pool, tasks, worker.Options{Grace: time.Minute, Logger: log.logger()})
	}()
	<-slow
	<-failed
	wait.For(t, "a start is skipped", func() bool { return log.has(t, "job is still running, this start is skipped", "slow") })
	stop()
	wait.For(t, "the worker stops", func() bool { return log.has(t, "worker stops", "") })
	select {
	case err := <-ended:
		t.Fatalf("the worker did not wait for the job at work, error %v", err)
	default:
	}
	close(release)
	must.Report(t, <-ended)
	for _, line := range [][2]string{{"job failed", "failing"}, {"job done", "slow"}, {"job scheduled", "idle"}, {"worker stopped", ""}} {
		if !log.has(t, line[0], line[1]) {
			t.Errorf("no line %q", line)
		}
	}
}

func TestJobsAreCancelledAfterTheGrace(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	ctx, stop := context.WithCancel(t.Context())
	err := worker.Run(ctx, pool, []worker.Task{{Schedule: "@every 1s", Job: jobs.Job{Name: "endless", Work: func(ctx context.Context) (any, error) {
		stop()
		<-ctx.Done()
		return nil, ctx.Err()
	}}}}, worker.Options{})
	if err != nil {
		t.Error(err)
	}
}

func TestASchedulesMistakeIsNamed(t *testing.T) {
	t.Parallel()
	err := worker.Run(t.Context(), nil, []worker.Task{{Schedule: "every minute", Job: jobs.Job{Name: "compact"}}}, worker.Options{})
	if err == nil || !strings.Contains(err.Error(), `job compact: schedule "every minute" is not valid`) {
		t.Errorf("error %v", err)
	}
}

// A panic, of a job or of its observer, does not end the process.
func TestPanicsAreLogged(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	var log logLines
	ctx, stop := context.WithCancel(t.Context())
	times, third := 0, make(chan struct{})
	tasks := []worker.Task{{Schedule: "@every 1s", Job: jobs.Job{Name: "panicking", Work: func(context.Context) (any, error) { panic("in the job") }}}}
	observe := func(ctx context.Context, _ string) (context.Context, func(jobs.Report, error)) {
		if times++; times == 3 {
			close(third)
		}
		if times == 2 {
			panic("in the observer")
		}
		return ctx, func(jobs.Report, error) {}
	}
	ended := make(chan error)
	go func() {
		ended <- worker.Run(ctx, pool, tasks, worker.Options{Logger: log.logger(), Observe: observe})
	}()
	<-third
	stop()
	must.Report(t, <-ended)
	if !log.has(t, "job failed", "panicking") || !log.has(t, "panic", "panicking") {
		t.Error(log.text.String())
	}
}
