package transcript_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testfile"
	"github.com/pgagui/pgagui/transcript"
)

// A golden case is a conversation in testdata, NAME.json, and what is written of it, NAME.txt.
type golden struct {
	transcript.Options
	transcript.Conversation
}

func TestGoldenConversations(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			t.Parallel()
			text := testfile.Read(t, file)
			var want golden
			decoder := json.NewDecoder(bytes.NewReader(text))
			decoder.DisallowUnknownFields()
			must.Do(t, decoder.Decode(&want))
			testfile.Golden(t, strings.TrimSuffix(file, ".json")+".txt", write(t, want.Options, want.Conversation))
		})
	}
}

func write(t *testing.T, options transcript.Options, conversation transcript.Conversation) string {
	t.Helper()
	var out strings.Builder
	must.Do(t, transcript.New(options).Write(&out, conversation))
	return out.String()
}

func TestRenderersAreRegisteredByType(t *testing.T) {
	t.Parallel()
	writer := transcript.New(transcript.Options{})
	writer.Register("progress", func(content json.RawMessage) ([]transcript.Line, error) {
		var progress struct{ Percent *int }
		if err := json.Unmarshal(content, &progress); err != nil || progress.Percent == nil {
			return nil, errors.New("no percent")
		}
		return []transcript.Line{{Mark: transcript.Active, Text: "so far", Note: fmt.Sprint(*progress.Percent, " %")}}, nil
	})
	writer.Register("PLAN", nil)
	var out strings.Builder
	if err := writer.Write(&out, transcript.Conversation{Messages: []json.RawMessage{
		json.RawMessage(`{"role":"activity","activityType":"PROGRESS","content":{"percent":40}}`),
		json.RawMessage(`{"role":"activity","activityType":"PROGRESS","content":{"per cent":40}}`),
		json.RawMessage(`{"role":"activity","activityType":"PLAN","content":{"tasks":["✓ a"]}}`),
	}}); err != nil {
		t.Fatal(err)
	}
	const want = `assistant
  PROGRESS
  │ ▸ so far  40 %

  PROGRESS
  │ per cent: 40

  PLAN
  │ tasks: [✓ a]
`
	if out.String() != want {
		t.Errorf("written:\n%s\nwant:\n%s", out.String(), want)
	}
}

// An item has what a script wants to know, and nothing that its kind has not.
// A question that has no message is the tool call that it is about, or what the agent says of it.
func TestQuestion(t *testing.T) {
	t.Parallel()
	messages := []json.RawMessage{json.RawMessage(`{"id":"a","role":"assistant","toolCalls":[{"id":"c","function":{"name":"erase","arguments":"{\"path\": \"/\"}"}}]}`)}
	for interrupt, want := range map[string]string{
		`{"id":"i","message":"Sure?","toolCallId":"c"}`:           `Sure?`,
		`{"id":"i","message":"","toolCallId":"c","metadata":{}}`:  `erase {"path":"/"}`,
		`{"id":"i","toolCallId":"gone","metadata":{"at": 1}}`:     `{"at":1}`,
		`{"id":"i","toolCallId":"gone","metadata":{}}`:            `tool call gone`,
		`{"id":"i","message":1,"metadata":null}`:                  ``,
		`{"id":"i","metadata":"Which of them?"}`:                  `Which of them?`,
		`{"id":"i","toolCallId":"c","responseSchema":{"type":0}}`: `erase {"path":"/"}`,
		`[]`: ``,
	} {
		conversation := transcript.Conversation{Messages: messages, Interrupts: []json.RawMessage{json.RawMessage(interrupt)}}
		items := conversation.Items()
		if got := items[len(items)-1].Text; got != want || transcript.Question(json.RawMessage(interrupt), messages) != want {
			t.Errorf("%s asks %q, want %q", interrupt, got, want)
		}
	}
}

func TestItemsAsJSON(t *testing.T) {
	t.Parallel()
	conversation := transcript.Conversation{
		Messages: []json.RawMessage{
			json.RawMessage(`{"id":"u","role":"user","content":[{"type":"text","text":"Hi"},{"type":"image","source":{"type":"data","mimeType":"image/png","value":"AA=="}}]}`),
			json.RawMessage(`{"id":"a","role":"assistant","toolCalls":[{"id":"c","function":{"name":"f","arguments":"{\"b\": 1.0, \"a\": \"\\ud800\"}"}},{"id":"d","function":{"name":"g","arguments":"{\"h"}}]}`),
			json.RawMessage(`{"id":"r","role":"tool","toolCallId":"c","content":"ok","subagentRunId":"s"}`),
			json.RawMessage(`{"id":"p","role":"activity","activityType":"PLAN","content":{"tasks":[]},"subagentRunId":"s"}`),
			json.RawMessage(`{"id":"t","role":"reasoning","content":"Hm."}`),
			json.RawMessage(`{"id":"o","role":"tool","toolCallId":"gone","content":"","error":"late"}`),
		},
		Interrupts: []json.RawMessage{json.RawMessage(`{"id":"i","reason":"approval","message":"Sure?"}`)},
		Calls:      map[string]transcript.Call{"c": {Status: transcript.Completed, Duration: 1500 * time.Millisecond}},
	}
	want := []string{
		`{"kind":"message","id":"u","role":"user","text":"Hi\n[image/png]"}`,
		`{"kind":"tool_call","id":"c","role":"assistant","toolName":"f","arguments":{"b":1.0,"a":"\ud800"},"status":"completed","durationMs":1500,"result":"ok"}`,
		`{"kind":"tool_call","id":"d","role":"assistant","toolName":"g","arguments":"{\"h","status":"cut_off"}`,
		`{"kind":"activity","id":"p","role":"activity","subagentRunId":"s","activityType":"PLAN","content":{"tasks":[]}}`,
		`{"kind":"reasoning","id":"t","role":"reasoning","text":"Hm."}`,
		`{"kind":"tool_result","id":"gone","role":"tool","result":"","error":"late"}`,
		`{"kind":"interrupt","id":"i","text":"Sure?","reason":"approval"}`,
	}
	items := conversation.Items()
	for i := range max(len(items), len(want)) {
		var got, wanted string
		if i < len(items) {
			text := must.Have(json.Marshal(items[i]))(t)
			got = string(text)
		}
		if i < len(want) {
			wanted = want[i]
		}
		if got != wanted {
			t.Errorf("item %d: %s\nwant %s", i, got, wanted)
		}
	}
}

func TestAFullDiskIsReported(t *testing.T) {
	t.Parallel()
	reader, out := io.Pipe()
	reader.CloseWithError(io.ErrShortWrite)
	err := transcript.New(transcript.Options{}).Write(out, transcript.Conversation{Title: "t"})
	if !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("error %v, want %v", err, io.ErrShortWrite)
	}
}

func TestTextIsNeverTooWide(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		strings.Repeat("word ", 50), strings.Repeat("x", 300), strings.Repeat("日本", 60), strings.Repeat(" ", 50) + "end", "a" + strings.Repeat(" ", 90) + "b",
		"a" + strings.Repeat("\u0903", 100), strings.Repeat("⸻", 30), strings.Repeat("    - ", 9) + strings.Repeat("⸻", 9), "1234567890123456789012345. one two three four",
	} {
		content := must.Have(json.Marshal(text))(t)
		nested := strings.Repeat(`[{"a":`, 20) + string(content) + strings.Repeat(`}]`, 20)
		for _, width := range []int{1, 20, 21, 33, 80} {
			checkWritten(t, transcript.Options{Width: width}, transcript.Conversation{Title: text, Messages: []json.RawMessage{
				json.RawMessage(`{"role":"user","content":` + string(content) + `}`),
				json.RawMessage(`{"role":"activity","content":` + nested + `}`),
				json.RawMessage(`{"role":"activity","activityType":"PLAN","content":{"tasks":[{"title":"t","tasks":[{"title":"t","tasks":[{"title":"t","tasks":[` + string(content) + `]}]}]}]}}`),
			}})
		}
	}
}

// checkWritten holds what is promised of all that is written.
func checkWritten(t *testing.T, options transcript.Options, conversation transcript.Conversation) {
	t.Helper()
	written := write(t, options, conversation)
	if !utf8.ValidString(written) {
		t.Errorf("not UTF-8: %q", written)
	}
	for line := range strings.Lines(written) {
		line = strings.TrimSuffix(line, "\n")
		if options.Color {
			line = regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(line, "")
		}
		if width := uniseg.StringWidth(line); options.Width > 0 && width > max(options.Width, 20) {
			t.Errorf("%d columns wide, in %d: %q", width, options.Width, line)
		}
		for _, character := range line {
			if unicode.IsControl(character) || unicode.Is(unicode.Bidi_Control, character) {
				t.Errorf("%q in %q", character, line)
			}
		}
		if line != strings.TrimRight(line, " ") {
			t.Errorf("spaces at the end of %q", line)
		}
	}
}

// What costs the square of its length would take minutes here.
func TestHugeMessagesAreWritten(t *testing.T) {
	t.Parallel()
	const size = 1 << 18
	huge := map[string]string{
		"one word":              strings.Repeat("x", size),
		"marks on one letter":   "a" + strings.Repeat("\u0301", size/2),
		"wide marks":            strings.Repeat("\u0903", size/3),
		"words":                 strings.Repeat("word ", size/5),
		"lines":                 strings.Repeat("line\n", size/5),
		"spaces":                strings.Repeat(" ", size) + "end",
		"a deep list":           strings.Repeat("[", 1000) + strings.Repeat("]", 1000),
		"a deep object":         strings.Repeat(`{"a":`, 1000) + "1" + strings.Repeat("}", 1000),
		"a long list":           "[" + strings.Repeat("1,", size/2) + "1]",
		"a long list of lists":  "[" + strings.Repeat("[[1],[2]],", size/16) + "1]",
		"a string in a string":  quoted(quoted(quoted(quoted(strings.Repeat("x", size))))),
		"what is no JSON":       "[" + strings.Repeat("1,", size/2),
		"a list of large texts": "[" + strings.Repeat(quoted(strings.Repeat("x", 1000))+",", 200) + "1]",
	}
	for name, text := range huge {
		for _, full := range []bool{false, true} {
			messages := []json.RawMessage{
				json.RawMessage(`{"role":"user","content":` + quoted(text) + `}`),
				json.RawMessage(`{"role":"tool","toolCallId":"c","content":` + quoted(text) + `}`),
			}
			if json.Valid([]byte(text)) {
				messages = append(messages, json.RawMessage(`{"role":"activity","activityType":"PLAN","content":`+text+`}`))
				messages = append(messages, json.RawMessage(`{"role":"activity","activityType":"PLAN","content":{"tasks":[`+text+`]}}`))
			}
			t.Run(fmt.Sprint(name, ", full: ", full), func(t *testing.T) {
				t.Parallel()
				write(t, transcript.Options{Width: 80, Full: full}, transcript.Conversation{Messages: messages})
			})
		}
	}
}

// Whatever the messages hold, they are written, harmless and no wider than the terminal.
func TestGeneratedConversationsAreWritten(t *testing.T) {
	t.Parallel()
	for seed := range uint64(1500) {
		g := generator{rand.New(rand.NewPCG(seed, 1))}
		options := transcript.Options{Width: []int{0, 20, 37, 80}[g.IntN(4)], Color: g.IntN(4) == 0, Full: g.IntN(3) == 0, Hint: "all"}
		conversation := transcript.Conversation{Title: g.text(), Running: g.IntN(2) == 0}
		for range g.IntN(6) {
			conversation.Messages = append(conversation.Messages, g.message())
		}
		for range g.IntN(2) {
			conversation.Interrupts = append(conversation.Interrupts, g.value(3))
		}
		checkWritten(t, options, conversation)
		if items, err := json.Marshal(conversation.Items()); err != nil {
			t.Errorf("items as JSON: %v in %q", err, items)
		}
		if t.Failed() {
			t.Fatalf("seed %d: %q, interrupts %q", seed, conversation.Messages, conversation.Interrupts)
		}
	}
}

func FuzzWrite(f *testing.F) {
	f.Add([]byte(`{"role":"activity","activityType":"PLAN","content":{"tasks":["✓ a",{"title":"b","progress":0.5}]}}`), 20)
	f.Add([]byte(`{"role":"assistant","content":"a","toolCalls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]}`), 0)
	f.Add([]byte(`{"role":"activity","activityType":"WORKFLOW","content":{"current":"b","steps":[{"id":"a"},{"id":"b"}]}}`), 80)
	f.Fuzz(func(t *testing.T, message []byte, width int) {
		checkWritten(t, transcript.Options{Width: min(width, 200)}, transcript.Conversation{
			Title: string(message), Messages: []json.RawMessage{message}, Interrupts: []json.RawMessage{message},
		})
	})
}

type generator struct{ *rand.Rand }

func (g generator) message() json.RawMessage {
	if g.IntN(12) == 0 {
		return g.value(3)
	}
	role := g.one(`"user"`, `"assistant"`, `"assistant"`, `"reasoning"`, `"tool"`, `"activity"`, `"activity"`, `"activity"`, `"system"`, string(g.value(1)))
	text := `{"role":` + role
	for _, member := range []string{"id", "content", "name", "toolCalls", "toolCallId", "activityType", "subagentRunId", "error", "encryptedValue"} {
		if g.IntN(3) > 0 {
			value := string(g.value(5))
			switch {
			case g.IntN(5) == 0: // any value
			case member == "activityType":
				value = g.one(`"PLAN"`, `"SEARCH"`, `"WORKFLOW"`, `"OTHER"`)
			case member == "toolCalls":
				value = `[{"id":` + g.one(`"c"`, `"d"`) + `,"function":{"name":"f","arguments":` + quoted(string(g.value(3))) + `}}]`
			case member == "toolCallId":
				value = g.one(`"c"`, `"d"`)
			case member != "content":
				value = quoted(g.text())
			}
			text += `,"` + member + `":` + value
		}
	}
	return json.RawMessage(text + "}")
}

// value is any JSON, in part such as activities have.
func (g generator) value(depth int) json.RawMessage {
	kind := g.IntN(10)
	if depth == 0 {
		kind = g.IntN(5)
	}
	switch kind {
	case 0:
		return json.RawMessage(g.one("null", "true", "false", `""`, "{}", "[]", `"\ud800"`, `"\u0000"`))
	case 1:
		return json.RawMessage(g.one("0", "1", "0.5", "-1", "42", "1e400", "-0", "60.0"))
	case 2, 3, 4:
		return json.RawMessage(quoted(g.text()))
	case 5, 6:
		var elements []string
		for range g.IntN(5) {
			elements = append(elements, string(g.value(depth-1)))
		}
		return json.RawMessage("[" + strings.Join(elements, g.one(",", " , ", ",\n")) + "]")
	}
	var members []string
	for range g.IntN(6) {
		key := g.one(`"tasks"`, `"steps"`, `"sources"`, `"title"`, `"name"`, `"status"`, `"done"`, `"progress"`, `"percent"`, `"current"`, `"children"`, `"id"`,
			`"type"`, `"text"`, `"source"`, quoted(g.text()))
		members = append(members, key+g.one(":", " : ")+string(g.value(depth-1)))
	}
	return json.RawMessage("{" + strings.Join(members, ",") + "}")
}

func (g generator) text() string {
	var text strings.Builder
	for range g.IntN(1 + g.IntN(30)) {
		text.WriteString(g.one("a", "word ", " ", "\n", "\t", "\r", "\r\n", "\x1b[31m", "\x1b]8;;x\x1b\\", "\u009b", "\u202e", "\u2069", "\u200b", "\b", "\x00", "\x7f", "\u2028",
			"日本", "👩‍👩‍👧", "🇵🇹", "e\u0301", "\u0301", "\u0903", "⸻", "✓ ", "[x] ", "…", "- ", "12. ", "done", "failed", "current", strings.Repeat("long", 12), "\xff", "\xed\xa0\x80"))
	}
	return text.String()
}

func (g generator) one(of ...string) string { return of[g.IntN(len(of))] }

// quoted is a text as JSON, invalid UTF-8 and all.
func quoted(text string) string {
	encoded, _ := json.Marshal(text)
	if !utf8.ValidString(text) {
		return strings.ReplaceAll(string(encoded), `\ufffd`, "\xff")
	}
	return string(encoded)
}
