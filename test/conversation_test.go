package test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/compaction/compactiontest"
	"github.com/pgagui/pgagui/internal/legacysession"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

// events makes events of their JSON, one a line.
func events(lines string) (events []json.RawMessage) {
	for line := range strings.Lines(lines) {
		if line = strings.TrimSpace(line); line != "" {
			events = append(events, json.RawMessage(line))
		}
	}
	return events
}

func TestToolCallsSayHowFarTheyAre(t *testing.T) {
	t.Parallel()
	store := pgagui.New(testdb.Pool(t), nil)
	mustAppend(t, store, "t", "r1", events(`
		{"type":"RUN_STARTED","threadId":"t","runId":"r1"}
		{"type":"TEXT_MESSAGE_START","messageId":"m1","role":"assistant"}
		{"type":"TOOL_CALL_START","toolCallId":"ended","toolCallName":"search","parentMessageId":"m1","timestamp":1767261600500}
		{"type":"TOOL_CALL_ARGS","toolCallId":"ended","delta":"{\"q\":"}
		{"type":"TOOL_CALL_START","toolCallId":"open","toolCallName":"write"}
		{"type":"TOOL_CALL_ARGS","toolCallId":"open","delta":"{\"text\":\"half \ud83d"}
		{"type":"TOOL_CALL_ARGS","toolCallId":"ended","delta":"\"a\\u0000\"}"}
		{"type":"TOOL_CALL_END","toolCallId":"ended"}
		{"type":"TOOL_CALL_RESULT","messageId":"result","toolCallId":"ended","content":"found"}
		{"type":"TOOL_CALL_START","toolCallId":"ask","toolCallName":"ask the user"}
		{"type":"TOOL_CALL_ARGS","toolCallId":"ask","delta":"not JSON"}
		{"type":"TOOL_CALL_END","toolCallId":"ask"}
		{"type":"TOOL_CALL_CHUNK","toolCallId":"chunks","toolCallName":"compute","delta":"[1"}
		{"type":"TOOL_CALL_CHUNK","delta":",2]"}`))

	type summary struct {
		ID, Arguments, JSON, Result, Run string
		First, Last                      int64
		Status                           pgagui.ToolCallStatus
	}
	check := func(when string, at pgagui.At, afterSeq int64, want ...summary) {
		t.Helper()
		calls := must.Have(store.ToolCalls(t.Context(), "t", pgagui.ToolCallsOptions{At: at, AfterSeq: afterSeq}))(t)
		var got []summary
		for _, call := range calls {
			got = append(got, summary{call.ID, call.Arguments, string(call.ArgumentsJSON), string(call.Result), call.RunID, call.FirstSeq, call.LastSeq, call.Status})
			if isOver := call.Status == pgagui.ToolCallCompleted || call.Status == pgagui.ToolCallCutOff; isOver != !call.EndedAt.IsZero() {
				t.Errorf("%s: %s is %s, ended at %s", when, call.ID, call.Status, call.EndedAt)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n%s", when, strings.ReplaceAll(fmt.Sprintf("got  %+v\nwant %+v", got, want), "} {", "}\n     {"))
		}
	}
	ended := summary{"ended", `{"q":"a\u0000"}`, `{"q":"a\u0000"}`, `"found"`, "r1", 3, 9, pgagui.ToolCallCompleted}
	open := summary{"open", `{"text":"half \ud83d`, "", "", "r1", 5, 6, pgagui.ToolCallStreaming}
	ask := summary{"ask", "not JSON", "", "", "r1", 10, 12, pgagui.ToolCallCalled}
	chunks := summary{"chunks", "[1,2]", "[1,2]", "", "r1", 13, 14, pgagui.ToolCallStreaming}
	check("while it runs", pgagui.At{}, 0, ended, open, ask, chunks)
	check("back in time", pgagui.At{Seq: 7}, 0, summary{"ended", `{"q":"a\u0000"}`, `{"q":"a\u0000"}`, "", "r1", 3, 7, pgagui.ToolCallStreaming}, open)
	check("those that began behind a seq", pgagui.At{}, 5, ask, chunks)

	calls := must.Have(store.ToolCalls(t.Context(), "t", pgagui.ToolCallsOptions{}))(t)
	if got, want := calls[0].StartedAt, time.UnixMilli(1767261600500); !got.Equal(want) {
		t.Errorf("started at %s, want %s as the event says", got, want)
	}
	if calls[0].ParentMessageID != "m1" || calls[1].ParentMessageID != "open" || calls[0].Name != "search" {
		t.Errorf("parents or names are wrong: %+v", calls)
	}

	mustAppend(t, store, "t", "r1", events(`
		{"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":"done"}
		{"type":"RUN_FINISHED","threadId":"t","runId":"r1"}`))
	open.Status, chunks.Status = pgagui.ToolCallCutOff, pgagui.ToolCallCalled
	check("its run finished without an end of the arguments", pgagui.At{}, 0, ended, open, ask, chunks)

	mustAppend(t, store, "t", "r2", events(`
		{"type":"RUN_STARTED","threadId":"t","runId":"r2","input":{"messages":[{"id":"answer","role":"tool","toolCallId":"ask","content":"yes"}]}}
		{"type":"TOOL_CALL_START","toolCallId":"late","toolCallName":"x"}
		{"type":"TOOL_CALL_END","toolCallId":"late"}
		{"type":"RUN_ERROR","message":"no more"}`))
	ask.Result, ask.Last, ask.Status = `"yes"`, 17, pgagui.ToolCallCompleted
	check("the user answered with the next run, which failed", pgagui.At{}, 0, ended, open, ask, chunks,
		summary{"late", "", "", "", "r2", 18, 19, pgagui.ToolCallCutOff})
	mustAppend(t, store, "t", "r3", events(`
		{"type":"RUN_STARTED","threadId":"t","runId":"r3","parentRunId":"r1","input":{"messages":[{"id":"answer","role":"tool","toolCallId":"ask","content":"no"}]}}`))
	ask.Result, ask.Last = `"no"`, 21
	check("the other branch had another answer", pgagui.At{}, 0, ended, open, ask, chunks)
}

// A call whose writer died is cut off once its run is closed in its place, although the log then has the end of its arguments.
func TestToolCallOfAnAbandonedRunIsCutOff(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	mustAppend(t, store, "t", "r", events(`
		{"type":"RUN_STARTED","threadId":"t","runId":"r"}
		{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"x"}
		{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{\"a"}`))
	testdb.Exec(t, pool, "select agui.abandon('t', 'r')")
	calls := must.Have(store.ToolCalls(t.Context(), "t", pgagui.ToolCallsOptions{}))(t)
	if len(calls) != 1 || calls[0].Status != pgagui.ToolCallCutOff || calls[0].EndedAt.IsZero() {
		t.Errorf("got %+v", calls)
	}
}

// Whatever the log holds, the calls are those of the messages, and their places in the log are where it names them.
func TestToolCallsActivitiesAndMessagesAgreeWithTheConversation(t *testing.T) {
	t.Parallel()
	store := pgagui.New(testdb.Pool(t), nil)
	for i, kind := range kindsOfStreams {
		t.Run(kind.name, func(t *testing.T) {
			for n := range streamsOfAKind(8) {
				seed := *firstSeed + uint64(n)
				random := rand.New(rand.NewPCG(seed, uint64(i)))
				var inner []json.RawMessage
				for _, event := range compactiontest.Stream(seed<<8+uint64(i), kind.options) {
					if eventType := compaction.EventType(event); eventType != "" && !strings.HasPrefix(eventType, "RUN_") {
						inner = append(inner, event)
					}
				}
				thread := fmt.Sprint(kind.name, " ", n)
				border := random.IntN(len(inner) + 1)
				log := append(run("r1", inner[:border]), run("r2", inner[border:])...)
				mustAppend(t, store, thread, "r1", log[:border+2])
				mustAppend(t, store, thread, "r2", log[border+2:])

				at := pgagui.At{Seq: int64(1 + random.IntN(len(log)))}
				if n%2 == 0 {
					at.Seq = int64(len(log))
				}
				if at.Seq <= int64(border+2) {
					at.RunID = "r1"
				}
				if problem := disagreement(t, store, thread, at, log); problem != "" {
					t.Fatalf("seed %d, at %+v: %s\n%s", seed, at, problem, lines(log))
				}
			}
		})
	}
}

// disagreement compares what is told of a conversation with its messages and with the log.
func disagreement(t *testing.T, store *pgagui.Store, thread string, at pgagui.At, log []json.RawMessage) string {
	t.Helper()
	messages := must.Have(store.Messages(t.Context(), thread, at))(t)
	calls := must.Have(store.ToolCalls(t.Context(), thread, pgagui.ToolCallsOptions{At: at}))(t)
	activities := must.Have(store.Activities(t.Context(), thread, at))(t)
	told := must.Have(store.SessionMessages(t.Context(), thread, pgagui.SessionMessagesOptions{At: at}))(t)

	var wantCalls, wantActivities []string
	wantTold := map[string]int{}
	seen := map[string]bool{}
	for _, message := range messages {
		var body struct {
			ID           string          `json:"id"`
			ActivityType string          `json:"activityType"`
			Content      json.RawMessage `json:"content"`
			ToolCalls    []struct {
				ID       string `json:"id"`
				Function *struct{ Name, Arguments string }
			}
		}
		if err := json.Unmarshal(message.JSON, &body); err != nil {
			continue // fields of other types, in what was malformed
		}
		switch message.Role {
		case "activity":
			wantActivities = append(wantActivities, fmt.Sprint(body.ID, body.ActivityType, string(body.Content)))
		case "assistant":
			if text := string(body.Content); text != "" && text != `""` && text != "null" || body.ToolCalls == nil {
				wantTold["assistant"]++
			}
			for _, call := range body.ToolCalls {
				wantTold["tool_use"]++
				if call.Function != nil && !seen[call.ID] {
					seen[call.ID] = true
					wantCalls = append(wantCalls, fmt.Sprint(call.ID, call.Function.Name, holdable(call.Function.Arguments)))
				}
			}
		case "user":
			wantTold["user"]++
		case "system", "developer":
			wantTold["system"]++
		case "tool":
			wantTold["tool_result"]++
		}
	}
	for _, event := range log[:at.Seq] {
		if compaction.EventType(event) == "RUN_ERROR" {
			wantTold["error"]++
		}
	}

	// A row's place in the log is an event that names it, and the first such event is not before that.
	names := func(seq int64, id string) bool {
		quoted, _ := json.Marshal(id)
		return seq >= 1 && seq <= at.Seq && (bytes.Contains(log[seq-1], quoted) || bytes.ContainsAny(log[seq-1], `\`))
	}
	var gotCalls, gotActivities []string
	for _, call := range calls {
		gotCalls = append(gotCalls, fmt.Sprint(call.ID, call.Name, holdable(call.Arguments)))
		if !names(call.FirstSeq, call.ID) || call.LastSeq < call.FirstSeq || call.LastSeq > at.Seq {
			return fmt.Sprintf("call %q is said to be at seq %d to %d", call.ID, call.FirstSeq, call.LastSeq)
		}
	}
	for _, activity := range activities {
		gotActivities = append(gotActivities, fmt.Sprint(activity.MessageID, activity.Type, string(activity.Content)))
		if !names(activity.FirstSeq, activity.MessageID) || !names(activity.LastSeq, activity.MessageID) || activity.LastSeq < activity.FirstSeq {
			return fmt.Sprintf("activity %q is said to be at seq %d to %d", activity.MessageID, activity.FirstSeq, activity.LastSeq)
		}
	}
	gotTold := map[string]int{}
	lastSeq := int64(1)
	for _, message := range told {
		gotTold[message.Type]++
		if message.Seq < lastSeq || message.Seq > at.Seq {
			return fmt.Sprintf("%s message %q is said to be at seq %d, behind %d", message.Type, message.MessageID, message.Seq, lastSeq)
		}
		lastSeq = message.Seq
	}

	slices.Sort(wantCalls)
	slices.Sort(gotCalls)
	switch {
	case !slices.Equal(gotCalls, wantCalls):
		return fmt.Sprintf("calls %q, want %q", gotCalls, wantCalls)
	case !slices.Equal(gotActivities, wantActivities):
		return fmt.Sprintf("activities %q, want %q", gotActivities, wantActivities)
	case fmt.Sprint(gotTold) != fmt.Sprint(wantTold):
		return fmt.Sprintf("session messages %v, want %v", gotTold, wantTold)
	}
	return ""
}

// holdable is text, or nothing where it has characters that text in PostgreSQL, or in Go, cannot hold.
func holdable(text string) string {
	if strings.ContainsAny(text, "\x00\ufffd") || strings.Contains(text, `\u`) {
		return ""
	}
	return text
}

func TestOldSessionsBecomeRunsAndComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	session := events(`
		{"seq":1,"event_type":"system","payload":"be brief","id":1,"created_at":"2025-05-05T10:00:00Z"}
		{"seq":2,"event_type":"user","payload":"{\"content\":\"hi \\u00e9\"}","id":2,"created_at":"2025-05-05T10:00:01.5Z"}
		{"seq":3,"event_type":"assistant","payload":{"content":"let me look \ud83d"},"id":"a1","created_at":"2025-05-05T10:00:02+02:00"}
		{"seq":4,"event_type":"tool_use","payload":{"id":"c1","name":"bash","input":{"cmd":"ls \"x\" \\ \u0000","n":1.0}}}
		{"seq":5,"event_type":"tool_result","payload":{"tool_use_id":"c1","content":[{"type":"text","text":"a file"}]}}
		{"seq":6,"event_type":"tool_use","payload":{"id":"c2","name":"read","input":"no object"}}
		{"seq":7,"event_type":"system","payload":"a notice"}
		{"seq":8,"event_type":"error","payload":{"message":"out of tokens","code":"E7"}}
		{"seq":9,"event_type":"assistant","payload":"still here"}
		{"seq":10,"event_type":"user","payload":"go on"}
		{"seq":11,"event_type":"user","payload":""}`)
	want := `system {"content":"be brief"}
user {"content":"hi \u00e9"}
assistant {"content":"let me look \ud83d"}
tool_use {"id":"c1","name":"bash","input":{"cmd":"ls \"x\" \\ \u0000","n":1.0}}
tool_result {"tool_use_id":"c1","content":[{"type":"text","text":"a file"}]}
tool_use {"id":"c2","name":"read","input":"no object"}
system {"content":"a notice"}
error {"message":"out of tokens","code":"E7"}
assistant {"content":"still here"}
user {"content":"go on"}
user {"content":""}
`
	read := func(thread string) (text string, messages []pgagui.SessionMessage) {
		messages = must.Have(store.SessionMessages(t.Context(), thread, pgagui.SessionMessagesOptions{}))(t)
		for _, message := range messages {
			text += message.Type + " " + string(message.JSON) + "\n"
		}
		return text, messages
	}
	lastSeq := must.Have(legacysession.Append(t.Context(), pool, legacysession.Session{ThreadID: "old", RunPrefix: "run-", Messages: session}))(t)
	got, messages := read("old")
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got, want := messages[1].CreatedAt, time.Date(2025, 5, 5, 10, 0, 1, 5e8, time.UTC); !got.Equal(want) {
		t.Errorf("created at %s, want %s", got, want)
	}
	if got, want := messages[2].CreatedAt, time.Date(2025, 5, 5, 8, 0, 2, 0, time.UTC); !got.Equal(want) {
		t.Errorf("created at %s, want %s", got, want)
	}
	if again, err := legacysession.Append(t.Context(), pool, legacysession.Session{ThreadID: "old", RunPrefix: "run-", Messages: session}); err != nil || again != lastSeq {
		t.Errorf("the same once more: seq %d, %v, want %d and nothing new", again, err, lastSeq)
	}
	later, err := store.SessionMessages(t.Context(), "old", pgagui.SessionMessagesOptions{AfterSeq: messages[8].Seq})
	if err != nil || len(later) != 2 {
		t.Errorf("%d messages behind the last but two, %v", len(later), err)
	}

	// What comes out goes in again.
	var exported []json.RawMessage
	for _, message := range messages {
		row := must.Have(json.Marshal(message))(t)
		exported = append(exported, row)
	}
	must.Have(legacysession.Append(t.Context(), pool, legacysession.Session{ThreadID: "copy", RunPrefix: "run-", Messages: exported}))(t)
	if got, _ := read("copy"); got != want {
		t.Errorf("the copy has\n%swant\n%s", got, want)
	}

	if problems := testdb.Ask[int](t, pool, "select count(*) from agui.verify('old')"); problems > 0 {
		t.Errorf("%d problems", problems)
	}
	if client := startOracle(t, "--verify"); client != nil {
		var stream []json.RawMessage
		for event, err := range store.Events(t.Context(), "old", pgagui.EventsOptions{}) {
			must.Do(t, err)
			stream = append(stream, event.JSON)
		}
		if answer := client.fold(t, stream)[0]; answer.Error != "" || !answer.Verified {
			t.Errorf("the client refuses it: %s %s", answer.Error, answer.VerifyError)
		}
	}
}

// Whatever JSON an old session holds, its messages become runs that the store takes and that have as many messages of the same types.
func TestOddSessionsBecomeRuns(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	random := rand.New(rand.NewPCG(*firstSeed, 6))
	pick := func(choices ...string) string { return choices[random.IntN(len(choices))] }
	odd := func() string {
		return pick(`"text"`, `"\u0000 \ud83d \\ \\u005c \" / \/"`, `17`, `1e400`, `-0`, `true`, `null`, `[]`, `[{"type":"text","text":"part \udc00"}]`,
			`{"a":"\ud83d","a":1.0}`, `"{\"content\":\"nested\"}"`, `"{no JSON"`, `{}`)
	}
	for n := range streamsOfAKind(1) {
		var session []json.RawMessage
		var want []string
		for position := range 1 + random.IntN(12) {
			messageType := pick("user", "assistant", "tool_use", "tool_result", "system", "error")
			want = append(want, messageType)
			var payload string
			switch {
			case messageType == "assistant":
				payload = pick(`"said"`, `{"content":"said"}`, `{"text":"said"}`, `"{\"content\":\"said\"}"`)
			case messageType == "tool_use":
				payload = fmt.Sprintf(`{"id":%s,"name":%s,"input":%s}`, pick(fmt.Sprintf(`"call %d"`, position), fmt.Sprint(position)), odd(), odd())
			case messageType == "tool_result":
				payload = fmt.Sprintf(`{"tool_use_id":%s,"content":%s}`, pick(`"call 1"`, `2`, `null`), odd())
			default:
				payload = pick(odd(), `{"content":`+odd()+`}`, `{"message":`+odd()+`,"code":`+odd()+`}`)
			}
			message := fmt.Sprintf(`{"event_type":%q,"payload":%s`, messageType, payload)
			message += pick("", `,"created_at":`+pick(`"2025-02-30T00:00:00Z"`, `"2025-02-03T00:00:00Z"`, `1738540800000`, odd()))
			message += pick("", fmt.Sprintf(`,"id":%d`, position), fmt.Sprintf(`,"message_id":"m%d"`, position), `,"id":`+pick(`null`, `{}`, `[]`)) + "}"
			session = append(session, json.RawMessage(message))
		}
		thread := fmt.Sprint("odd \\ \"thread ", n)
		for range 2 { // the second time changes nothing
			if _, err := legacysession.Append(t.Context(), pool, legacysession.Session{ThreadID: thread, RunPrefix: `run \ "`, Messages: session}); err != nil {
				t.Fatalf("%v\n%s", err, lines(session))
			}
		}
		messages := must.Have(store.SessionMessages(t.Context(), thread, pgagui.SessionMessagesOptions{}))(t)
		var got []string
		for _, message := range messages {
			got = append(got, message.Type)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("messages of the types %q, want %q\n%s", got, want, lines(session))
		}
		var problem *string
		if err := pool.QueryRow(t.Context(), "select string_agg(problem, ', ') from agui.verify($1)", thread).Scan(&problem); err != nil || problem != nil {
			t.Fatalf("%v, %v\n%s", *problem, err, lines(session))
		}
	}
}

func TestSessionMessagesThatAreNoneAreRefusedAsAWhole(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	for messages, want := range map[string]string{
		"{\"event_type\":\"user\",\"payload\":\"a\"}\n{\"event_type\":\"User\"}": `legacy session messages of thread "t": message 2 is of type "User", which is unknown`,
		"{\"event_type\":\"user\",\"payload\":\"a\"}\n7":                         `legacy session messages of thread "t": message 2 is of type null, which is unknown`,
	} {
		_, err := legacysession.Append(t.Context(), pool, legacysession.Session{ThreadID: "t", RunPrefix: "run-", Messages: events(messages)})
		if !errors.Is(err, pgagui.ErrInvalidEvents) || !strings.HasPrefix(err.Error(), want+". ") {
			t.Errorf("%s: %v, want %s", messages, err, want)
		}
	}
	if _, err := pgagui.New(pool, nil).Head(t.Context(), "t"); !errors.Is(err, pgagui.ErrUnknownThread) {
		t.Errorf("something was stored: %v", err)
	}
}

func TestActivitiesAtAnySeq(t *testing.T) {
	t.Parallel()
	store := pgagui.New(testdb.Pool(t), nil)
	mustAppend(t, store, "t", "r1", events(`
		{"type":"RUN_STARTED","threadId":"t","runId":"r1"}
		{"type":"ACTIVITY","messageId":"search","activityType":"SEARCH","snapshot":{"sources":[{"name":"Reddit","status":"pending"}]}}
		{"type":"ACTIVITY","messageId":"search","activityType":"SEARCH","patch":{"op":"replace","path":"/sources/0/status","value":"complete"}}
		{"type":"RUN_FINISHED","threadId":"t","runId":"r1"}`))
	mustAppend(t, store, "t", "r2", events(`
		{"type":"RUN_STARTED","threadId":"t","runId":"r2"}
		{"type":"ACTIVITY_SNAPSHOT","messageId":"plan","activityType":"PLAN","content":{"tasks":[]}}`))
	for _, moment := range []struct {
		at   pgagui.At
		want string
	}{
		{pgagui.At{RunID: "r1", Seq: 1}, ""},
		{pgagui.At{RunID: "r1", Seq: 2}, `search SEARCH {"sources":[{"name":"Reddit","status":"pending"}]} r1 2-2`},
		{pgagui.At{RunID: "r1"}, `search SEARCH {"sources": [{"name": "Reddit", "status": "complete"}]} r1 2-3`},
		{pgagui.At{}, `search SEARCH {"sources": [{"name": "Reddit", "status": "complete"}]} r1 2-3, plan PLAN {"tasks":[]} r2 6-6`},
	} {
		activities := must.Have(store.Activities(t.Context(), "t", moment.at))(t)
		var got []string
		for _, activity := range activities {
			got = append(got, fmt.Sprintf("%s %s %s %s %d-%d",
				activity.MessageID, activity.Type, activity.Content, activity.RunID, activity.FirstSeq, activity.LastSeq))
		}
		if joined := strings.Join(got, ", "); joined != moment.want {
			t.Errorf("at %+v: %s, want %s", moment.at, joined, moment.want)
		}
	}
}

// A run may begin with any event, and its input comes before that one.
func TestMessagesOfARunThatBeginsWithAnotherEvent(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	for first, want := range map[string]string{
		`{"type":"RUN_ERROR","message":"failed"}`:                                                                                          `user {"content":"Hi"}, error {"message":"failed"}`,
		`{"type":"TOOL_CALL_RESULT","messageId":"t1","toolCallId":"c0","content":"found"}`:                                                 `user {"content":"Hi"}, tool_result {"tool_use_id":"c0","content":"found"}`,
		`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"u1","role":"user","content":"Hi"},{"id":"a1","role":"assistant","content":"Ho"}]}`: `user {"content":"Hi"}, assistant {"content":"Ho"}`,
	} {
		thread := compaction.EventType([]byte(first))
		_, err := store.Append(t.Context(), pgagui.RunRef{ThreadID: thread, RunID: "r"}, []json.RawMessage{json.RawMessage(first)}, pgagui.AppendOptions{
			AfterSeq: new(int64(0)), Input: json.RawMessage(`{"messages":[{"id":"u1","role":"user","content":"Hi"}]}`),
		})
		must.Do(t, err)
		messages := must.Have(store.SessionMessages(t.Context(), thread, pgagui.SessionMessagesOptions{}))(t)
		var got []string
		for _, message := range messages {
			got = append(got, message.Type+" "+string(message.JSON))
			if message.Seq != 1 {
				t.Errorf("%s: a message has seq %d", thread, message.Seq)
			}
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: %s, want %s", thread, strings.Join(got, ", "), want)
		}
	}
}
