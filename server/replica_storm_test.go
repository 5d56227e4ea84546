package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tmaxmax/go-sse"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/server"
)

// storm is the state of TestAReplicaInAStorm.
type storm struct {
	t       *testing.T
	client  *http.Client
	writer  *process       // records the runs
	readers []*withReplica // others with the replica, which clients use in turn

	streams, reads, renames atomic.Int64
}

func (s *storm) reader() *withReplica { return s.readers[rand.IntN(len(s.readers))] }

func (s *storm) request(ctx context.Context, method, url, body string, headers ...string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	return s.client.Do(request)
}

// frames yields the frames of a stream until it ends, or ctx.
func (s *storm) frames(ctx context.Context, method, url, body string, frame func(sse.Event), headers ...string) {
	s.streams.Add(1)
	answer, err := s.request(ctx, method, url, body, headers...)
	if err != nil {
		return // ctx has ended
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		s.t.Errorf("%s %s: %s", method, url, answer.Status)
		return
	}
	for event, err := range sse.Read(bufio.NewReader(answer.Body), &sse.ReadConfig{MaxEventSize: 1 << 20}) {
		if err != nil {
			return
		}
		frame(event)
	}
}

// follow receives a run over streams that break after some events, each on any of the servers, and
// returns the events with a place, by seq, and the place of the history.
func (s *storm) follow(ctx context.Context, thread string) (events map[int64]string, first int64) {
	events = map[int64]string{}
	var last int64
	for lastID, isOver := "", false; !isOver; {
		if ctx.Err() != nil {
			s.t.Errorf("%s: the run did not end for a follower behind %s", thread, lastID)
			return events, first
		}
		cut, cancel := context.WithCancel(ctx)
		left := 1 + rand.IntN(stormTokens)
		var headers []string
		if lastID != "" {
			headers = []string{"Last-Event-ID", lastID}
		}
		s.frames(cut, "GET", s.reader().URL+"/threads/"+thread+"/events", "", func(event sse.Event) {
			if event.LastEventID != "" && event.LastEventID != lastID {
				seq := int64(seqOf(event.LastEventID))
				if seq <= last {
					s.t.Errorf("%s: position %d after %d", thread, seq, last)
				}
				if lastID == "" {
					first = seq
				} else {
					events[seq] = event.Data
				}
				lastID, last = event.LastEventID, seq
			}
			isOver = isOver || typeOf(event.Data) == "RUN_FINISHED"
			if left--; left == 0 {
				cancel()
			}
		}, headers...)
		cancel()
	}
	return events, first
}

// read compares the messages of a thread with what its client has seen, and a new title with the
// list of threads.
func (s *storm) read(ctx context.Context, thread string, seen *atomic.Int64) {
	for n := 0; ctx.Err() == nil; n++ {
		seq := seen.Load()
		p := s.reader()
		answer, err := s.request(ctx, "GET", p.URL+"/copilotkit/threads/"+thread+"/messages", "", "Pgagui-Position", fmt.Sprint(seq))
		if err != nil {
			return
		}
		var body struct{ Messages []struct{ Content string } }
		err = json.NewDecoder(answer.Body).Decode(&body)
		answer.Body.Close()
		if ctx.Err() != nil {
			return
		}
		text := ""
		if len(body.Messages) > 0 {
			text = body.Messages[len(body.Messages)-1].Content
		}
		// RUN_STARTED and the start of the message come before the tokens.
		if tokens := int64(len(strings.Fields(text))); answer.StatusCode != http.StatusOK || err != nil || tokens < min(seq-2, stormTokens) {
			s.t.Errorf("%s: behind seq %d: %s, %d tokens, %v", thread, seq, answer.Status, tokens, err)
		}
		s.reads.Add(1)
		s.rename(ctx, thread, fmt.Sprint(thread, " ", n))
		time.Sleep(10 * time.Millisecond)
	}
}

// rename gives a thread a title and looks for it in the list of threads.
func (s *storm) rename(ctx context.Context, thread, title string) {
	answer, err := s.request(ctx, "PATCH", s.reader().URL+"/copilotkit/threads/"+thread, fmt.Sprintf(`{"name":%q}`, title))
	if err != nil {
		return
	}
	answer.Body.Close()
	answer, err = s.request(ctx, "GET", s.reader().URL+"/copilotkit/threads", "", "Pgagui-Position", answer.Header.Get("Pgagui-Position"))
	if err != nil {
		return
	}
	var list struct{ Threads []struct{ ID, Name string } }
	err = json.NewDecoder(answer.Body).Decode(&list)
	answer.Body.Close()
	if ctx.Err() != nil {
		return
	}
	if !slices.Contains(list.Threads, struct{ ID, Name string }{thread, title}) {
		s.t.Errorf("%s: the title %q is not in the list: %s, %v", thread, title, answer.Status, err)
	}
	s.renames.Add(1)
}

// renameUntil renames a thread that nobody else uses, until the servers have answered this many reads with the outcome.
func (s *storm) renameUntil(ctx context.Context, outcome string, reads float64) {
	for n := 0; s.answered(outcome) < reads; n++ {
		if ctx.Err() != nil {
			s.t.Errorf("no read was answered %q", outcome)
			return
		}
		s.rename(ctx, "quiet", fmt.Sprint(outcome, n))
	}
}

const stormTokens = 30

// answered returns how many reads had this outcome on all servers with a replica.
func (s *storm) answered(outcome string) (reads float64) {
	for _, p := range s.readers {
		reads += p.metrics("replica_reads_total")[outcome]
	}
	return reads
}

// stormAgent sends a message of tokens.
func stormAgent(w http.ResponseWriter, r *http.Request) {
	var in struct{ ThreadID, RunID string }
	_ = json.NewDecoder(r.Body).Decode(&in)
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(event string) {
		fmt.Fprintf(w, "data: %s\n\n", event)
		_ = http.NewResponseController(w).Flush()
	}
	send(started(in.ThreadID, in.RunID))
	send(start("m"))
	for n := range stormTokens {
		send(content("m", fmt.Sprint(n, " ")))
		time.Sleep(20 * time.Millisecond)
	}
	send(end("m"))
	send(finished(in.ThreadID, in.RunID))
}

// TestAReplicaInAStorm lets readers, writers and followers use a replica that lags by seconds, stands
// still, is killed and comes back. Followers see each event once and in order, and clients read what
// they have seen and written.
func TestAReplicaInAStorm(t *testing.T) {
	t.Parallel()
	replicated := testdb.NewReplicated(t)
	agent := httptest.NewServer(http.HandlerFunc(stormAgent))
	t.Cleanup(agent.Close)
	s := &storm{t: t, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}}
	t.Cleanup(s.client.CloseIdleConnections)
	quiet := slog.New(slog.DiscardHandler)
	s.writer = serve(t, replicated.PrimaryPool, server.Options{Agents: []server.Agent{{Name: "test", URL: agent.URL}}, Logger: quiet})
	for range 2 {
		s.readers = append(s.readers, serveWithReplica(t, replicated.Primary.URL("postgres"), replicated.Standby.URL("postgres"), server.Options{}))
	}
	store := pgagui.New(replicated.PrimaryPool, nil)
	mustStore(t, store, "quiet", started("quiet", "run"), finished("quiet", "run"))

	writing, stopWriting := context.WithCancel(t.Context())
	defer stopWriting()
	waiting, stopWaiting := context.WithTimeout(t.Context(), 4*time.Minute)
	defer stopWaiting()
	var clients sync.WaitGroup
	for writer := range 4 {
		clients.Go(func() {
			for round := 0; writing.Err() == nil; round++ {
				thread := fmt.Sprintf("thread-%d-%d", writer, round)
				seen, begun := &atomic.Int64{}, make(chan struct{})
				reading, stopReading := context.WithCancel(waiting)
				var ofThread sync.WaitGroup
				ofThread.Go(func() {
					defer stopReading()
					once := sync.OnceFunc(func() { close(begun) })
					defer once()
					s.frames(waiting, "POST", s.writer.URL+"/agent/test/run", input(thread, "run"), func(event sse.Event) {
						if event.LastEventID != "" {
							seen.Store(int64(seqOf(event.LastEventID)))
							once()
						}
					})
				})
				<-begun
				ofThread.Go(func() { s.read(reading, thread, seen) })
				for range 2 {
					ofThread.Go(func() {
						events, first := s.follow(waiting, thread)
						for event, err := range store.Events(waiting, thread, pgagui.EventsOptions{}) {
							if err != nil {
								t.Error(err)
								return
							}
							if got, isSeen := events[event.Seq]; event.Seq > first && (!isSeen || got != string(event.JSON)) {
								t.Errorf("%s: a follower behind %d received event %d as %q, the log has %s", thread, first, event.Seq, got, event.JSON)
							}
						}
					})
				}
				ofThread.Wait()
			}
		})
	}

	onStandby := func(statements ...string) {
		for _, statement := range statements {
			if _, err := replicated.StandbyPool.Exec(t.Context(), statement); err != nil {
				t.Errorf("%s: %v", statement, err)
			}
		}
	}
	time.Sleep(500 * time.Millisecond)
	onStandby(`alter system set recovery_min_apply_delay = '2s'`, `select pg_reload_conf()`)
	s.renameUntil(waiting, "behind", 10)
	onStandby(`alter system reset recovery_min_apply_delay`, `select pg_reload_conf()`)
	time.Sleep(300 * time.Millisecond)
	replicated.Pause(t)
	time.Sleep(400 * time.Millisecond)
	replicated.Resume(t)
	time.Sleep(300 * time.Millisecond)
	must.Report(t, replicated.Standby.Kill())
	s.renameUntil(waiting, "unavailable", 10)
	must.Report(t, replicated.Standby.Restart(t.Context()))
	for _, p := range s.readers {
		p.waitForReplica()
	}
	s.renameUntil(waiting, "replica", 50)
	stopWriting()
	clients.Wait()
	answered := map[string]float64{}
	for _, p := range s.readers {
		for outcome, reads := range p.metrics("replica_reads_total") {
			answered[outcome] += reads
		}
		answered["followers that moved"] += p.metrics("replica_followers_moved_total")[""]
		if again := p.metrics("resumed_from_history_total")[""]; again != 0 {
			t.Errorf("%v clients received the history although the log lost nothing", again)
		}
	}
	t.Logf("answers: %v, streams: %d, reads: %d, titles: %d", answered, s.streams.Load(), s.reads.Load(), s.renames.Load())
}
