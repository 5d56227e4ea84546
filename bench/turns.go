package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/pgagui/pgagui/jobs"
)

// turns measures what a conversation weighs whose client sends its history with each turn, as the official one does. The turns go
// through the server, the jobs run after every tenth, and vacuum at the end. New content is the text of the messages, each once.
func (b *bench) turns(ctx context.Context) error {
	for _, c := range []struct {
		name       string
		turns      int
		window     int // messages that a turn brings at most; 0: all
		imageBytes int // of the first message
		target     *Target
	}{
		{name: "text and tools", turns: b.sizes.turns, target: atMost("13", 2.5)},
		{name: "text and tools, the last 40 messages", turns: b.sizes.turns, window: 40, target: atMost("13", 2.5)},
		{name: "what an image of 1 MiB at the beginning adds", turns: b.sizes.turns / 10, imageBytes: 1 << 20, target: atMost("13", 1.2)},
	} {
		b.Progress("turns: " + c.name)
		size, content, err := b.storedTurns(ctx, c.turns, c.window, c.imageBytes)
		if err == nil && c.imageBytes > 0 {
			// What the image adds to the same conversation without it.
			var rest float64
			rest, _, err = b.storedTurns(ctx, c.turns, c.window, 0)
			size, content = size-rest, float64(c.imageBytes)
		}
		if err != nil {
			return err
		}
		b.report.add(Measurement{
			Phase: "turns", What: fmt.Sprintf("%d turns, %s", c.turns, c.name), Unit: "bytes",
			Ours: Side{Name: "database"}, Against: Side{Name: "new content"}, Target: c.target,
		}, []float64{size}, []float64{content})
	}
	return nil
}

// storedTurns returns the size of the tables after some turns of a conversation, and of its content.
func (b *bench) storedTurns(ctx context.Context, turns, window, imageBytes int) (size, content float64, err error) {
	database, err := b.server.create(ctx, 1)
	if err != nil {
		return 0, 0, err
	}
	address, err := b.server.urlOf(database.name)
	if err != nil {
		return 0, 0, err
	}
	before, err := database.size(ctx, allTables...)
	if err != nil {
		return 0, 0, err
	}
	text := &turnTexts{words: rand.New(rand.NewPCG(1, 2))}
	agent := httptest.NewServer(text)
	defer agent.Close()
	process, err := startServer(ctx, servedConfig{DatabaseURL: address, Agent: agent.URL})
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, process.stop()) }()
	for turn := range turns {
		question := saidMessage{ID: fmt.Sprint("question ", turn), Role: "user", Content: text.next(200)}
		if turn == 0 && imageBytes > 0 {
			question.Content = []any{map[string]any{
				"type": "image", "source": map[string]any{"type": "data", "value": text.image(imageBytes), "mimeType": "image/png"},
			}}
		}
		text.history = append(text.history, question)
		if window > 0 {
			text.history = text.history[max(0, len(text.history)-window):]
		}
		if err := text.post(ctx, process.url, turn); err != nil {
			return 0, 0, err
		}
		if turn%10 == 9 || turn == turns-1 {
			if _, err := jobs.Compact(ctx, database.Pool, jobs.CompactOptions{}); err != nil {
				return 0, 0, err
			}
			if _, err := database.Exec(ctx, "call agui.repack(older_than => '0')"); err != nil {
				return 0, 0, err
			}
			if err := database.vacuum(ctx, allTables...); err != nil {
				return 0, 0, err
			}
		}
	}
	after, err := database.size(ctx, allTables...)
	if err != nil {
		return 0, 0, err
	}
	if err := process.stop(); err != nil {
		return 0, 0, err
	}
	return after - before, float64(text.bytes), database.drop(ctx)
}

// turnTexts is an agent, its client, and what they say.
type turnTexts struct {
	words   *rand.Rand
	history []saidMessage
	bytes   int // said so far
}

// saidMessage is a message as the official client sends it: with its members in the order in which it makes them.
type saidMessage struct {
	ID         string `json:"id"`
	ToolCallID string `json:"toolCallId,omitempty"`
	Role       string `json:"role"`
	Content    any    `json:"content,omitempty"`
	ToolCalls  []any  `json:"toolCalls,omitempty"`
}

// next returns a text of new words.
func (t *turnTexts) next(size int) string {
	var text strings.Builder
	for text.Len() < size {
		fmt.Fprintf(&text, "%s%d ", []string{"row", "name", "total", "of", "the"}[t.words.IntN(5)], t.words.IntN(10_000))
	}
	t.bytes += text.Len()
	return text.String()
}

// image returns text that does not compress, as base64 is.
func (t *turnTexts) image(size int) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	text := make([]byte, size)
	for i := range text {
		text[i] = letters[t.words.IntN(len(letters))]
	}
	t.bytes += size
	return string(text)
}

// post runs the agent with the history. The agent adds to it what it answers.
func (t *turnTexts) post(ctx context.Context, to string, turn int) error {
	body, err := json.Marshal(map[string]any{
		"threadId": "t", "runId": fmt.Sprint("run-", turn), "messages": t.history, "tools": []any{}, "context": []any{}, "state": map[string]any{"turn": turn},
		"forwardedProps": map[string]any{},
	})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to+"/agent/paced/run", bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	events, err := io.ReadAll(answer.Body)
	if err == nil && !bytes.Contains(events, []byte(`"RUN_FINISHED"`)) {
		err = fmt.Errorf("turn %d: %s: %.300s", turn, answer.Status, events)
	}
	return err
}

// ServeHTTP answers with a call of a tool, its result, and a text.
func (t *turnTexts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range t.answer() {
		fmt.Fprintf(w, "data: %s\n\n", event)
	}
}

// answer returns the events of a run, and adds its messages to the history: a call of a tool, its result, and a text in tokens.
func (t *turnTexts) answer() (events []json.RawMessage) {
	turn := len(t.history)
	id := func(what string) string { return fmt.Sprintf("%s-%d-%d", what, turn, t.bytes) }
	call, answer, called := id("call"), id("answer"), id("called")
	result, said := t.next(2000), t.next(1500)
	send := func(event map[string]any) {
		text, _ := json.Marshal(event) // of strings
		events = append(events, text)
	}
	send(map[string]any{"type": "RUN_STARTED"})
	send(map[string]any{"type": "TOOL_CALL_START", "toolCallId": call, "toolCallName": "search", "parentMessageId": called})
	send(map[string]any{"type": "TOOL_CALL_ARGS", "toolCallId": call, "delta": "{}"})
	send(map[string]any{"type": "TOOL_CALL_END", "toolCallId": call})
	send(map[string]any{"type": "TOOL_CALL_RESULT", "toolCallId": call, "messageId": "result of " + call, "content": result})
	send(map[string]any{"type": "TEXT_MESSAGE_START", "messageId": answer, "role": "assistant"})
	for piece := range strings.SplitAfterSeq(said, " ") {
		send(map[string]any{"type": "TEXT_MESSAGE_CONTENT", "messageId": answer, "delta": piece})
	}
	send(map[string]any{"type": "TEXT_MESSAGE_END", "messageId": answer})
	send(map[string]any{"type": "RUN_FINISHED"})
	type function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	type toolCall struct {
		ID       string   `json:"id"`
		Type     string   `json:"type"`
		Function function `json:"function"`
	}
	t.history = append(t.history,
		saidMessage{ID: called, Role: "assistant", ToolCalls: []any{toolCall{call, "function", function{"search", "{}"}}}},
		saidMessage{ID: "result of " + call, ToolCallID: call, Role: "tool", Content: result},
		saidMessage{ID: answer, Role: "assistant", Content: said})
	return events
}
