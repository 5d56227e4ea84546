package server_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
	"github.com/pgagui/pgagui/server"
)

// What changed in all threads comes as pages of lines and as a stream, both of which go on behind a position, and behind the place of a
// consumer.
func TestFeed(t *testing.T) {
	t.Parallel()
	p := serve(t, testdb.Pool(t), server.Options{})
	store := p.store
	begin := func(thread string) {
		events := []json.RawMessage{json.RawMessage(`{"type":"RUN_STARTED"}`)}
		must.Have(store.Append(t.Context(), pgagui.RunRef{ThreadID: thread, RunID: "r"}, events, pgagui.AppendOptions{}))(t)
	}
	page := func(query string) (changes []pgagui.Change) {
		answer := p.request("GET", "/feed"+query, "")
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "application/x-ndjson" {
			t.Fatalf("status %d, %s, %v", answer.StatusCode, text, err)
		}
		for decoder := json.NewDecoder(strings.NewReader(string(text))); decoder.More(); {
			var change pgagui.Change
			must.Do(t, decoder.Decode(&change))
			changes = append(changes, change)
		}
		return changes
	}
	for _, thread := range []string{"a", "b", "c"} {
		begin(thread)
	}
	all := page("")
	if len(all) != 3 {
		t.Fatalf("%+v", all)
	}
	uids := map[string]string{}
	for _, change := range all {
		uids[change.ThreadID] = change.ThreadUID
	}
	if rest := page("?limit=1&after=" + url.QueryEscape(all[1].Position)); len(rest) != 1 || rest[0].ThreadID != all[2].ThreadID {
		t.Errorf("behind the second: %+v", rest)
	}

	without := func(method, path, body string) { // content
		if answer := p.request(method, path, body); answer.StatusCode != http.StatusNoContent {
			t.Errorf("%s %s: status %d", method, path, answer.StatusCode)
		}
	}
	without("PUT", "/consumers/copy", `{"position":"`+all[0].Position+`"}`)
	if behind := page("?consumer=copy"); len(behind) < 2 || behind[0].ThreadID != all[1].ThreadID {
		t.Errorf("of the consumer: %+v", behind)
	}
	listed := p.json(http.StatusOK, "GET", "/consumers", "")["consumers"].([]any)
	if len(listed) != 1 || listed[0].(map[string]any)["position"] != all[0].Position || listed[0].(map[string]any)["behind"].(float64) < 2 {
		t.Errorf("%v", listed)
	}

	// A stream goes on where its last frame ended, also behind the place of its consumer.
	stream := p.stream("GET", "/feed?consumer=copy", "", "Accept", "text/event-stream")
	var frame string
	next := func() (change pgagui.Change) {
		frame = stream.event()
		must.Do(t, json.Unmarshal([]byte(frame), &change))
		return change
	}
	if first := next(); first.ThreadID != all[1].ThreadID || stream.lastID != first.Position {
		t.Errorf("first frame: %+v with id %q", first, stream.lastID)
	}
	for next().ThreadID != all[2].ThreadID {
	}
	begin("d")
	for next().ThreadID != "d" {
	}
	last := stream.lastID
	stream.answer.Body.Close()
	begin("e")
	stream = p.stream("GET", "/feed?consumer=copy", "", "Accept", "text/event-stream", "Last-Event-ID", last)
	for next().ThreadID != "e" { // others may come once more
	}
	must.Have(store.Erase(t.Context(), "a", pgagui.EraseOptions{}))(t)
	for change := next(); !change.IsErased; change = next() {
	}
	if want := fmt.Sprintf(`{"position":%q,"threadUid":%q,"isErased":true}`, stream.lastID, uids["a"]); frame != want {
		t.Errorf("%s, want %s", frame, want)
	}
	stream.answer.Body.Close()

	for range 2 {
		without("DELETE", "/consumers/copy", "")
	}
	wait.For(t, "all that is left, from the beginning", func() bool { return len(page("?consumer=copy")) >= 4 })
	for path, status := range map[string]int{
		"/feed?after=tomorrow": http.StatusUnprocessableEntity, "/feed?consumer=copy&after=x": http.StatusUnprocessableEntity,
		"/feed?after=" + url.QueryEscape("1/1 changed 5 00000000-0000-0000-0000-000000000000 0"): http.StatusGone,
	} {
		p.json(status, "GET", path, "")
	}
}
