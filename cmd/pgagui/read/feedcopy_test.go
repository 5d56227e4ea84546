package read_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
)

// feedLine is a line of pgagui feed --events.
type feedLine struct {
	ThreadUID string
	IsErased  bool
	Seq       int64
	Payload   json.RawMessage
}

// feedCopy is a copy of all events that is made from the lines of feeds.
type feedCopy struct {
	t      *testing.T
	mu     sync.Mutex
	events map[string]string // by thread and seq
	times  map[string]int    // how often each came
	last   map[string]int64  // by thread
}

func newFeedCopy(t *testing.T) *feedCopy {
	return &feedCopy{t: t, events: map[string]string{}, times: map[string]int{}, last: map[string]int64{}}
}

func keyOf(uid string, seq int64) string { return fmt.Sprint(uid, " ", seq) }

// read returns what takes the lines of one process. isAlone: no other reads for the same consumer at the same time, so there are no gaps.
func (c *feedCopy) read(isAlone bool) func(text string) {
	before := map[string]int64{} // the last event of each thread in this process
	return func(text string) {
		var line feedLine
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			c.t.Errorf("%q: %v", text, err)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		uid, seq := line.ThreadUID, line.Seq
		if line.IsErased {
			maps.DeleteFunc(c.events, func(key, _ string) bool { return strings.HasPrefix(key, uid) })
			return
		}
		if isAlone {
			if last, isKnown := before[uid]; isKnown && seq != last+1 || seq > c.last[uid]+1 {
				c.t.Errorf("event %d of thread %s comes after %d, and %d of all", seq, uid, last, c.last[uid])
			}
		}
		before[uid], c.last[uid] = seq, max(c.last[uid], seq)
		c.events[keyOf(uid, seq)] = string(line.Payload)
		c.times[keyOf(uid, seq)]++
	}
}

// isRight reports whether the copy is what is stored.
func (c *feedCopy) isRight(pool *pgxpool.Pool) bool {
	stored := map[string]string{}
	rows := must.Have(pool.Query(c.t.Context(), `select thread_uid::text, seq, payload::text from agui.event join agui.thread using (scope, thread_id)`))(c.t)
	var uid, payload string
	var seq int64
	must.Have(pgx.ForEachRow(rows, []any{&uid, &seq, &payload}, func() error { stored[keyOf(uid, seq)] = payload; return nil }))(c.t)
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Equal(stored, c.events)
}

// follow starts a process that prints the events of the consumer, until it is killed.
func follow(t *testing.T, commands clitest.CommandLine, take func(string)) (process *exec.Cmd, ended chan struct{}) {
	t.Helper()
	process = commands.Program(os.Args[0], "feed", "--consumer", "copy", "--events", "--follow", "--every", "10ms")
	out, err := process.StdoutPipe()
	if err == nil {
		err = process.Start()
	}
	must.Do(t, err)
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			take(lines.Text())
		}
	}()
	return process, ended
}

func kill(t *testing.T, process *exec.Cmd, ended chan struct{}) {
	t.Helper()
	must.Do(t, process.Process.Kill())
	<-ended // what it has written is read
	_ = process.Wait()
}

// writeRuns appends runs to a few threads in several calls each, until the test stops it.
func writeRuns(t *testing.T, pool *pgxpool.Pool) (stop func()) {
	stopped := make(chan struct{})
	var writers sync.WaitGroup
	for w := range 2 {
		writers.Go(func() {
			store := pgagui.New(pool, nil)
			for i := 0; ; i++ {
				select {
				case <-stopped:
					return
				default:
				}
				run := pgagui.RunRef{ThreadID: fmt.Sprint("t", w, "-", i%3), RunID: fmt.Sprint(w, "-", i)}
				var last *int64
				for _, events := range [][]string{{`{"type":"RUN_STARTED"}`}, {clitest.Token(1), clitest.Token(2)}, {`{"type":"RUN_FINISHED"}`}} {
					var raw []json.RawMessage
					for _, event := range events {
						raw = append(raw, json.RawMessage(event))
					}
					seq, err := store.Append(t.Context(), run, raw, pgagui.AppendOptions{AfterSeq: last})
					if err != nil {
						t.Error(err)
						return
					}
					last = &seq
				}
			}
		})
	}
	return sync.OnceFunc(func() { close(stopped); writers.Wait() })
}

// A feed that is killed anywhere loses nothing and leaves no gap when it is started once more, and repeats what is around the kill only.
func TestKilledFeedsLoseNothing(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	pool := testdb.Connect(t, commands.DatabaseURL)
	stop := writeRuns(t, pool)
	defer stop()
	copied := newFeedCopy(t)
	random := rand.New(rand.NewPCG(3, 3))
	const kills = 6
	for range kills {
		lines, most := make(chan struct{}, 1), random.IntN(150)+1
		take, n := copied.read(true), 0
		process, ended := follow(t, commands, func(text string) {
			if take(text); n < most {
				if n++; n == most {
					lines <- struct{}{}
				}
			}
		})
		<-lines
		kill(t, process, ended)
	}
	stop()
	process, ended := follow(t, commands, copied.read(true))
	defer kill(t, process, ended)
	wait.For(t, "all events", func() bool { return copied.isRight(pool) })
	copied.mu.Lock()
	defer copied.mu.Unlock()
	repeated := 0
	for _, times := range copied.times {
		if times > 1 {
			repeated++
		}
	}
	// A kill repeats at most what was read and not noted: pages of 100 batches.
	if repeated > kills*300 || len(copied.times) < 100 {
		t.Errorf("%d of %d events came more than once", repeated, len(copied.times))
	}
}

// Two processes of one consumer may both get an event, and none is missed, also if one of them is killed.
func TestTwoFeedsOfOneConsumerLoseNothing(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	pool := testdb.Connect(t, commands.DatabaseURL)
	stop := writeRuns(t, pool)
	defer stop()
	copied := newFeedCopy(t)
	first, firstEnded := follow(t, commands, copied.read(false))
	second, secondEnded := follow(t, commands, copied.read(false))
	defer kill(t, second, secondEnded)
	came := func() int {
		copied.mu.Lock()
		defer copied.mu.Unlock()
		return len(copied.times)
	}
	wait.For(t, "some events", func() bool { return came() > 200 })
	kill(t, first, firstEnded)
	stop()
	wait.For(t, "all events", func() bool { return copied.isRight(pool) })
}

// Jobs, imports, archives and erasures beside a feed: the copy is right after each of them.
func TestAFeedBesideAllElse(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	pool := testdb.Connect(t, commands.DatabaseURL)
	copied := newFeedCopy(t)
	process, ended := follow(t, commands, copied.read(true))
	defer func() { kill(t, process, ended) }()
	archive := t.TempDir() + "/archive"
	answers := clitest.WriteFile(t, "answers.ndjson", clitest.Answer("answered", "r1", 20)...)
	for _, step := range [][]string{
		{"import", answers}, {"job", "compact"}, {"job", "repack", "--older-than", "0s"}, {"job", "project"},
		{"import", clitest.WriteFile(t, "more.ndjson", clitest.Answer("answered", "r2", 5)...)},
		{"import", clitest.WriteFile(t, "other.ndjson", clitest.Answer("other", "r1", 5)...)},
		{"archive", archive, "answered"},
		{"erase", "answered", "--yes"}, {"retention", "allow", "answered"}, {"unarchive", archive},
		{"import", clitest.WriteFile(t, "late.ndjson", clitest.Answer("answered", "r3", 2)...)},
		{"job", "compact"}, {"job", "repack", "--older-than", "0s"}, {"erase", "other", "--yes"}, {"retention", "allow", "other"},
		{"import", clitest.WriteFile(t, "again.ndjson", clitest.Answer("other", "r1", 3)...)},
	} {
		commands.Must(step...)
		wait.For(t, strings.Join(step, " "), func() bool { return copied.isRight(pool) })
	}
}
