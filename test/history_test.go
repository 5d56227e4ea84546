package test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pgagui/pgagui"
	agui "github.com/pgagui/pgagui/events"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testfile"
)

// Before and after, as the proposal for compressed events has them.
func TestHistoryOfTheProposal(t *testing.T) {
	t.Parallel()
	text := testfile.Read(t, "golden/history/joined.json")
	var cases []struct {
		Name   string
		Events []json.RawMessage
		Want   []struct {
			Seq        int64
			LastSeq    int64 `json:"last_seq"`
			EventCount int64 `json:"event_count"`
			Payload    json.RawMessage
		}
	}
	must.Do(t, json.Unmarshal(text, &cases))
	store := pgagui.New(testdb.Pool(t), nil)
	for _, c := range cases {
		mustAppend(t, store, c.Name, "r", c.Events)
		page := must.Have(store.History(context.Background(), c.Name, pgagui.HistoryOptions{}))(t)
		var got, want []string
		for _, row := range page.Events {
			got = append(got, fmt.Sprint(row.Seq, row.LastSeq, row.Count, row.Type, string(row.JSON)))
		}
		for _, row := range c.Want {
			want = append(want, fmt.Sprint(row.Seq, row.LastSeq, row.EventCount, typeOf(t, row.Payload), string(row.Payload)))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: rows are\n%s\nwant\n%s", c.Name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

func typeOf(t *testing.T, event json.RawMessage) string {
	t.Helper()
	var typed struct{ Type string }
	must.Do(t, json.Unmarshal(event, &typed))
	return typed.Type
}

// Events of the small cases below, of run 0 and the main agent. Each piece is a single letter, so that a row's text says which pieces it is.

func event(eventType string) placedEvent {
	return placedEvent{event: json.RawMessage(fmt.Sprintf(`{"type":%q}`, eventType))}
}

func text(id, delta string) placedEvent {
	return event("TEXT_MESSAGE_CONTENT").with("messageId", quoted(id)).with("delta", quoted(delta))
}

func args(id, delta string) placedEvent {
	return event("TOOL_CALL_ARGS").with("toolCallId", quoted(id)).with("delta", quoted(delta))
}

func chunk(kind, id, delta string) placedEvent {
	name := "messageId"
	if kind == "TOOL_CALL" {
		name = "toolCallId"
	}
	if id != "" {
		return event(kind+"_CHUNK").with(name, quoted(id)).with("delta", quoted(delta))
	}
	return event(kind+"_CHUNK").with("delta", quoted(delta))
}

// with gives the event another member; the value is JSON.
func (p placedEvent) with(name, value string) placedEvent {
	p.event = json.RawMessage(fmt.Sprintf(`%s,%q:%s}`, p.event[:len(p.event)-1], name, value))
	return p
}

func (p placedEvent) of(subagent string) placedEvent {
	return p.with("subagentRunId", quoted(subagent))
}

func (p placedEvent) in(run int) placedEvent {
	p.run = run
	return p
}

func quoted(s string) string { return `"` + s + `"` }

// What is joined, and what ends it, a case for each rule. A row is shown as its type, or, when it is text, as that.
func TestWhatTheHistoryJoins(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	for i, c := range []struct {
		rule    string
		options pgagui.HistoryOptions
		events  []placedEvent
		want    string
	}{
		{rule: "pieces of a message", events: []placedEvent{text("m", "a"), text("m", "b"), text("m", "c")}, want: `abc`},
		{rule: "arguments of a tool call", events: []placedEvent{args("c", "a"), args("c", "b")}, want: `ab`},
		{rule: "another message", events: []placedEvent{text("m", "a"), text("n", "b"), text("m", "c")}, want: `a b c`},
		{rule: "another message, in between and of a subagent", events: []placedEvent{text("m", "a"), text("n", "b").of("s"), text("m", "c"), text("n", "d").of("s")}, want: `ac bd`},
		{rule: "another kind of the same message", events: []placedEvent{text("m", "a"), event("REASONING_MESSAGE_CONTENT").with("messageId", `"m"`).with("delta", `"b"`), text("m", "c")}, want: `a b c`},
		{rule: "an end", events: []placedEvent{text("m", "a"), event("TEXT_MESSAGE_END").with("messageId", `"m"`), text("m", "b")}, want: `a TEXT_MESSAGE_END b`},
		{rule: "a start", events: []placedEvent{args("c", "a"), event("TOOL_CALL_START").with("toolCallId", `"c"`), args("c", "b")}, want: `a TOOL_CALL_START b`},
		{rule: "tool calls side by side", events: []placedEvent{args("c", "a"), args("d", "b"), args("c", "c"), args("d", "d"), args("d", "e")}, want: `ac bde`},
		{rule: "another tool call that begins or ends meanwhile", events: []placedEvent{
			args("c", "a"), event("TOOL_CALL_START").with("toolCallId", `"d"`), args("c", "b"), args("d", "c"), event("TOOL_CALL_END").with("toolCallId", `"d"`), args("c", "d"),
		}, want: `abd TOOL_CALL_START c TOOL_CALL_END`},
		{rule: "a tool call whose parent is the message", events: []placedEvent{
			text("m", "a").of("s"), event("TOOL_CALL_START").with("toolCallId", `"c"`).with("parentMessageId", `"m"`), text("m", "b").of("s"),
		}, want: `a TOOL_CALL_START b`},
		{rule: "a message between tool calls", events: []placedEvent{args("c", "a"), text("m", "b"), args("c", "c")}, want: `a b c`},
		{rule: "a result", events: []placedEvent{args("c", "a"), args("d", "b"), event("TOOL_CALL_RESULT").with("toolCallId", `"d"`), args("c", "c")}, want: `a b TOOL_CALL_RESULT c`},
		{rule: "a custom event", events: []placedEvent{text("m", "a").of("s"), event("CUSTOM"), text("m", "b").of("s")}, want: `a CUSTOM b`},
		{rule: "a step", events: []placedEvent{text("m", "a"), event("STEP_STARTED"), text("m", "b")}, want: `a STEP_STARTED b`},
		{rule: "a snapshot of messages", events: []placedEvent{text("m", "a"), event("MESSAGES_SNAPSHOT").with("messages", `[]`), text("m", "b")}, want: `a MESSAGES_SNAPSHOT b`},
		{rule: "a change of the state", events: []placedEvent{text("m", "a"), event("STATE_DELTA").with("delta", `[]`), text("m", "b")}, want: `a STATE_DELTA b`},
		{rule: "an event of an unknown type", events: []placedEvent{text("m", "a"), event("FUTURE"), text("m", "b")}, want: `a FUTURE b`},
		{rule: "runs side by side", events: []placedEvent{text("m", "a"), text("m", "b").in(1), text("m", "c"), event("CUSTOM").in(1), text("m", "d"), text("m", "e").in(1)}, want: `acd b CUSTOM e`},
		{rule: "subagents side by side", events: []placedEvent{text("m", "a").of("s1"), text("n", "b").of("s2"), text("m", "c").of("s1"), text("n", "d").of("s2")}, want: `ac bd`},
		{rule: "a message that another subagent goes on with", events: []placedEvent{text("m", "a").of("s1"), text("m", "b").of("s2"), text("m", "c").of("s1")}, want: `a b c`},
		{rule: "an id that is spelled in another way", events: []placedEvent{text("a/b", "a"), text(`a\/b`, "b"), text(`\u0061/b`, "c")}, want: `abc`},
		{rule: "a message that another subagent goes on with in another spelling", events: []placedEvent{
			text("a/b", "a").of("s1"), text(`a\/b`, "b").of("s2"), text("a/b", "c").of(`s\u0031`),
		}, want: `a b c`},
		{rule: "thinking has no ids", events: []placedEvent{
			event("THINKING_TEXT_MESSAGE_CONTENT").with("delta", `"a"`), event("THINKING_TEXT_MESSAGE_CONTENT").with("delta", `"b"`),
			event("THINKING_TEXT_MESSAGE_END"), event("THINKING_TEXT_MESSAGE_CONTENT").with("delta", `"c"`),
		}, want: `ab THINKING_TEXT_MESSAGE_END c`},
		{rule: "chunks that repeat the id", events: []placedEvent{chunk("TEXT_MESSAGE", "m", "a"), chunk("TEXT_MESSAGE", "m", "b")}, want: `ab`},
		{rule: "chunks that do not", events: []placedEvent{chunk("TOOL_CALL", "c", "a"), chunk("TOOL_CALL", "", "b"), chunk("TOOL_CALL", "d", "c"), chunk("TOOL_CALL", "", "d")}, want: `ab cd`},
		{rule: "chunks of another kind", events: []placedEvent{chunk("TEXT_MESSAGE", "m", "a"), chunk("REASONING_MESSAGE", "m", "b"), chunk("TEXT_MESSAGE", "m", "c")}, want: `a b c`},
		{rule: "an event that ends what a chunk without id would go on with", events: []placedEvent{
			chunk("TEXT_MESSAGE", "m", "a"), event("STEP_STARTED"), chunk("TEXT_MESSAGE", "", "b"),
		}, want: `a STEP_STARTED b`},
		{rule: "other metadata", events: []placedEvent{text("m", "a").with("metadata", `{"n":1}`), text("m", "b").with("metadata", `{"n":1}`), text("m", "c").with("metadata", `{"n":2}`), text("m", "d")}, want: `ab c d`},
		{rule: "another role", events: []placedEvent{text("m", "a").with("role", `"user"`), text("m", "b").with("role", `"user"`), text("m", "c")}, want: `ab c`},
		{rule: "other fields are those of the first", events: []placedEvent{text("m", "a").with("timestamp", `1`), text("m", "b").with("timestamp", `2`)}, want: `ab`},
		{rule: "a delta that is no string", events: []placedEvent{
			text("m", "a"), event("TEXT_MESSAGE_CONTENT").with("messageId", `"m"`).with("delta", `1`), text("m", "b"),
			event("TEXT_MESSAGE_CONTENT").with("messageId", `"m"`).with("delta", `{}`), event("TEXT_MESSAGE_CONTENT").with("messageId", `"m"`),
		}, want: `a TEXT_MESSAGE_CONTENT b TEXT_MESSAGE_CONTENT TEXT_MESSAGE_CONTENT`},
		{rule: "a piece in content beside one in delta", events: []placedEvent{
			text("m", "a"), event("TEXT_MESSAGE_CONTENT").with("messageId", `"m"`).with("content", `"b"`), event("TEXT_MESSAGE_CONTENT").with("messageId", `"m"`).with("content", `"c"`),
		}, want: `a bc`},
		{rule: "max_bytes", options: pgagui.HistoryOptions{MaxBytes: 2}, events: []placedEvent{text("m", "a"), text("m", "b"), text("m", "c"), text("m", "d"), text("m", "e")}, want: `ab cd e`},
		{rule: "max_bytes, with one piece that is larger", options: pgagui.HistoryOptions{MaxBytes: 1}, events: []placedEvent{text("m", "ä"), text("m", "b")}, want: `ä b`},
		{rule: "nothing, when it is raw", options: pgagui.HistoryOptions{Raw: true}, events: []placedEvent{text("m", "a"), text("m", "b")}, want: `TEXT_MESSAGE_CONTENT TEXT_MESSAGE_CONTENT`},
		{rule: "types that are left out still end it", options: pgagui.HistoryOptions{Types: []string{"TEXT_MESSAGE_CONTENT"}},
			events: []placedEvent{text("m", "a"), event("CUSTOM"), text("m", "b"), text("m", "c")}, want: `a bc`},
	} {
		log := generatedLog{seed: uint64(i), parents: []int{-1, -1}, events: c.events}
		log.store(t, pool)
		page, err := store.History(context.Background(), log.thread(), c.options)
		if err != nil {
			t.Fatalf("%s: %v", c.rule, err)
		}
		var shown []string
		counted := int64(0)
		for _, row := range page.Events {
			counted += row.Count
			var piece string
			if json.Unmarshal(pieceOf(row.JSON), &piece) != nil || c.options.Raw {
				piece = row.Type
			} else if int64(len([]rune(piece))) != row.Count {
				t.Errorf("%s: row %q says that it is %d events", c.rule, piece, row.Count)
			}
			shown = append(shown, piece)
		}
		if got := strings.Join(shown, " "); got != c.want {
			t.Errorf("%s: rows are\n%s\nwant\n%s", c.rule, got, c.want)
		}
		if c.options.Types == nil && counted != int64(len(c.events)) {
			t.Errorf("%s: rows say that they are %d of %d events", c.rule, counted, len(c.events))
		}
	}
}

// A chunk without an id goes on with the message of its lane, which others may name too. What the chunk that began it said may be on the page
// before.
func TestChunksWithoutIDsMeanTheSameOnAnyPage(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	reader := historyReader{store: pgagui.New(pool, nil), pool: pool}
	for i, events := range [][]placedEvent{
		{event("CUSTOM"), event("CUSTOM"), chunk("TEXT_MESSAGE", "m", "a"), text("n", "x").of("s"), chunk("TEXT_MESSAGE", "", "b"), chunk("TEXT_MESSAGE", "m", "c").of("s"), chunk("TEXT_MESSAGE", "", "d")},
		{event("CUSTOM"), event("CUSTOM"), chunk("TEXT_MESSAGE", "m", "a"), text("n", "x").of("s"), chunk("TEXT_MESSAGE", "", "b"), text("m", "c").of("s"), chunk("TEXT_MESSAGE", "", "d")},
		{chunk("TEXT_MESSAGE", "m", "a").of("s"), chunk("TEXT_MESSAGE", "m", "b"), chunk("TEXT_MESSAGE", "", "c").of("s"), chunk("TEXT_MESSAGE", "", "d")},
		{chunk("TEXT_MESSAGE", "m", "a").of("s"), text("m", "b"), chunk("TEXT_MESSAGE", "", "c").of("s"), text("m", "d")},
		{chunk("TOOL_CALL", "k", "a").with("toolCallName", `"f"`).of("s"), args("k", "b"), chunk("TOOL_CALL", "", "c").of("s"), args("k", "d")},
	} {
		log := generatedLog{seed: uint64(i), parents: []int{-1}, events: events}
		log.store(t, pool)
		for _, limit := range []int{1, 2, 3, 100} {
			if problem := log.whatRowsMean(t, reader.read(t, log.thread(), pgagui.HistoryOptions{Limit: limit})); problem != "" {
				t.Errorf("%s, pages of %d rows: %s", log, limit, problem)
			}
		}
	}
}

// A pause ends a row, even if another stream continues meanwhile. The row says when its first and its last event came.
func TestAPauseEndsWhatTheHistoryJoins(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	log := generatedLog{
		parents: []int{-1},
		events:  []placedEvent{args("c", "a"), args("c", "b"), args("d", "c"), args("c", "d"), args("c", "e")},
		at:      []time.Duration{0, 5 * time.Second, 9 * time.Second, 10 * time.Second, 16 * time.Second},
	}
	log.store(t, pool)
	page := must.Have(pgagui.New(pool, nil).History(context.Background(), log.thread(), pgagui.HistoryOptions{MaxIdle: 5 * time.Second}))(t)
	var got []string
	for _, row := range page.Events {
		completed := "-"
		if !row.CompletedAt.IsZero() {
			completed = row.CompletedAt.Sub(logBegan).String()
		}
		got = append(got, fmt.Sprintf("%s from %v to %s", pieceOf(row.JSON), row.CreatedAt.Sub(logBegan), completed))
	}
	want := []string{`"abd" from 0s to 10s`, `"c" from 9s to -`, `"e" from 16s to -`}
	if !slices.Equal(got, want) {
		t.Errorf("rows are %q, want %q", got, want)
	}
}

// What was joined before it was appended says itself how many events it is, and when they came; it is joined with nothing.
func TestEventsThatCameJoinedSpeakForThemselves(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	second := func(n int) string { return time.Date(2024, 5, 1, 12, 0, n, 0, time.UTC).Format(time.RFC3339) }
	for i, c := range []struct {
		event                  placedEvent
		count                  int64
		createdAt, completedAt string // empty: when it was appended; none
	}{
		{text("m", "b").with("event_count", "3").with("created_at", quoted(second(1))).with("completed_at", quoted(second(2))), 3, second(1), second(2)},
		{text("m", "b").with("eventCount", "3").with("createdAt", quoted(second(1))).with("completedAt", quoted(second(2))), 3, second(1), second(2)},
		{text("m", "b").with("event_count", "3").with("timestamp", "1714564801000").with("completed_at", "1714564802000"), 3, second(1), second(2)},
		{text("m", "b").with("event_count", "3"), 3, "", ""},
		{text("m", "b").with("event_count", "1").with("completed_at", `"yesterday"`), 1, "", ""},
		{event("CUSTOM").with("event_count", "40").with("completed_at", quoted(second(2))), 40, "", second(2)},
	} {
		log := generatedLog{seed: uint64(i), parents: []int{-1}, events: []placedEvent{text("m", "a"), c.event, text("m", "c"), text("m", "d")}}
		log.store(t, pool)
		page := must.Have(store.History(context.Background(), log.thread(), pgagui.HistoryOptions{}))(t)
		if len(page.Events) != 3 || page.Events[0].Count != 1 || page.Events[2].Count != 2 {
			t.Errorf("%s: it is joined with others: %+v", c.event.event, page.Events)
			continue
		}
		row := page.Events[1]
		appended := eventsOf(t, pool, log.thread())[1]
		created, completed := appended.RecordedAt, time.Time{}
		if c.createdAt != "" {
			created, _ = time.Parse(time.RFC3339, c.createdAt)
		}
		if c.completedAt != "" {
			completed, _ = time.Parse(time.RFC3339, c.completedAt)
		}
		if row.Count != c.count || !row.CreatedAt.Equal(created) || !row.CompletedAt.Equal(completed) || string(row.JSON) != string(c.event.event) {
			t.Errorf("%s: the row is %+v, want %d events from %v to %v", c.event.event, row, c.count, created, completed)
		}
	}
	// What does not say how many it is, is one like any other.
	for i, count := range []string{`0`, `-2`, `1.5`, `1e3`, `"3"`, `null`, `[3]`, `12345678901234567890`} {
		log := generatedLog{seed: uint64(100 + i), parents: []int{-1}, events: []placedEvent{text("m", "a"), text("m", "b").with("event_count", count), text("m", "c")}}
		log.store(t, pool)
		page, err := store.History(context.Background(), log.thread(), pgagui.HistoryOptions{})
		if err != nil || len(page.Events) != 1 || page.Events[0].Count != 3 {
			t.Errorf("event_count %s: %+v, error %v", count, page, err)
		}
	}
}

// Who reads page after page while others write gets each event just once.
func TestHistoryBesideWriters(t *testing.T) {
	t.Parallel()
	const writers, rounds = 4, 60
	ctx := context.Background()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	started := func(run string) json.RawMessage {
		return json.RawMessage(fmt.Sprintf(`{"type":"RUN_STARTED","runId":%q,"parentRunId":"run-0"}`, run))
	}
	finished := json.RawMessage(`{"type":"RUN_FINISHED"}`)
	mustAppend(t, store, "t", "run-0", []json.RawMessage{json.RawMessage(`{"type":"RUN_STARTED"}`), finished})

	var writing errgroup.Group
	for writer := range writers {
		writing.Go(func() error {
			run := fmt.Sprint("run-", writer+1)
			events := []json.RawMessage{started(run)}
			for round := range rounds {
				events = append(events, args("c", fmt.Sprint("c", round)).event, args("d", fmt.Sprint("d", round)).event)
				if round%20 == writer {
					events = append(events, event("STEP_STARTED").event)
				}
				if round == rounds-1 {
					events = append(events, finished)
				}
				if _, err := store.Append(ctx, pgagui.RunRef{ThreadID: "t", RunID: run}, events, pgagui.AppendOptions{Parallel: true}); err != nil {
					return err
				}
				events = nil
			}
			return nil
		})
	}
	written := make(chan struct{})
	options := []pgagui.HistoryOptions{{Raw: true, Limit: 11}, {Limit: 3}, {Limit: 11, MaxBytes: 20}}
	read := make([][]pgagui.HistoryEvent, len(options))
	var reading errgroup.Group
	for i, options := range options {
		reading.Go(func() error {
			for {
				ended := false
				select {
				case <-written:
					ended = true
				default:
				}
				page, err := store.History(ctx, "t", options)
				if err != nil {
					return err
				}
				read[i] = append(read[i], page.Events...)
				options.AfterSeq = page.AfterSeq
				if ended && len(page.Events) < options.Limit {
					return nil
				}
			}
		})
	}
	must.Report(t, writing.Wait())
	close(written)
	must.Do(t, reading.Wait())
	log := eventsOf(t, pool, "t")
	for i, options := range options {
		problem := ""
		if options.Raw {
			problem = sameEvents(read[i], log)
		} else {
			problem = whatRowsMiss(read[i], log, options)
		}
		if problem != "" {
			t.Errorf("%+v: %s", options, problem)
		}
	}
}

func TestHistoryRefusals(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	mustAppend(t, store, "t", "r", []json.RawMessage{json.RawMessage(`{"type":"RUN_STARTED"}`)})
	for query, want := range map[string]string{
		`select * from agui.history('t', max_rows => 0)`:           `history of thread "t": max_rows must be between 1 and 1000, not 0 (SQLSTATE UI011)`,
		`select * from agui.history('t', max_rows => 1001)`:        `history of thread "t": max_rows must be between 1 and 1000, not 1001 (SQLSTATE UI011)`,
		`select * from agui.history('t', max_rows => null)`:        `history of thread "t": max_rows must be between 1 and 1000, not null (SQLSTATE UI011)`,
		`select * from agui.history('t', max_bytes => 0)`:          `history of thread "t": max_bytes must be at least 1 and max_idle must not be negative (SQLSTATE UI011)`,
		`select * from agui.history('t', max_idle => '-1 second')`: `history of thread "t": max_bytes must be at least 1 and max_idle must not be negative (SQLSTATE UI011)`,
		`select * from agui.history('u')`:                          `thread "u" is unknown (SQLSTATE UI001)`,
		`select * from agui.history('t', scope => 'mine')`:         `thread "t" is unknown in scope "mine" (SQLSTATE UI001)`,
		`select * from agui.history('t', run_id => 's')`:           `run "s" of thread "t" is unknown (SQLSTATE UI002)`,
	} {
		_, err := pool.Exec(context.Background(), query)
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", query, err, want)
		}
	}
	for _, c := range []struct {
		thread  string
		options pgagui.HistoryOptions
		want    error
	}{
		{"t", pgagui.HistoryOptions{Limit: 1001}, pgagui.ErrLimitExceeded},
		{"t", pgagui.HistoryOptions{Limit: -1}, pgagui.ErrLimitExceeded},
		{"t", pgagui.HistoryOptions{MaxBytes: -1}, pgagui.ErrLimitExceeded},
		{"t", pgagui.HistoryOptions{MaxIdle: -time.Second}, pgagui.ErrLimitExceeded},
		{"u", pgagui.HistoryOptions{}, pgagui.ErrUnknownThread},
		{"t", pgagui.HistoryOptions{RunID: "s"}, pgagui.ErrUnknownRun},
	} {
		page, err := store.History(context.Background(), c.thread, c.options)
		if !errors.Is(err, c.want) || page.Events != nil {
			t.Errorf("thread %s, %+v: %v, error %v, want %v", c.thread, c.options, page.Events, err, c.want)
		}
	}
	// Where there is nothing more, a page is empty and the next one begins at the same place.
	for _, afterSeq := range []int64{1, 1000} {
		page, err := store.History(context.Background(), "t", pgagui.HistoryOptions{AfterSeq: afterSeq})
		if err != nil || len(page.Events) != 0 || page.AfterSeq != afterSeq {
			t.Errorf("after %d: %+v, error %v", afterSeq, page, err)
		}
	}
}

// A page costs what it shows, wherever in the thread it is, however large the tables are: it reads the batches that hold its events, and
// those that it takes to find where they begin.
func TestAPageOfTheHistoryCostsWhatItShows(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	const events, inBatch = 20_000, 10
	for _, statement := range []string{
		`insert into agui.thread (thread_key, scope, thread_id) select agui.thread_key('', 't' || n), '', 't' || n from generate_series(0, 1000) as n`,
		`insert into agui.run (thread_key, run_no, run_id, status, first_seq, last_seq, started_at, ended_at)
		select agui.thread_key('', 't' || n), 1, 'r', 'running', 1, null::bigint, now(), null::timestamptz from generate_series(1, 1000) as n
		union all
		select agui.thread_key('', 't0'), run_no, 'r' || run_no, 'finished', first_seq, last_seq, now(), now()
		from (values (1, 1, 100), (2, 101, 19900), (3, 19901, 20000)) as run (run_no, first_seq, last_seq)`,
		`insert into agui.batch (thread_key, first_seq, recorded_at, n, run_no, events)
		select agui.thread_key('', 't' || thread), seq, now(), 1, 1, '[{"type":"RUN_STARTED"}]'
		from generate_series(1, 50) as seq, generate_series(1, 1000) as thread`,
		// Two tool calls side by side; every 20 events a step ends what is open.
		fmt.Sprintf(`insert into agui.batch (thread_key, first_seq, recorded_at, n, run_no, events)
		select agui.thread_key('', 't0'), batch * %[2]d + 1, '2024-05-01 12:00:00+00'::timestamptz + batch * interval '1 second', %[2]d,
			case when batch < 10 then 1 when batch < 1990 then 2 else 3 end, json_agg(
			case when seq %% 20 = 0 then '{"type":"STEP_STARTED"}'::json
			else format('{"type":"TOOL_CALL_ARGS","toolCallId":"c%%s","delta":"%%s"}', seq / 20 * 2 + seq %% 2, seq)::json end order by seq)
		from (select seq, (seq - 1) / %[2]d as batch from generate_series(1, %[1]d) as seq) as event
		group by batch`, events, inBatch),
		`analyze`,
	} {
		testdb.Exec(t, pool, statement)
	}
	const halvings = 16 // of 2,000 batches, with room
	for _, page := range []struct {
		arguments string
		batches   int64
	}{
		{"compressed => false, max_rows => 1000", 1000 / inBatch},
		{"compressed => false, max_rows => 1", 1},
		{"max_rows => 1", 2},
		// A row is 6.7 events.
		{"max_rows => 100", 68},
	} {
		var first int64
		for _, afterSeq := range []int64{0, 100, 10_000, 18_980} {
			statement := fmt.Sprintf(`select * from agui.history('t0', after_seq => %d, %s)`, afterSeq, page.arguments)
			// The rows come from a cursor, which reads up to 50 events ahead.
			rows := rowsReadWith(t, pool, `set local plan_cache_mode = auto`, "batch", statement)
			if most := page.batches + 50/inBatch + 3; rows > most {
				t.Errorf("%s reads %d batches, want %d at most", statement, rows, most)
			}
			if first == 0 {
				first = rows
			} else if rows > first+2 {
				t.Errorf("%s reads %d batches, the first page %d", statement, rows, first)
			}
		}
		statement := fmt.Sprintf(`select * from agui.history('t0', since => '2024-05-01 12:20:00+00', %s)`, page.arguments)
		if rows, most := rowsReadWith(t, pool, `set local plan_cache_mode = auto`, "batch", statement), page.batches+50/inBatch+3+halvings; rows > most {
			t.Errorf("%s reads %d batches, want %d at most", statement, rows, most)
		}
	}
	for _, statement := range []string{
		`select * from agui.history('t0', since => '2030-01-01')`,
		`select * from agui.history('t0', until => '2024-05-01 12:00:01+00')`,
		`select * from agui.history('t0', after_seq => 20000)`,
		`select * from agui.history('t0', run_id => 'r1')`,
		`select * from agui.history('t0', run_id => 'r3', compressed => false)`,
	} {
		if rows := rowsReadWith(t, pool, `set local plan_cache_mode = auto`, "batch", statement); rows > halvings+50/inBatch+3 {
			t.Errorf("%s reads %d batches", statement, rows)
		}
	}
}

// What was recorded by a point in time is found exactly, whatever the batches, and those that a repack joined too.
func TestTheLastSeqByATime(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	testdb.Exec(t, pool, `
		insert into agui.thread (thread_key, scope, thread_id) values (agui.thread_key('', 't'), '', 't');
		insert into agui.run (thread_key, run_no, run_id, status, first_seq, started_at) values (agui.thread_key('', 't'), 1, 'r', 'running', 1, now());
		insert into agui.batch (thread_key, first_seq, recorded_at, n, run_no, events, earlier_us)
		select agui.thread_key('', 't'), first_seq, '2024-05-01 12:00:00+00'::timestamptz + seconds * interval '1 second', n, 1,
			'[{"type":"RUN_STARTED"},{"type":"CUSTOM"}]', earlier_us
		from (values (1, 0, 2, null), (3, 10, 2, null), (5, 10, 2, null), (7, 20, 4, '{10000000,3000000,3000000,0}'::int[]), (11, 20, 1, null), (12, 30, 2, null))
			as batch (first_seq, seconds, n, earlier_us)`)
	for seconds, want := range map[string][2]int64{ // at it or before; before it
		"-infinity": {0, 0}, "-1": {0, 0}, "0": {2, 0}, "1": {2, 2}, "9.999999": {2, 2}, "10": {7, 2}, "11": {7, 7}, "17": {9, 7}, "18": {9, 9},
		"20": {11, 9}, "21": {11, 11}, "30": {13, 11}, "30.000001": {13, 13}, "infinity": {13, 13},
	} {
		point := "'" + seconds + "'::timestamptz"
		if !strings.HasSuffix(seconds, "infinity") {
			point = "'2024-05-01 12:00:00+00'::timestamptz + interval '" + seconds + " seconds'"
		}
		var got [2]int64
		if err := pool.QueryRow(context.Background(), `
			select agui_internal.last_seq_by(key, point), agui_internal.last_seq_by(key, point, or_at => false)
			from (select agui.thread_key('', 't'), `+point+`) as row (key, point)`).Scan(&got[0], &got[1]); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("by second %s: seqs %d, want %d", seconds, got, want)
		}
	}
	if nothing := integers(t, pool, `select agui_internal.last_seq_by(agui.thread_key('', 'nobody'), now())`); nothing != "{0}" {
		t.Errorf("in a thread without events: %s", nothing)
	}
}

// What an event says of its time may be anything: a point in time, or null, but no error.
func TestMoment(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	for value, want := range map[string]string{
		`100000000000`: "1973-03-03 09:46:40",
		// Seconds, as some frameworks write them.
		`1000000000`:                       "2001-09-09 01:46:40",
		`1714564801`:                       "2024-05-01 12:00:01",
		`1714564801.25`:                    "2024-05-01 12:00:01.25",
		`99999999999.5`:                    "5138-11-16 09:46:39.5",
		`1714564801000`:                    "2024-05-01 12:00:01",
		`1714564801000.5`:                  "2024-05-01 12:00:01.0005",
		`253402300799999`:                  "9999-12-31 23:59:59.999",
		`"2024-05-01T12:00:01Z"`:           "2024-05-01 12:00:01",
		`"2024-05-01t12:00:01z"`:           "2024-05-01 12:00:01",
		`"2024-05-01 12:00:01"`:            "2024-05-01 12:00:01",
		`"2024-05-01T12:00Z"`:              "2024-05-01 12:00:00",
		`"2024-05-01T12:00:01.5Z"`:         "2024-05-01 12:00:01.5",
		`"2024-05-01T12:00:01.123456789Z"`: "2024-05-01 12:00:01.123457",
		`"2024-05-01T12:00:01+02:00"`:      "2024-05-01 10:00:01",
		`"2024-05-01T12:00:01-0530"`:       "2024-05-01 17:30:01",
		`"2024-02-29T00:00:00Z"`:           "2024-02-29 00:00:00",
		`"0001-01-01T00:00:00Z"`:           "0001-01-01 00:00:00",
		`"9999-12-31T23:59:59Z"`:           "9999-12-31 23:59:59",
		// No points in time, or none that is written in a way that is read.
		// The clock of a process is none either.
		`0`: "", `-0`: "", `12.75`: "", `86400000`: "", `999999999.999`: "",
		`-1`: "", `1e3`: "", `1E400`: "", `253402300800000`: "", `99999999999999999999999999999999999999`: "",
		`"2024-02-30T00:00:00Z"`: "", `"2023-02-29T00:00:00Z"`: "", `"2024-02-32T00:00:00Z"`: "", `"2024-13-01T00:00:00Z"`: "", `"2024-00-01T00:00:00Z"`: "", `"2024-01-00T00:00:00Z"`: "",
		`"2016-12-31T23:59:60Z"`: "", `"2024-05-01T24:00:00Z"`: "", `"0000-01-01T00:00:00Z"`: "", `"12024-05-01T12:00:01Z"`: "", `"-2024-05-01T12:00:01Z"`: "",
		`"2024-05-01T12:00:01+24:00"`: "", `"2024-05-01"`: "", `"12:00:01"`: "", `"now"`: "", `"infinity"`: "", `""`: "", `"2024-05-01T12:00:01Z\n"`: "", `" 2024-05-01T12:00:01Z"`: "",
		`"١٢٣٤-05-01T12:00:01Z"`: "", `"1714564801000"`: "", `true`: "", `null`: "", `[]`: "", `{"seconds":1}`: "", `"\ud83d"`: "",
	} {
		var got *string
		err := pool.QueryRow(context.Background(), `select (agui_internal.json_timestamp(agui_internal.json_guarded($1::json)) at time zone 'UTC')::text`, json.RawMessage(value)).Scan(&got)
		if err != nil {
			t.Errorf("%s: %v", value, err)
		} else if got == nil && want != "" || got != nil && *got != want {
			t.Errorf("%s: %v, want %q", value, spelled(got), want)
		}
		var number float64
		if json.Unmarshal([]byte(value), &number) != nil || value == "null" || strings.Contains(value, "e") {
			continue
		}
		// In Go, too.
		at, _, ok := agui.TimeOf(number)
		if ok != (want != "") || ok && at.UTC().Format("2006-01-02 15:04:05.999999") != want {
			t.Errorf("%s in Go: %v %v, want %q", value, at, ok, want)
		}
	}
}

func spelled(text *string) string {
	if text == nil {
		return "null"
	}
	return *text
}

// What callers leave out, or give at its utmost, means what one would expect of it.
func TestHistoryOfArgumentsAtTheirBounds(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	mustAppend(t, store, "t", "r", run("r", nil))
	for arguments, want := range map[string]int{
		"after_seq => null": 2, "after_seq => -5": 2, "after_seq => 9223372036854775807": 0, "compressed => null": 2,
		"types => '{}'": 0, "types => array[null]::text[]": 0, "types => '{RUN_STARTED,null}'": 1,
		"since => '-infinity', until => 'infinity'": 2, "since => 'infinity'": 0, "until => '-infinity'": 0,
	} {
		if rows := testdb.Ask[int](t, pool, "select count(*) from agui.history('t', "+arguments+")"); rows != want {
			t.Errorf("%s: %d rows, want %d", arguments, rows, want)
		}
	}
	if page, err := store.History(t.Context(), "t", pgagui.HistoryOptions{Types: []string{}}); err != nil || len(page.Events) != 2 {
		t.Errorf("no types: %d events, want all; error %v", len(page.Events), err)
	}
}
