package clients

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
)

// cuttingProxy passes requests on to a server. Below the path /N, answers break off behind N bytes of their body.
type cuttingProxy struct{ *httptest.Server }

func newCuttingProxy(t *testing.T, to *process) *cuttingProxy {
	t.Helper()
	split := func(r *http.Request) (after int, rest string) {
		place, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
		after, err := strconv.Atoi(place)
		if err != nil {
			t.Errorf("the path %q does not begin with a number", r.URL.Path)
		}
		return after, "/" + rest
	}
	p := &cuttingProxy{httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			_, rest := split(r.In)
			target, err := url.Parse(to.URL + rest)
			if err != nil {
				t.Error(err)
			}
			target.RawQuery = r.In.URL.RawQuery
			r.Out.URL = target
		},
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0), // it tells of each cut
		ModifyResponse: func(answer *http.Response) error {
			after, err := strconv.Atoi(answer.Request.Header.Get("Cut-After"))
			if err != nil {
				return err
			}
			answer.Body = &cutBody{answer.Body, after}
			return nil
		},
	})}
	inner := p.Config.Handler
	p.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		after, _ := split(r)
		r.Header.Set("Cut-After", strconv.Itoa(after))
		inner.ServeHTTP(w, r)
	})
	t.Cleanup(func() {
		p.CloseClientConnections()
		p.Close()
	})
	return p
}

// at returns the address at which answers break off behind so many bytes.
func (p *cuttingProxy) at(bytes int) string { return fmt.Sprint(p.URL, "/", bytes) }

type cutBody struct {
	io.ReadCloser
	left int
}

func (b *cutBody) Read(into []byte) (int, error) {
	if b.left == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := b.ReadCloser.Read(into[:min(len(into), b.left)])
	b.left -= n
	return n, err
}

// A stream that is cut before, inside and behind any frame, and continues from another server behind the last frame that came whole, is
// one stream to the client: it ends with what a client holds whose stream was not cut.
func TestStreamsCutAtEachFrame(t *testing.T) {
	t.Parallel()
	stage := newStage(t)
	proxy := newCuttingProxy(t, stage.here)
	stage.onEachVersion(t, func(s *scenario) {
		base := s.thread
		s.thread = base + " 000" // as long as the other names
		whole := s.client(s.here)
		s.play(whole, "run", nil, user("u1", "Hello"))
		meant := s.here.restored(s.t, s.thread, "run")
		whole.want(meant)
		var frames []string
		must.Do(s.t, json.Unmarshal(whole.ask("frames", map[string]any{"all": true}), &frames))
		var places []int
		at := 0
		for i, frame := range frames {
			places = append(places, at)
			if i%2 == slices.Index(versions, s.version) { // inside it, or before the line that ends it
				places = append(places, at+1+rand.IntN(len(frame)))
			} else {
				places = append(places, at+len(frame)+1)
			}
			at += len(frame) + 2
		}
		// Ten at a time: most of the time is waiting.
		number := 0
		for part := range slices.Chunk(append(places, at), 10) {
			var clients []*client
			var running []*ending
			for _, place := range part {
				number++
				s.thread = fmt.Sprintf("%s %03d", base, number)
				c := s.open(s.t, clientOptions{
					Version: s.version, Thread: s.thread, Base: proxy.at(place), Bases: []string{proxy.at(place), s.there.URL},
				})
				clients, running = append(clients, c), append(running, c.run("run", nil, user("u1", "Hello")))
				called := s.agent.called(s.t, s.thread)
				called.finish(called.everything(" of run")...)
			}
			for i, c := range clients {
				running[i].succeed()
				c.want(meant)
				if breaks := c.look().Breaks; breaks != 1 && part[i] < at {
					s.t.Errorf("the stream broke %d times", breaks)
				}
				if s.t.Failed() {
					s.t.Fatalf("cut behind %d bytes", part[i])
				}
			}
		}
	})
}

// The same live, with connections that all break, on both servers; for the client that runs and for one that reloads.
func TestStreamsCutAgainAndAgain(t *testing.T) {
	t.Parallel()
	stage := newStage(t)
	proxies := []*cuttingProxy{newCuttingProxy(t, stage.here), newCuttingProxy(t, stage.there)}
	stage.onEachVersion(t, func(s *scenario) {
		base := s.thread
		for round := range 6 {
			s.thread = fmt.Sprint(base, " ", round)
			// A history must fit into one connection: it counts as one frame.
			bases := func(least int) (bases []string) {
				for i := range 20 {
					bases = append(bases, proxies[i%2].at(least+rand.IntN(300*(i+1))))
				}
				return bases
			}
			running := bases(0)
			c := s.open(s.t, clientOptions{Version: s.version, Thread: s.thread, Base: running[0], Bases: running})
			run := c.run("run-1", nil, user("u1", "Hello"))
			called := s.agent.called(s.t, s.thread)
			connecting := bases(3000)
			reloaded := s.open(s.t, clientOptions{
				Version: s.version, Thread: s.thread, Base: connecting[0], Bases: connecting, Follow: pathOf(s.thread),
			})
			var connected *ending
			events := called.everything("")
			reload := rand.IntN(len(events))
			for i, event := range events {
				called.send(event)
				if i == reload {
					connected = reloaded.connect()
				}
				time.Sleep(time.Duration(rand.IntN(3)) * time.Millisecond)
			}
			close(called.answers)
			run.succeed()
			connected.succeed()
			meant := s.here.restored(s.t, s.thread, "run-1")
			c.want(meant)
			reloaded.want(meant)
			if s.t.Failed() {
				s.t.Fatalf("round %d; %v; %v", round, running, connecting)
			}
		}
	})
}

// A server that shuts down lets its agents finish, and sends its clients elsewhere. A client that resumes misses nothing; one that
// does not resume learns that its run is not over.
func TestShutdown(t *testing.T) {
	t.Parallel()
	newStage(t).onEachVersion(t, func(s *scenario) {
		leaving := serveWithGrace(s.t, s.pool, map[string]string{"test": s.agent.URL}, patience)
		resuming := s.open(s.t, clientOptions{Version: s.version, Thread: s.thread, Base: leaving.URL, Bases: []string{leaving.URL, s.there.URL}})
		running := resuming.run("run", nil, user("u1", "Hello"))
		called := s.agent.called(s.t, s.thread)
		events := called.everything("")
		called.send(events[:16]...)
		resuming.waitForEvents(16)
		watching := s.client(leaving)
		connected := watching.connect()
		watching.waitForEvents(3)

		gone := make(chan struct{})
		go func() {
			defer close(gone)
			leaving.shutDown(s.t)
		}()
		if failure := connected.failure(); failure == "" {
			s.t.Error("the stream ended in the middle of the run, and the client takes it for the end")
		}
		called.finish(events[16:]...)
		running.succeed()
		<-gone
		s.here.wantStatus(s.t, s.thread, "run", pgagui.Finished)
		s.wantAgreement(resuming, "run", true)
		watching.ask("connectTo", map[string]any{"base": s.there.URL})
		watching.connect().succeed()
		watching.want(s.here.restored(s.t, s.thread, "run"))
	})
}
