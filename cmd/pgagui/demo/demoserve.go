package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/sampleagent"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/devpg/daemon"
)

const serveThread = "served"

// serve shows the server: two processes of pgagui serve on the database, and a page that uses one
// after the other.
func (d *demonstration) serve(ctx context.Context) (err error) {
	d.title("Serve: the same over HTTP, by two processes (pgagui serve)")
	agent, err := startAgent()
	if err != nil {
		return err
	}
	defer agent.Close()

	var first, second *demoServer
	for _, server := range []**demoServer{&first, &second} {
		if *server, err = d.startServer(ctx, agent.url); err != nil {
			return err
		}
		defer func(server *demoServer) { err = errors.Join(err, server.end()) }(*server)
	}
	d.table("first process\t"+first.url, "second process\t"+second.url, "agent\t"+sampleagent.Name+" (scripted)")
	for _, step := range []func(context.Context, *demoServer, *demoServer) error{d.reloadServed, d.branchServed, d.stopServed} {
		if err := step(ctx, first, second); err != nil {
			return err
		}
	}
	return nil
}

// explore starts a server for the time after the demo, and returns a link to its explorer. It
// takes requests without a token, from this machine alone: so it is for the private database, whose
// password is printed, too.
func (d *demonstration) explore(ctx context.Context) (link string, end func() error, err error) {
	agent, err := startAgent()
	if err != nil {
		return "", nil, err
	}
	server, err := d.startServer(ctx, agent.url)
	if err != nil {
		return "", nil, errors.Join(err, agent.Close())
	}
	return server.url + "/explorer/thread?id=" + demoThread, func() error { return errors.Join(server.end(), agent.Close()) }, nil
}

// demoAgent is the sample agent.
type demoAgent struct {
	http.Server
	url string
}

func startAgent() (*demoAgent, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(daemon.Host, "0"))
	if err != nil {
		return nil, err
	}
	agent := &demoAgent{
		Server: http.Server{Handler: sampleagent.Agent{WordEvery: liveWordEvery}, ReadHeaderTimeout: 10 * time.Second}, url: "http://" + listener.Addr().String() + "/",
	}
	go func() { _ = agent.Serve(listener) }()
	return agent, nil
}

// reloadServed reloads a page in the middle of a run, which continues from the other process.
func (d *demonstration) reloadServed(ctx context.Context, first, second *demoServer) error {
	const wordsBefore = 8
	page, err := first.run(ctx, demoInput("served-1", "What can you do?"))
	if err != nil {
		return err
	}
	before, err := page.read(wordsBefore)
	page.body.Close()
	if err != nil {
		return err
	}
	again, err := second.open(ctx, http.MethodGet, "/threads/"+serveThread+"/events", "", page.lastID)
	if err != nil {
		return err
	}
	after, err := again.read(0)
	if err != nil {
		return err
	}
	text := before + after
	if want := strings.Join(strings.Fields(sampleagent.Answer), " ") + " "; text != want {
		return fmt.Errorf("the page has %q, want %q", text, want)
	}
	fmt.Fprintf(d.p.Out, "  the page was reloaded after %d words; the second process continued, no word lost or repeated:\n", wordsBefore)
	d.table("  assistant\t" + cli.Shorten(text, demoWidth))
	return nil
}

// branchServed edits the second question of a conversation.
func (d *demonstration) branchServed(ctx context.Context, first, second *demoServer) error {
	page, err := first.run(ctx, demoInput("served-2", "And what time is it?"))
	if err == nil {
		_, err = page.read(0)
	}
	if err != nil {
		return err
	}
	// The page has the whole conversation, and changes the last message of the user.
	restored, err := second.get(ctx, "/copilotkit/threads/"+serveThread+"/messages")
	if err != nil {
		return err
	}
	var conversation struct{ Messages []map[string]any }
	if err := json.Unmarshal(restored, &conversation); err != nil {
		return err
	}
	input := demoInput("served-3", "")
	var messages []any
	for _, message := range conversation.Messages {
		if message["id"] == "user-of-served-2" {
			message["content"] = "And what day is it?"
			messages = append(messages, message)
			break
		}
		messages = append(messages, message)
	}
	input["messages"] = messages
	if page, err = second.run(ctx, input); err != nil {
		return err
	}
	parent := page.header.Get("Pgagui-Parent-Run")
	if _, err = page.read(0); err != nil {
		return err
	}
	fmt.Fprintf(d.p.Out, "  the second question was edited: a branch that continues from %s\n", parent)
	return nil
}

// stopServed stops a run of the first process at the second one.
func (d *demonstration) stopServed(ctx context.Context, first, second *demoServer) error {
	page, err := first.run(ctx, demoInput("served-4", "A long answer, please"))
	if err != nil {
		return err
	}
	defer page.body.Close()
	if _, err := page.read(4); err != nil {
		return err
	}
	begin := time.Now()
	answer, err := second.open(ctx, http.MethodPost, "/threads/"+serveThread+"/stop", `{"reason":"the user has read enough"}`, "")
	if err != nil {
		return err
	}
	answer.body.Close()
	if _, err := page.read(0); err != nil {
		return err
	}
	fmt.Fprintf(d.p.Out, "  stop requested at the second process: the run of the first one ended %s later\n", cli.DurationText(time.Since(begin)))
	return nil
}

// demoInput is a RunAgentInput with a question.
func demoInput(runID, question string) map[string]any {
	return map[string]any{
		"threadId": serveThread, "runId": runID, "state": map[string]any{}, "tools": []any{}, "context": []any{}, "forwardedProps": map[string]any{},
		"messages": []any{map[string]any{"id": "user-of-" + runID, "role": "user", "content": question}},
	}
}

// demoServer is a process of pgagui serve.
type demoServer struct {
	*exec.Cmd
	lifeline io.Closer // the process ends when it is closed, and when this process ends
	url      string
	client   http.Client
}

// startServer starts a process and waits until it serves.
func (d *demonstration) startServer(ctx context.Context, agentURL string) (*demoServer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &demoServer{Cmd: exec.CommandContext(ctx, self, "serve", "--insecure", "--until-stdin-ends", "--listen", net.JoinHostPort(daemon.Host, "0"),
		"--agent", sampleagent.Name+"="+agentURL, "--scope", d.p.Scope, "--grace", "1s", "--json")}
	s.Env = append(os.Environ(), "DATABASE_URL="+d.p.DatabaseURL)
	s.Cancel = func() error { return s.lifeline.Close() }
	s.WaitDelay = 10 * time.Second
	if s.lifeline, err = s.StdinPipe(); err != nil {
		return nil, err
	}
	log, err := s.StderrPipe()
	if err == nil {
		err = s.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start pgagui serve: %w", err)
	}
	lines := bufio.NewScanner(log)
	var line string
	for lines.Scan() {
		line = lines.Text()
		var entry struct{ Msg, URL string }
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "serving" {
			s.url = entry.URL
			go func() { _, _ = io.Copy(io.Discard, log) }()
			return s, nil
		}
	}
	return nil, fmt.Errorf("pgagui serve ended: %s (%w)", line, s.end())
}

// end ends the process in order.
func (s *demoServer) end() error {
	s.client.CloseIdleConnections()
	_ = s.lifeline.Close() // it may have ended
	return s.Wait()
}

func (s *demoServer) run(ctx context.Context, input map[string]any) (*demoPage, error) {
	body, err := json.Marshal(input)
	if err != nil {
		return nil, err
	}
	return s.open(ctx, http.MethodPost, "/agent/"+sampleagent.Name+"/run", string(body), "")
}

func (s *demoServer) get(ctx context.Context, path string) ([]byte, error) {
	page, err := s.open(ctx, http.MethodGet, path, "", "")
	if err != nil {
		return nil, err
	}
	defer page.body.Close()
	return io.ReadAll(page.body)
}

// open sends a request. lastID resumes a stream.
func (s *demoServer) open(ctx context.Context, method, path, body, lastID string) (*demoPage, error) {
	request, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if lastID != "" {
		request.Header.Set("Last-Event-ID", lastID)
	}
	answer, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		return nil, fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, text)
	}
	page := &demoPage{body: answer.Body, header: answer.Header, lines: bufio.NewScanner(answer.Body)}
	page.lines.Buffer(nil, 1<<20)
	return page, nil
}

// demoPage is what a page of a browser does with an answer.
type demoPage struct {
	body   io.ReadCloser
	header http.Header
	lines  *bufio.Scanner
	lastID string // of the last event that it has
}

// read returns the words of the next events of messages. 0: all that are left; then it closes the
// stream.
func (p *demoPage) read(words int) (text string, err error) {
	if words == 0 {
		defer p.body.Close()
	}
	var id string
	for read := 0; p.lines.Scan(); {
		name, value, _ := strings.Cut(p.lines.Text(), ": ")
		switch name {
		case "id":
			id = value
		case "data":
			if compaction.EventType([]byte(value)) != "TEXT_MESSAGE_CONTENT" {
				continue
			}
			var content struct{ Delta string }
			if err := json.Unmarshal([]byte(value), &content); err != nil {
				return "", err
			}
			text += content.Delta
			read++
		case "": // the event is complete
			p.lastID = id
			if read == words && words > 0 {
				return text, nil
			}
		}
	}
	return text, p.lines.Err()
}
