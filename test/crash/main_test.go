// Package crash kills what streams: writers, followers, jobs and the server itself, at random moments, fills its disk and damages threads, and
// then compares what each of them was told with what the log has.
//
// The test binary starts itself as the processes to be killed. What such a process has to do comes as JSON in the first line of its
// standard input; that its standard input ends tells it to finish. What it does it prints, a line of JSON each.
package crash

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"
)

// roleVariable makes this test binary a process to be killed: a writer, a follower, or one that does the upkeep.
const roleVariable = "PGAGUI_TEST_CRASH_ROLE"

func TestMain(m *testing.M) {
	roles := map[string]func() error{
		"writer":   func() error { return play(write) },
		"follower": func() error { return play(follow) },
		"jobs":     func() error { return play(keepUp) },
	}
	role, found := roles[os.Getenv(roleVariable)]
	if !found {
		goleak.VerifyTestMain(m) // exits
	}
	err := role()
	if err == nil {
		err = goleak.Find()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/crash:", err)
		os.Exit(1)
	}
}

// play does a role until it is told to finish.
func play[Task interface{ databaseURL() string }](role func(Task, *pgxpool.Pool, *stage) error) error {
	// The outages that the test makes are no news; what is worse is.
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
	input := bufio.NewReader(os.Stdin)
	line, err := input.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read what to do: %w", err)
	}
	var task Task
	if err := json.Unmarshal(line, &task); err != nil {
		return fmt.Errorf("read what to do: %w", err)
	}
	config, err := pgxpool.ParseConfig(task.databaseURL())
	if err != nil {
		return err
	}
	config.ConnConfig.RuntimeParams["application_name"] = os.Getenv(roleVariable)
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return err
	}
	defer pool.Close()

	finish, toldToFinish := context.WithCancel(context.Background())
	var reading sync.WaitGroup
	reading.Go(func() {
		defer toldToFinish()
		_, _ = io.Copy(io.Discard, input)
	})
	err = role(task, pool, &stage{finish: finish})
	if err == nil {
		reading.Wait()
	}
	return err
}

// stage is what a process sees of the test.
type stage struct {
	// finish ends when the process is told to finish.
	finish context.Context

	mu sync.Mutex
}

// print tells the test something. A line is short enough for the pipe to take it whole: a process that is killed leaves no half ones.
func (s *stage) print(line any) {
	text, err := json.Marshal(line)
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		_, err = os.Stdout.Write(append(text, '\n'))
	}
	if err != nil {
		panic(err) // the test is gone
	}
}

// pause waits for a while, or until it is time to finish.
func (s *stage) pause(duration time.Duration) {
	select {
	case <-time.After(duration):
	case <-s.finish.Done():
	}
}
