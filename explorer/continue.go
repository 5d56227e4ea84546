package explorer

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/server/access"
	"github.com/pgagui/pgagui/server/door"
	"github.com/pgagui/pgagui/server/problem"
)

// A run that continues from a message begins as any client begins one: with POST /agent/{name}/run of
// Options.Agents, whose input says where. A run continues a whole run. What it shall continue may end
// in the middle of one: then it continues the run before, and its input has the messages from there.

type continuePage struct {
	Head   threadHead
	Before []part // what stands before the new message
	Fork   fork
	Text   string // of the new message, to begin with
	NewRun string
	Agents []choice // that the reader may run
	MayRun bool     // whether the token has the right
	Input  string   // the link to the input
	Shown  string   // the input
	Cut    string
}

// fork is where a run continues from.
type fork struct {
	Thread, Run, Message string
	// Parent is the run to continue; empty: the new run is a root.
	Parent string
	// IsEdit: the new message replaces the other one. Else it follows it.
	IsEdit bool
	// carried are messages that no ancestor of the new run has, and state is the one behind them.
	carried []json.RawMessage
	state   json.RawMessage
	// last are the messages before the new one, of the run.
	last []pgagui.PlacedMessage
	// message is the one to continue from.
	message pgagui.PlacedMessage
}

// isForkable reports whether runs can continue from the first of some messages.
func isForkable(messages []pgagui.PlacedMessage) bool {
	_, missing := throughResults(messages)
	return messages[0].Role == "user" || messages[0].Role == "assistant" && missing == ""
}

// readFork finds out where a run continues from that begins at a message.
func (q *request) readFork(thread, run, message string) (at fork, err error) {
	for name, text := range map[string]string{"id": thread, "run": run, "message": message} {
		if text == "" {
			return at, problem.Errorf(http.StatusBadRequest, "the address lacks the parameter %s", name)
		}
	}
	at = fork{Thread: thread, Run: run, Message: message}
	of, err := q.store.Status(q.Context(), pgagui.RunRef{ThreadID: thread, RunID: run})
	if err != nil {
		return at, err
	}
	placed, n, err := q.readFrom(at)
	if err != nil {
		return at, err
	}
	at.message, at.IsEdit = placed[n], placed[n].Role == "user"
	if !at.IsEdit && at.message.Role != "assistant" {
		return at, problem.Errorf(http.StatusConflict, "a run continues from a message of a user or an assistant, and this one has the role %.40q", at.message.Role)
	}
	end := n // the first message that the new run does not have
	if !at.IsEdit {
		answered, missing := throughResults(placed[n:])
		if end += answered; missing != "" {
			return at, problem.Errorf(http.StatusConflict, "the tool call %.80q of this message has no result: continue from a message behind its result", missing)
		}
	}
	at.last = placed[:end]
	at.Parent = of.ParentRunID
	switch {
	case !at.IsEdit && end == len(placed): // all of the run
		at.Parent = run
	case end > 0 && placed[end-1].RunID == run:
		messages, err := q.store.Messages(q.Context(), thread, pgagui.At{RunID: run})
		if err != nil {
			return at, err
		}
		for _, one := range messages[:min(placed[end-1].Position, len(messages))] {
			at.carried = append(at.carried, one.JSON)
		}
		if at.state, err = q.store.State(q.Context(), thread, pgagui.At{RunID: run, Seq: placed[end-1].LastSeq}); err != nil {
			return at, err
		}
	}
	return at, nil
}

// readFrom returns the messages at the end of a run, from the one before the message on, and which of
// them is the message.
func (q *request) readFrom(at fork) (placed []pgagui.PlacedMessage, n int, err error) {
	options := pgagui.LastMessagesOptions{At: pgagui.At{RunID: at.Run}, Limit: messagesPerPage}
	for {
		page, err := q.store.LastMessages(q.Context(), at.Thread, options)
		if err != nil {
			return nil, 0, err
		}
		placed = append(page, placed...)
		n = slices.IndexFunc(placed, func(one pgagui.PlacedMessage) bool { return one.ID == at.Message && one.RunID == at.Run })
		isWhole := len(page) == 0 || page[0].Position <= 1
		switch {
		case n > 0 || n == 0 && isWhole:
			return placed, n, nil
		case isWhole:
			return nil, 0, problem.Errorf(http.StatusNotFound, "run %.200q brought no message %.200q", at.Run, at.Message)
		}
		options.Cursor = page[0].Cursor
	}
}

// throughResults returns how many of some messages go up to the results of the tool calls of the first
// one, and a call that has none in the same run; empty: all have. Models take no call without its result.
func throughResults(messages []pgagui.PlacedMessage) (end int, missing string) {
	var of struct{ ToolCalls []struct{ ID string } }
	_ = json.Unmarshal(messages[0].JSON, &of) // an odd one has no calls
	end = 1
	if other := slices.IndexFunc(messages, func(message pgagui.PlacedMessage) bool { return message.RunID != messages[0].RunID }); other >= 0 {
		messages = messages[:other]
	}
	for _, call := range of.ToolCalls {
		at := slices.IndexFunc(messages, func(message pgagui.PlacedMessage) bool {
			var result struct{ ToolCallID string }
			return message.Role == "tool" && json.Unmarshal(message.JSON, &result) == nil && result.ToolCallID == call.ID
		})
		if at < 0 {
			return end, call.ID
		}
		end = max(end, at+1)
	}
	return end, ""
}

// runInput is a RunAgentInput.
type runInput struct {
	ThreadID       string            `json:"threadId"`
	RunID          string            `json:"runId"`
	ParentRunID    string            `json:"parentRunId"` // empty: the run is a root
	State          json.RawMessage   `json:"state"`
	Messages       []json.RawMessage `json:"messages"`
	Tools          []string          `json:"tools"`
	Context        []string          `json:"context"`
	ForwardedProps struct{}          `json:"forwardedProps"`
}

// input returns the input of a run that continues from there with a text.
func (at fork) input(run, text string) (json.RawMessage, error) {
	message := struct {
		ID      string `json:"id"`
		Role    string `json:"role"`
		Content any    `json:"content"`
	}{"user-of-" + run, "user", text}
	if at.IsEdit {
		message.Content = withText(at.message.JSON, text)
	}
	own, err := json.Marshal(message)
	if err != nil {
		return nil, err
	}
	state := at.state
	if state == nil {
		state = json.RawMessage("{}") // the one of the parent
	}
	return json.Marshal(runInput{
		ThreadID: at.Thread, RunID: run, ParentRunID: at.Parent, State: state, Messages: append(slices.Clone(at.carried), own), Tools: []string{}, Context: []string{},
	})
}

// textOf returns the text of a message of a user.
func textOf(message json.RawMessage) string {
	var of struct{ Content json.RawMessage }
	_ = json.Unmarshal(message, &of) // an odd one has no text
	var text string
	if json.Unmarshal(of.Content, &text) == nil {
		return text
	}
	var parts []struct{ Type, Text string }
	_ = json.Unmarshal(of.Content, &parts) // the same
	var texts []string
	for _, part := range parts {
		if part.Type == "text" {
			texts = append(texts, part.Text)
		}
	}
	return strings.Join(texts, "\n\n")
}

// withText returns the content of a message with another text. Its attachments stay.
func withText(message json.RawMessage, text string) any {
	var of struct{ Content []json.RawMessage }
	if json.Unmarshal(message, &of) != nil {
		return text
	}
	parts := []any{map[string]string{"type": "text", "text": text}}
	for _, part := range of.Content {
		var kind struct{ Type string }
		if _ = json.Unmarshal(part, &kind); kind.Type != "text" {
			parts = append(parts, part)
		}
	}
	return parts
}

// showContinue shows the form for a run that continues from a message, and the call that does the same.
func (h *Handler) showContinue(q *request) error {
	at, err := q.readFork(q.text("id"), q.text("run"), q.text("message"))
	if err != nil {
		return err
	}
	head, _, err := q.readThread("continue")
	if err != nil {
		return err
	}
	body := continuePage{Head: head, Fork: at, NewRun: "run-" + strings.ToLower(rand.Text()[:12]), MayRun: q.identity.Can(access.Write)}
	if at.IsEdit {
		body.Text = textOf(at.message.JSON)
	}
	shown := said{thread: at.Thread, placed: at.last[max(len(at.last)-2, 0):]}
	for _, message := range shown.placed {
		shown.messages = append(shown.messages, message.JSON)
	}
	if len(shown.placed) > 0 {
		shown.first = shown.placed[0].Position
	}
	body.Before = partsOf(shown)
	if body.MayRun && h.options.Agents != nil {
		names, err := h.agents(q)
		if err != nil {
			return err
		}
		for _, name := range names {
			body.Agents = append(body.Agents, choice{Value: name, Text: name, IsChosen: name == head.Agent})
		}
	}
	body.Input = link("input", "id", at.Thread, "run", at.Run, "message", at.Message, "as", body.NewRun)
	input, err := at.input(body.NewRun, cmp.Or(body.Text, yourText))
	if err != nil {
		return err
	}
	body.Shown, body.Cut = cut(pretty(input))
	return q.write("continue", "Continue "+cmp.Or(head.Title, head.ID), body)
}

// yourText stands where a client puts its text.
const yourText = "…"

// sendInput sends the input of a run that continues from a message, for a client to send.
func (h *Handler) sendInput(q *request) error {
	at, err := q.readFork(q.text("id"), q.text("run"), q.text("message"))
	if err != nil {
		return err
	}
	run, err := q.required("as")
	if err != nil {
		return err
	}
	text := yourText
	if at.IsEdit {
		text = textOf(at.message.JSON)
	}
	input, err := at.input(run, text)
	if err != nil {
		return err
	}
	q.w.Header().Set("Content-Type", "application/json")
	q.w.Header().Set("Content-Disposition", `attachment; filename="input.json"`)
	return q.send(http.StatusOK, append(input, '\n'))
}

// postContinue begins a run that continues from a message, and leads to it.
func (h *Handler) postContinue(q *request) error {
	if h.options.Agents == nil {
		return problem.Errorf(http.StatusNotFound, "there are no agents here")
	}
	at, err := q.readFork(q.PostFormValue("id"), q.PostFormValue("run"), q.PostFormValue("message"))
	if err != nil {
		return err
	}
	run, agent, text := q.PostFormValue("as"), q.PostFormValue("agent"), q.PostFormValue("text")
	if run == "" || agent == "" || strings.TrimSpace(text) == "" {
		return problem.Errorf(http.StatusBadRequest, "the form lacks a text, an agent, or the id of the new run")
	}
	input, err := at.input(run, strings.ReplaceAll(text, "\r\n", "\n")) // a browser sends line ends as CR LF
	if err != nil {
		return err
	}
	if _, err := h.ask(q, http.MethodPost, "/agent/"+url.PathEscape(agent)+"/run", "text/event-stream", input); err != nil {
		return err
	}
	q.redirect(link("thread", "id", at.Thread, "run", run) + "#end")
	return nil
}

// ask sends a request to Options.Agents for the reader, and returns its answer up to the first event
// of a stream. Then the client is gone; the run goes on.
func (h *Handler) ask(q *request, method, path, accept string, body []byte) (*begunAnswer, error) {
	ctx, cancel := context.WithCancel(door.Streaming(q.Context()))
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.RemoteAddr = q.RemoteAddr
	request.Header.Set("Accept", accept)
	request.Header.Set("Content-Type", "application/json")
	if languages := q.Header.Get("Accept-Language"); languages != "" {
		request.Header.Set("Accept-Language", languages) // agents may want it
	}
	got := &begunAnswer{header: http.Header{}, begun: make(chan struct{})}
	ended := make(chan any, 1)
	go func() {
		defer func() { ended <- recover() }()
		h.options.Agents.ServeHTTP(got, request)
	}()
	select {
	case <-got.begun:
		cancel()
		<-ended
	case failed := <-ended:
		if failed != nil && failed != http.ErrAbortHandler {
			panic(failed)
		}
	}
	if err := q.Context().Err(); err != nil {
		return nil, err
	}
	if got.status >= http.StatusBadRequest {
		refused := problem.Details{Title: http.StatusText(got.status), Status: got.status}
		_ = json.Unmarshal(got.body.Bytes(), &refused) // what is no problem document has no details
		return nil, &refused
	}
	return got, nil
}

func (h *Handler) agents(q *request) (names []string, err error) {
	got, err := h.ask(q, http.MethodGet, "/agents", "application/json", nil)
	if err != nil {
		return nil, err
	}
	var list struct{ Agents []struct{ Name string } }
	if err := json.Unmarshal(got.body.Bytes(), &list); err != nil {
		return nil, err
	}
	for _, agent := range list.Agents {
		names = append(names, agent.Name)
	}
	return names, nil
}

// begunAnswer is an answer of Options.Agents, of which a stream is known up to its first event.
type begunAnswer struct {
	header http.Header
	status int
	body   bytes.Buffer
	begun  chan struct{} // closed with the first event
	isOver bool          // begun is closed
}

func (a *begunAnswer) Header() http.Header { return a.header }

func (a *begunAnswer) WriteHeader(status int) { a.status = cmp.Or(a.status, status) }

func (a *begunAnswer) Flush() {}

func (a *begunAnswer) Write(text []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	if a.isOver {
		return len(text), nil
	}
	a.body.Write(text)
	if a.header.Get("Content-Type") == "text/event-stream" && bytes.Contains(a.body.Bytes(), []byte("data: ")) {
		a.isOver = true
		close(a.begun)
	}
	return len(text), nil
}
