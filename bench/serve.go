package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/memory"
	httpserver "github.com/pgagui/pgagui/server"
	"github.com/pgagui/pgagui/server/access"
)

// serve measures package server: what it adds to the delay of an agent's events, and the memory of its
// streams.
func (b *bench) serve(ctx context.Context) error {
	return b.withServer(ctx, func(s *served) error {
		for _, measure := range []func(context.Context) error{s.oneRun, s.manyRuns, s.headers, s.idle} {
			if err := measure(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// withServer calls measure with a server. The server, and a reverse proxy, are in a process of their
// own. The agent and the clients are in this process.
func (b *bench) withServer(ctx context.Context, measure func(*served) error) (err error) {
	database, err := b.server.create(ctx, 1)
	if err != nil {
		return err
	}
	agent := httptest.NewServer(http.HandlerFunc(pacedAgent))
	defer agent.Close()
	address, err := b.server.urlOf(database.name)
	if err != nil {
		return err
	}
	process, err := startServer(ctx, servedConfig{DatabaseURL: address, Agent: agent.URL})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, process.stop()) }()
	s := &served{bench: b, agent: agent.URL, process: process, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000}}}
	defer s.client.CloseIdleConnections()
	if err := measure(s); err != nil {
		return err
	}
	if err := process.stop(); err != nil {
		return err
	}
	return database.drop(ctx)
}

// served is a server that is measured.
type served struct {
	*bench
	agent   string
	process *servedProcess
	client  *http.Client
	threads int // so far
}

// pace says how the agent answers. It is in the input of a run.
type pace struct {
	Tokens int           `json:"tokens"`
	Every  time.Duration `json:"every"`
	Wait   time.Duration `json:"wait"` // before the first event
}

// pacedAgent is an agent that sends tokens with the time at which it sent them.
func pacedAgent(w http.ResponseWriter, r *http.Request) {
	var input struct {
		ThreadID, RunID string
		ForwardedProps  pace
	}
	if err := json.NewDecoder(r.Body).Decode(&input); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	_ = control.Flush()
	send := func(format string, arguments ...any) {
		fmt.Fprintf(w, "data: "+format+"\n\n", arguments...)
		_ = control.Flush()
	}
	time.Sleep(input.ForwardedProps.Wait)
	send(`{"type":"RUN_STARTED","threadId":%q,"runId":%q}`, input.ThreadID, input.RunID)
	message := input.RunID + "-answer"
	send(`{"type":"TEXT_MESSAGE_START","messageId":%q,"role":"assistant"}`, message)
	next := time.Now()
	for range input.ForwardedProps.Tokens {
		send(`{"type":"TEXT_MESSAGE_CONTENT","messageId":%q,"delta":"token ","sent":%d}`, message, time.Now().UnixNano())
		next = next.Add(input.ForwardedProps.Every)
		time.Sleep(time.Until(next))
	}
	send(`{"type":"TEXT_MESSAGE_END","messageId":%q}`, message)
	send(`{"type":"RUN_FINISHED","threadId":%q,"runId":%q}`, input.ThreadID, input.RunID)
}

// thread returns the id of a new thread.
func (s *served) thread() string {
	s.threads++
	return fmt.Sprint("thread-", s.threads)
}

// post runs the agent in a new thread.
func (s *served) post(ctx context.Context, to, thread string, p pace) (*http.Response, error) {
	body, err := json.Marshal(map[string]any{
		"threadId": thread, "runId": "run-" + thread, "messages": []any{}, "tools": []any{}, "context": []any{}, "state": nil, "forwardedProps": p,
	})
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	return s.open(request)
}

// follow attaches to a thread.
func (s *served) follow(ctx context.Context, thread string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.process.url+"/threads/"+thread+"/events?stay=true", nil)
	if err != nil {
		return nil, err
	}
	return s.open(request)
}

func (s *served) open(request *http.Request) (*http.Response, error) {
	answer, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		return nil, fmt.Errorf("%s %s: %s: %s", request.Method, request.URL.Path, answer.Status, text)
	}
	return answer, nil
}

// delays reads a stream to the end of its run, and returns the delay in milliseconds of each token
// that the agent sent at since or later.
func delays(answer *http.Response, since time.Time) (delays []float64, err error) {
	defer answer.Body.Close()
	lines := bufio.NewReaderSize(answer.Body, 16<<10)
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			return nil, fmt.Errorf("a stream ended early: %w", err)
		}
		if _, number, isToken := bytes.Cut(line, []byte(`"sent":`)); isToken {
			sent, err := strconv.ParseInt(string(bytes.TrimRight(number, "}\n")), 10, 64)
			if err != nil {
				return nil, err
			}
			if sent >= since.UnixNano() {
				delays = append(delays, float64(time.Now().UnixNano()-sent)/1e6)
			}
		}
		if bytes.Contains(line, []byte(`"RUN_FINISHED"`)) {
			_, err := io.Copy(io.Discard, answer.Body) // so that the connection is used again
			return delays, err
		}
	}
}

// delaysOf runs the agent in some threads, each with the poster and some followers. The runs begin
// one after the other, within the time begin, and what is sent before twice that time does not
// count.
func (s *served) delaysOf(ctx context.Context, to string, runs, followers int, begin time.Duration, p pace) (all []float64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // of followers, which stay
	threads := make([]string, runs)
	for i := range threads {
		threads[i] = s.thread()
	}
	collected := make([][]float64, runs*(1+followers))
	var group errgroup.Group
	since := time.Now().Add(2 * begin)
	for i, thread := range threads {
		for f := range followers {
			answer, err := s.follow(ctx, thread)
			if err != nil {
				return nil, err
			}
			group.Go(func() (err error) {
				collected[runs+i*followers+f], err = delaysOfFollower(answer, since)
				return err
			})
		}
	}
	for i, thread := range threads {
		group.Go(func() error {
			time.Sleep(begin * time.Duration(i) / time.Duration(runs))
			answer, err := s.post(ctx, to, thread, p)
			if err == nil {
				collected[i], err = delays(answer, since)
			}
			return err
		})
	}
	err = group.Wait()
	for _, delays := range collected {
		all = append(all, delays...)
	}
	return all, err
}

// delaysOfFollower is delays for a stream that stays open after the run.
func delaysOfFollower(answer *http.Response, since time.Time) ([]float64, error) {
	pipe, writer := io.Pipe()
	go func() {
		_, err := io.Copy(writer, untilFinished{bufio.NewReader(answer.Body)})
		writer.CloseWithError(err)
		answer.Body.Close()
	}()
	return delays(&http.Response{Body: pipe}, since)
}

// untilFinished ends behind the line with RUN_FINISHED.
type untilFinished struct{ *bufio.Reader }

func (u untilFinished) WriteTo(to io.Writer) (n int64, err error) {
	for {
		line, err := u.ReadSlice('\n')
		written, writeErr := to.Write(line)
		n += int64(written)
		if err = errors.Join(err, writeErr); err != nil || bytes.Contains(line, []byte(`"RUN_FINISHED"`)) {
			return n, err
		}
	}
}

// added measures what the server adds to the median delay.
func (s *served) added(ctx context.Context, name string, runs, followers int, begin time.Duration, p pace, limit float64) error {
	var figures notes
	added := func(to string) func(context.Context) (float64, error) {
		return func(ctx context.Context) (float64, error) {
			f := followers
			if to == s.agent {
				f = 0
			}
			delays, err := s.delaysOf(ctx, to, runs, f, begin, p)
			if err != nil {
				return 0, err
			}
			side := map[bool]string{true: "from the agent itself", false: "through the server"}[to == s.agent]
			figures.addDelays(name+", "+side, delays)
			return percentile(delays, 0.5), nil
		}
	}
	measured, err := s.rounds(ctx, name, side{"through", added(s.process.url + "/agent/paced/run")}, side{"direct", added(s.agent)})
	if err != nil {
		return err
	}
	difference := make([]float64, len(measured["through"]))
	for i := range difference {
		difference[i] = max(measured["through"][i]-measured["direct"][i], 0.001)
	}
	s.report.add(Measurement{
		Phase: "serve", What: name + ": added to the delay, p50", Unit: "ms",
		Ours: Side{Name: "pgagui"}, Against: Side{Name: "promised"}, Target: atMost("S1", 1),
	}, difference, slices.Repeat([]float64{limit}, s.Repeat))
	s.report.addFigures("serve", figures)
	return nil
}

func (s *served) oneRun(ctx context.Context) error {
	return s.added(ctx, "one run of 50 tokens/s", 1, 0, 0, pace{Tokens: s.sizes.servedTokens, Every: 20 * time.Millisecond}, 10)
}

func (s *served) manyRuns(ctx context.Context) error {
	runs := s.sizes.servedRuns
	const every = 20 * time.Millisecond
	tokens := 4 * s.sizes.servedTokens
	return s.added(ctx, fmt.Sprintf("%d runs of 50 tokens/s, %d clients", runs, 5*runs), runs, 4,
		time.Duration(tokens/4)*every, pace{Tokens: tokens, Every: every}, 30)
}

// headers measures the time until the client knows that its run is accepted, while the agent thinks.
func (s *served) headers(ctx context.Context) error {
	var figures notes
	for range 1 + s.Repeat {
		begin := time.Now()
		answer, err := s.post(ctx, s.process.url+"/agent/paced/run", s.thread(), pace{Tokens: 1, Wait: 200 * time.Millisecond})
		if err != nil {
			return err
		}
		figures.add("until a run is accepted", "ms", float64(time.Since(begin).Microseconds())/1000)
		if _, err := delays(answer, time.Time{}); err != nil {
			return err
		}
	}
	s.report.addFigures("serve", figures)
	return nil
}

// idle measures the memory of followers of quiet threads.
func (s *served) idle(ctx context.Context) error {
	const limit = 64 << 10
	count := s.sizes.servedIdle
	before := memory.Resident(s.process.pid)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var open errgroup.Group
	open.SetLimit(50)
	for i := range count {
		open.Go(func() error {
			answer, err := s.follow(ctx, fmt.Sprint("idle-", i))
			if err == nil {
				context.AfterFunc(ctx, func() { answer.Body.Close() })
			}
			return err
		})
	}
	if err := open.Wait(); err != nil {
		return err
	}
	grown := float64(max(1, memory.Resident(s.process.pid)-before)) // few followers fit into what the process had
	s.report.add(Measurement{
		Phase: "serve", What: fmt.Sprintf("%d idle followers: memory of one", count), Unit: "bytes",
		Ours: Side{Name: "pgagui"}, Against: Side{Name: "promised"}, Target: atMost("S2", 1),
	}, []float64{grown / float64(count)}, []float64{limit})
	return nil
}

// servedConfig is what the process of the server needs to know.
type servedConfig struct{ DatabaseURL, Agent string }

// servedVariable has the configuration in the environment of the process of the server.
const servedVariable = "PGAGUI_BENCH_SERVER"

// ServeInstead makes this process the server that the phase serve measures, if it was started for
// that. It does not return then. main and TestMain call it first.
func ServeInstead() {
	text := os.Getenv(servedVariable)
	if text == "" {
		return
	}
	if err := serveUntilEOF(text); err != nil {
		fmt.Fprintln(os.Stderr, "bench: the server:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func serveUntilEOF(text string) error {
	var config servedConfig
	if err := json.Unmarshal([]byte(text), &config); err != nil {
		return err
	}
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, config.DatabaseURL)
	if err != nil {
		return err
	}
	defer pool.Close()
	handler, err := httpserver.New(pgagui.New(pool, nil), httpserver.Options{
		Agents: []httpserver.Agent{{Name: "paced", URL: config.Agent}}, Access: access.Anonymous("", access.Admin),
		Limits: access.LimitOptions{RequestsPerSecond: -1, Streams: -1}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	agent, err := url.Parse(config.Agent)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/", handler)
	mux.Handle("/debug/", http.DefaultServeMux)
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL = agent }}
	mux.HandleFunc("/proxy", func(w http.ResponseWriter, r *http.Request) {
		// The agent may answer before the proxy has seen the end of the body; then net/http closes the body, and the stream breaks.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() { _ = http.Serve(listener, mux) }()
	fmt.Println(listener.Addr())
	_, _ = io.Copy(io.Discard, os.Stdin)
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return handler.Shutdown(ctx)
}

// servedProcess is the process of the server.
type servedProcess struct {
	command *exec.Cmd
	stdin   io.Closer
	url     string
	pid     int
}

func startServer(ctx context.Context, config servedConfig) (*servedProcess, error) {
	text, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, program)
	command.Env = append(os.Environ(), servedVariable+"="+string(text))
	command.Stderr = os.Stderr
	stdin, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	process := &servedProcess{command: command, stdin: stdin, pid: command.Process.Pid}
	address, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the server did not start: %w", err), process.stop())
	}
	process.url = "http://" + strings.TrimSpace(address)
	return process, nil
}

// stop ends the process. It can be called twice.
func (p *servedProcess) stop() error {
	if p.command == nil {
		return nil
	}
	command := p.command
	p.command = nil
	_ = p.stdin.Close()
	return command.Wait()
}
