package server_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testfile"
	"github.com/pgagui/pgagui/server"
)

// The requests of docs/reference/http.md get the answers that it shows, and every operation is among them.
func TestTheRequestsOfTheDocs(t *testing.T) {
	t.Parallel()
	const page = "../docs/reference/http.md"
	text := testfile.Read(t, page)
	a := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ ThreadID, RunID string }
		must.Report(t, json.NewDecoder(r.Body).Decode(&in))
		w.Header().Set("Content-Type", "text/event-stream")
		for _, event := range []string{started(in.ThreadID, in.RunID), start("a1"), content("a1", "Hello"), end("a1"), finished(in.ThreadID, in.RunID)} {
			fmt.Fprintf(w, "data: %s\n\n", event)
		}
	}))
	t.Cleanup(a.Close)
	p := serve(t, testdb.Pool(t), server.Options{Agents: []server.Agent{{Name: "assistant", URL: a.URL, Description: "Answers"}}})
	doc := must.Have(document())(t)
	unseen := map[string]bool{}
	for _, item := range doc.Paths.Map() {
		for _, operation := range item.Operations() {
			unseen[operation.OperationID] = operation.OperationID != "getOpenAPI"
		}
	}
	router := must.Have(documentRouter())(t)
	block := regexp.MustCompile("(?s)```http\n(.*?)```")
	updated := block.ReplaceAllStringFunc(string(text), func(found string) string {
		inner := block.FindStringSubmatch(found)[1]
		asked, shown, _ := strings.Cut(inner, "\nHTTP ")
		asked = strings.TrimRight(asked, "\n") + "\n"
		request, err := http.ReadRequest(bufio.NewReader(strings.NewReader(asRequest(asked))))
		if err != nil {
			t.Fatalf("%s: %v", asked, err)
		}
		if route, _, err := router.FindRoute(request); err == nil {
			unseen[route.Operation.OperationID] = false
		}
		request.URL.Scheme, request.URL.Host = "http", strings.TrimPrefix(p.URL, "http://")
		request.RequestURI = ""
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatalf("%s: %v", asked, err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatalf("%s: %v", asked, err)
		}
		got := fmt.Sprintf("%d %s\n%s", answer.StatusCode, http.StatusText(answer.StatusCode), asShown(answer.Header, body))
		if "HTTP "+shown != "HTTP "+got && !*testfile.Update {
			t.Errorf("%s\nanswer:\n%s\nthe page shows:\n%s\n(make golden)", asked, got, shown)
		}
		return "```http\n" + asked + "\nHTTP " + got + "```"
	})
	for operation, isUnseen := range unseen {
		if isUnseen {
			t.Errorf("docs/reference/http.md has no request for %s", operation)
		}
	}
	if *testfile.Update {
		testfile.Write(t, page, []byte(updated))
	}
}

// asRequest makes a request as it is sent of one of the page.
func asRequest(shown string) string {
	lines := strings.Split(strings.TrimRight(shown, "\n"), "\n")
	head := []string{lines[0] + " HTTP/1.1", "Host: server"}
	rest := lines[1:]
	for len(rest) > 0 && !strings.HasPrefix(rest[0], "{") {
		head, rest = append(head, rest[0]), rest[1:]
	}
	body := strings.Join(rest, "\n")
	return strings.Join(append(head, fmt.Sprint("Content-Length: ", len(body))), "\r\n") + "\r\n\r\n" + body
}

var (
	shownTime   = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+]00)`)
	shownID     = regexp.MustCompile(`(?m)^id: (\d+)-\d+`)
	shownDay    = regexp.MustCompile(`"day": "[^"]+"`)
	shownLength = regexp.MustCompile(`Nanoseconds": \d+`)
	shownPlace  = regexp.MustCompile(`\d+/\d+ (all|changed) \d+ [0-9a-f-]+ \d+`)
	shownCursor = regexp.MustCompile(`"(cursor|nextCursor|threadUid)": "[^"]+"`)
)

// asShown returns what the page shows of an answer.
func asShown(header http.Header, body []byte) string {
	var text strings.Builder
	for _, name := range []string{"ETag", "Retry-After", "Pgagui-Parent-Run"} {
		if value := header.Get(name); value != "" {
			fmt.Fprintf(&text, "%s: %s\n", name, value)
		}
	}
	var indented bytes.Buffer
	if json.Indent(&indented, bytes.TrimSpace(body), "", "  ") == nil {
		body = append(indented.Bytes(), '\n')
	}
	shown := shownTime.ReplaceAllString(string(body), "2026-01-31T12:00:00Z")
	shown = shownID.ReplaceAllString(shown, "id: $1-1769860800000000")
	shown = shownDay.ReplaceAllString(shown, `"day": "2026-01-31"`)
	shown = shownLength.ReplaceAllString(shown, `Nanoseconds": 1500000`)
	shown = shownPlace.ReplaceAllString(shown, "…")
	shown = shownCursor.ReplaceAllString(shown, `"$1": "…"`)
	if len(shown) > 0 {
		text.WriteString(strings.TrimRight(shown, "\n") + "\n")
	}
	return text.String()
}
