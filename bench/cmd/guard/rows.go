package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgagui/pgagui/bench/corpus"
	"github.com/pgagui/pgagui/internal/rawjson"
)

// row is something that is measured.
type row struct {
	name   string
	corpus string // what the database has before
	units  int    // events, runs or calls that one measurement processes
	isCold bool   // on connections of its own; otherwise on one that is warm
	run    func(context.Context, *measurement) error
}

// measurement is one run of a row.
type measurement struct {
	*side
	address    string
	connection *pgx.Conn // nil if the row is cold
	corpus     *corpus.Corpus
	process    time.Duration // CPU of the commands
}

const (
	shortRuns                            = 300
	allTypesThreads, allTypesRuns        = 8, 8
	growingRuns, growingState            = 60, 100_000
	everydayThreads, everydayRuns        = 8, 10
	turns                                = 60
	singleEvents, batches, batchOfEvents = 3000, 400, 100
	coldJobs, restores                   = 10, 200
)

// The order keeps rows of one corpus together.
var rows = []row{
	{"append: 1 event", "nothing", singleEvents, false, appendRun(singleEvents, 1)},
	{"append: 100 events", "nothing", batches, false, appendRun(batches, batchOfEvents)},
	{"append: a turn with its history as input", "nothing", turns, false, appendTurns},
	{"job: cold, for one short run", "nothing", coldJobs, true, coldCompactions},
	{"compact: one-run threads in SQL, a run", "short", shortRuns, false, statement("call agui.compact()")},
	{"compact: one-run threads in Go, a run", "short", shortRuns, true, compactInGo},
	{"compact: one-run threads in Go without repack, a run", "short", shortRuns, true, compactOnly},
	{"compact: all types in SQL, a run", "all types", allTypesThreads * allTypesRuns, false, statement("call agui.compact()")},
	{"compact: all types in Go, a run", "all types", allTypesThreads * allTypesRuns, true, compactInGo},
	{"compact: a growing thread in SQL, a run", "growing", growingRuns, false, statement("call agui.compact()")},
	{"compact: a growing thread in Go, a run", "growing", growingRuns, true, compactInGo},
	{"compact: inputs with their history in SQL, a run", "turns", turns, false, statement("call agui.compact()")},
	{"compact: inputs with their history in Go, a run", "turns", turns, true, compactInGo},
	{"repack: everyday chats, a run", "everyday", everydayThreads * everydayRuns, false, statement("call agui.repack(older_than => '0')")},
	{"restore: everyday chats, a call", "everyday, compacted", restores, false, restoreAll},
}

func rowNames() []string {
	names := make([]string, len(rows))
	for i, row := range rows {
		names[i] = row.name
	}
	return names
}

// corpora load a database.
var corpora = map[string]func(context.Context, *corpus.Corpus, *pgx.Conn) error{
	"nothing": func(context.Context, *corpus.Corpus, *pgx.Conn) error { return nil },
	"short": func(ctx context.Context, _ *corpus.Corpus, connection *pgx.Conn) error {
		for i := range shortRuns {
			if err := appendAll(ctx, connection, fmt.Sprint("thread ", i), "run", shortRun(), nil); err != nil {
				return err
			}
		}
		return nil
	},
	"all types": func(ctx context.Context, text *corpus.Corpus, connection *pgx.Conn) error {
		return appendConversations(ctx, connection, allTypesThreads, func(seed uint64) corpus.Conversation { return text.AllTypes(seed, allTypesRuns) })
	},
	"growing": func(ctx context.Context, text *corpus.Corpus, connection *pgx.Conn) error {
		return appendConversations(ctx, connection, 1, func(seed uint64) corpus.Conversation { return text.Growing(seed, growingRuns, growingState) })
	},
	"everyday": loadEveryday,
	"everyday, compacted": func(ctx context.Context, text *corpus.Corpus, connection *pgx.Conn) error {
		if err := loadEveryday(ctx, text, connection); err != nil {
			return err
		}
		_, err := connection.Exec(ctx, "call agui.compact()")
		return err
	},
	"turns": func(ctx context.Context, text *corpus.Corpus, connection *pgx.Conn) error {
		return appendTurns(ctx, &measurement{connection: connection, corpus: text})
	},
}

func loadEveryday(ctx context.Context, text *corpus.Corpus, connection *pgx.Conn) error {
	return appendConversations(ctx, connection, everydayThreads, func(seed uint64) corpus.Conversation { return text.Everyday(seed, everydayRuns) })
}

func appendConversations(ctx context.Context, connection *pgx.Conn, n int, conversation func(seed uint64) corpus.Conversation) error {
	for i := range n {
		thread := conversation(uint64(i) + 1)
		for _, run := range thread.Runs {
			if err := appendAll(ctx, connection, thread.ThreadID, run.RunID, run.Events, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// appendAll appends a whole run in calls of 20 events, as a recorder does.
func appendAll(ctx context.Context, connection *pgx.Conn, thread, run string, events []json.RawMessage, input rawjson.Text) error {
	for first := 0; first < len(events); first += 20 {
		if err := appendSome(ctx, connection, thread, run, events[first:min(first+20, len(events))], input); err != nil {
			return err
		}
		input = nil
	}
	return nil
}

func appendSome(ctx context.Context, connection *pgx.Conn, thread, run string, events []json.RawMessage, input rawjson.Text) error {
	text, err := json.Marshal(events)
	if err != nil {
		return err
	}
	_, err = connection.Exec(ctx, "select agui.append($1, $2, $3::json, input => $4::json)", thread, run, string(text), input)
	return err
}

// shortRun is a run of 20 events: a short answer.
func shortRun() []json.RawMessage {
	events := []json.RawMessage{
		json.RawMessage(`{"type":"RUN_STARTED"}`),
		json.RawMessage(`{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}`),
	}
	for len(events) < 18 {
		events = append(events, json.RawMessage(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":" word"}`))
	}
	return append(events, json.RawMessage(`{"type":"TEXT_MESSAGE_END","messageId":"m"}`), json.RawMessage(`{"type":"RUN_FINISHED"}`))
}

// appendRun appends the tokens of one run.
func appendRun(calls, eventsOfACall int) func(context.Context, *measurement) error {
	return func(ctx context.Context, m *measurement) error {
		events := make([]json.RawMessage, eventsOfACall)
		for i := range events {
			events[i] = json.RawMessage(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":" word"}`)
		}
		if err := appendSome(ctx, m.connection, "t", "r", shortRun()[:2], nil); err != nil {
			return err
		}
		for range calls {
			if err := appendSome(ctx, m.connection, "t", "r", events, nil); err != nil {
				return err
			}
		}
		return nil
	}
}

// appendTurns appends the turns of a conversation as clients do: each brings the whole history, with the result of a tool, as the input of
// its run.
func appendTurns(ctx context.Context, m *measurement) error {
	text := m.corpus.Everyday(1, turns)
	var history []any
	for turn := range turns {
		events, err := json.Marshal(text.Runs[turn].Events)
		if err != nil {
			return err
		}
		words := string(events)
		history = append(history,
			map[string]any{"id": fmt.Sprint("question ", turn), "role": "user", "content": words[:100]},
			map[string]any{"id": fmt.Sprint("result ", turn), "role": "tool", "toolCallId": fmt.Sprint("call ", turn), "content": words[:2000]},
			map[string]any{"id": fmt.Sprint("answer ", turn), "role": "assistant", "content": words[500:1000]})
		input, err := json.Marshal(map[string]any{
			"threadId": "t", "runId": fmt.Sprint("r", turn), "messages": history, "state": map[string]any{"turn": turn},
			"tools": []any{}, "context": []any{}, "forwardedProps": map[string]any{},
		})
		if err != nil {
			return err
		}
		if err := appendAll(ctx, m.connection, "t", fmt.Sprint("r", turn), shortRun(), input); err != nil {
			return err
		}
	}
	return nil
}

func statement(text string) func(context.Context, *measurement) error {
	return func(ctx context.Context, m *measurement) error {
		_, err := m.connection.Exec(ctx, text)
		return err
	}
}

func (m *measurement) pgagui(ctx context.Context, arguments ...string) error {
	used, err := m.command(ctx, m.address, arguments...)
	m.process += used
	return err
}

func compactInGo(ctx context.Context, m *measurement) error { return m.pgagui(ctx, "compact") }

func compactOnly(ctx context.Context, m *measurement) error {
	return m.pgagui(ctx, "compact", "--repack=false")
}

// coldCompactions runs the job for one run after the other, as cron does.
func coldCompactions(ctx context.Context, m *measurement) error {
	for i := range coldJobs {
		connection, err := pgx.Connect(ctx, m.address)
		if err != nil {
			return err
		}
		err = appendAll(ctx, connection, fmt.Sprint("thread ", i), "run", shortRun(), nil)
		if err := connection.Close(ctx); err != nil {
			return err
		}
		if err != nil {
			return err
		}
		if err := m.pgagui(ctx, "compact"); err != nil {
			return err
		}
	}
	return nil
}

func restoreAll(ctx context.Context, m *measurement) error {
	for i := range restores {
		if _, err := m.connection.Exec(ctx, "select agui.restore(thread_id) from agui.thread order by thread_id offset $1 limit 1", i%everydayThreads); err != nil {
			return err
		}
	}
	return nil
}
