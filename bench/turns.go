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

	"github.com/jackc/pgx/v5"

	"github.com/pgagui/pgagui/jobs"
)

// dialogues are conversations beside each other, in a store of their own. Their clients send the history with each turn, as the official
// one does.
type dialogues struct {
	conversations int
	turns         int // of each
	window        int // messages that a turn brings at most; 0: all
	imageBytes    int // of the first message
	compactEach   int // turns
}

// weight is what conversations take in all tables, and the size of the text of their messages, each once.
type weight struct {
	stored, content float64
	tables          []tableSize
}

// turns measures what such conversations weigh. That it grows no faster than they do, the second half of their turns shows beside the first.
func (b *bench) turns(ctx context.Context) error {
	// A turn of all is a minute of a store in use: the worker compacts each minute and repacks each tenth, and autovacuum looks each minute.
	inUse := dialogues{conversations: 5, turns: b.sizes.turns, compactEach: 1}
	windowed, alone, short := inUse, inUse, inUse
	windowed.window = 40
	alone.conversations, alone.compactEach = 1, 10
	short.conversations, short.turns = 1, b.sizes.turns/10
	for _, c := range []struct {
		name   string
		of     dialogues
		target *Target
	}{
		{"text and tools", inUse, atMost("13", 2.5)},
		{"text and tools, the last 40 messages", windowed, atMost("13", 2.5)},
		{"text and tools, alone in a new database, compacted each tenth turn", alone, nil},
	} {
		b.Progress("turns: " + c.name)
		half, all, err := b.storedTurns(ctx, c.of)
		if err != nil {
			return err
		}
		what := fmt.Sprintf("%d × %d turns, %s", c.of.conversations, c.of.turns, c.name)
		b.report.add(Measurement{
			Phase: "turns", What: what, Unit: "bytes",
			Ours: Side{Name: "database"}, Against: Side{Name: "new content"}, Target: c.target,
		}, []float64{all.stored}, []float64{all.content})
		b.report.add(Measurement{
			Phase: "turns", What: "the same, second half", Unit: "bytes",
			Ours: Side{Name: "database"}, Against: Side{Name: "new content"},
		}, []float64{all.stored - half.stored}, []float64{all.content - half.content})
		if c.of == inUse {
			b.report.addTables("turns", "bytes/byte", all.tables, all.content)
		}
	}

	b.Progress("turns: an image")
	withImage := short
	withImage.imageBytes = 1 << 20
	_, with, err := b.storedTurns(ctx, withImage)
	if err != nil {
		return err
	}
	_, without, err := b.storedTurns(ctx, short)
	if err != nil {
		return err
	}
	b.report.add(Measurement{
		Phase: "turns", What: fmt.Sprintf("%d turns, what an image of 1 MiB at the beginning adds", short.turns), Unit: "bytes",
		Ours: Side{Name: "database"}, Against: Side{Name: "new content"}, Target: atMost("13", 1.2),
	}, []float64{with.stored - without.stored}, []float64{float64(withImage.imageBytes)})
	return nil
}

// storedTurns lets conversations go through the server, and weighs them after half of the turns and after all.
func (b *bench) storedTurns(ctx context.Context, of dialogues) (half, all weight, err error) {
	database, err := b.server.create(ctx, 1)
	if err != nil {
		return half, all, err
	}
	address, err := b.server.urlOf(database.name)
	if err != nil {
		return half, all, err
	}
	_, empty, err := database.tableSizes(ctx)
	if err != nil {
		return half, all, err
	}
	texts := make([]*turnTexts, of.conversations)
	for i := range texts {
		texts[i] = &turnTexts{threadID: fmt.Sprint("conversation ", i), words: rand.New(rand.NewPCG(1, uint64(i)))}
	}
	var speaking *turnTexts
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { speaking.ServeHTTP(w, r) }))
	defer agent.Close()
	process, err := startServer(ctx, servedConfig{DatabaseURL: address, Agent: agent.URL})
	if err != nil {
		return half, all, err
	}
	defer func() { err = errors.Join(err, process.stop()) }()
	for turn := range of.turns {
		for _, speaking = range texts {
			speaking.ask(turn, of)
			if err := speaking.post(ctx, process.url, turn); err != nil {
				return half, all, err
			}
		}
		done := turn + 1
		isWeighed := done == of.turns/2 || done == of.turns
		if err := database.maintain(ctx, done%of.compactEach == 0 || isWeighed, done%10 == 0 || isWeighed); err != nil {
			return half, all, err
		}
		if !isWeighed {
			continue
		}
		half, all = all, weight{}
		for _, text := range texts {
			all.content += float64(text.bytes)
		}
		if err := database.vacuum(ctx, allTables...); err != nil {
			return half, all, err
		}
		if all.tables, all.stored, err = database.tableSizes(ctx); err != nil {
			return half, all, err
		}
		all.stored -= empty
	}
	if err := process.stop(); err != nil {
		return half, all, err
	}
	return half, all, database.drop(ctx)
}

// maintain runs the jobs that are due, and vacuums what autovacuum would.
func (d *database) maintain(ctx context.Context, compact, repack bool) error {
	if compact {
		if _, err := jobs.Compact(ctx, d.Pool, jobs.CompactOptions{}); err != nil {
			return err
		}
	}
	if repack {
		if _, err := d.Exec(ctx, "call agui.repack(older_than => '0')"); err != nil {
			return err
		}
	}
	// Otherwise a session reports the rows that it left dead only after a second.
	if _, err := d.Exec(ctx, "select pg_stat_force_next_flush()"); err != nil {
		return err
	}
	rows, err := d.Query(ctx, `
		select n.relid::regclass::text
		from pg_stat_all_tables as n
		join pg_class as c on c.oid = n.relid
		where n.schemaname in ('agui', 'pg_toast')
			and n.n_dead_tup > current_setting('autovacuum_vacuum_threshold')::float + greatest(c.reltuples, 0) * coalesce(
				(select option_value from pg_options_to_table(c.reloptions) where option_name = 'autovacuum_vacuum_scale_factor'),
				current_setting('autovacuum_vacuum_scale_factor')
			)::float`)
	if err != nil {
		return err
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, table := range tables {
		if _, err := d.Exec(ctx, "vacuum "+table); err != nil {
			return err
		}
	}
	return nil
}

// turnTexts is an agent, its client, and what they say.
type turnTexts struct {
	threadID string
	words    *rand.Rand
	history  []saidMessage
	bytes    int // said so far
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

// ask adds the question of a turn to the history.
func (t *turnTexts) ask(turn int, of dialogues) {
	question := saidMessage{ID: fmt.Sprint("question ", turn), Role: "user", Content: t.next(200)}
	if turn == 0 && of.imageBytes > 0 {
		question.Content = []any{map[string]any{
			"type": "image", "source": map[string]any{"type": "data", "value": t.image(of.imageBytes), "mimeType": "image/png"},
		}}
	}
	t.history = append(t.history, question)
	if of.window > 0 {
		t.history = t.history[max(0, len(t.history)-of.window):]
	}
}

// post runs the agent with the history. The agent adds to it what it answers.
func (t *turnTexts) post(ctx context.Context, to string, turn int) error {
	body, err := json.Marshal(map[string]any{
		"threadId": t.threadID, "runId": fmt.Sprint("run-", turn), "messages": t.history, "tools": []any{}, "context": []any{}, "state": map[string]any{"turn": turn},
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
	result, said := t.next(1000+t.words.IntN(2000)), t.next(750+t.words.IntN(1500))
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
