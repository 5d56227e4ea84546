package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/tmaxmax/go-sse"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/jobs"
	"github.com/pgagui/pgagui/server"
	"github.com/pgagui/pgagui/server/access"
	"github.com/pgagui/pgagui/sql/schema"
)

var (
	crashFor  = flag.Duration("crash-for", 5*time.Second, "how long to kill processes")
	crashRuns = flag.Int("crash-runs", 20, "runs in progress at once; each has five clients")
)

// processVariable says what a process of the crash test is: "server" or "agent", and what it needs.
const processVariable = "PGAGUI_SERVER_TEST_PROCESS"

// runAsProcess makes this process a server or an agent of the crash test, if it was started for
// that.
func runAsProcess() {
	kind, config, _ := strings.Cut(os.Getenv(processVariable), " ")
	if kind == "" {
		return
	}
	address, rest, _ := strings.Cut(config, " ")
	var handler http.Handler = http.HandlerFunc(countingAgent)
	if kind == "server" {
		agentURL, databaseURL, _ := strings.Cut(rest, " ")
		pool, err := pgxpool.New(context.Background(), databaseURL)
		exitOn(err)
		handler, err = server.New(pgagui.New(pool, nil), server.Options{
			Agents: []server.Agent{{Name: "test", URL: agentURL}}, Access: access.Anonymous("", access.Admin),
			Limits:   access.LimitOptions{RequestsPerSecond: -1, Streams: -1},
			Recorder: pgagui.RecorderConfig{CheckEvery: 200 * time.Millisecond}, Heartbeat: time.Second,
		})
		exitOn(err)
	}
	listener, err := net.Listen("tcp", address)
	exitOn(err)
	go func() { exitOn(http.Serve(listener, handler)) }()
	_, _ = io.Copy(io.Discard, os.Stdin) // the test has ended
	os.Exit(0)
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// countingAgent is an agent that sends a message of numbered tokens.
func countingAgent(w http.ResponseWriter, r *http.Request) {
	var in struct{ ThreadID, RunID string }
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	send := func(event string) {
		fmt.Fprintf(w, "data: %s\n\n", event)
		_ = control.Flush()
	}
	send(started(in.ThreadID, in.RunID))
	send(start("m"))
	for n := range 40 {
		if r.Context().Err() != nil {
			return
		}
		send(content("m", fmt.Sprint(n, " ")))
		time.Sleep(20 * time.Millisecond)
	}
	send(end("m"))
	send(finished(in.ThreadID, in.RunID))
}

// killed is a process that is killed and started again.
type killed struct {
	t       *testing.T
	config  string
	address string

	mu      sync.Mutex
	command *exec.Cmd
	stdin   io.Closer
}

func startKilled(t *testing.T, kind, config string) *killed {
	t.Helper()
	listener := must.Have(net.Listen("tcp", "127.0.0.1:0"))(t)
	k := &killed{t: t, address: listener.Addr().String()}
	listener.Close()
	k.config = strings.TrimSpace(kind + " " + k.address + " " + config)
	k.start()
	t.Cleanup(k.kill)
	return k
}

func (k *killed) start() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.command = exec.Command(os.Args[0])
	k.command.Env = append(os.Environ(), processVariable+"="+k.config)
	stdin, err := k.command.StdinPipe()
	if err == nil {
		err = k.command.Start()
	}
	if err != nil {
		k.t.Error(err)
		return
	}
	k.stdin = stdin
}

func (k *killed) kill() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.command.Process != nil {
		_ = k.command.Process.Signal(syscall.SIGKILL)
		_ = k.command.Wait()
	}
}

// seen is what a client has received of a run.
type seen struct {
	events map[int64]string // those with a place, by seq
	first  int64            // the place of the history
	ended  bool
}

// crash is the state of the crash test.
type crash struct {
	t       *testing.T
	servers []*killed
	client  *http.Client
	streams atomic.Int64 // that were opened
}

// receive opens streams until the run has ended, and returns what the client received. A poster
// repeats its request as long as it has received nothing.
func (c *crash) receive(ctx context.Context, thread string, isPoster bool) (*seen, error) {
	got := &seen{events: map[int64]string{}}
	lastID := ""
	for !got.ended {
		if err := ctx.Err(); err != nil {
			return got, fmt.Errorf("%s: the run did not end for a client (last id %q): %w", thread, lastID, err)
		}
		if err := c.open(ctx, thread, isPoster, &lastID, got); err != nil {
			time.Sleep(20 * time.Millisecond)
		}
	}
	return got, nil
}

func (c *crash) open(ctx context.Context, thread string, isPoster bool, lastID *string, got *seen) error {
	base := "http://" + c.servers[rand.IntN(len(c.servers))].address
	request, err := http.NewRequestWithContext(ctx, "GET", base+"/threads/"+thread+"/events?stay=true", nil)
	if isPoster && *lastID == "" {
		request, err = http.NewRequestWithContext(ctx, "POST", base+"/agent/test/run", strings.NewReader(input(thread, "run", "u1 user Hello")))
	}
	if err != nil {
		return err
	}
	if *lastID != "" {
		request.Header.Set("Last-Event-ID", *lastID)
	}
	c.streams.Add(1)
	answer, err := c.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(answer.Body)
		if answer.StatusCode < 500 && answer.StatusCode != http.StatusConflict { // a run that was cut off may be in the way
			return fmt.Errorf("%s: %s", answer.Status, text)
		}
		return errors.New(answer.Status)
	}
	isHistory := request.Method == "GET" && *lastID == ""
	for event, err := range sse.Read(bufio.NewReader(answer.Body), &sse.ReadConfig{MaxEventSize: 1 << 20}) {
		if err != nil {
			return err
		}
		hasPlace := event.LastEventID != "" && event.LastEventID != *lastID
		if hasPlace {
			*lastID = event.LastEventID
			switch seq := int64(seqOf(event.LastEventID)); {
			case isHistory:
				got.first, isHistory = seq, false
			case event.Data != "":
				if before, isThere := got.events[seq]; isThere && before != event.Data {
					c.t.Errorf("%s: event %d came as %s and as %s", thread, seq, before, event.Data)
				}
				got.events[seq] = event.Data
			}
		}
		if kind := typeOf(event.Data); kind == "RUN_FINISHED" || kind == "RUN_ERROR" {
			got.ended = true
			return nil
		}
	}
	return nil
}

// TestKilledServersDatabaseAndAgents kills servers, the database and the agent while runs are in
// progress. What a client has seen is in the log, nothing is missing between, and each client sees
// the end of its run.
func TestKilledServersDatabaseAndAgents(t *testing.T) {
	database := testdb.Server(t, map[string]string{"max_connections": "200"})
	url := database.URL("postgres")
	must.Do(t, schema.Up(t.Context(), url))
	pool := testdb.Connect(t, url)
	testdb.Exec(t, pool, `select agui.set_setting('heartbeat_lease', '3')`)
	agent := startKilled(t, "agent", "")
	c := &crash{t: t, client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	for range 2 {
		c.servers = append(c.servers, startKilled(t, "server", "http://"+agent.address+" "+url))
	}

	killing, stopKilling := context.WithTimeout(t.Context(), *crashFor)
	defer stopKilling()
	var upkeep sync.WaitGroup
	defer upkeep.Wait()
	kills := map[string]int{}
	upkeep.Go(func() {
		for killing.Err() == nil {
			time.Sleep(time.Duration(200+rand.IntN(600)) * time.Millisecond)
			switch n := rand.IntN(10); {
			case n < 6 || kills["server"] == 0:
				victim := c.servers[n%len(c.servers)]
				victim.kill()
				time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond)
				victim.start()
				kills["server"]++
			case n < 8:
				agent.kill()
				agent.start()
				kills["agent"]++
			default:
				must.Report(t, errors.Join(database.Kill(), database.Restart(t.Context())))
				kills["database"]++
			}
		}
	})
	reaping, stopReaping := context.WithCancel(t.Context())
	defer stopReaping()
	upkeep.Go(func() {
		for reaping.Err() == nil {
			_, _ = jobs.Reap(reaping, pool, jobs.ReapOptions{}) // the database may be away
			time.Sleep(300 * time.Millisecond)
		}
	})

	waiting, stopWaiting := context.WithTimeout(t.Context(), *crashFor+2*time.Minute)
	defer stopWaiting()
	var clients sync.WaitGroup
	received := map[string][]*seen{}
	var mu sync.Mutex
	for writer := range *crashRuns {
		clients.Go(func() {
			for round := 0; killing.Err() == nil && waiting.Err() == nil; round++ {
				thread := fmt.Sprintf("thread-%d-%d", writer, round)
				var ofThread sync.WaitGroup
				for n := range 5 {
					ofThread.Go(func() {
						got, err := c.receive(waiting, thread, n == 0)
						if err != nil {
							t.Error(err)
						}
						mu.Lock()
						defer mu.Unlock()
						received[thread] = append(received[thread], got)
					})
				}
				ofThread.Wait()
			}
		})
	}
	clients.Wait()
	stopKilling()
	stopReaping()
	upkeep.Wait()

	store := pgagui.New(pool, nil)
	ends := map[string]int{}
	for thread, clients := range received {
		logged := map[int64]string{}
		for event, err := range store.Events(t.Context(), thread, pgagui.EventsOptions{}) {
			must.Do(t, err)
			logged[event.Seq] = string(event.JSON)
		}
		ends[typeOf(logged[int64(len(logged))])]++
		for _, got := range clients {
			for seq, event := range got.events {
				if seq < int64(len(logged)) && logged[seq] != event {
					t.Errorf("%s: a client has seen event %d as\n%s\nthe log has\n%s", thread, seq, event, logged[seq])
				}
			}
			for seq := got.first + 1; seq < int64(len(logged)); seq++ {
				if _, isSeen := got.events[seq]; !isSeen {
					t.Errorf("%s: a client that began behind %d has not seen event %d of %d: %s", thread, got.first, seq, len(logged), logged[seq])
				}
			}
		}
	}
	t.Logf("%d threads, ends: %v, kills: %v, streams: %d", len(received), ends, kills, c.streams.Load())
	if len(received) < *crashRuns || kills["server"] == 0 {
		t.Errorf("too little happened: %d threads, kills: %v", len(received), kills)
	}
}
