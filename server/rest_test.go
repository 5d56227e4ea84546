package server_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
	"github.com/pgagui/pgagui/server"
	"github.com/pgagui/pgagui/server/access"
)

// post appends a run with a message over HTTP.
func (p *process) appendRun(thread, run, message, text string) {
	p.t.Helper()
	body := fmt.Sprintf(`{"events":[%s,%s,%s,%s,%s],"afterSeq":0}`, started(thread, run), start(message), content(message, text), end(message), finished(thread, run))
	p.json(200, "POST", "/threads/"+thread+"/runs/"+run+"/events", body)
}

// text requests a document and returns it.
func (p *process) text(path string) string {
	p.t.Helper()
	answer := p.request("GET", path, "")
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		p.t.Fatalf("GET %s: status %d, %v: %s", path, answer.StatusCode, err, text)
	}
	return string(text)
}

func TestThreadsAsResources(t *testing.T) {
	t.Parallel()
	p := serve(t, testdb.Pool(t), server.Options{})
	for i := range 5 {
		p.appendRun(fmt.Sprint("t", i), "run-1", "a1", "Hello")
	}
	thread := p.json(200, "PATCH", "/threads/t1", `{"title":"Bees & <wax>","agent":"a","metadata":{"k":1}}`)
	if thread["title"] != "Bees & <wax>" || thread["headRunId"] != "run-1" {
		t.Errorf("thread %v", thread)
	}
	p.json(200, "PATCH", "/threads/t2", `{"archived":true}`)
	p.json(404, "PATCH", "/threads/new", `{"title":"x"}`)
	p.json(200, "PATCH", "/threads/new", `{"title":"x","createIfMissing":true}`)

	list := func(query string) (ids []string, next string) {
		page := p.json(200, "GET", "/threads?"+query, "")
		for _, thread := range page["threads"].([]any) {
			ids = append(ids, thread.(map[string]any)["threadId"].(string))
		}
		next, _ = page["cursor"].(string)
		return ids, next
	}
	for query, want := range map[string]string{
		"":                                       "[new t4 t3 t1 t0]",
		"archived=only":                          "[t2]",
		"archived=with":                          "[new t4 t3 t2 t1 t0]",
		"title=bees":                             "[t1]",
		"agent=a":                                "[t1]",
		"status=finished&limit=2":                "[t4 t3]",
		"status=running":                         "[]",
		"metadata=" + url.QueryEscape(`{"k":1}`): "[t1]",
		"since=2100-01-01T00:00:00Z":             "[]",
	} {
		if ids, _ := list(query); fmt.Sprint(ids) != want {
			t.Errorf("%s: %v, want %s", query, ids, want)
		}
	}
	var all []string
	for query := "limit=2"; ; {
		ids, next := list(query)
		all = append(all, ids...)
		if next == "" {
			break
		}
		query = "limit=2&cursor=" + url.QueryEscape(next)
	}
	if fmt.Sprint(all) != "[new t4 t3 t1 t0]" {
		t.Errorf("pages %v", all)
	}
	maintenance := p.store.Maintenance()
	must.Have(maintenance.SetHold(t.Context(), "t1", "case 4711"))(t)
	if known := p.json(409, "DELETE", "/threads/t1", ""); known["sqlstate"] != "UI025" || !strings.Contains(fmt.Sprint(known["hint"]), "The operator of the store") {
		t.Errorf("delete of a held thread: %v", known)
	}
	p.json(200, "GET", "/threads/t1", "")
	// Its runs go on.
	must.Have(maintenance.SetHold(t.Context(), "t2", "case 4711"))(t)
	p.json(200, "POST", "/threads/t2/runs/live/events", `{"events":[{"type":"RUN_STARTED"}]}`)
	p.json(409, "DELETE", "/threads/t2", "")
	if status, err := p.store.Status(t.Context(), pgagui.RunRef{ThreadID: "t2", RunID: "live"}); err != nil || !status.StopRequestedAt.IsZero() {
		t.Errorf("a run of a held thread after the refused delete: %+v, %v", status, err)
	}
	if wasHeld, err := maintenance.LiftHold(t.Context(), "t1"); err != nil || !wasHeld {
		t.Fatal(wasHeld, err)
	}
	if answer := p.request("DELETE", "/threads/t1", ""); answer.StatusCode != 204 {
		t.Errorf("delete: %d", answer.StatusCode)
	}
	if answer := p.request("DELETE", "/threads/t1", ""); answer.StatusCode != 204 {
		t.Errorf("delete a second time: %d", answer.StatusCode)
	}
	p.json(404, "GET", "/threads/t1", "")
	if known := p.json(410, "POST", "/threads/t1/runs/run-2/events", `{"events":[{"type":"RUN_STARTED"}]}`); known["sqlstate"] != "UI014" || known["detail"] == "" {
		t.Errorf("append to an erased thread: %v", known)
	}
}

func TestTheTreeAsResources(t *testing.T) {
	t.Parallel()
	p := serve(t, testdb.Pool(t), server.Options{})
	p.appendRun("t", "run-1", "a1", "Hello")
	p.appendRun("t", "run-2", "a2", "World")
	status := p.json(200, "POST", "/threads/t/fork", `{"runId":"fork","beforeMessageId":"a2"}`)
	if status["parentRunId"] != "run-1" || status["status"] != "finished" {
		t.Errorf("fork: %v", status)
	}
	if second := p.json(200, "POST", "/threads/t/fork", `{"runId":"fork","parentRunId":"run-1"}`); second["lastSeq"] != status["lastSeq"] {
		t.Errorf("fork a second time: %v, the first was %v", second, status)
	}
	if second := p.json(200, "POST", "/threads/t/fork", `{"runId":"fork","beforeMessageId":"a2"}`); second["lastSeq"] != status["lastSeq"] {
		t.Errorf("fork a second time: %v, the first was %v", second, status)
	}
	p.json(409, "POST", "/threads/t/fork", `{"runId":"fork","parentRunId":"run-2"}`)
	p.json(409, "POST", "/threads/t/fork", `{"runId":"fork","beforeMessageId":"a1"}`)
	p.json(409, "POST", "/threads/t/fork", `{"runId":"run-2","beforeMessageId":"a2"}`)
	p.json(404, "POST", "/threads/t/fork", `{"runId":"fork-2","beforeMessageId":"a9"}`)
	p.appendRun("t", "run-3", "a3", "Moon")
	var lineage []any
	for _, run := range p.json(200, "GET", "/threads/t/lineage", "")["runs"].([]any) {
		lineage = append(lineage, run.(map[string]any)["runId"])
	}
	if fmt.Sprint(lineage) != "[run-1 fork run-3]" {
		t.Errorf("lineage %v", lineage)
	}
	if runs := p.json(200, "GET", "/threads/t/runs", "")["runs"].([]any); len(runs) != 4 {
		t.Errorf("runs %v", runs)
	}
	if branches := p.json(200, "GET", "/threads/t/branches", "")["branches"].([]any); len(branches) != 2 {
		t.Errorf("branches %v", branches)
	}
	if head := p.json(200, "GET", "/threads/t/head", ""); head["runId"] != "run-3" {
		t.Errorf("head %v", head)
	}
	if base := p.json(200, "GET", "/threads/t/merge-base?run=run-2&other_run=run-3", ""); base["runId"] != "run-1" {
		t.Errorf("merge base %v", base)
	}
	p.json(200, "POST", "/threads/t/fork", `{"runId":"root","parentRunId":""}`)
	if base := p.json(200, "GET", "/threads/t/merge-base?run=run-2&other_run=root", ""); base["runId"] != nil {
		t.Errorf("merge base of two roots %v", base)
	}
	origin := p.json(200, "GET", "/threads/t/messages/a1?run=run-3", "")
	if origin["run"].(map[string]any)["runId"] != "run-1" {
		t.Errorf("origin %v", origin)
	}
	p.json(404, "GET", "/threads/t/messages/a2?run=run-3", "")
	if run := p.json(200, "GET", "/threads/t/runs/run-2", ""); run["lastSeq"] != 10.0 {
		t.Errorf("run %v", run)
	}
	p.json(404, "GET", "/threads/t/runs/other", "")
	p.json(404, "GET", "/threads/t/runs/run-1/input", "")
	for body, status := range map[string]int{
		`{}`: 400, `{"runId":"x"}`: 422, `{"runId":"x","parentRunId":"other"}`: 404, `{"runId":"x","beforeMessageId":"other"}`: 404,
		`{"runId":"x","parentRunId":"run-1","beforeMessageId":"a1"}`: 422, `{"runId":"x","parent":"run-1"}`: 400,
	} {
		p.json(status, "POST", "/threads/t/fork", body)
	}
	p.json(404, "POST", "/threads/other/fork", `{"runId":"x","parentRunId":""}`)
}

func TestConversationsAsResources(t *testing.T) {
	t.Parallel()
	p := serve(t, testdb.Pool(t), server.Options{})
	p.json(200, "POST", "/threads/t/runs/run-1/events", `{"input":{"messages":[{"id":"u1","role":"user","content":"Hi"}]},"events":[`+
		strings.Join([]string{
			started("t", "run-1"), `{"type":"STATE_SNAPSHOT","snapshot":{"html":"<b>","n":1.0}}`,
			`{"type":"TOOL_CALL_START","toolCallId":"c1","toolCallName":"search"}`, `{"type":"TOOL_CALL_ARGS","toolCallId":"c1","delta":"{\"q\":1}"}`,
			`{"type":"TOOL_CALL_END","toolCallId":"c1"}`, `{"type":"TOOL_CALL_RESULT","messageId":"r1","toolCallId":"c1","content":"found"}`,
			`{"type":"ACTIVITY_SNAPSHOT","messageId":"x1","activityType":"plan","content":{"steps":2}}`, finished("t", "run-1"),
		}, ",")+`]}`)
	p.appendRun("t", "run-2", "a2", "World")
	if text := p.text("/threads/t/state"); text != `{"state":{"n": 1.0, "html": "<b>"}}` && text != `{"state":{"html":"<b>","n":1.0}}` {
		t.Errorf("state %s", text)
	}
	messages := p.json(200, "GET", "/threads/t/messages", "")["messages"].([]any)
	if len(messages) != 5 {
		t.Errorf("messages %v", messages)
	}
	if early := p.json(200, "GET", "/threads/t/messages?at_seq=1", "")["messages"].([]any); len(early) != 1 {
		t.Errorf("messages at the beginning %v", early)
	}
	if early := p.json(200, "GET", "/threads/t/messages?run=run-1&at_time="+url.QueryEscape(time.Now().Format(time.RFC3339Nano)), "")["messages"].([]any); len(early) != 4 {
		t.Errorf("messages of run-1 %v", early)
	}
	if whole := p.json(200, "GET", "/threads/t/conversation", ""); whole["seq"] != 13.0 || whole["runId"] != "run-2" {
		t.Errorf("conversation %v", whole)
	}
	if calls := p.json(200, "GET", "/threads/t/tool-calls", "")["toolCalls"].([]any); len(calls) != 1 || calls[0].(map[string]any)["result"] != "found" {
		t.Errorf("tool calls %v", calls)
	}
	if activities := p.json(200, "GET", "/threads/t/activities", "")["activities"].([]any); len(activities) != 1 {
		t.Errorf("activities %v", activities)
	}
	if interrupts := p.json(200, "GET", "/threads/t/interrupts", "")["interrupts"].([]any); len(interrupts) != 0 {
		t.Errorf("interrupts %v", interrupts)
	}
	if diff := p.json(200, "GET", "/threads/t/diff?from_run=run-1", "")["messages"].([]any); len(diff) != 1 {
		t.Errorf("diff %v", diff)
	}
	for _, shape := range []string{"snapshot", "stream"} {
		if events := p.json(200, "GET", "/threads/t/replay?shape="+shape, "")["events"].([]any); len(events) < 3 {
			t.Errorf("replay as %s: %v", shape, events)
		}
	}
	if input := p.text("/threads/t/runs/run-1/input"); input != `{"messages":[{"id":"u1","role":"user","content":"Hi"}]}` {
		t.Errorf("input %s", input)
	}
}

// From the end of a thread backwards, a page at a time.
func TestPagesFromTheEnd(t *testing.T) {
	t.Parallel()
	p := serve(t, testdb.Pool(t), server.Options{})
	for number := range 3 {
		run := fmt.Sprint("run-", number)
		p.json(200, "POST", "/threads/t/runs/"+run+"/events", fmt.Sprintf(`{"input":{"messages":[{"id":"u%d","role":"user","content":"Hi"}]},"events":[%s,`+
			`{"type":"TOOL_CALL_START","toolCallId":"c%d","toolCallName":"search"},{"type":"TOOL_CALL_END","toolCallId":"c%d"},`+
			`{"type":"TOOL_CALL_RESULT","messageId":"r%d","toolCallId":"c%d","content":"Error: gone"},%s]}`,
			number, started("t", run), number, number, number, number, finished("t", run)))
	}
	var ids, runs, seqs []any
	for query := "last=4"; ; {
		page := p.json(200, "GET", "/threads/t/messages?"+query, "")
		messages, places := page["messages"].([]any), page["places"].([]any)
		for i := len(messages) - 1; i >= 0; i-- {
			place := places[i].(map[string]any)
			ids, runs, seqs = append(ids, messages[i].(map[string]any)["id"]), append(runs, place["runId"]), append(seqs, place["firstSeq"])
		}
		first := places[0].(map[string]any)
		if first["position"] == 1.0 {
			break
		}
		query = "last=4&before=" + first["cursor"].(string)
	}
	if fmt.Sprint(ids) != "[r2 c2 u2 r1 c1 u1 r0 c0 u0]" || fmt.Sprint(seqs) != "[14 12 11 9 7 6 4 2 1]" || runs[3] != "run-1" {
		t.Errorf("messages %v of %v at %v", ids, runs, seqs)
	}
	if page := p.json(200, "GET", "/threads/t/messages?before=4.6", ""); len(page["messages"].([]any)) != 3 {
		t.Errorf("before position 4: %v", page)
	}
	events := p.json(200, "GET", "/threads/t/last-events?type=TOOL_CALL_RESULT&limit=2&at_seq=13", "")["events"].([]any)
	if len(events) != 2 || events[0].(map[string]any)["seq"] != 4.0 || events[1].(map[string]any)["payload"].(map[string]any)["messageId"] != "r1" {
		t.Errorf("events %v", events)
	}
	if events := p.json(200, "GET", "/threads/t/last-events?run=run-1&lineage=false", "")["events"].([]any); len(events) != 5 {
		t.Errorf("events of a run %v", events)
	}
	if calls := p.json(200, "GET", "/threads/t/tool-calls?run=run-1&lineage=false", "")["toolCalls"].([]any); len(calls) != 1 || calls[0].(map[string]any)["toolCallId"] != "c1" {
		t.Errorf("calls of a run %v", calls)
	}
	page := p.json(200, "GET", "/threads/t/errors?limit=2", "")
	if errors := page["errors"].([]any); len(errors) != 2 || errors[0].(map[string]any)["seq"] != 9.0 || page["nextSeq"] != 8.0 {
		t.Errorf("errors %v", page)
	}
	if page := p.json(200, "GET", "/threads/t/errors?limit=2&at_seq=8", ""); len(page["errors"].([]any)) != 1 || page["nextSeq"] != nil {
		t.Errorf("errors before %v", page)
	}
	for path, status := range map[string]int{
		"messages?last=0": 400, "messages?last=1001": 400, "messages?last=x": 400, "messages?before=x": 422, "messages?last=1&limit=1": 400,
		"last-events?limit=0": 400, "last-events?run=other": 404, "errors?limit=1001": 400, "errors?run=other": 404,
	} {
		p.json(status, "GET", "/threads/t/"+path, "")
	}
}

// What was appended comes back byte for byte.
func TestHistoryKeepsTheBytes(t *testing.T) {
	t.Parallel()
	p := serve(t, testdb.Pool(t), server.Options{})
	events := []string{
		started("t", "run-1"), `{ "z" : 1e2 , "type" : "CUSTOM" , "a" : 1.0, "a":2 }`, start("a1"),
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"a1","delta":"<&>\u0000\ud83d"}`, content("a1", "more"), end("a1"), finished("t", "run-1"),
	}
	p.json(200, "POST", "/threads/t/runs/run-1/events", `{"events":[`+strings.Join(events, ",")+`]}`)
	var payloads []string
	for after := "0"; ; {
		var page struct {
			Events []struct {
				Seq     int64
				Payload json.RawMessage
			}
			AfterSeq json.Number
			HasMore  bool
		}
		must.Do(t, json.Unmarshal([]byte(p.text("/threads/t/history?raw=true&limit=2&after_seq="+after)), &page))
		for _, event := range page.Events {
			payloads = append(payloads, string(event.Payload))
		}
		if after = page.AfterSeq.String(); !page.HasMore {
			break
		}
	}
	if strings.Join(payloads, "\n") != strings.Join(events, "\n") {
		t.Errorf("history %q, want %q", payloads, events)
	}
	joined := p.json(200, "GET", "/threads/t/history?type=TEXT_MESSAGE_CONTENT", "")["events"].([]any)
	if len(joined) != 1 || joined[0].(map[string]any)["eventCount"] != 2.0 {
		t.Errorf("joined %v", joined)
	}
	if none := p.json(200, "GET", "/threads/t/history?type=RUN_ERROR&type=STEP_STARTED", "")["events"].([]any); len(none) != 0 {
		t.Errorf("none %v", none)
	}
}

func TestAppendIsExactlyOnce(t *testing.T) {
	t.Parallel()
	p := serve(t, testdb.Pool(t), server.Options{})
	for range 2 {
		if seq := p.json(200, "POST", "/threads/t/runs/run-1/events", `{"afterSeq":0,"events":[`+started("t", "run-1")+`,`+start("a1")+`]}`)["lastSeq"]; seq != 2.0 {
			t.Errorf("seq %v", seq)
		}
	}
	if known := p.json(409, "POST", "/threads/t/runs/run-1/events", `{"afterSeq":0,"events":[`+started("t", "run-1")+`,`+start("a2")+`]}`); known["sqlstate"] != "UI007" {
		t.Errorf("another event: %v", known)
	}
	if known := p.json(409, "POST", "/threads/t/runs/run-2/events", `{"events":[`+started("t", "run-2")+`]}`); known["sqlstate"] != "UI006" || known["hint"] == "" {
		t.Errorf("a second run: %v", known)
	}
	live := p.stream("GET", "/threads/t/events", "")
	live.want("RUN_STARTED", "MESSAGES_SNAPSHOT")
	p.json(200, "POST", "/threads/t/runs/run-1/events", `{"afterSeq":2,"events":[`+content("a1", "x")+`]}`)
	live.until("TEXT_MESSAGE_CONTENT")
	p.json(200, "POST", "/threads/t/runs/run-1/abandon", `{"reason":"the writer is gone"}`)
	if types := live.rest(); fmt.Sprint(types) != "[TEXT_MESSAGE_END RUN_ERROR]" {
		t.Errorf("the rest %v", types)
	}

	body := `{"appends":[
		{"threadId":"m1","runId":"r","afterSeq":0,"events":[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]},
		{"threadId":"m1","runId":"r","afterSeq":0,"events":[{"type":"CUSTOM"}]},
		{"threadId":"m2","runId":"r","afterSeq":0,"events":[{"type":"RUN_STARTED"}],"input":{"messages":[]}},
		{"threadId":"m2","runId":"r","afterSeq":1,"events":[]}]}`
	for range 2 {
		results := p.json(200, "POST", "/append", body)["results"].([]any)
		refused, _ := results[1].(map[string]any)["error"].(map[string]any)
		if results[0].(map[string]any)["lastSeq"] != 2.0 || results[2].(map[string]any)["lastSeq"] != 1.0 || refused["sqlstate"] != "UI007" || refused["status"] != 409.0 {
			t.Errorf("results %v", results)
		}
	}
	p.json(400, "POST", "/append", `{"appends":[{"threadId":"m1","runId":"r","events":[]}]}`)
	p.json(400, "POST", "/append", `{"append":[]}`)
}

func TestAStreamIsAppendedAsItArrives(t *testing.T) {
	t.Parallel()
	p := serve(t, testdb.Pool(t), server.Options{})
	body, frames := io.Pipe()
	done := make(chan *http.Response, 1)
	send := func(path, media string, body io.Reader) {
		request, err := http.NewRequestWithContext(t.Context(), "POST", p.URL+path, body)
		if err != nil {
			t.Error(err)
			return
		}
		request.Header.Set("Content-Type", media)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Log(err)
		}
		done <- answer
	}
	wantAnswer := func(status int, want string) {
		t.Helper()
		answer := <-done
		if answer == nil {
			t.Errorf("no answer, want %d with %s", status, want)
			return
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != status || !strings.Contains(string(text), want) {
			t.Errorf("status %d, %v, %s, want %d with %s", answer.StatusCode, err, text, status, want)
		}
	}
	events := []string{started("t", "run-1"), start("a1"), content("a1", "x"), end("a1"), finished("t", "run-1")}
	go send("/threads/t/runs/run-1/events?after_seq=0", "text/event-stream", body)
	fmt.Fprintf(frames, ": hello\n\ndata: %s\n\n", events[0])
	p.waitForSeq("t", 1)
	live := p.stream("GET", "/threads/t/events", "")
	live.want("RUN_STARTED")
	fmt.Fprintf(frames, "id: 7\ndata: %s\n\n", events[1])
	live.until("TEXT_MESSAGE_START")
	frames.CloseWithError(io.ErrUnexpectedEOF) // the writer breaks off
	<-done

	// The writer retries with the whole stream, in the other format.
	go send("/threads/t/runs/run-1/events?after_seq=0", "application/x-ndjson", strings.NewReader(strings.Join(events, "\n")))
	wantAnswer(200, `"lastSeq":5`)
	if types := live.rest(); fmt.Sprint(types) != "[TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END RUN_FINISHED]" {
		t.Errorf("the rest %v", types)
	}
	go send("/threads/t/runs/run-2/events?parent_run=", "application/x-ndjson", strings.NewReader(started("t", "run-2")+"\n\n"+finished("t", "run-2")+"\n"))
	wantAnswer(200, `"events":2`)
	if run := mustRun(t, p, "t", "run-2"); run.ParentRunID != "" {
		t.Errorf("run-2 has a parent: %v", run)
	}
	go send("/threads/t/runs/run-3/events", "application/x-ndjson", strings.NewReader(""))
	wantAnswer(422, "no event")
	go send("/threads/t/runs/run-3/events", "application/x-ndjson", strings.NewReader("{\n"))
	wantAnswer(400, "JSON")
	go send("/threads/t/runs/run-4/events", "application/x-ndjson", strings.NewReader(started("t", "run-4")+"\nnope\n"))
	wantAnswer(400, "event 2 of the stream is not valid JSON")
	mustRun(t, p, "t", "run-4") // what stands before the bad event is stored
	go send("/threads/other/runs/run-1/events", "text/event-stream", strings.NewReader(
		"data:\n\ndata: "+started("other", "run-1")+"\n\ndata: \ndata: \n\ndata: "+start("a1")+"\n\ndata: [1]\n\ndata: "+end("a1")+"\n\n"))
	wantAnswer(400, "event 3 of the stream is not a JSON object (events stored before it: 2)")
	go send("/threads/other/runs/run-1/events?after_seq=2", "text/event-stream", strings.NewReader(
		"data: "+end("a1")+"\n\ndata: "+finished("other", "run-1")+"\n\ndata: [DONE]\n\n"))
	wantAnswer(200, `"lastSeq":4`)
	go send("/threads/other/runs/run-2/events", "application/x-ndjson", strings.NewReader(started("other", "run-2")+`
{"type":"CUSTOM","name":"score","value":NaN}`))
	wantAnswer(400, "event 2 of the stream is not valid JSON: NaN at character 41 (events stored before it: 1)")
	go send("/threads/strict/runs/run-3/events?strict=true", "application/x-ndjson", strings.NewReader(
		started("strict", "run-3")+"\n"+finished("strict", "run-3")+"\n"+start("late")+"\n"))
	wantAnswer(409, "(events stored before it: 2)") // the end may have come in a call of its own
	body, frames = io.Pipe()
	go send("/threads/ended/runs/run-1/events?strict=true", "application/x-ndjson", body)
	fmt.Fprintf(frames, "%s\n%s\n", started("ended", "run-1"), finished("ended", "run-1"))
	p.waitForSeq("ended", 2)
	fmt.Fprintln(frames, start("late"))
	wantAnswer(409, "is already finished: the log accepts no more events of it (events stored before it: 2)")
	frames.Close()
	go send("/threads/t/runs/run-3/events", "application/x-ndjson", strings.NewReader(strings.Repeat("x", 9<<20)))
	wantAnswer(413, "after 0 events")

	// A writer that is refused while it still sends learns of it.
	body, frames = io.Pipe()
	go send("/threads/t/runs/run-1/events?after_seq=99", "text/event-stream", body)
	fmt.Fprintf(frames, "data: %s\n\n", events[0])
	wantAnswer(409, "UI017")
	frames.Close()
}

func TestTooManyAppendsAreRefused(t *testing.T) {
	t.Parallel()
	p := serve(t, testdb.Pool(t), server.Options{MaxAppends: 1})
	p.appendRun("t", "run-1", "a1", "x")
	tx := testdb.Begin(t, p.db)
	defer tx.Rollback(t.Context())
	if _, err := tx.Exec(t.Context(), `select agui.append('t', 'run-2', '[{"type":"RUN_STARTED"}]')`); err != nil { // holds the lock of the thread
		t.Fatal(err)
	}
	waiting := make(chan int)
	go func() {
		for {
			answer, err := http.Post(p.URL+"/threads/t/runs/run-3/events", "application/json", strings.NewReader(`{"events":[{"type":"RUN_STARTED"}]}`))
			if err != nil {
				t.Error(err)
				close(waiting)
				return
			}
			answer.Body.Close()
			if answer.StatusCode != http.StatusTooManyRequests { // the other one came first
				waiting <- answer.StatusCode
				return
			}
		}
	}()
	for deadline := time.Now().Add(patience); ; {
		answer := p.request("POST", "/threads/other/runs/run-1/events", `{"events":[{"type":"RUN_STARTED"}],"afterSeq":0}`)
		answer.Body.Close()
		if answer.StatusCode == http.StatusTooManyRequests && answer.Header.Get("Retry-After") != "" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no append was refused")
		}
	}
	must.Do(t, tx.Rollback(t.Context()))
	if status := <-waiting; status != 200 {
		t.Errorf("the append that waited: status %d", status)
	}
	p.appendRun("more", "run-1", "a1", "x")
}

// What waits for an answer is interrupts, and tool calls without a result.
func TestCallsWait(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	p := serve(t, pool, server.Options{})
	testdb.Exec(t, pool, `select agui.set_setting('call_delay', '0')`)
	p.json(200, "POST", "/threads/asks/runs/run-1/events", `{"events":[{"type":"RUN_STARTED"},
		{"type":"TOOL_CALL_START","toolCallId":"c1","toolCallName":"erase"},{"type":"TOOL_CALL_ARGS","toolCallId":"c1","delta":"{}"},{"type":"TOOL_CALL_END","toolCallId":"c1"},
		{"type":"RUN_FINISHED"}]}`)
	var waiting []any
	wait.For(t, "what waits", func() bool {
		testdb.Exec(t, pool, `call agui.project()`)
		waiting = p.json(200, "GET", "/waiting", "")["waiting"].([]any)
		return len(waiting) > 0
	})
	one := waiting[0].(map[string]any)
	delete(one, "askedAt")
	if want := map[string]any{
		"scope": "", "threadId": "asks", "runId": "run-1", "kind": "call", "toolCallId": "c1", "tool": "erase", "arguments": "{}",
	}; len(waiting) != 1 || !reflect.DeepEqual(one, want) {
		t.Errorf("what waits is %v, want %v", waiting, want)
	}
	if threads := p.json(200, "GET", "/threads?status=interrupted", "")["threads"].([]any); len(threads) != 1 {
		t.Errorf("%d threads wait", len(threads))
	}
	p.json(200, "POST", "/threads/asks/runs/run-2/events", `{"events":[{"type":"RUN_STARTED"}]}`)
	if waiting := p.json(200, "GET", "/waiting", "")["waiting"].([]any); len(waiting) != 0 {
		t.Errorf("during the answer waits %v", waiting)
	}
}

// Clients that send slowly take no place from others, and no identity takes all places.
func TestSlowWritersStopNobody(t *testing.T) {
	t.Parallel()
	p := serve(t, testdb.Pool(t), server.Options{MaxAppends: 2, Access: named{
		"one": {Scope: "1", Subject: "one", Rights: access.Admin}, "two": {Scope: "2", Subject: "two", Rights: access.Admin},
	}})
	for range 3 { // a few bytes of a body
		connection := must.Have(net.Dial("tcp", strings.TrimPrefix(p.URL, "http://")))(t)
		defer connection.Close()
		fmt.Fprintf(connection, "POST /append HTTP/1.1\r\nHost: server\r\nAuthorization: Bearer one\r\nContent-Length: 1000\r\n\r\n{\"app")
	}
	appendAs := func(name, thread string) int {
		t.Helper()
		answer := p.request("POST", "/threads/"+thread+"/runs/run-1/events", `{"events":[{"type":"RUN_STARTED"}],"afterSeq":0}`, "Authorization", "Bearer "+name)
		answer.Body.Close()
		return answer.StatusCode
	}
	for n := range 10 { // until the bodies are being read
		if status := appendAs("one", fmt.Sprint("t", n)); status != 200 {
			t.Fatalf("beside slow bodies: status %d", status)
		}
	}

	tx := testdb.Begin(t, p.db)
	defer tx.Rollback(t.Context())
	if _, err := tx.Exec(t.Context(), `select agui.append('locked', 'run-2', '[{"type":"RUN_STARTED"}]', scope => '1')`); err != nil { // holds the lock of the thread
		t.Fatal(err)
	}
	ended := make(chan int, 1)
	go func() {
		status := http.StatusTooManyRequests // one of the others came first
		for status == http.StatusTooManyRequests {
			status = appendAs("one", "locked")
		}
		ended <- status
	}()
	wait.For(t, "one more is refused", func() bool { return appendAs("one", "other") == http.StatusTooManyRequests })
	if status := appendAs("two", "t"); status != 200 {
		t.Errorf("another identity: status %d", status)
	}
	must.Do(t, tx.Rollback(t.Context()))
	if status := <-ended; status != 200 {
		t.Errorf("the append that waited: status %d", status)
	}
}

func TestSessionStateIsComparedAndSwapped(t *testing.T) {
	t.Parallel()
	p := serve(t, testdb.Pool(t), server.Options{})
	p.appendRun("t", "run-1", "a1", "x")
	const path = "/threads/t/session-state/memory%2F1"
	answer := p.request("PUT", path, `{"a" : 1.0}`, "If-None-Match", "*")
	if answer.StatusCode != 200 || answer.Header.Get("ETag") != `"1"` {
		t.Fatalf("put: %d, %v", answer.StatusCode, answer.Header)
	}
	if known := p.json(412, "PUT", path, `{"a":2}`, "If-None-Match", "*"); known["currentVersion"] != 1.0 {
		t.Errorf("a second first version: %v", known)
	}
	if text := p.text(path); text != `{"a" : 1.0}` {
		t.Errorf("document %s", text)
	}
	if answer := p.request("GET", path, "", "If-None-Match", `"1"`); answer.StatusCode != http.StatusNotModified {
		t.Errorf("conditional get: %d", answer.StatusCode)
	}
	if version := p.json(200, "PUT", path, `2`, "If-Match", `"1"`)["version"]; version != 2.0 {
		t.Errorf("version %v", version)
	}
	if known := p.json(412, "PUT", path, `3`, "If-Match", `"1"`); known["sqlstate"] == "" || known["currentVersion"] != 2.0 {
		t.Errorf("stale: %v", known)
	}
	p.json(200, "PUT", path, `3`)
	p.json(200, "PUT", path+"?run=run-1", `"of the run"`)
	states := p.json(200, "GET", "/threads/t/session-state?run=run-1", "")["sessionState"].([]any)
	if len(states) != 1 || states[0].(map[string]any)["document"] != "of the run" || states[0].(map[string]any)["runId"] != "run-1" {
		t.Errorf("states of the run %v", states)
	}
	if text := p.text(path + "?version=2"); text != "2" {
		t.Errorf("version 2 is %s", text)
	}
	p.json(412, "DELETE", path, "", "If-Match", `"1"`)
	for range 2 {
		if answer := p.request("DELETE", path, ""); answer.StatusCode != 204 {
			t.Errorf("delete: %d", answer.StatusCode)
		}
	}
	p.json(404, "GET", path, "")
	if versions := p.json(200, "GET", path+"/versions", "")["versions"].([]any); len(versions) != 4 {
		t.Errorf("versions %v", versions)
	}
	for name, value := range map[string]string{"If-Match": "*", "If-None-Match": `"1"`} {
		p.json(422, "PUT", path, `1`, name, value)
	}
	p.json(422, "PUT", path, `1`, "If-Match", `"1"`, "If-None-Match", "*")
	p.json(400, "PUT", path, `{`)
	p.json(404, "PUT", path+"?run=other", `1`)
}

func TestCheckpointsAsResources(t *testing.T) {
	t.Parallel()
	p := serve(t, testdb.Pool(t), server.Options{})
	for range 2 {
		p.json(200, "PUT", "/threads/t/checkpoints/c1", `{"document":{"v": 1}}`)
	}
	p.json(200, "PUT", "/threads/t/checkpoints/c2", `{"document":2,"parentId":"c1"}`)
	p.json(200, "PUT", "/threads/t/checkpoints/c1?namespace=sub", `{"document":3}`)
	p.json(409, "PUT", "/threads/t/checkpoints/c1", `{"document":4}`)
	p.json(404, "PUT", "/threads/t/checkpoints/c3", `{"document":4,"parentId":"other"}`)
	p.json(400, "PUT", "/threads/t/checkpoints/c3", `{"parentId":"c1"}`)
	if latest := p.json(200, "GET", "/threads/t/latest-checkpoint", ""); latest["checkpointId"] != "c2" || latest["number"] != 2.0 {
		t.Errorf("latest %v", latest)
	}
	if answer := p.request("GET", "/threads/t/checkpoints/c2", "", "If-None-Match", `"2"`); answer.StatusCode != 304 {
		t.Errorf("conditional get: %d", answer.StatusCode)
	}
	for query, want := range map[string]int{"": 3, "?namespace=": 2, "?namespace=sub": 1} {
		if list := p.json(200, "GET", "/threads/t/checkpoints"+query, "")["checkpoints"].([]any); len(list) != want {
			t.Errorf("%q: %v, want %d", query, list, want)
		}
	}
	if lineage := p.json(200, "GET", "/threads/t/checkpoints/c2/lineage", "")["checkpoints"].([]any); len(lineage) != 2 {
		t.Errorf("lineage %v", lineage)
	}
	p.json(404, "GET", "/threads/t/checkpoints/c9", "")

	p.json(404, "GET", "/threads/t/latest-checkpoint?run=run-1", "") // an unknown run
	p.json(200, "POST", "/threads/t/runs/run-1/events", `{"events":[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]}`)
	p.json(404, "GET", "/threads/t/latest-checkpoint?run=run-1", "") // a run without a checkpoint
	p.json(200, "PUT", "/threads/t/checkpoints/at-run-1", `{"document":5,"runId":"run-1"}`)
	p.json(200, "PUT", "/threads/t/checkpoints/at-run-2", `{"document":6,"runId":"run-2"}`)
	if at := p.json(200, "GET", "/threads/t/latest-checkpoint?run=run-1", ""); at["checkpointId"] != "at-run-1" || at["runId"] != "run-1" {
		t.Errorf("at the run %v", at)
	}
}

func TestWrongRequestsAreProblems(t *testing.T) {
	t.Parallel()
	p := serve(t, testdb.Pool(t), server.Options{})
	p.appendRun("t", "run-1", "a1", "x")
	for request, status := range map[string]int{
		"GET /nothing":                                     404,
		"GET /threads/t/nothing":                           404,
		"PUT /threads/t":                                   405,
		"GET /threads//events":                             404,
		"GET /threads/../events":                           404,
		"GET /threads/%00":                                 400,
		"GET /threads/%ff/messages":                        400,
		"GET /threads?limit=0":                             400,
		"GET /threads?limit=1001":                          400,
		"GET /threads?limit=x":                             400,
		"GET /threads?limit=1&limit=2":                     400,
		"GET /threads?archived=yes":                        400,
		"GET /threads?status=done":                         400,
		"GET /threads?metadata=[]":                         400,
		"GET /threads?metadata={":                          400,
		"GET /threads?cursor=x":                            422,
		"GET /threads?since=yesterday":                     400,
		"GET /threads?stale=1":                             400,
		"GET /threads?limit=":                              400,
		"GET /threads/t/messages?at_seq=":                  400,
		"GET /threads/t/history?type=":                     400,
		"GET /threads?%zz":                                 400,
		"GET /threads?title=%00":                           400,
		"GET /threads?titel=x":                             400,
		"GET /threads/t/messages?at_seq=-1":                400,
		"GET /threads/t/messages?at_sec=1":                 400,
		"GET /threads/t/messages?run=other":                404,
		"GET /threads/other/messages":                      404,
		"GET /threads/t/history?max_idle=1":                400,
		"GET /threads/t/replay?shape=round":                400,
		"GET /threads/t/merge-base?run=run-1":              400,
		"GET /threads/t/events?stay=yes":                   400,
		"PATCH /threads/t {":                               400,
		"PATCH /threads/t []":                              400,
		`PATCH /threads/t {"title":1}`:                     400,
		`PATCH /threads/t {"titel":"x"}`:                   400,
		`PATCH /threads/t {"title":"x"} {}`:                400,
		`PATCH /threads/t {"title":"\u0000"}`:              422,
		`PATCH /threads/t {"metadata":[]}`:                 422,
		`PATCH /threads/t {"metadata":"\u0000"}`:           422,
		`PATCH /threads/t {"metadata":{"a":"\u0000"}}`:     422,
		`POST /threads/t/stop {"run":"run-1"}`:             400,
		`POST /threads/t/runs/run-2/events {}`:             400,
		`POST /threads/t/runs/run-2/events {"events":[]}`:  400,
		`POST /threads/t/runs/run-2/events {"events":[1]}`: 400,
		`POST /threads/t/runs/run-2/events {"events":{}}`:  400,
		`POST /threads/t/runs/run-2/events {"events":[{"type":"RUN_STARTED"}],"input":[]}`: 400,
		`POST /threads/t/runs/run-2/events {"events":[{"type":"CUSTOM"}]}`:                 404,
		`POST /threads/t/runs/run-9/abandon {"reason":"x"}`:                                404,
	} {
		parts := strings.SplitN(request, " ", 3)
		body := strings.Join(parts[2:], "")
		sent := httptest.NewRequest(parts[0], "/", strings.NewReader(body))
		sent.URL = &url.URL{}
		path, query, _ := strings.Cut(parts[1], "?")
		sent.URL.RawPath, sent.URL.RawQuery = path, query
		sent.URL.Path, _ = url.PathUnescape(path)
		answered := httptest.NewRecorder()
		asDocumented(t, p.server).ServeHTTP(answered, sent)
		var known struct {
			Title, Detail string
			Status        int
		}
		if err := json.Unmarshal(answered.Body.Bytes(), &known); err != nil || answered.Code != status || known.Status != status ||
			known.Title == "" || known.Detail == "" || answered.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: status %d, %v, %s, want a problem with %d", request, answered.Code, err, answered.Body, status)
		}
		if status == 405 && answered.Header().Get("Allow") == "" {
			t.Errorf("%s: no header Allow", request)
		}
	}
}

// A client that does not read takes no memory from the others for long.
func TestProblemsSpeakOfTheAPI(t *testing.T) {
	t.Parallel()
	p := serve(t, testdb.Pool(t), server.Options{})
	for request, detail := range map[string]string{
		"GET /threads/t?limit=1":                                     `the parameter "limit" is unknown here (expected no parameters)`,
		"GET /threads/t/branches?rn=1":                               `the parameter "rn" is unknown here (expected `,
		`PATCH /threads/t {"titel":1}`:                               `the member "titel" of the body is unknown here`,
		`PATCH /threads/t {"title":1}`:                               `the member "title" of the body is of the wrong type: number`,
		`PATCH /threads/t {"title":"x"`:                              `the body is not valid JSON: it ends too early`,
		`PATCH /threads/t {]`:                                        `the body is not valid JSON: byte 2: invalid character ']'`,
		`POST /threads/t/runs/r/events {"afterSeq":"x","events":[]}`: `the member "afterSeq" of the body is of the wrong type: string`,
		`POST /threads/t/runs/r/events?after_seq=0 x`:                `after_seq is for a stream (Content-Type: application/x-ndjson or`,
		`PATCH /threads/t {"title":"\u0000"}`:                        `an id or a text of the call holds NUL (\u0000) or is not UTF-8`,
	} {
		parts := strings.SplitN(request, " ", 3)
		answered := httptest.NewRecorder()
		p.server.ServeHTTP(answered, httptest.NewRequest(parts[0], parts[1], strings.NewReader(strings.Join(parts[2:], ""))))
		var known struct{ Detail string }
		if err := json.Unmarshal(answered.Body.Bytes(), &known); err != nil || answered.Code != 400 && answered.Code != 422 || !strings.HasPrefix(known.Detail, detail) {
			t.Errorf("%s: status %d, %s, want 400 or 422, and %s", request, answered.Code, answered.Body, detail)
		}
	}
}

func TestCompressedBodiesAreRefused(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := serve(t, testdb.Pool(t), withAgent(a))
	for _, path := range []string{"/agent/test/run", "/threads/t/runs/r/events", "/copilotkit"} {
		if known := p.json(415, "POST", path, "{}", "Content-Encoding", "gzip"); !strings.Contains(fmt.Sprint(known["detail"]), `Content-Encoding "gzip"`) {
			t.Errorf("%s: %v", path, known)
		}
	}
	if answer := p.request("POST", "/threads/t/runs/r/events", started("t", "r"), "Content-Encoding", "gzip", "Content-Type", "application/x-ndjson"); answer.StatusCode != 415 {
		t.Errorf("a stream: status %d", answer.StatusCode)
	}
	p.json(200, "POST", "/threads/t/runs/r/events", `{"events":[`+started("t", "r")+`],"afterSeq":0}`, "Content-Encoding", "identity")
}

func TestSlowReadersOfLargeAnswers(t *testing.T) {
	t.Parallel()
	identities := map[string]access.Identity{}
	for _, name := range []string{"slow", "other"} {
		identities[name] = access.Identity{Scope: "s", Subject: name, Rights: access.Admin}
	}
	p := serve(t, testdb.Pool(t), server.Options{
		MaxBufferedBytes: 28 << 20, WriteTimeout: 200 * time.Millisecond, Access: named(identities),
	})
	large := strings.Repeat("x", 6_000_000) // more than the buffers of a connection
	p.json(200, "POST", "/threads/t/runs/run-1/events", `{"events":[`+started("t", "run-1")+`,`+start("a1")+`,`+content("a1", large)+`,`+end("a1")+`,`+finished("t", "run-1")+`]}`,
		"Authorization", "Bearer other")
	narrow := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		connection, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err == nil {
			err = connection.(*net.TCPConn).SetReadBuffer(4096)
		}
		return connection, err
	}}}
	slow := make([]*http.Response, 0, 5)
	refused := 0
	for range 5 {
		request := must.Have(http.NewRequestWithContext(t.Context(), "GET", p.URL+"/threads/t/conversation", nil))(t)
		request.Header.Set("Authorization", "Bearer slow")
		request.Header.Set("Accept-Encoding", "identity")
		answer := must.Have(narrow.Do(request))(t)
		if answer.StatusCode == http.StatusServiceUnavailable {
			refused++
			if answer.Header.Get("Retry-After") == "" {
				t.Error("the refusal does not say when to retry")
			}
		}
		slow = append(slow, answer)
	}
	if refused == 0 {
		t.Error("all slow readers were served at once")
	}
	if text, err := io.ReadAll(p.request("GET", "/threads/t/conversation", "", "Authorization", "Bearer other").Body); err != nil || len(text) < len(large) {
		t.Errorf("another identity got %d bytes, %v", len(text), err)
	}
	for _, answer := range slow { // in the end the server gives up those that do not read
		answer.Body.Close()
	}
	wait.For(t, "the slow identity is served", func() bool {
		answer := p.request("GET", "/threads/t/conversation", "", "Authorization", "Bearer slow")
		_, _ = io.Copy(io.Discard, answer.Body)
		return answer.StatusCode == http.StatusOK
	})
}

// named authenticates identities by a token that is their name.
type named map[string]access.Identity

func (n named) Authenticate(r *http.Request) (access.Identity, error) {
	who, isKnown := n[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	if !isKnown {
		return access.Identity{}, &access.Refusal{Kind: access.ErrBadToken, Reason: "unknown"}
	}
	return who, nil
}

// Requests that arrive slowly take no memory from the others.
func TestSlowWritersOfLargeRequests(t *testing.T) {
	t.Parallel()
	p := serve(t, testdb.Pool(t), server.Options{
		MaxBufferedBytes: 8 << 20, // a share is 2 MB
		Access: named{
			"slow":  {Scope: "s", Subject: "slow", Rights: access.Admin},
			"other": {Scope: "s", Subject: "other", Rights: access.Admin},
		},
	})
	begin := strings.Repeat(" ", 1_500_000)
	upload := func() (*http.Response, error) {
		body, send := io.Pipe()
		request, err := http.NewRequestWithContext(t.Context(), "PUT", p.URL+"/threads/t/session-state/memory", body)
		if err != nil {
			return nil, err
		}
		request.Header.Set("Authorization", "Bearer slow")
		go func() { _, _ = io.WriteString(send, begin) }() // and no end, as long as the test lasts
		context.AfterFunc(t.Context(), func() { send.CloseWithError(io.ErrUnexpectedEOF) })
		return http.DefaultClient.Do(request)
	}
	answers := make(chan *http.Response, 2)
	for range 2 { // one of them exceeds the share
		go func() {
			if answer, err := upload(); err == nil { // the other one waits until the test ends
				answers <- answer
			}
		}()
	}
	answer := <-answers
	answer.Body.Close()
	if answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("status %d, want 503", answer.StatusCode)
	}
	if answer := p.request("PUT", "/threads/t/session-state/memory", `"`+begin+`"`, "Authorization", "Bearer other"); answer.StatusCode != http.StatusOK {
		t.Errorf("another identity: %d", answer.StatusCode)
	}
}

func TestADatabaseThatIsReadOnlyForTheMoment(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	standby := testdb.ConnectWith(t, pool.Config().ConnString(), func(config *pgxpool.Config) {
		config.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on"
	})
	p := serve(t, standby, server.Options{})
	if problem := p.json(503, "PUT", "/threads/t/session-state/memory", `1`); problem["sqlstate"] != "25006" {
		t.Errorf("the answer is %v", problem)
	}
}

func TestAttachments(t *testing.T) {
	t.Parallel()
	p := serve(t, testdb.Pool(t), server.Options{})
	part := func(mimeType, filename, data string) string {
		return fmt.Sprintf(`{"type":"image","source":{"type":"data","value":"%s","mimeType":"%s"},"metadata":{"filename":"%s"}}`, base64.StdEncoding.EncodeToString([]byte(data)), mimeType, filename)
	}
	parts := part("image/png", "a.png", "0123456789") + "," + part("text/html", "a.html", "<script>") + "," + part("image/svg+xml", "C:\\\\x/../.é\\r\\n\u202eX: y", "<svg/>") + "," + part("text/plain", "", "é") + "," + part("text/plain", "", "")
	p.json(200, "POST", "/threads/t/runs/r/events", `{"events":[`+started("t", "r")+`,`+finished("t", "r")+
		`],"afterSeq":0,"input":{"messages":[{"id":"q","role":"user","content":[`+parts+`]}]}}`)
	listed := p.json(200, "GET", "/threads/t/attachments?run=r", "")["attachments"].([]any)
	if first := listed[0].(map[string]any); len(listed) != 5 || first["mimeType"] != "image/png" || first["bytes"] != 10.0 || first["messageId"] != "q" {
		t.Errorf("list %v", listed)
	}
	for n, want := range []struct{ mimeType, disposition, data string }{
		{"image/png", `inline; filename=a.png`, "0123456789"},
		{"application/octet-stream", `attachment; filename=a.html`, "<script>"},
		{"application/octet-stream", `attachment; filename*=utf-8''%C3%A9X%3A%20y`, "<svg/>"},
		{"text/plain; charset=utf-8", `inline`, "é"},
		{"text/plain; charset=utf-8", `inline`, ""},
	} {
		answer := p.request("GET", fmt.Sprint("/threads/t/attachments/", n+1), "")
		data := must.Have(io.ReadAll(answer.Body))(t)
		header := answer.Header
		if string(data) != want.data || header.Get("Content-Type") != want.mimeType || header.Get("Content-Disposition") != want.disposition ||
			header.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(header.Get("Content-Security-Policy"), "sandbox; default-src 'none'") {
			t.Errorf("attachment %d: %q, %v", n+1, data, header)
		}
	}
	get := func(status int, header ...string) *http.Response {
		t.Helper()
		answer := p.request("GET", "/threads/t/attachments/1", "", header...)
		if answer.StatusCode != status {
			t.Errorf("%q: status %d, want %d", header, answer.StatusCode, status)
		}
		return answer
	}
	tag := get(200).Header.Get("ETag")
	get(304, "If-None-Match", tag)
	get(416, "Range", "bytes=10-")
	get(200, "Range", "lines=1-2") // a unit that a server does not know does not count
	part3, _ := io.ReadAll(get(206, "Range", "bytes=3-5").Body)
	if string(part3) != "345" {
		t.Errorf("a range has %q", part3)
	}
	if empty := p.request("GET", "/threads/t/attachments/5", "", "Range", "bytes=-1"); empty.StatusCode != 200 {
		t.Errorf("a range of an attachment without data: status %d, %v", empty.StatusCode, empty.Header)
	}
	p.json(404, "GET", "/threads/t/attachments/6", "")
	p.json(400, "GET", "/threads/t/attachments/x", "")
}

// In Go one half of a surrogate pair becomes another character, so such an id would name another thread or run.
func TestIDsWithHalvesOfSurrogatePairsAreRefused(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := serve(t, testdb.Pool(t), withAgent(a))
	refused := func(method, path, body string) {
		t.Helper()
		if answer := p.json(400, method, path, body); !strings.Contains(fmt.Sprint(answer["detail"]), "half of a surrogate pair") {
			t.Errorf("%s %s %s: %v", method, path, body, answer)
		}
	}
	for _, id := range []string{`\ud800`, `a\uD83Db`, `\ude00`, `\ud800\u0041`, `\\\uDC00`} {
		refused("POST", "/agent/test/run", strings.Replace(input("T", "run-1"), `"T"`, `"`+id+`"`, 1))
		refused("POST", "/agent/test/run", strings.Replace(input("t", "R"), `"R"`, `"`+id+`"`, 1))
		refused("POST", "/append", `{"appends":[{"threadId":"`+id+`","runId":"r","events":[{"type":"RUN_STARTED"}],"afterSeq":0}]}`)
		refused("POST", "/threads/t/runs/r/events", `{"events":[{"type":"RUN_STARTED"}],"parentRunId":"`+id+`"}`)
		refused("POST", "/threads/t/stop", `{"runId":"`+id+`"}`)
		refused("POST", "/copilotkit", `{"method":"agent/stop","params":{"agentId":"test","threadId":"`+id+`"}}`)
	}
	p.json(200, "POST", "/threads/t/runs/r/events", `{"events":[{"type":"RUN_STARTED","note":"\ud800 \ufffd �"}],"afterSeq":0}`)
	p.json(200, "POST", "/threads/\U0001f600/runs/r/events", `{"events":[{"type":"RUN_STARTED","runId":"r"}],"afterSeq":0}`)
	p.json(200, "POST", "/append", `{"appends":[{"threadId":"\ud83d\ude00","runId":"r","events":[{"type":"CUSTOM"}],"afterSeq":1}]}`)
}

func TestLargeAnswersAreCompressed(t *testing.T) {
	t.Parallel()
	p := serve(t, testdb.Pool(t), server.Options{})
	p.appendRun("t", "run-1", "a1", strings.Repeat("some words ", 1000))
	read := func(path, accepted string) (*http.Response, []byte) {
		t.Helper()
		answer := p.request("GET", path, "", "Accept-Encoding", accepted)
		body, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != 200 || !strings.Contains(fmt.Sprint(answer.Header["Vary"]), "Accept-Encoding") {
			t.Fatalf("%s: status %d, %v (%v)", path, answer.StatusCode, answer.Header, err)
		}
		return answer, body
	}
	plain, want := read("/threads/t/messages", "identity")
	packed, body := read("/threads/t/messages", "gzip")
	if plain.Header.Get("Content-Encoding") != "" || packed.Header.Get("Content-Encoding") != "gzip" || len(body) > len(want)/10 || packed.Header.Get("ETag") != plain.Header.Get("ETag") {
		t.Errorf("%d bytes %v for %d bytes %v", len(body), packed.Header, len(want), plain.Header)
	}
	unpacked := must.Have(gzip.NewReader(bytes.NewReader(body)))(t)
	if text, err := io.ReadAll(unpacked); err != nil || !bytes.Equal(text, want) {
		t.Errorf("the answer has %.100s (%v)", text, err)
	}
	for _, path := range []string{"/threads/t/events?stay=false", "/threads/t/head"} { // a stream, and a small answer
		if answer, _ := read(path, "gzip"); answer.Header.Get("Content-Encoding") != "" {
			t.Errorf("%s is compressed", path)
		}
	}
}
