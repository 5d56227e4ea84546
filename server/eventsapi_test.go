package server_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
	"github.com/pgagui/pgagui/server"
	"github.com/pgagui/pgagui/server/access"
)

const sessions = "/api/ambient/v1/sessions/"

// push pushes an event, and returns the answer.
func (p *process) push(session, kind, payload string, members ...any) map[string]any {
	p.t.Helper()
	return p.json(201, "POST", sessions+session+"/events", pushBody(kind, payload, members...))
}

// pushBody returns the body of a push. members are name, value, name, value, …
func pushBody(kind, payload string, members ...any) string {
	body := map[string]any{"event_type": kind, "payload": payload}
	for i := 0; i < len(members); i += 2 {
		body[members[i].(string)] = members[i+1]
	}
	text, _ := json.Marshal(body)
	return string(text)
}

// list returns the answer to a request as a list.
func (p *process) list(path string, headers ...string) (list []map[string]any) {
	p.t.Helper()
	answer := p.request("GET", path, "", headers...)
	if err := json.NewDecoder(answer.Body).Decode(&list); err != nil || answer.StatusCode != 200 {
		p.t.Fatalf("GET %s: status %d, %v", path, answer.StatusCode, err)
	}
	return list
}

// items returns the items of a page of history.
func items(page map[string]any) (items []map[string]any) {
	for _, item := range page["items"].([]any) {
		items = append(items, item.(map[string]any))
	}
	return items
}

// timeless replaces times, which differ from run to run.
func timeless(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name := range value {
			if name == "created_at" {
				if _, err := time.Parse(time.RFC3339Nano, fmt.Sprint(value[name])); err == nil {
					value[name] = "TIME"
				}
			}
			value[name] = timeless(value[name])
		}
	case []any:
		for i := range value {
			value[i] = timeless(value[i])
		}
	}
	return value
}

// wantJSON compares an answer with a text.
func wantJSON(t *testing.T, got any, want string) {
	t.Helper()
	var wanted any
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatalf("the wanted JSON: %v", err)
	}
	text, _ := json.Marshal(got)
	var plain any
	_ = json.Unmarshal(text, &plain)
	if !reflect.DeepEqual(timeless(plain), wanted) {
		t.Errorf("the answer is\n%s\nwant\n%s", text, want)
	}
}

// TestTheExamplesOfTheEventsAPI pushes and reads the examples of the document that proposed the API.
func TestTheExamplesOfTheEventsAPI(t *testing.T) {
	t.Parallel()
	p := serve(t, testdb.Pool(t), server.Options{})
	push := func(kind, payload string, members ...any) map[string]any {
		t.Helper()
		return p.push("2abc", kind, payload, members...)
	}
	push("RUN_STARTED", `{"run_id":"run_1","thread_id":"2abc"}`)
	for range 8 { // the examples begin with seq 10
		push("CUSTOM", `{"type":"CUSTOM","name":"before","value":null}`)
	}
	// Before compression: a client that pushes each piece.
	wantJSON(t, push("TEXT_MESSAGE_START", `{"message_id":"msg_1","role":"assistant"}`), `{
		"id":"2abc:10","session_id":"2abc","seq":10,"event_type":"TEXT_MESSAGE_START",
		"payload":"{\"type\":\"TEXT_MESSAGE_START\",\"messageId\":\"msg_1\",\"role\":\"assistant\"}",
		"created_at":"TIME","completed_at":null,"event_count":1}`)
	for _, piece := range []string{"Let", " me", " check"} {
		push("TEXT_MESSAGE_CONTENT", `{"message_id":"msg_1","content":"`+piece+`"}`)
	}
	push("TEXT_MESSAGE_END", `{"message_id":"msg_1"}`)
	// Compressed by the client.
	push("TEXT_MESSAGE_START", `{"message_id":"msg_2","role":"assistant"}`)
	wantJSON(t, push("TEXT_MESSAGE_CONTENT", `{"message_id":"msg_2","content":"Let me check the file"}`, "event_count", 8, "completed_at", "2026-05-21T10:00:02Z"), `{
		"id":"2abc:16","session_id":"2abc","seq":16,"event_type":"TEXT_MESSAGE_CONTENT",
		"payload":"{\"type\":\"TEXT_MESSAGE_CONTENT\",\"event_count\":8,\"completed_at\":\"2026-05-21T10:00:02Z\",\"messageId\":\"msg_2\",\"delta\":\"Let me check the file\"}",
		"created_at":"TIME","completed_at":"2026-05-21T10:00:02Z","event_count":8}`)
	push("TEXT_MESSAGE_END", `{"message_id":"msg_2"}`)
	push("TOOL_CALL_START", `{"tool_name":"Read","tool_call_id":"tc_123"}`)
	push("TOOL_CALL_ARGS", `{"tool_call_id":"tc_123","args":"{\"file_path\":\"/app/main.go\"}"}`, "event_count", 3)
	push("TOOL_CALL_END", `{"tool_call_id":"tc_123"}`)
	push("TOOL_CALL_RESULT", `{"tool_call_id":"tc_123","result":"package main..."}`)
	push("RUN_FINISHED", `{}`)

	// After compression: gaps in seq, 11 is followed by 14.
	page := p.json(200, "GET", sessions+"2abc/events/history?after_seq=9&limit=5", "")
	got := items(page)
	for _, item := range got[1:2] {
		if item["completed_at"] == nil {
			t.Errorf("a joined event has no completed_at: %v", item)
		}
		item["completed_at"] = nil
	}
	wantJSON(t, page, `{"items":[
		{"id":"2abc:10","session_id":"2abc","seq":10,"event_type":"TEXT_MESSAGE_START","payload":"{\"type\":\"TEXT_MESSAGE_START\",\"messageId\":\"msg_1\",\"role\":\"assistant\"}","created_at":"TIME","completed_at":null,"event_count":1},
		{"id":"2abc:11","session_id":"2abc","seq":11,"event_type":"TEXT_MESSAGE_CONTENT","payload":"{\"type\":\"TEXT_MESSAGE_CONTENT\",\"messageId\":\"msg_1\",\"delta\":\"Let me check\"}","created_at":"TIME","completed_at":null,"event_count":3},
		{"id":"2abc:14","session_id":"2abc","seq":14,"event_type":"TEXT_MESSAGE_END","payload":"{\"type\":\"TEXT_MESSAGE_END\",\"messageId\":\"msg_1\"}","created_at":"TIME","completed_at":null,"event_count":1},
		{"id":"2abc:15","session_id":"2abc","seq":15,"event_type":"TEXT_MESSAGE_START","payload":"{\"type\":\"TEXT_MESSAGE_START\",\"messageId\":\"msg_2\",\"role\":\"assistant\"}","created_at":"TIME","completed_at":null,"event_count":1},
		{"id":"2abc:16","session_id":"2abc","seq":16,"event_type":"TEXT_MESSAGE_CONTENT","payload":"{\"type\":\"TEXT_MESSAGE_CONTENT\",\"event_count\":8,\"completed_at\":\"2026-05-21T10:00:02Z\",\"messageId\":\"msg_2\",\"delta\":\"Let me check the file\"}","created_at":"TIME","completed_at":"2026-05-21T10:00:02Z","event_count":8}
	],"page":1,"size":5,"total":22}`)

	// The messages of the conversation.
	wantJSON(t, p.list(sessions+"2abc/messages"), `[
		{"id":"2abc:10","session_id":"2abc","seq":10,"event_type":"assistant","payload":"Let me check","created_at":"TIME"},
		{"id":"2abc:15","session_id":"2abc","seq":15,"event_type":"assistant","payload":"Let me check the file","created_at":"TIME"},
		{"id":"2abc:18","session_id":"2abc","seq":18,"event_type":"tool_use","payload":"{\"id\":\"tc_123\",\"name\":\"Read\",\"input\":{\"file_path\":\"/app/main.go\"}}","created_at":"TIME"},
		{"id":"2abc:21","session_id":"2abc","seq":21,"event_type":"tool_result","payload":"{\"tool_use_id\":\"tc_123\",\"content\":\"package main...\"}","created_at":"TIME"}
	]`)
	wantJSON(t, p.json(201, "POST", sessions+"2abc/messages", `{"event_type":"user","payload":"Please review the PR and suggest improvements"}`),
		`{"id":"2abc:24","session_id":"2abc","seq":24,"event_type":"user","payload":"Please review the PR and suggest improvements","created_at":"TIME"}`)
	if last := p.list(sessions + "2abc/messages?after_seq=21"); len(last) != 1 || last[0]["payload"] != "Please review the PR and suggest improvements" {
		t.Errorf("behind 21 there are the messages %v", last)
	}
}

func TestHistoryFilters(t *testing.T) {
	t.Parallel()
	p := serve(t, testdb.Pool(t), server.Options{})
	p.push("s", "RUN_STARTED", `{"runId":"r"}`)
	p.push("s", "TEXT_MESSAGE_START", `{"messageId":"m","role":"assistant"}`)
	between := time.Now()
	for range 3 {
		p.push("s", "TEXT_MESSAGE_CONTENT", `{"messageId":"m","delta":"x"}`)
	}
	p.push("s", "TEXT_MESSAGE_END", `{"messageId":"m"}`)
	p.push("s", "RUN_FINISHED", `{}`)
	count := func(query string) (types []string) {
		t.Helper()
		page := p.json(200, "GET", sessions+"s/events/history?"+query, "")
		for _, item := range items(page) {
			types = append(types, fmt.Sprint(item["seq"]))
		}
		if page["total"] != 7.0 || page["page"] != 1.0 {
			t.Errorf("%s: %v", query, page)
		}
		return types
	}
	at := between.UTC().Format("2006-01-02T15:04:05.999999")
	for query, want := range map[string]string{
		"": "1 2 3 6 7", "compressed=false": "1 2 3 4 5 6 7", "compressed=true": "1 2 3 6 7", "after_seq=3&compressed=false": "4 5 6 7",
		"event_type=RUN_STARTED&event_type=RUN_FINISHED": "1 7", "event_type=RUN_STARTED,TEXT_MESSAGE_END": "1 6", "event_type=NONE": "", "event_type=": "1 2 3 6 7",
		"limit=2": "1 2", "limit=1000": "1 2 3 6 7", "start_time=" + at + "Z": "3 6 7", "end_time=" + at + "Z": "1 2",
		"end_time=2020-01-01T00:00:00%2B02:00": "", "after_seq=7": "", "after_seq=100": "",
	} {
		if got := strings.Join(count(query), " "); got != want {
			t.Errorf("history?%s: %s, want %s", query, got, want)
		}
	}
	if size := p.json(200, "GET", sessions+"s/events/history", "")["size"]; size != 100.0 {
		t.Errorf("the usual page has %v events, want 100", size)
	}
	for _, query := range []string{
		"limit=1001", "limit=0", "limit=-1", "limit=x", "after_seq=-1", "after_seq=x", "start_time=yesterday", "end_time=1", "compressed=maybe", "types=x",
	} {
		if refused := p.json(400, "GET", sessions+"s/events/history?"+query, ""); !strings.Contains(fmt.Sprint(refused["detail"]), strings.Split(query, "=")[0]) {
			t.Errorf("history?%s: %v", query, refused)
		}
	}
	p.json(404, "GET", sessions+"none/events/history", "")
}

// TestPagesOfHistoryJoin reads a history page by page as clients of the platform do, behind the seq
// of the last item, while two tool calls stream in parallel.
func TestPagesOfHistoryJoin(t *testing.T) {
	t.Parallel()
	p := serve(t, testdb.Pool(t), server.Options{})
	p.push("s", "RUN_STARTED", `{"runId":"r"}`)
	want := map[string]string{}
	for n := range 4 {
		a, b := fmt.Sprintf("a%d", n), fmt.Sprintf("b%d", n)
		for _, id := range []string{a, b} {
			p.push("s", "TOOL_CALL_START", `{"toolCallId":"`+id+`","toolCallName":"f"}`)
		}
		for piece := range 6 {
			id := []string{a, b}[piece%2]
			p.push("s", "TOOL_CALL_ARGS", fmt.Sprintf(`{"toolCallId":%q,"delta":"%d"}`, id, piece))
			want[id] += fmt.Sprint(piece)
		}
		for _, id := range []string{a, b} {
			p.push("s", "TOOL_CALL_END", `{"toolCallId":"`+id+`"}`)
		}
	}
	for _, limit := range []int{3, 4, 5, 7, 100} {
		got := map[string]string{}
		count, seq, pages := 0.0, 0, 0
		for {
			page := items(p.json(200, "GET", fmt.Sprintf("%ss/events/history?after_seq=%d&limit=%d", sessions, seq, limit), ""))
			if pages++; len(page) == 0 {
				break
			}
			for _, item := range page {
				var args struct{ ToolCallID, Delta string }
				_ = json.Unmarshal([]byte(item["payload"].(string)), &args)
				got[args.ToolCallID] += args.Delta
				count += item["event_count"].(float64)
			}
			seq = int(page[len(page)-1]["seq"].(float64))
		}
		delete(got, "")
		if !reflect.DeepEqual(got, want) || count != 41 {
			t.Errorf("pages of %d: %v with %v events (%d pages), want %v with 41", limit, got, count, pages, want)
		}
	}
	// A joined event of a run in progress appears when it is complete.
	p.push("s", "TEXT_MESSAGE_START", `{"messageId":"m","role":"assistant"}`)
	p.push("s", "TEXT_MESSAGE_CONTENT", `{"messageId":"m","delta":"x"}`)
	p.push("s", "TEXT_MESSAGE_CONTENT", `{"messageId":"m","delta":"y"}`)
	if page := items(p.json(200, "GET", sessions+"s/events/history?after_seq=41", "")); len(page) != 1 {
		t.Errorf("a page in the middle of a message: %v", page)
	}
	p.push("s", "TEXT_MESSAGE_END", `{"messageId":"m"}`)
	if page := items(p.json(200, "GET", sessions+"s/events/history?after_seq=42", "")); len(page) != 2 || page[0]["event_count"] != 2.0 {
		t.Errorf("the rest of the message: %v", page)
	}
}

func TestWhereAPushedEventGoes(t *testing.T) {
	t.Parallel()
	p := serve(t, testdb.Pool(t), server.Options{})
	runOf := func(answer map[string]any) string {
		t.Helper()
		page := must.Have(p.store.History(t.Context(), "s", pgagui.HistoryOptions{AfterSeq: int64(answer["seq"].(float64)) - 1, Limit: 1, Raw: true}))(t)
		return page.Events[0].RunID
	}
	custom := `{"name":"n","value":1}`
	// Without a run: a run of its own, which has ended.
	alone := runOf(p.push("s", "CUSTOM", custom))
	if events := p.logOf("s", alone); len(events) != 3 || events[1] != `{"type":"CUSTOM","name":"n","value":1}` {
		t.Errorf("an event without a run became %v", events)
	}
	if status := p.waitForEnd("s", alone); status.Status != pgagui.Finished {
		t.Errorf("its run is %s", status.Status)
	}
	// RUN_STARTED begins a run; what follows goes there.
	p.push("s", "RUN_STARTED", `{"type":"RUN_STARTED","runId":"one","threadId":"other"}`)
	if run := runOf(p.push("s", "CUSTOM", custom)); run != "one" {
		t.Errorf("an event went to %s, want one", run)
	}
	if events := p.logOf("s", "one"); !strings.Contains(events[0], `"threadId":"s"`) {
		t.Errorf("RUN_STARTED of another thread was stored as %s", events[0])
	}
	wantJSON(t, p.push("t", "RUN_STARTED", `{"type":"RUN_STARTED","run_id":"r","thread_id":null } `)["payload"], `"{\"type\":\"RUN_STARTED\",\"runId\":\"r\",\"threadId\":\"t\"}"`)
	wantJSON(t, p.push("t", "RUN_FINISHED", `{}`)["payload"], `"{\"type\":\"RUN_FINISHED\",\"threadId\":\"t\",\"runId\":\"r\"}"`)
	// Another run cannot begin, and what another run says is refused.
	if refused := p.json(409, "POST", sessions+"s/events", pushBody("RUN_STARTED", `{"runId":"two"}`)); refused["sqlstate"] != "UI006" {
		t.Errorf("a second run: %v", refused)
	}
	p.json(404, "POST", sessions+"s/events", pushBody("CUSTOM", `{"runId":"two","name":"n","value":1}`))
	p.json(409, "POST", sessions+"s/events", pushBody("RUN_STARTED", `{"runId":"one"}`))
	p.push("s", "RUN_FINISHED", `{"run_id":"one"}`)
	// A late event that names its run goes there, until another run continues from it.
	for range 2 {
		if run := runOf(p.push("s", "CUSTOM", `{"runId":"one","name":"late","value":1}`)); run != "one" {
			t.Errorf("a late event went to %s", run)
		}
	}
	if events := p.logOf("s", "one"); len(events) != 5 {
		t.Errorf("the run has %v", events)
	}
	// An end without a run is refused.
	p.json(409, "POST", sessions+"s/events", pushBody("RUN_FINISHED", `{}`))
	p.json(404, "POST", sessions+"none/events", pushBody("RUN_FINISHED", `{}`))
	p.push("s", "RUN_STARTED", `{"runId":"two"}`)
	if refused := p.json(409, "POST", sessions+"s/events", pushBody("CUSTOM", `{"runId":"one","name":"late","value":1}`)); refused["sqlstate"] != "UI005" {
		t.Errorf("a late event of a parent: %v", refused)
	}
	// A run that another writer cut off takes no more; what names no run gets one of its own.
	must.Have(p.store.Abandon(t.Context(), pgagui.RunRef{ThreadID: "s", RunID: "two"}, pgagui.AbandonOptions{Reason: "test"}))(t)
	p.json(409, "POST", sessions+"s/events", pushBody("CUSTOM", `{"runId":"two","name":"n","value":1}`))
	if run := runOf(p.push("s", "CUSTOM", custom)); run == "two" {
		t.Errorf("an event went to a run that was cut off")
	}
}

func TestARunOfTheServerTakesNoPushes(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := serve(t, testdb.Pool(t), withAgent(a))
	other := serve(t, p.pool(), withAgent(a))
	c := p.run("s", "run", "u1 user Hello")
	called := a.called(t)
	for _, path := range []string{"/events", "/messages", "/agui/feedback"} { // claimed, not begun
		body := map[string]string{
			"/events": pushBody("CUSTOM", `{"name":"n","value":1}`), "/messages": `{"payload":"Hi"}`, "/agui/feedback": `{"type":"META","metaType":"thumbs_up","payload":{}}`,
		}[path]
		if answer := other.request("POST", sessions+"s"+path, body); answer.StatusCode != 409 && !(path == "/agui/feedback" && answer.StatusCode == 404) {
			t.Errorf("POST %s before the run has begun: %d", path, answer.StatusCode)
		}
	}
	called.send(started("s", "run"), start("a1"))
	c.want("RUN_STARTED", "TEXT_MESSAGE_START")
	for path, body := range map[string]string{
		"/events": pushBody("CUSTOM", `{"name":"n","value":1}`), "/messages": `{"payload":"Hi"}`, "/agui/feedback": `{"type":"META","metaType":"thumbs_up","payload":{}}`,
	} {
		if refused := other.json(409, "POST", sessions+"s"+path, body); refused["runId"] != "run" {
			t.Errorf("POST %s: %v", path, refused)
		}
	}
	other.json(409, "POST", sessions+"s/events", pushBody("TEXT_MESSAGE_CONTENT", `{"runId":"run","messageId":"a1","delta":"x"}`))
	called.send(content("a1", "Hi"), end("a1"), finished("s", "run"))
	close(called.answers)
	c.rest()
	if events := p.logOf("s", "run"); len(events) != 5 {
		t.Errorf("the run has %v", events)
	}
	other.json(200, "POST", sessions+"s/agui/feedback", `{"type":"META","metaType":"thumbs_up","payload":{"messageId":"a1"}}`)
}

func TestRepeatedPushesAreStoredOnce(t *testing.T) {
	t.Parallel()
	p := serve(t, testdb.Pool(t), server.Options{})
	for range 2 {
		if seq := p.push("s", "RUN_STARTED", `{"runId":"r"}`, "after_seq", 0)["seq"]; seq != 1.0 {
			t.Errorf("RUN_STARTED has seq %v", seq)
		}
	}
	for range 3 {
		if seq := p.push("s", "CUSTOM", `{"name":"n","value":1}`, "after_seq", 1)["seq"]; seq != 2.0 {
			t.Errorf("the event has seq %v, want 2", seq)
		}
	}
	p.json(409, "POST", sessions+"s/events", pushBody("CUSTOM", `{"name":"other","value":1}`, "after_seq", 1))
	for range 2 {
		if seq := p.push("s", "RUN_FINISHED", `{"runId":"r"}`, "after_seq", 2)["seq"]; seq != 3.0 {
			t.Errorf("RUN_FINISHED has seq %v, want 3", seq)
		}
	}
	key := []string{"Idempotency-Key", "message-1"}
	for range 2 {
		wantJSON(t, p.json(201, "POST", sessions+"s/messages", `{"payload":"Hi"}`, key...), `{"id":"s:5","session_id":"s","seq":5,"event_type":"user","payload":"Hi","created_at":"TIME"}`)
		p.json(200, "POST", sessions+"s/agui/feedback", `{"type":"META","metaType":"thumbs_up","payload":{}}`, "Idempotency-Key", "feedback-1")
	}
	p.json(409, "POST", sessions+"s/messages", `{"payload":"Other"}`, key...)
	if messages := p.list(sessions + "s/messages"); len(messages) != 1 {
		t.Errorf("the messages are %v", messages)
	}
	if page := items(p.json(200, "GET", sessions+"s/events/history?event_type=RAW", "")); len(page) != 1 {
		t.Errorf("the feedback is %v", page)
	}
}

func TestPushesOfManyWriters(t *testing.T) {
	t.Parallel()
	p := serve(t, testdb.Pool(t), server.Options{})
	other := serve(t, p.pool(), server.Options{})
	const writers, each = 50, 4
	for _, mode := range []string{"in a run", "between runs", "while runs begin and end"} {
		session := strings.ReplaceAll(mode, " ", "-")
		if mode == "in a run" {
			p.push(session, "RUN_STARTED", `{"runId":"r"}`)
		}
		stop := make(chan struct{})
		var pushed atomic.Int64
		var runs, pushes sync.WaitGroup
		if strings.HasPrefix(mode, "while") {
			runs.Go(func() {
				for n := 0; ; n++ {
					select {
					case <-stop:
						return
					default:
					}
					run := fmt.Sprintf(`{"runId":"run-%d"}`, n)
					if answer := p.request("POST", sessions+session+"/events", pushBody("RUN_STARTED", run)); answer.StatusCode == 201 {
						before := pushed.Load()
						wait.Until(func() bool { return pushed.Load() > before || pushed.Load() == writers*each })
						p.request("POST", sessions+session+"/events", pushBody("RUN_FINISHED", run))
					}
				}
			})
		}
		for writer := range writers {
			to := []*process{p, other}[writer%2]
			pushes.Go(func() {
				for n := range each {
					name := fmt.Sprintf("%d-%d", writer, n)
					pushed.Add(1)
					if n == 0 {
						answer := to.request("POST", sessions+session+"/messages", `{"payload":"`+name+`"}`)
						if answer.StatusCode != 201 {
							t.Errorf("%s: a message: %d", mode, answer.StatusCode)
						}
						continue
					}
					if answer := to.request("POST", sessions+session+"/events", pushBody("CUSTOM", `{"name":"`+name+`","value":1}`)); answer.StatusCode != 201 {
						t.Errorf("%s: an event: %d", mode, answer.StatusCode)
					}
				}
			})
		}
		pushes.Wait()
		close(stop)
		runs.Wait()
		if mode == "in a run" {
			p.push(session, "RUN_FINISHED", `{}`)
		}
		seen := map[string]int{}
		for seq := 0; ; {
			page := items(p.json(200, "GET", fmt.Sprintf("%s%s/events/history?limit=1000&compressed=false&after_seq=%d", sessions, session, seq), ""))
			if len(page) == 0 {
				break
			}
			for _, item := range page {
				var event struct{ Name, Delta string }
				_ = json.Unmarshal([]byte(item["payload"].(string)), &event)
				seen[event.Name+event.Delta]++
			}
			seq = int(page[len(page)-1]["seq"].(float64))
		}
		for writer := range writers {
			for n := range each {
				if name := fmt.Sprintf("%d-%d", writer, n); seen[name] != 1 {
					t.Errorf("%s: %s is stored %d times", mode, name, seen[name])
				}
			}
		}
		if messages := p.list(sessions + session + "/messages"); len(messages) != writers {
			t.Errorf("%s: %d messages, want %d", mode, len(messages), writers)
		}
	}
}

func TestTheEventsOfASessionLive(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := serve(t, testdb.Pool(t), withAgent(a))
	early := p.stream("GET", sessions+"s/events", "") // before the session exists
	p.json(201, "POST", sessions+"s/messages", `{"payload":"Hello"}`)
	early.want("RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "RUN_FINISHED")
	p.push("s", "RUN_STARTED", `{"runId":"r"}`)
	p.push("s", "TEXT_MESSAGE_START", `{"messageId":"m","role":"assistant"}`)
	early.want("RUN_STARTED", "TEXT_MESSAGE_START")
	if early.lastID != "7" {
		t.Errorf("the id of event 7 is %q", early.lastID)
	}
	late := p.stream("GET", sessions+"s/events", "") // from the beginning of the run in progress
	late.want("RUN_STARTED", "TEXT_MESSAGE_START")
	p.push("s", "TEXT_MESSAGE_END", `{"messageId":"m"}`)
	p.push("s", "RUN_FINISHED", `{}`)
	for _, c := range []*client{early, late} {
		c.want("TEXT_MESSAGE_END", "RUN_FINISHED")
	}
	whole := early.events
	for seq := range whole { // behind each event
		for _, resumed := range []*client{
			p.stream("GET", sessions+"s/events", "", "Last-Event-ID", fmt.Sprint(seq+1)),
			p.stream("GET", fmt.Sprintf("%ss/events?after_seq=%d&stay=false", sessions, seq+1), ""),
		} {
			for _, want := range whole[seq+1:] {
				if got := resumed.event(); got != want {
					t.Fatalf("behind %d: %s, want %s", seq+1, got, want)
				}
			}
		}
	}
	if types := p.stream("GET", sessions+"s/events?after_seq=5&stay=false", "").rest(); len(types) != 4 {
		t.Errorf("the rest of the session is %v", types)
	}
	p.json(409, "GET", sessions+"s/events?after_seq=100", "")
	p.json(404, "GET", sessions+"none/events?stay=false", "")
	p.json(404, "GET", sessions+"none/events?after_seq=1", "")
	p.json(400, "GET", sessions+"s/events", "", "Last-Event-ID", "1-2")
}

func TestTheMessagesOfASessionLive(t *testing.T) {
	t.Parallel()
	p := serve(t, testdb.Pool(t), server.Options{Heartbeat: 30 * time.Millisecond})
	sse := []string{"Accept", "text/event-stream"}
	early := p.stream("GET", sessions+"s/messages", "", sse...)
	want := func(c *client, kind, payload string) {
		t.Helper()
		var message struct {
			EventType string `json:"event_type"`
			Payload   string
		}
		text := c.event()
		if err := json.Unmarshal([]byte(text), &message); err != nil || message.EventType != kind || message.Payload != payload {
			t.Fatalf("the message is %s, want %s %s", text, kind, payload)
		}
	}
	p.json(201, "POST", sessions+"s/messages", `{"payload":"Hello"}`)
	want(early, "user", "Hello")
	// Two messages in parallel: the second one is complete first, and waits.
	p.push("s", "RUN_STARTED", `{"runId":"r"}`)
	for _, id := range []string{"a", "b"} {
		p.push("s", "TEXT_MESSAGE_START", `{"messageId":"`+id+`","role":"assistant"}`)
		p.push("s", "TEXT_MESSAGE_CONTENT", `{"messageId":"`+id+`","delta":"of `+id+`"}`)
	}
	p.push("s", "TEXT_MESSAGE_END", `{"messageId":"b"}`)
	middle := p.stream("GET", sessions+"s/messages", "", sse...)
	want(middle, "user", "Hello")
	if messages := p.list(sessions + "s/messages"); len(messages) != 1 {
		t.Errorf("messages that are not complete: %v", messages)
	}
	p.push("s", "TEXT_MESSAGE_CONTENT", `{"messageId":"a","delta":", too"}`)
	p.push("s", "TEXT_MESSAGE_END", `{"messageId":"a"}`)
	for _, c := range []*client{early, middle} {
		want(c, "assistant", "of a, too")
		want(c, "assistant", "of b")
	}
	p.push("s", "TEXT_MESSAGE_CHUNK", `{"messageId":"c","role":"assistant","delta":"one "}`)
	p.push("s", "TEXT_MESSAGE_CHUNK", `{"delta":"two"}`)
	p.push("s", "TOOL_CALL_CHUNK", `{"toolCallId":"t","toolCallName":"f","delta":"{}"}`)
	want(early, "assistant", "one two")
	p.push("s", "RUN_ERROR", `{"message":"broken"}`)
	want(early, "tool_use", `{"id":"t","name":"f","input":{}}`)
	want(early, "error", "broken")

	all := p.list(sessions + "s/messages")
	for i, message := range all {
		seq := fmt.Sprint(message["seq"])
		resumed := p.stream("GET", sessions+"s/messages?after_seq=1000", "", append(sse, "Last-Event-ID", seq)...) // the header comes first
		for _, next := range all[i+1:] {
			want(resumed, next["event_type"].(string), next["payload"].(string))
			if resumed.lastID != fmt.Sprint(next["seq"]) {
				t.Errorf("the id is %s, want %v", resumed.lastID, next["seq"])
			}
		}
	}
	raw := p.dial("GET " + sessions + "s/messages?after_seq=1000 HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n")
	_ = raw.SetReadDeadline(time.Now().Add(patience))
	var text string
	for buffer := make([]byte, 1000); !strings.Contains(text, ": ping\n\n"); {
		n, err := raw.Read(buffer)
		if err != nil {
			t.Fatalf("no ping came: %v after %q", err, text)
		}
		text += string(buffer[:n])
	}
}

// TestMessagesOfOneEvent resumes between messages that one event brought.
func TestMessagesOfOneEvent(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := serve(t, testdb.Pool(t), withAgent(a))
	c := p.run("s", "run", "u1 user One", "u2 assistant Two", "u3 user Three")
	a.called(t).finish("a1", "Four")
	c.rest()
	messages := p.list(sessions + "s/messages")
	if len(messages) != 4 || messages[0]["seq"] != 1.0 || messages[2]["seq"] != 1.0 || messages[0]["id"] != "s:1" || messages[2]["id"] != "s:1.3" {
		t.Fatalf("the messages are %v", messages)
	}
	stream := p.stream("GET", sessions+"s/messages", "", "Accept", "text/event-stream")
	for _, id := range []string{"", "", "1", "2"} {
		if stream.event(); stream.lastID != id {
			t.Errorf("the id is %q, want %q", stream.lastID, id)
		}
	}
}

func TestRunsOfTheEventsAPI(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := serve(t, testdb.Pool(t), withAgent(a))
	body := `{"messages":[{"id":"u1","role":"user","content":"Hello"}],"tools":[],"context":[],"state":{},"forwarded_props":{}}`
	// With JSON: the ids at once, the events on GET events.
	answer := p.json(200, "POST", sessions+"s/agui/run", body)
	events := p.stream("GET", sessions+"s/events", "")
	called := a.called(t)
	run := fmt.Sprint(answer["runId"])
	if answer["threadId"] != "s" || called.input["runId"] != run || called.input["threadId"] != "s" || called.input["forwardedProps"] == nil {
		t.Errorf("the run is %v, the agent received %v", answer, called.input)
	}
	called.finish("a1", "Hi")
	events.want("RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "RUN_FINISHED")
	// With server-sent events: the events of the run.
	stream := p.stream("POST", sessions+"s/agui/run?agent=test", `{"run_id":"two","messages":[{"id":"u2","role":"user","content":"More"}]}`, "Accept", "text/event-stream")
	a.called(t).finish("a2", "Hi")
	if types := stream.rest(); len(types) != 5 || stream.lastID != "10" {
		t.Errorf("the stream is %v, up to %s", types, stream.lastID)
	}
	// The conversation, and what follows.
	connected := p.stream("GET", sessions+"s/agui/events", "")
	connected.want("RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT", "RUN_FINISHED")
	if types := p.stream("GET", sessions+"s/agui/events?stay=false", "").rest(); len(types) != 4 {
		t.Errorf("the conversation is %v", types)
	}
	p.json(404, "GET", sessions+"none/agui/events?stay=false", "")
	p.json(200, "POST", sessions+"s/agui/run", `{"runId":"three","threadId":"s","agent":"test","messages":[]}`)
	called = a.called(t)
	called.send(started("s", "three"), start("a3"))
	connected.want("RUN_STARTED")
	if refused := p.json(409, "POST", sessions+"s/agui/run", `{"runId":"four","messages":[]}`); refused["runId"] != "three" {
		t.Errorf("a second run: %v", refused)
	}
	wantJSON(t, p.json(200, "POST", sessions+"s/agui/interrupt", ""), `{"message":"Interrupt signal sent"}`)
	if status := p.waitForEnd("s", "three"); status.Status != pgagui.Cancelled {
		t.Errorf("the run was interrupted, and is %s", status.Status)
	}
	wantJSON(t, p.json(200, "POST", sessions+"s/agui/interrupt", "{}"), `{"message":"No run is in progress"}`)
	p.json(404, "POST", sessions+"none/agui/interrupt", "")
}

func TestWhichAgentRuns(t *testing.T) {
	t.Parallel()
	one, two := newAgent(t), newAgent(t)
	p := serve(t, testdb.Pool(t), server.Options{Agents: []server.Agent{{Name: "one", URL: one.URL}, {Name: "two", URL: two.URL}}})
	run := sessions + "s/agui/run"
	if refused := p.json(400, "POST", run, `{"runId":"r1","messages":[]}`); !strings.Contains(fmt.Sprint(refused["hint"]), "?agent=") {
		t.Errorf("two agents, none is named: %v", refused)
	}
	p.json(404, "POST", run+"?agent=none", `{"runId":"r1","messages":[]}`)
	p.json(200, "POST", run, `{"runId":"r1","messages":[],"agent":"two"}`)
	two.called(t).finish("a", "b")
	p.waitForEnd("s", "r1")
	p.json(200, "POST", run, `{"runId":"r2","messages":[]}`) // that of the session
	two.called(t).finish("c", "d")
	p.waitForEnd("s", "r2")
	p.json(200, "POST", run+"?agent=one", `{"runId":"r3","messages":[],"agent":"two"}`)
	one.called(t).finish("e", "f")
	p.waitForEnd("s", "r3")
	none := serve(t, p.pool(), server.Options{})
	none.json(400, "POST", run, `{"runId":"r4","messages":[]}`)
}

func TestTasksFeedbackAndCapabilities(t *testing.T) {
	t.Parallel()
	p := serve(t, testdb.Pool(t), server.Options{})
	p.push("s", "RUN_STARTED", `{"runId":"r"}`)
	wantJSON(t, p.json(200, "GET", sessions+"s/agui/tasks", ""), `{"tasks":[],"total":0}`)
	p.push("s", "CUSTOM", `{"name":"task:started","value":{"task_id":"t1","description":"tests"}}`)
	p.push("s", "CUSTOM", `{"name":"task:started","value":{"task_id":"t2"}}`)
	p.push("s", "CUSTOM", `{"name":"task:progress","value":{"task_id":"t1","usage":{"tokens":3}}}`)
	p.push("s", "CUSTOM", `{"name":"task:completed","value":{"task_id":"t2","status":"stopped"}}`)
	p.push("s", "CUSTOM", `{"name":"task:started","value":"odd"}`)
	wantJSON(t, p.json(200, "GET", sessions+"s/agui/tasks", ""), `{"tasks":[
		{"task_id":"t1","description":"tests","status":"running","usage":{"tokens":3}},{"task_id":"t2","status":"stopped"}],"total":2}`)
	wantJSON(t, p.json(200, "GET", sessions+"s/agui/capabilities", ""), `{"framework":"pgagui","agent_features":[],"platform_features":["feedback"],
		"file_system":false,"mcp":false,"tracing":null,"session_persistence":true,"model":null,"session_id":"s"}`)
	feedback := `{"type":"META","metaType":"thumbs_down","payload":{"messageId":"m","comment":"no \"so\" <good>"},"threadId":"s","ts":1}`
	wantJSON(t, p.json(200, "POST", sessions+"s/agui/feedback", feedback), `{"message":"Feedback submitted","status":"sent"}`)
	p.push("s", "RUN_FINISHED", `{}`)
	p.json(200, "POST", sessions+"s/agui/feedback", feedback)
	raw := items(p.json(200, "GET", sessions+"s/events/history?event_type=RAW", ""))
	if len(raw) != 2 || raw[0]["payload"] != `{"type":"RAW","event":{"name":"ambient:feedback","metaType":"thumbs_down","payload":{"messageId":"m","comment":"no \"so\" <good>"}}}` {
		t.Errorf("the feedback is stored as %v", raw)
	}
	p.json(400, "POST", sessions+"s/agui/interrupt", "null")
	p.json(400, "PATCH", "/copilotkit/threads/s", " null")
	for _, wrong := range []string{"", "{", "null", `{"type":"RAW"}`, `{"type":"META","metaType":"x","payload":{}}`, `{"type":"META","metaType":"thumbs_up","payload":1}`} {
		p.json(400, "POST", sessions+"s/agui/feedback", wrong)
	}
	for _, path := range []string{"tasks", "capabilities"} {
		p.json(404, "GET", sessions+"none/agui/"+path, "")
	}
	p.json(404, "POST", sessions+"none/agui/feedback", feedback)
}

func TestWrongPushes(t *testing.T) {
	t.Parallel()
	options := server.Options{Limits: access.LimitOptions{RequestsPerSecond: -1, Streams: -1, MaxBodyBytes: 2 << 20}}
	p := serve(t, testdb.Pool(t), options)
	p.push("s", "RUN_STARTED", `{"runId":"r"}`)
	for body, want := range map[string]int{
		"": 400, "{": 400, "[]": 400, `{"event_type":"CUSTOM"}`: 400, `{"event_type":"CUSTOM","payload":"x"}`: 422, `{"event_type":"CUSTOM","payload":[]}`: 422,
		`{"payload":"{}"}`: 422, `{"event_type":"CUSTOM","payload":"{\"type\":\"RAW\"}"}`: 422, `{"event_type":"CUSTOM","payload":"{}","event_count":0}`: 400,
		`{"event_type":"CUSTOM","payload":"{}","event_count":-1}`: 400, `{"event_type":"CUSTOM","payload":"{}","completed_at":"x"}`: 400,
		`{"event_type":"RUN_STARTED","payload":"{}"}`: 400, `{"event_type":"CUSTOM","payload":"{\"runId\":1}"}`: 400,
		`{"event_type":"CUSTOM","payload":"{}","after_seq":-1}`: 400, `{"event_type":"CUSTOM","payload":{"name":"n"}}`: 201, `{"kind":"CUSTOM","payload":"{}"}`: 400, `{"event_type":1,"payload":"{}"}`: 400,
		`{"event_type":"CUSTOM","payload":"{}","x":"` + strings.Repeat("x", 3<<20) + `"}`: 413,
	} {
		if answer := p.json(want, "POST", sessions+"s/events", body); want != 201 && answer["detail"] == "" {
			t.Errorf("%.60s: %v", body, answer)
		}
	}
	for body, want := range map[string]int{
		"{": 400, "[]": 400, `{"event_type":"assistant","payload":"x"}`: 400, `{"payload":1}`: 400, `{"payload":{}}`: 400, `{"payload":"x"}`: 201, `{}`: 201,
		`{"payload":"` + strings.Repeat("x", 1<<20) + `"}`: 413,
	} {
		p.json(want, "POST", sessions+"s/messages", body)
	}
	for _, body := range []string{"", "{", "[]", `{"threadId":1}`, `{"runId":{}}`, `{"agent":1}`} {
		p.json(400, "POST", sessions+"s/agui/run", body)
	}
	p.json(422, "POST", sessions+"s/agui/run", `{"threadId":"other","messages":[]}`)
	p.json(400, "GET", sessions+"s/messages?after_seq=x", "")
	p.json(404, "GET", sessions+"none/messages", "")
	// Nothing of it was stored but what was accepted.
	if total := p.json(200, "GET", sessions+"s/events/history", "")["total"]; total != 7.0 {
		t.Errorf("the log has %v events, want 7", total)
	}
}

// TestPayloadsKeepTheirBytes pushes an event of AG-UI, whose bytes stay.
func TestPayloadsKeepTheirBytes(t *testing.T) {
	t.Parallel()
	p := serve(t, testdb.Pool(t), server.Options{})
	p.push("s", "RUN_STARTED", `{"runId":"r"}`)
	for _, payload := range []string{
		`{"delta" : "a\ud83d\u0000<&>", "type":"TEXT_MESSAGE_CONTENT","messageId":"m","x":1.50e3,"x":2}`, `{"type":"NEW_TYPE","value":{"message_id":1}}`,
	} {
		if answer := p.push("s", "", payload); answer["payload"] != payload {
			t.Errorf("the payload is %s, want %s", answer["payload"], payload)
		}
	}
	both := p.push("s", "TEXT_MESSAGE_CONTENT", `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","message_id":"n","delta":"a","content":"b"}`)
	if both["payload"] != `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","message_id":"n","delta":"a","content":"b"}` {
		t.Errorf("an event with both names became %v", both["payload"])
	}
	// Half of an emoji in each of two pieces.
	p.push("s", "TEXT_MESSAGE_START", `{"messageId":"e","role":"assistant"}`)
	p.push("s", "TEXT_MESSAGE_CONTENT", `{"messageId":"e","delta":"\ud83d"}`)
	p.push("s", "TEXT_MESSAGE_CONTENT", `{"messageId":"e","delta":"\ude00"}`)
	p.push("s", "RUN_FINISHED", `{}`)
	if messages := p.list(sessions + "s/messages"); len(messages) != 1 || messages[0]["payload"] != "😀" {
		t.Errorf("the messages are %v", messages)
	}
}

// TestMessagesOfOddEvents reads what agents send against the protocol.
func TestMessagesOfOddEvents(t *testing.T) {
	t.Parallel()
	p := serve(t, testdb.Pool(t), server.Options{})
	for n, odd := range []string{
		`{"type":"RUN_ERROR"}`, `{"type":"RUN_ERROR","message":null}`, `{"type":"RUN_ERROR","message":{"a":1}}`, `{"type":"RUN_ERROR","code":"X"}`,
		`{"type":"TEXT_MESSAGE_CHUNK","messageId":"a"}`, `{"type":"TEXT_MESSAGE_CHUNK","messageId":"b","role":"user","delta":1}`,
		`{"type":"TOOL_CALL_CHUNK","toolCallId":"c","toolCallName":null}`, `{"type":"TOOL_CALL_START","toolCallId":"d","toolCallName":"f"}`,
		`{"type":"TOOL_CALL_RESULT","toolCallId":"d","messageId":"r"}`, `{"type":"TOOL_CALL_RESULT","toolCallId":"d","messageId":"r","content":[{"type":"text","text":"x"}]}`,
		`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"s","role":"user"},{"id":"t","role":"user","content":null},{"id":"u","role":"user","content":[{"type":"text","text":"x"}]},{"role":"assistant"},{"id":"v","role":"tool"},7]}`,
	} {
		run := fmt.Sprint("r", n)
		p.push("s", "RUN_STARTED", `{"runId":"`+run+`"}`)
		if p.push("s", "", odd); !strings.Contains(odd, "RUN_ERROR") {
			p.push("s", "RUN_FINISHED", `{}`)
		}
		if messages := p.list(sessions + "s/messages"); len(messages) > 0 {
			if _, isText := messages[len(messages)-1]["payload"].(string); !isText {
				t.Errorf("after %s the last message is %v", odd, messages[len(messages)-1])
			}
		}
	}
}

// eventsEndpoints are those of the Events API with the right that each needs. Streams of a session that
// does not exist wait for it.
var eventsEndpoints = []struct {
	method, path, right, body string
	waits                     bool
}{
	{"GET", "mine/events", "read", "", true}, {"POST", "mine/events", "write", `{"event_type":"CUSTOM","payload":"{\"runId\":\"run\"}"}`, false},
	{"GET", "mine/events/history", "read", "", false}, {"GET", "mine/messages", "read", "", false},
	{"POST", "mine/messages", "write", "", false}, {"POST", "mine/agui/run", "write", "", false}, {"GET", "mine/agui/events", "read", "", true},
	{"POST", "mine/agui/interrupt", "stop", "", false}, {"POST", "mine/agui/feedback", "write", `{"type":"META","metaType":"thumbs_up","payload":{}}`, false},
	{"GET", "mine/agui/tasks", "read", "", false}, {"GET", "mine/agui/capabilities", "read", "", false},
}

func TestRightsAndScopesOfTheEventsAPI(t *testing.T) {
	t.Parallel()
	authenticator, made := tokens(t, "a read", "a write", "a stop", "a admin", "b admin")
	token := map[string]string{"read": made[0], "write": made[1], "stop": made[2]}
	p := serve(t, testdb.Pool(t), server.Options{Access: authenticator})
	mine, theirs := []string{"Authorization", "Bearer " + made[3]}, []string{"Authorization", "Bearer " + made[4]}
	p.json(201, "POST", sessions+"mine/messages", `{"payload":"secret"}`, mine...)
	for _, endpoint := range eventsEndpoints {
		path := sessions + endpoint.path
		if answer := p.request(endpoint.method, path, ""); answer.StatusCode != 401 || answer.Header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s %s without a token: %d", endpoint.method, path, answer.StatusCode)
		}
		for right, token := range token {
			answer := p.request(endpoint.method, path, "x", "Authorization", "Bearer "+token)
			if isRefused := answer.StatusCode == 403; isRefused != (right != endpoint.right) {
				t.Errorf("%s %s with the right %s: %d", endpoint.method, path, right, answer.StatusCode)
			}
		}
		if endpoint.waits || endpoint.path == "mine/messages" && endpoint.method == "POST" {
			continue
		}
		foreign := answerOf(t, p.request(endpoint.method, path, endpoint.body, theirs...))
		unknown := answerOf(t, p.request(endpoint.method, strings.ReplaceAll(path, "mine", "none"), strings.ReplaceAll(endpoint.body, "mine", "none"), theirs...))
		if strings.ReplaceAll(foreign, "mine", "none") != unknown || strings.Contains(foreign, "secret") {
			t.Errorf("%s %s: a foreign session is answered as\n%s\nan unknown one as\n%s", endpoint.method, path, foreign, unknown)
		}
	}
	// The streams of the other scope receive what happens there.
	events := p.stream("GET", sessions+"mine/events", "", theirs...)
	messages := p.stream("GET", sessions+"mine/messages", "", append(theirs, "Accept", "text/event-stream")...)
	p.json(201, "POST", sessions+"mine/messages", `{"payload":"another secret"}`, mine...)
	p.json(201, "POST", sessions+"mine/messages", `{"payload":"theirs"}`, theirs...)
	events.want("RUN_STARTED", "TEXT_MESSAGE_START")
	if text := events.event(); !strings.Contains(text, "theirs") {
		t.Errorf("the stream of another scope has %s", text)
	}
	if text := messages.event(); !strings.Contains(text, "theirs") {
		t.Errorf("the messages of another scope have %s", text)
	}
}

func TestStreamsOfTheEventsAPIAreAborted(t *testing.T) {
	t.Parallel()
	p := serve(t, testdb.Pool(t), server.Options{Access: expiring{2 * time.Second}})
	p.push("s", "RUN_STARTED", `{"runId":"r"}`)
	events := p.stream("GET", sessions+"s/events", "")
	messages := p.stream("GET", sessions+"s/messages", "", "Accept", "text/event-stream")
	connected := p.stream("GET", sessions+"s/agui/events", "")
	events.want("RUN_STARTED")
	for _, c := range []*client{events, messages, connected} {
		c.wantAborted()
	}
	other := serve(t, p.pool(), server.Options{})
	shut := other.stream("GET", sessions+"s/events", "")
	shut.want("RUN_STARTED")
	must.Report(t, other.server.Shutdown(t.Context()))
	shut.wantAborted()
}

// TestASlowReaderOfTheEventsAPI is aborted, and continues without a gap.
func TestASlowReaderOfTheEventsAPI(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	p := serve(t, testdb.Pool(t), server.Options{WriteTimeout: time.Second, Metrics: registry})
	text := strings.Repeat("x", 500_000)
	p.push("s", "RUN_STARTED", `{"runId":"r"}`)
	slow := p.dial("GET " + sessions + "s/events HTTP/1.1\r\nHost: x\r\n\r\n")
	waitForStreams(t, registry, 1)
	var large []json.RawMessage
	for n := range 60 {
		large = append(large, json.RawMessage(fmt.Sprintf(`{"type":"CUSTOM","name":"%d","value":%q}`, n, text)))
	}
	must.Have(p.store.Append(t.Context(), pgagui.RunRef{ThreadID: "s", RunID: "r"}, large, pgagui.AppendOptions{}))(t)
	waitForStreams(t, registry, 0)
	answer := must.Have(http.ReadResponse(bufio.NewReader(slow), nil))(t)
	last, err := lastFrame(answer.Body)
	if err == nil || last == "" || last == "61" {
		t.Fatalf("the slow client received all up to %q (%v)", last, err)
	}
	resumed := p.stream("GET", sessions+"s/events?stay=false", "", "Last-Event-ID", last)
	p.push("s", "RUN_FINISHED", `{}`)
	resumed.rest()
	if got := len(resumed.events); fmt.Sprint(62-got) != last {
		t.Errorf("behind %s the client received %d events", last, got)
	}
}

// TestSessionsOfAllDoors writes the same conversation through every door, and reads it through the others.
func TestSessionsOfAllDoors(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := serve(t, testdb.Pool(t), withAgent(a))
	conversation := []string{
		start("m"), content("m", "Let"), content("m", " me"), end("m"),
		`{"type":"TOOL_CALL_START","toolCallId":"t","toolCallName":"read","parentMessageId":"m"}`, `{"type":"TOOL_CALL_ARGS","toolCallId":"t","delta":"{}"}`,
		`{"type":"TOOL_CALL_END","toolCallId":"t"}`, `{"type":"TOOL_CALL_RESULT","messageId":"r","toolCallId":"t","content":"x"}`,
	}
	calls := p.grpc()
	doors := map[string]func(session string){
		"proxy": func(session string) {
			c := p.run(session, "run")
			called := a.called(t)
			called.send(append(append([]string{started(session, "run")}, conversation...), finished(session, "run"))...)
			close(called.answers)
			c.rest()
		},
		"append": func(session string) {
			for _, event := range append(append([]string{started(session, "run")}, conversation...), finished(session, "run")) {
				must.Have(p.store.Append(t.Context(), pgagui.RunRef{ThreadID: session, RunID: "run"}, []json.RawMessage{json.RawMessage(event)}, pgagui.AppendOptions{}))(t)
			}
		},
		"post": func(session string) {
			for _, event := range append(append([]string{started(session, "run")}, conversation...), finished(session, "run")) {
				p.push(session, typeOf(event), event)
			}
		},
		"grpc": func(session string) {
			for _, event := range append(append([]string{started(session, "run")}, conversation...), finished(session, "run")) {
				calls.pushEvent(session, typeOf(event), event)
			}
		},
		"resources": func(session string) {
			p.json(200, "POST", "/threads/"+session+"/runs/run/events", `{"afterSeq":0,"events":[`+started(session, "run")+`,`+strings.Join(conversation, ",")+`]}`)
			answer := p.request("POST", "/threads/"+session+"/runs/run/events?after_seq=9", "data: "+finished(session, "run")+"\n\n", "Content-Type", "text/event-stream")
			if answer.StatusCode != http.StatusOK {
				t.Fatal(answer.Status)
			}
		},
		"sql": func(session string) {
			events := "[" + strings.Join(append(append([]string{started(session, "run")}, conversation...), finished(session, "run")), ",") + "]"
			must.Have(p.pool().Exec(t.Context(), `select agui.append($1, 'run', $2::json)`, session, events))(t)
		},
	}
	read := map[string]string{}
	for door, write := range doors {
		session := "session-" + door
		write(session)
		var text strings.Builder
		for _, query := range []string{"", "?compressed=false"} {
			for _, item := range items(p.json(200, "GET", sessions+session+"/events/history"+query, "")) {
				fmt.Fprintln(&text, item["seq"], item["event_type"], item["payload"], item["event_count"])
			}
		}
		watched := calls.watch(session, 0)
		for _, message := range p.list(sessions + session + "/messages") {
			fmt.Fprintln(&text, message["id"], message["seq"], message["event_type"], message["payload"])
			if same, err := watched.receive(); err != nil || same.Id != message["id"] || same.Payload != message["payload"] {
				t.Errorf("%s: by gRPC the message is %v (%v), by HTTP %v", door, same, err, message)
			}
		}
		for _, path := range []string{"/conversation", "/history", "/history?raw=true", "/tool-calls", "/runs"} {
			fmt.Fprintln(&text, shownTime.ReplaceAllString(p.text("/threads/"+session+path), "then"))
		}
		if _, err := p.pool().Exec(t.Context(), `select agui.messages($1)`, session); err != nil {
			t.Error(err)
		}
		messages := must.Have(p.store.Messages(t.Context(), session, pgagui.At{}))(t)
		for _, message := range messages {
			fmt.Fprintf(&text, "%s\n", message.JSON)
		}
		fmt.Fprintln(&text, p.json(200, "GET", "/copilotkit/threads/"+session+"/messages", ""))
		read[door] = strings.ReplaceAll(text.String(), session, "S")
	}
	for door, text := range read {
		if text != read["append"] {
			t.Errorf("written through %s it reads\n%s\nthrough append\n%s", door, text, read["append"])
		}
	}
}

// waitForStreams waits until a server has so many streams open.
func waitForStreams(t *testing.T, registry *prometheus.Registry, streams float64) {
	t.Helper()
	wait.For(t, fmt.Sprint(streams, " open streams"), func() bool {
		families := must.Have(registry.Gather())(t)
		for _, family := range families {
			if family.GetName() == "pgagui_server_streams" {
				return family.GetMetric()[0].GetGauge().GetValue() == streams
			}
		}
		return false
	})
}

// lastFrame returns the id of the last frame that came whole.
func lastFrame(body io.Reader) (id string, err error) {
	reader := bufio.NewReaderSize(body, 1<<20)
	next := ""
	for {
		line, err := reader.ReadString('\n')
		if err != nil {
			return id, err
		}
		if text, isID := strings.CutPrefix(line, "id: "); isID {
			next = strings.TrimSpace(text)
		}
		if line == "\n" && next != "" {
			id = next
		}
	}
}
