package test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	agui "github.com/pgagui/pgagui/events"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/recorded"
	"github.com/pgagui/pgagui/internal/testdb"
)

// placeOf is where a message is, found by reading the whole lineage from its root.
type placeOf struct {
	runID             string
	firstSeq, lastSeq int64
	calls             map[string][2]int64
}

// namedEvent has the members of an event that name messages and calls.
type namedEvent struct {
	Type, MessageID, ToolCallID, ParentMessageID, EntityID string
	Messages                                               []struct{ ID string }
	Input                                                  *struct{ Messages []struct{ ID string } }
}

// resultOf is where places has a result: it may have the id of another message.
func resultOf(messageID string) string {
	return "result " + messageID
}

func placesByReading(t *testing.T, store *pgagui.Store, threadID string, at pgagui.At) map[string]*placeOf {
	t.Helper()
	ctx := context.Background()
	places, messageOfCall := map[string]*placeOf{}, map[string]string{}
	lineage := must.Have(store.Lineage(ctx, pgagui.RunRef{ThreadID: threadID, RunID: at.RunID}))(t)
	for _, run := range lineage {
		brings := func(id string, seq int64) *placeOf {
			if id == "" || id == resultOf("") {
				return nil
			}
			place := places[id]
			if place == nil {
				place = &placeOf{runID: run.ID, firstSeq: seq, lastSeq: seq, calls: map[string][2]int64{}}
				places[id] = place
			}
			return place
		}
		about := func(id string, seq int64) {
			if place := places[id]; place != nil && place.runID == run.ID {
				place.lastSeq = seq
			}
		}
		var input *struct{ Messages []struct{ ID string } }
		if text, err := store.RunInput(ctx, pgagui.RunRef{ThreadID: threadID, RunID: run.ID}); err == nil {
			must.Do(t, json.Unmarshal(text, &input))
		}
		lane := map[string]namedEvent{}
		isFirst := true
		for event, err := range store.Events(ctx, threadID, pgagui.EventsOptions{RunID: run.ID, NoLineage: true}) {
			must.Do(t, err)
			if at.Seq > 0 && event.Seq > at.Seq {
				break
			}
			var e namedEvent
			must.Do(t, json.Unmarshal(event.JSON, &e))
			if isFirst && e.Type != "RUN_STARTED" && input != nil {
				// No generated run has a RUN_STARTED behind other events.
				for _, message := range input.Messages {
					brings(message.ID, event.Seq)
					brings(resultOf(message.ID), event.Seq)
				}
			}
			isFirst = false
			if strings.HasSuffix(e.Type, "_CHUNK") {
				if e.MessageID == "" && e.ToolCallID == "" {
					before := lane[e.Type]
					e.MessageID, e.ToolCallID, e.ParentMessageID = before.MessageID, before.ToolCallID, before.ParentMessageID
				}
				lane[e.Type] = e
			}
			switch e.Type {
			case "RUN_STARTED":
				if e.Input == nil {
					e.Input = input
				}
				if e.Input != nil {
					for _, message := range e.Input.Messages {
						brings(message.ID, event.Seq)
						brings(resultOf(message.ID), event.Seq)
					}
				}
			case "MESSAGES_SNAPSHOT":
				for _, message := range e.Messages {
					brings(message.ID, event.Seq)
					brings(resultOf(message.ID), event.Seq)
				}
			case "TOOL_CALL_RESULT":
				brings(resultOf(e.MessageID), event.Seq)
				about(resultOf(e.MessageID), event.Seq)
			case "TEXT_MESSAGE_START", "TEXT_MESSAGE_CHUNK", "REASONING_MESSAGE_START", "REASONING_MESSAGE_CHUNK", "ACTIVITY_SNAPSHOT":
				brings(e.MessageID, event.Seq)
				about(e.MessageID, event.Seq)
			case "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "REASONING_MESSAGE_CONTENT", "REASONING_MESSAGE_END", "ACTIVITY_DELTA":
				about(e.MessageID, event.Seq)
			case "REASONING_ENCRYPTED_VALUE":
				about(cmp.Or(messageOfCall[e.EntityID], e.EntityID), event.Seq)
				about(resultOf(e.EntityID), event.Seq)
			case "TOOL_CALL_START", "TOOL_CALL_CHUNK":
				messageOfCall[e.ToolCallID] = cmp.Or(messageOfCall[e.ToolCallID], e.ParentMessageID, e.ToolCallID)
				brings(messageOfCall[e.ToolCallID], event.Seq)
				fallthrough
			case "TOOL_CALL_ARGS", "TOOL_CALL_END":
				about(messageOfCall[e.ToolCallID], event.Seq)
				if place := places[messageOfCall[e.ToolCallID]]; place != nil && place.runID == run.ID {
					span := place.calls[e.ToolCallID]
					place.calls[e.ToolCallID] = [2]int64{cmp.Or(span[0], event.Seq), event.Seq}
				}
			}
		}
	}
	return places
}

// checkLastMessages reads a conversation backwards in pages, and compares with all of its messages and with the log.
func checkLastMessages(t *testing.T, store *pgagui.Store, threadID string, at pgagui.At, limit int) {
	t.Helper()
	ctx := context.Background()
	want := must.Have(store.Messages(ctx, threadID, at))(t)
	places := placesByReading(t, store, threadID, at)
	events := map[int64]pgagui.Event{}
	var got []pgagui.PlacedMessage
	for cursor := ""; ; {
		page := must.Have(store.LastMessages(ctx, threadID, pgagui.LastMessagesOptions{At: at, Limit: limit, Cursor: cursor}))(t)
		got = append(slices.Clone(page), got...)
		if len(page) == 0 || page[0].Position == 1 {
			break
		}
		if len(page) != limit {
			t.Fatalf("%+v: a page of %d, not %d, begins at %d", at, len(page), limit, page[0].Position)
		}
		cursor = page[0].Cursor
	}
	if len(got) != len(want) {
		t.Fatalf("%+v, %d a page: %d messages, want %d", at, limit, len(got), len(want))
	}
	for event, err := range store.Events(ctx, threadID, pgagui.EventsOptions{RunID: at.RunID}) {
		must.Do(t, err)
		events[event.Seq] = event
	}
	timeOf := func(seq int64) time.Time {
		var told struct{ Timestamp float64 }
		if json.Unmarshal(events[seq].JSON, &told) == nil {
			if at, _, ok := agui.TimeOf(told.Timestamp); ok {
				return at
			}
		}
		return events[seq].RecordedAt
	}
	for i, message := range got {
		if message.Position != i+1 || message.ID != want[i].ID || message.Role != want[i].Role || string(message.JSON) != string(want[i].JSON) {
			t.Fatalf("%+v, %d a page: message %d is %+v, want %+v", at, limit, i+1, message, want[i])
		}
		place := places[message.ID]
		if message.Role == "tool" {
			place = places[resultOf(message.ID)]
		}
		if place == nil {
			if message.MessagePlace != (pgagui.MessagePlace{}) {
				t.Fatalf("%+v: message %q is at %+v", at, message.ID, message.MessagePlace)
			}
			continue
		}
		if message.RunID != place.runID || message.FirstSeq != place.firstSeq || message.LastSeq != place.lastSeq {
			t.Fatalf("%+v, %d a page: message %q is at %+v, want %+v", at, limit, message.ID, message.MessagePlace, *place)
		}
		if !message.StartedAt.Equal(timeOf(place.firstSeq)) || !message.UpdatedAt.Equal(timeOf(place.lastSeq)) {
			t.Fatalf("%+v: message %q from %v to %v, want %v to %v", at, message.ID, message.StartedAt, message.UpdatedAt, timeOf(place.firstSeq), timeOf(place.lastSeq))
		}
		calls := map[string][2]int64{}
		for _, call := range message.Calls {
			calls[call.ID] = [2]int64{call.FirstSeq, call.LastSeq}
			if !call.StartedAt.Equal(timeOf(call.FirstSeq)) || !call.UpdatedAt.Equal(timeOf(call.LastSeq)) {
				t.Fatalf("%+v: call %+v", at, call)
			}
		}
		if fmt.Sprint(calls) != fmt.Sprint(place.calls) {
			t.Fatalf("%+v: calls of message %q: %v, want %v", at, message.ID, calls, place.calls)
		}
	}
}

// result is what a tool returns, sometimes an error.
func result(random *rand.Rand) string {
	if random.IntN(3) == 0 {
		return fmt.Sprint("Error: number ", random.IntN(100))
	}
	return "done"
}

// conversation appends a conversation of some runs as a client and an agent have one, with a branch, and returns the ids of its runs.
func conversation(t *testing.T, store *pgagui.Store, threadID string, random *rand.Rand) (runs []string) {
	t.Helper()
	// What the client sends with each run: the whole conversation, or what is new.
	sendsAll, inEvents := random.IntN(2) == 0, random.IntN(3) == 0
	history := map[string][]string{} // of each run, the messages that the client has after it
	open := map[string][]string{}    // and the calls that wait for the client
	parents := []string{""}
	for number := range 12 {
		run, parent := fmt.Sprint("run", number), parents[len(parents)-1]
		if number > 2 && random.IntN(4) == 0 {
			parent = parents[1+random.IntN(len(parents)-1)]
		}
		known := slices.Clone(history[parent])
		sent := []string{fmt.Sprintf(`{"id":"user/%d","role":"user","content":"question %d"}`, number, number)}
		for _, call := range open[parent] {
			sent = append(sent, fmt.Sprintf(`{"id":"%s-answer-%d","role":"tool","toolCallId":%q,"content":%q}`, call, number, call, result(random)))
		}
		known = append(known, sent...)
		if sendsAll {
			sent = known
		}
		input := fmt.Sprintf(`{"threadId":%q,"runId":%q,"messages":[%s],"tools":[],"context":[],"forwardedProps":{"pad":%q}}`,
			threadID, run, strings.Join(sent, ","), strings.Repeat("x", 1000))
		stamp := ""
		if random.IntN(2) == 0 {
			stamp = fmt.Sprintf(`,"timestamp":%d`, 1780000000000+number*1000)
		}
		started := fmt.Sprintf(`{"type":"RUN_STARTED","runId":%q%s}`, run, stamp)
		options := pgagui.AppendOptions{ParentRunID: parent, NoParent: parent == "", AfterSeq: new(int64)}
		switch {
		case inEvents:
			started = fmt.Sprintf(`{"type":"RUN_STARTED","runId":%q,"input":%s}`, run, input)
		default:
			options.Input = json.RawMessage(input)
		}
		events := []string{started}
		if random.IntN(6) == 0 { // a run without a beginning
			events = []string{`{"type":"CUSTOM","name":"early","value":1}`}
		}
		add := func(format string, arguments ...any) { events = append(events, fmt.Sprintf(format, arguments...)) }
		for part := range 1 + random.IntN(4) {
			id := fmt.Sprintf("%s-%d", run, part)
			switch random.IntN(6) {
			case 0:
				add(`{"type":"TEXT_MESSAGE_START","messageId":"%s","role":"assistant"%s}`, id, stamp)
				for range random.IntN(5) {
					add(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"%s","delta":"text"}`, id)
				}
				add(`{"type":"TEXT_MESSAGE_END","messageId":"%s"}`, id)
			case 1:
				add(`{"type":"TEXT_MESSAGE_CHUNK","messageId":"%s","delta":"chunk"}`, id)
				for range random.IntN(5) {
					add(`{"type":"TEXT_MESSAGE_CHUNK","delta":"more"}`)
				}
			case 2:
				add(`{"type":"TEXT_MESSAGE_START","messageId":"%s","role":"assistant"}`, id)
				add(`{"type":"TEXT_MESSAGE_END","messageId":"%s"}`, id)
				for call := range 1 + random.IntN(2) {
					add(`{"type":"TOOL_CALL_START","toolCallId":"%s-call%d","toolCallName":"f","parentMessageId":"%s"}`, id, call, id)
				}
				add(`{"type":"TOOL_CALL_ARGS","toolCallId":"%s-call0","delta":"{}"%s}`, id, stamp)
				add(`{"type":"TOOL_CALL_END","toolCallId":"%s-call0"}`, id)
				if random.IntN(3) > 0 {
					add(`{"type":"TOOL_CALL_RESULT","messageId":"%s-result","toolCallId":"%s-call0","content":%q}`, id, id, result(random))
				} else {
					open[run] = append(open[run], id+"-call0")
				}
			case 3:
				add(`{"type":"TOOL_CALL_CHUNK","toolCallId":"%s-alone","toolCallName":"g","delta":"{"}`, id)
				add(`{"type":"TOOL_CALL_CHUNK","delta":"}"}`)
			case 4:
				add(`{"type":"REASONING_START","messageId":"%s-r"}`, id)
				add(`{"type":"REASONING_MESSAGE_START","messageId":"%s","role":"reasoning"}`, id)
				add(`{"type":"REASONING_MESSAGE_CONTENT","messageId":"%s","delta":"hm"}`, id)
				add(`{"type":"REASONING_MESSAGE_END","messageId":"%s"}`, id)
				add(`{"type":"REASONING_END","messageId":"%s-r"}`, id)
				add(`{"type":"REASONING_ENCRYPTED_VALUE","subtype":"message","entityId":"%s","encryptedValue":"?"}`, id)
			case 5:
				add(`{"type":"ACTIVITY_SNAPSHOT","messageId":"%s","activityType":"plan","content":{"n":0}}`, id)
				add(`{"type":"ACTIVITY_DELTA","messageId":"%s","activityType":"plan","patch":[{"op":"replace","path":"/n","value":1}]}`, id)
			}
			add(`{"type":"STATE_SNAPSHOT","snapshot":{"part":%d}}`, part)
		}
		var last int64
		if random.IntN(8) == 0 {
			add(`{"type":"RUN_ERROR","message":"it broke","code":"BROKEN"}`)
		} else {
			add(`{"type":"RUN_FINISHED"}`)
		}
		for batch := range slices.Chunk(events, 1+random.IntN(6)) {
			raw := rawEvents(batch...)
			var err error
			if last, err = store.Append(t.Context(), pgagui.RunRef{ThreadID: threadID, RunID: run}, raw, options); err != nil {
				t.Fatal(err)
			}
			options = pgagui.AppendOptions{AfterSeq: new(last)}
		}
		messages := must.Have(store.Messages(t.Context(), threadID, pgagui.At{RunID: run}))(t)
		known = known[:0]
		for _, message := range messages {
			if message.Role != "reasoning" && message.Role != "activity" || random.IntN(2) == 0 {
				known = append(known, string(message.JSON))
			}
		}
		history[run] = known
		parents = append(parents, run)
		runs = append(runs, run)
	}
	return runs
}

func TestLastMessagesHaveTheirPlaces(t *testing.T) {
	t.Parallel()
	for what, work := range map[string]func(*testing.T, *pgxpool.Pool){
		"as appended": func(*testing.T, *pgxpool.Pool) {},
		"compacted": func(t *testing.T, pool *pgxpool.Pool) {
			compactInGo(t, pool)
		},
		"repacked": func(t *testing.T, pool *pgxpool.Pool) {
			testdb.Exec(t, pool, `call agui.compact()`)
			testdb.Exec(t, pool, `call agui.repack()`)
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			pool := testdb.Pool(t)
			for thread := range streamsOfAKind(8) {
				random := rand.New(rand.NewPCG(*firstSeed, uint64(thread)))
				store := pgagui.New(pool, &pgagui.Config{Scope: "s"})
				threadID := fmt.Sprint("thread", thread)
				runs := conversation(t, store, threadID, random)
				work(t, pool)
				for _, run := range []string{"", runs[len(runs)-1], runs[random.IntN(len(runs))]} {
					checkLastMessages(t, store, threadID, pgagui.At{RunID: run}, 1+random.IntN(7))
					checkLastMessages(t, store, threadID, pgagui.At{RunID: run}, 1000)
					checkLastMessages(t, store, threadID, pgagui.At{RunID: run, Seq: 1 + random.Int64N(100)}, 1+random.IntN(5))
				}
			}
		})
	}
}

func TestLastMessagesOfRecordings(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	for _, file := range recorded.Files(t, "..") {
		store := pgagui.New(pool, &pgagui.Config{Scope: file})
		runs := readRecording(t, file)
		appendRecording(t, store, runs)
		for _, run := range runs {
			checkLastMessages(t, store, run.ThreadID, pgagui.At{RunID: run.RunID}, 3)
		}
	}
}

func TestLastEventsAreTheEndOfTheLog(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	random := rand.New(rand.NewPCG(*firstSeed, 1))
	runs := conversation(t, store, "t", random)
	for round := range 60 {
		if round == 30 {
			testdb.Exec(t, pool, `call agui.compact()`)
			testdb.Exec(t, pool, `call agui.repack()`)
		}
		options := pgagui.LastEventsOptions{NoLineage: random.IntN(3) == 0, Limit: 1 + random.IntN(9), AtSeq: random.Int64N(3) * random.Int64N(120)}
		if random.IntN(3) > 0 {
			options.RunID = runs[random.IntN(len(runs))]
		}
		if random.IntN(2) == 0 {
			options.Types = []string{"RUN_STARTED", "TOOL_CALL_START", "RUN_ERROR", "NO_SUCH_TYPE"}[random.IntN(4):]
		}
		var want, got []pgagui.Event
		for event, err := range store.Events(t.Context(), "t", pgagui.EventsOptions{RunID: options.RunID, NoLineage: options.NoLineage}) {
			must.Do(t, err)
			if (options.Types == nil || slices.Contains(options.Types, event.Type)) && (options.AtSeq == 0 || event.Seq <= options.AtSeq) {
				want = append(want, event)
			}
		}
		for page := options; ; {
			events := must.Have(store.LastEvents(t.Context(), "t", page))(t)
			got = append(events, got...)
			if len(events) < page.Limit || events[0].Seq == 1 {
				break
			}
			page.AtSeq = events[0].Seq - 1
		}
		if !slices.EqualFunc(got, want, func(a, b pgagui.Event) bool {
			return a.Seq == b.Seq && a.RunID == b.RunID && a.Type == b.Type && a.RecordedAt.Equal(b.RecordedAt) && string(a.JSON) == string(b.JSON)
		}) {
			t.Fatalf("%+v: %d events, want %d:\n%+v\n%+v", options, len(got), len(want), got, want)
		}
	}
}

// A result stands behind its call, so a later run may have brought it than the message behind it.
func TestLastMessagesOfResultsThatComeLate(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	for run, events := range [][]string{
		{`{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f"}`, `{"type":"TEXT_MESSAGE_START","messageId":"wait"}`},
		{`{"type":"TOOL_CALL_RESULT","messageId":"result","toolCallId":"c","content":"done"}`},
		{`{"type":"TEXT_MESSAGE_START","messageId":"thanks"}`},
	} {
		log := []json.RawMessage{json.RawMessage(`{"type":"RUN_STARTED"}`)}
		for _, event := range append(events, `{"type":"RUN_FINISHED"}`) {
			log = append(log, json.RawMessage(event))
		}
		mustAppend(t, store, "t", fmt.Sprint("r", run), log)
	}
	for range 2 {
		for limit := 1; limit <= 4; limit++ {
			checkLastMessages(t, store, "t", pgagui.At{}, limit)
		}
		testdb.Exec(t, pool, `call agui.compact()`)
	}
}

// Some agents give a result the id of its call, or of the message of its call.
func TestLastMessagesOfResultsWithTheIDOfTheirCall(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	for _, id := range []string{"c", "m"} {
		testdb.Exec(t, pool, `select agui.append($1, 'r', $2)`, id, `[{"type":"RUN_STARTED"},
			{"type":"TEXT_MESSAGE_START","messageId":"m"},
			{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f","parentMessageId":"m"},
			{"type":"TOOL_CALL_END","toolCallId":"c"},
			{"type":"TOOL_CALL_RESULT","messageId":"`+id+`","toolCallId":"c","content":"done"},
			{"type":"RUN_FINISHED"}]`)
		for limit := 1; limit <= 3; limit++ {
			page, err := store.LastMessages(t.Context(), id, pgagui.LastMessagesOptions{Limit: limit})
			if err != nil || len(page) == 0 {
				t.Fatal(page, err)
			}
			result := page[len(page)-1]
			if result.Role != "tool" || result.FirstSeq != 5 || result.LastSeq != 5 || len(result.Calls) > 0 {
				t.Errorf("id %s, %d a page: the result is at %+v, want seq 5, without calls", id, limit, result.MessagePlace)
			}
			if limit > 1 && (page[0].FirstSeq != 2 || page[0].LastSeq != 4 || len(page[0].Calls) != 1) {
				t.Errorf("id %s, %d a page: the message of the call is at %+v, want seq 2 to 4, with it", id, limit, page[0].MessagePlace)
			}
		}
	}
}

// The calls of one run are those that the lineage has from it.
func TestToolCallsOfOneRun(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	random := rand.New(rand.NewPCG(*firstSeed, 1))
	found := 0
	for thread := range 3 {
		threadID := fmt.Sprint("t", thread)
		for _, run := range conversation(t, store, threadID, random) {
			for _, at := range []pgagui.At{{RunID: run}, {RunID: run, Seq: 1 + random.Int64N(150)}} {
				all := must.Have(store.ToolCalls(t.Context(), threadID, pgagui.ToolCallsOptions{At: at}))(t)
				want := slices.DeleteFunc(all, func(call pgagui.ToolCall) bool { return call.RunID != run })
				got := must.Have(store.ToolCalls(t.Context(), threadID, pgagui.ToolCallsOptions{At: at, NoLineage: true}))(t)
				if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
					t.Fatalf("%+v: %+v, want %+v", at, got, want)
				}
				found += len(got)
			}
		}
	}
	if found < 20 {
		t.Errorf("%d calls", found)
	}
}

func TestLastErrorsAreThoseOfTheLog(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	random := rand.New(rand.NewPCG(*firstSeed, 1))
	for thread := range streamsOfAKind(8) {
		threadID := fmt.Sprint("t", thread)
		runs := conversation(t, store, threadID, random)
		// A run in progress, and one that was stopped.
		appendJSON := func(run, parent string, events ...string) {
			raw := rawEvents(events...)
			must.Have(store.Append(t.Context(), pgagui.RunRef{ThreadID: threadID, RunID: run}, raw, pgagui.AppendOptions{ParentRunID: parent, Parallel: true}))(t)
		}
		appendJSON("stopped", runs[3], `{"type":"RUN_STARTED"}`, `{"type":"RUN_FINISHED","outcome":{"type":"cancelled"},"result":{"reason":"enough"}}`)
		appendJSON("running", runs[4], `{"type":"RUN_STARTED"}`, `{"type":"TOOL_CALL_START","toolCallId":"now","toolCallName":"h"}`, `{"type":"TOOL_CALL_END","toolCallId":"now"}`,
			`{"type":"TOOL_CALL_RESULT","toolCallId":"now","messageId":"m","content":"no","error":"no access"}`)
		for _, projected := range []string{"", `call agui.project()`, `update agui.projected_run set changed_in = null where run_no % 3 = 0`, `delete from agui.projected_run where run_no % 3 = 1`} {
			testdb.Exec(t, pool, projected)
			for range 12 {
				options := pgagui.LastErrorsOptions{NoLineage: random.IntN(4) == 0, Limit: 1 + random.IntN(5), AtSeq: random.Int64N(2) * random.Int64N(200)}
				if random.IntN(2) == 0 {
					options.RunID = append(runs, "stopped", "running")[random.IntN(len(runs)+2)]
				}
				want := errorsByReading(t, store, threadID, options)
				var got []pgagui.ThreadError
				for next := options; ; {
					page := must.Have(store.LastErrors(t.Context(), threadID, next))(t)
					got = append(page.Errors, got...)
					if next.AtSeq = page.NextSeq; next.AtSeq == 0 {
						break
					}
				}
				if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
					t.Fatalf("%s, %s, %+v:\n%+v, want\n%+v", threadID, projected, options, got, want)
				}
			}
		}
	}
}

// errorsByReading reads all runs, and of each all events.
func errorsByReading(t *testing.T, store *pgagui.Store, threadID string, options pgagui.LastErrorsOptions) (found []pgagui.ThreadError) {
	t.Helper()
	runs, err := store.Runs(t.Context(), threadID)
	if options.RunID != "" || options.NoLineage {
		runs, err = store.Lineage(t.Context(), pgagui.RunRef{ThreadID: threadID, RunID: options.RunID})
	}
	must.Do(t, err)
	if options.NoLineage {
		runs = runs[len(runs)-1:]
	}
	toolOf := func(runID, callID string) string {
		calls := must.Have(store.ToolCalls(t.Context(), threadID, pgagui.ToolCallsOptions{At: pgagui.At{RunID: runID}}))(t)
		for _, call := range calls {
			if call.ID == callID {
				return call.Name
			}
		}
		return ""
	}
	for _, run := range runs {
		add := func(failure pgagui.ThreadError) {
			if options.AtSeq == 0 || failure.Seq <= options.AtSeq {
				failure.RunID = run.ID
				found = append(found, failure)
			}
		}
		pending := []string{}
		if run.ParentRunID != "" {
			calls := must.Have(store.ToolCalls(t.Context(), threadID, pgagui.ToolCallsOptions{At: pgagui.At{RunID: run.ParentRunID}, NoLineage: true}))(t)
			for _, call := range calls {
				if call.Result == nil {
					pending = append(pending, call.ID)
				}
			}
		}
		answers := func(seq int64, at time.Time, text []byte) {
			var input struct {
				Messages []struct {
					ToolCallID string
					Content    any
				}
			}
			must.Do(t, json.Unmarshal(text, &input))
			for _, message := range input.Messages {
				if content, _ := message.Content.(string); slices.Contains(pending, message.ToolCallID) && strings.HasPrefix(content, "Error") {
					add(pgagui.ThreadError{Seq: seq, Kind: pgagui.ToolFailed, RunEnd: pgagui.RunEnd{ErrorMessage: content}, ToolCallID: message.ToolCallID, Tool: toolOf(run.ID, message.ToolCallID), RecordedAt: at})
				}
			}
		}
		if text, err := store.RunInput(t.Context(), pgagui.RunRef{ThreadID: threadID, RunID: run.ID}); err == nil {
			answers(run.FirstSeq, run.StartedAt, text)
		}
		for event, err := range store.Events(t.Context(), threadID, pgagui.EventsOptions{RunID: run.ID, NoLineage: true}) {
			must.Do(t, err)
			var told struct {
				Type, ToolCallID, Content, Error string
				Input                            json.RawMessage
			}
			_ = json.Unmarshal(event.JSON, &told)
			switch {
			case told.Type == "RUN_STARTED" && told.Input != nil:
				answers(run.FirstSeq, run.StartedAt, told.Input)
			case told.Type == "TOOL_CALL_RESULT" && (told.Error != "" || strings.HasPrefix(told.Content, "Error")):
				message := cmp.Or(told.Error, told.Content)
				add(pgagui.ThreadError{Seq: event.Seq, Kind: pgagui.ToolFailed, RunEnd: pgagui.RunEnd{ErrorMessage: message}, ToolCallID: told.ToolCallID, Tool: toolOf(run.ID, told.ToolCallID), RecordedAt: event.RecordedAt})
			case event.Seq == run.LastSeq && (run.Status == pgagui.Failed || run.Status == pgagui.Cancelled || run.Status == pgagui.CutOff):
				add(pgagui.ThreadError{Seq: event.Seq, Kind: pgagui.ThreadErrorKind(run.Status), RunEnd: run.RunEnd, RecordedAt: event.RecordedAt})
			}
		}
	}
	slices.SortFunc(found, func(a, b pgagui.ThreadError) int {
		return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.ToolCallID, b.ToolCallID))
	})
	return found
}
