package eventfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/pgagui/pgagui/internal/must"
)

// readAll returns the events of a file, each as "line: text", and the error that ended it.
func readAll(file iter.Seq2[Event, error]) (events []string, err error) {
	for event, problem := range file {
		if problem != nil {
			return events, problem
		}
		events = append(events, fmt.Sprintf("%d: %s", event.Line, event.Raw))
	}
	return events, nil
}

func TestEventsComeOutOfEveryFormat(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		file string
		want []string
	}{
		"an empty file":                  {"", nil},
		"a blank file":                   {"\n \r\n\t\n", nil},
		"only a byte order mark":         {"\uFEFF", nil},
		"NDJSON":                         {"{\"a\":1}\n{\"b\":2}\n", []string{`1: {"a":1}`, `2: {"b":2}`}},
		"NDJSON without the last end":    {"{\"a\":1}\n{\"b\":2}", []string{`1: {"a":1}`, `2: {"b":2}`}},
		"NDJSON from Windows":            {"\uFEFF{\"a\":1}\r\n{\"b\":2}\r\n", []string{`1: {"a":1}`, `2: {"b":2}`}},
		"NDJSON with blank lines":        {"\n\n{\"a\":1}\n  \n\t{\"b\":2} \n\n", []string{`3: {"a":1}`, `5: {"b":2}`}},
		"objects on one line":            {`{"a":1}{"b":2} {"c":3}`, []string{`1: {"a":1}`, `1: {"b":2}`, `1: {"c":3}`}},
		"objects over many lines":        {"{\n  \"a\": 1\n}\n{\n  \"b\": [\n  ]\n}\n", []string{"1: {\n  \"a\": 1\n}", "4: {\n  \"b\": [\n  ]\n}"}},
		"events separated by NUL":        {"{\"a\":1}\x00{\"b\":\n2}\x00", []string{`1: {"a":1}`, "1: {\"b\":\n2}"}},
		"NUL, without the last one":      {"{\n\"a\":1}\x00{\"b\":2}", []string{"1: {\n\"a\":1}", `2: {"b":2}`}},
		"NUL and line ends":              {"{\"a\":1}\x00\n{\"b\":2}\x00\n", []string{`1: {"a":1}`, `2: {"b":2}`}},
		"an empty array":                 {" [ ]\n", nil},
		"an array on one line":           {`[{"a":1},{"b":2}]`, []string{`1: {"a":1}`, `1: {"b":2}`}},
		"an array over many lines":       {"\uFEFF[\r\n  {\r\n    \"a\": 1\r\n  },\r\n  {\"b\":[{}]}\r\n]\r\n", []string{"2: {\r\n    \"a\": 1\r\n  }", `5: {"b":[{}]}`}},
		"brackets and quotes in strings": {`[{"a":"]}\"\\"},{"b":"\\\"[{"}]`, []string{`1: {"a":"]}\"\\"}`, `1: {"b":"\\\"[{"}`}},
		"an event stream":                {"data: {\"a\":1}\n\ndata: {\"b\":2}\n\n", []string{`1: {"a":1}`, `3: {"b":2}`}},
		"an event stream with CRLF":      {"data: {\"a\":1}\r\n\r\ndata: {\"b\":2}\r\n\r\n", []string{`1: {"a":1}`, `3: {"b":2}`}},
		"an event stream with CR":        {"data: {\"a\":1}\r\rdata: {\"b\":2}\r\r", []string{`1: {"a":1}`, `3: {"b":2}`}},
		"an event stream without space":  {"data:{\"a\":1}\n\ndata:  {\"b\":2} \n\n", []string{`1: {"a":1}`, `3: {"b":2}`}},
		"comments and other fields": {
			": ping\n\nevent: message\nid: 7\nretry: 10\ndata: {\"a\":1}\nid\n\n:\n\nevent: end\n\ndata: {\"b\":2}\n\n: ping",
			[]string{`6: {"a":1}`, `13: {"b":2}`},
		},
		"data over many lines":              {"data: {\ndata:   \"a\":\n: ping\ndata: 1}\n\n", []string{"1: {\n  \"a\":\n1}"}},
		"data after a blank line of data":   {":\ndata\ndata: {\"a\":1}\n\n", []string{`3: {"a":1}`}},
		"empty data and [DONE]":             {"data: {\"a\":1}\n\ndata:\n\ndata: [DONE]\n\n", []string{`1: {"a":1}`}},
		"[DONE] at the very end":            {"data: {\"a\":1}\n\ndata: [DONE]", []string{`1: {"a":1}`}},
		"a last event without a blank line": {"data: {\"a\":1}\n\ndata: {\"b\":2}\n", []string{`1: {"a":1}`, `3: {"b":2}`}},
		"a last event without a line end":   {"\uFEFFdata: {\"a\":1}\n\ndata: {\"b\":2}", []string{`1: {"a":1}`, `3: {"b":2}`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for reading, reader := range map[string]io.Reader{
				"at once":      strings.NewReader(test.file),
				"byte by byte": iotest.OneByteReader(strings.NewReader(test.file)),
			} {
				got, err := readAll(Read("chat", reader))
				if err != nil || !slices.Equal(got, test.want) {
					t.Errorf("read %s: %q, %v; want %q", reading, got, err, test.want)
				}
			}
		})
	}
}

func TestBytesOfAnEventAreKept(t *testing.T) {
	t.Parallel()
	for _, event := range []string{
		`{"z":1,"a":2,"z":3}`,
		`{ "a" :	1 , "b":[ ] }`,
		`{"delta":"\u0000 \ud83d \u00e9 é \/ <&>"}`,
		`{"n":[1e400,1.0,-0,100000000000000000000000000000001,1E+2]}`,
		"{\"emoji\":\"🙂\u2028\u00a0\uFEFF\"}",
		`{}`,
	} {
		for format, file := range inEveryFormat([]string{event, event}) {
			var got []string
			for event, err := range Read(format, strings.NewReader(file)) {
				if err != nil {
					t.Error(err)
				}
				got = append(got, string(event.Raw))
			}
			if !slices.Equal(got, []string{event, event}) {
				t.Errorf("%s: %q came out as %q", format, event, got)
			}
		}
	}
}

// inEveryFormat writes events, which must not hold line ends, as a file of each format.
func inEveryFormat(events []string) map[string]string {
	return map[string]string{
		"NDJSON":       strings.Join(events, "\n") + "\n",
		"NUL":          strings.Join(events, "\x00") + "\x00",
		"array":        "[" + strings.Join(events, ",\n") + "]",
		"event stream": "data: " + strings.Join(events, "\n\ndata: ") + "\n\n",
	}
}

func TestErrorsNameFileAndLine(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		file  string
		good  int // events before the error
		error string
	}{
		"NDJSON cut off at the end":     {"{\"a\":1}\n{\"b\":", 1, `chat:2: not valid JSON: unexpected end of input (cut off?)`},
		"NDJSON cut off in a string":    {"{\"a\":\"Hel\n{\"b\":2}\n", 0, `chat:1: not valid JSON: invalid character '\n' in string literal (cut off?)`},
		"NDJSON cut off between values": {"{\"a\":1}\n{\"b\":1,\n{\"c\":2}\n", 1, `chat:3: not valid JSON: invalid character '{' looking for beginning of object key string (the event begins in line 2)`},
		"an error within a line":        {"{\"a\":1}\n\n{\"b\":nil}\n", 1, `chat:3: not valid JSON: invalid character 'i' in literal null (expecting 'u')`},
		"a number of Python":            {"{\"a\":1}\n{\"b\":NaN}\n", 1, `chat:2: not valid JSON: NaN at character 6`},
		"brackets that do not match":    {`{"a":[1}}`, 0, `chat:1: not valid JSON: invalid character '}' after array element`},
		"too many brackets":             {`{"a":1}}`, 1, `chat:1: an event must be a JSON object, not "}"`},
		"too deep":                      {`{"a":` + strings.Repeat("[", 10001) + strings.Repeat("]", 10001) + "}", 0, `chat:1: not valid JSON: invalid character '[' exceeded max depth`},
		"a line that is no object":      {"{\"a\":1}\nnull\n", 1, `chat:2: an event must be a JSON object, not "null"`},
		"an array on a line":            {"{\"a\":1}\n[{\"b\":2}]\n", 1, `chat:2: an event must be a JSON object, not "[{\"b\":2}]"`},
		"invalid UTF-8":                 {"{\"a\":1}\n{\n\"b\":\"caf\xe9\"}\n", 1, `chat:3: not valid UTF-8: byte 0xe9 (the event begins in line 2)`},
		"invalid UTF-8 in a stream":     {": ping\n\ndata: {\"b\":\"caf\xe9\"}\n\n", 0, `chat:3: not valid UTF-8: byte 0xe9`},
		"an array that is cut off":      {"[\n{\"a\":1},\n{\"b\":2", 1, `chat:3: not valid JSON: unexpected end of input (cut off?)`},
		"an array without its end":      {"[\n{\"a\":1}\n\n", 1, `chat:4: not valid JSON: unexpected end of input in the JSON array (cut off?)`},
		"an array cut off at a comma":   {"[\n{\"a\":1},", 1, `chat:2: not valid JSON: unexpected end of input in the JSON array (cut off?)`},
		"an array within an array":      {"[\n{\"a\":1},\n[]]", 1, `chat:3: an event must be a JSON object, not "[]]"`},
		"a comma too many":              {"[\n{\"a\":1},\n]", 1, `chat:3: an event must be a JSON object, not "]"`},
		"a comma too few":               {"[\n{\"a\":1}\n{\"b\":1}]", 1, `chat:3: not valid JSON: a comma or the end of the array must follow an event, not "{\"b\":1}]"`},
		"NUL in an array":               {"[{\"a\":1},\x00{}]", 1, `chat:1: an event must be a JSON object, not "\x00{}]"`},
		"text after an array":           {"[{\"a\":1}]\n[]", 1, `chat:2: nothing may follow the end of the JSON array, but "[]" does`},
		"an error in a long element":    {"[\n{\n\"a\":1,\n\"b\":x}]", 0, `chat:4: not valid JSON: invalid character 'x' looking for beginning of value (the event begins in line 2)`},
		"a stream cut off in an event":  {"data: {\"a\":1}\n\ndata: {\"b\":", 1, `chat:3: not valid JSON: unexpected end of input (cut off?)`},
		"a stream cut off in a field":   {"data: {\"a\":1}\n\ndat", 1, `chat:3: not a line of a server-sent event stream (data:, event:, id:, retry: or a comment): "dat"`},
		"data that is no object":        {": ping\n\ndata: null\n\n", 0, `chat:3: an event must be a JSON object, not "null"`},
		"data that is no JSON":          {": ping\n\ndata:\ndata: {\"a\":\n: ping\ndata: oops}\n\n", 0, `chat:6: not valid JSON: invalid character 'o' looking for beginning of value (the event begins in line 4)`},
		"events without a blank line":   {"data: {\"a\":1}\ndata: {\"b\":2}\n\n", 0, `chat:2: not valid JSON: invalid character '{' after top-level value (the event begins in line 1)`},
		"a stream with another line":    {"data: {\"a\":1}\n\n{\"b\":2}\n", 1, `chat:3: not a line of a server-sent event stream (data:, event:, id:, retry: or a comment): "{\"b\":2}"`},
		"some other text":               {"\n<!DOCTYPE html>\n<html>", 0, `chat:2: not a file of events: it begins with "<!DOCTYPE html>": JSON objects, a JSON array or a server-sent event stream is needed, in UTF-8 and not compressed`},
		"a word like a field":           {"database", 0, `chat:1: not a file of events: it begins with "database": JSON objects, a JSON array or a server-sent event stream is needed, in UTF-8 and not compressed`},
		"UTF-16":                        {"\xff\xfe{\x00}\x00", 0, `chat:1: not a file of events: it begins with "\xff\xfe{\x00}\x00": JSON objects, a JSON array or a server-sent event stream is needed, in UTF-8 and not compressed`},
		"JSON that is not an event":     {`"hello"`, 0, `chat:1: not a file of events: it begins with "\"hello\"": JSON objects, a JSON array or a server-sent event stream is needed, in UTF-8 and not compressed`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for reading, reader := range map[string]io.Reader{
				"at once":   strings.NewReader(test.file),
				"by halves": iotest.HalfReader(strings.NewReader(test.file)),
			} {
				events, err := readAll(Read("chat", reader))
				if err == nil || err.Error() != test.error {
					t.Errorf("read %s: error\n\t%v\nwant\n\t%s", reading, err, test.error)
				}
				if len(events) != test.good {
					t.Errorf("read %s: %d events before the error, want %d", reading, len(events), test.good)
				}
			}
		})
	}
}

func TestAFailingReaderEndsTheReading(t *testing.T) {
	t.Parallel()
	for _, start := range []string{"", "\uFEFF", "{\"a\":1}\n", "{\"a\":1}\n{", "[", "[{\"a\":1}", "[{\"a\":1},", "data: {\"a\":1}\n\n", "data: {\"a\":1}\n"} {
		broken := errors.New("disk on fire")
		_, err := readAll(Read("chat", io.MultiReader(strings.NewReader(start), iotest.ErrReader(broken))))
		if problem, ok := errors.AsType[*Error](err); !ok || !errors.Is(err, broken) || problem.File != "chat" || problem.Line != 1+strings.Count(start, "\n") {
			t.Errorf("after %q the error is %v", start, err)
		}
	}
}

func TestTheReaderStopsWhenTheCallerDoes(t *testing.T) {
	t.Parallel()
	for range Read("chat", strings.NewReader("{\"a\":1}\nnot JSON")) {
		break // going on after this would panic
	}
}

func TestAnEventIsThereBeforeTheNextOneIsWritten(t *testing.T) {
	t.Parallel()
	for format, start := range map[string]string{
		"NDJSON":               `{"a":"first"}`,
		"array":                `[{"a":"first"}`,
		"event stream":         "data: {\"a\":\"first\"}\n\n",
		"event stream with CR": "data: {\"a\":\"first\"}\r\r",
	} {
		reader, writer := io.Pipe()
		go func() { _, _ = io.WriteString(writer, start) }() // and never the end
		for event, err := range Read(format, reader) {
			if err != nil || string(event.Raw) != `{"a":"first"}` {
				t.Errorf("%s: %q, %v", format, event.Raw, err)
			}
			break
		}
	}
}

func TestAnEventMayBeLargeButNotWithoutLimit(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	fits := `{"a":"` + strings.Repeat("x", limit-len(`{"a":""}`)) + `"}`
	tooLarge := strings.Replace(fits, "x", "xx", 1)
	for format, file := range inEveryFormat([]string{`{"b":1}`, fits, tooLarge}) {
		var lengths []int
		var end error
		for event, err := range read("chat", strings.NewReader(file), limit) {
			if err != nil {
				end = err
				break
			}
			lengths = append(lengths, len(event.Raw))
		}
		if !slices.Equal(lengths, []int{7, limit}) {
			t.Errorf("%s: events of %d bytes, want 7 and %d", format, lengths, limit)
		}
		if end == nil || !strings.HasSuffix(end.Error(), ": an event has at most 1048576 bytes, this one has more") {
			t.Errorf("%s: an event of a byte more than the limit gave the error %v", format, end)
		}
	}
}

// endless repeats a text for ever.
type endless struct {
	text string
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.text[e.at:])
	e.at = (e.at + n) % len(e.text)
	return n, nil
}

func TestAnEndlessEventIsAnError(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	text := strings.Repeat("x", 1000)
	for start, rest := range map[string]string{`{"a":"`: text, `[{"a":"`: text, `data: {"a":"`: text, `data: {`: "\ndata: " + text} {
		_, err := readAll(read("chat", io.MultiReader(strings.NewReader(start), &endless{text: rest}), limit))
		if err == nil || err.Error() != "chat:1: an event has at most 1048576 bytes, this one has more" {
			t.Errorf("%q and no end gave the error %v", start, err)
		}
	}
}

func TestTheLimitOfAnEventIs64MiB(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("x", 64<<10)
	_, err := readAll(Read("chat", io.MultiReader(strings.NewReader(`data: {"a":"`), &endless{text: text})))
	if err == nil || err.Error() != "chat:1: an event has at most 67108864 bytes, this one has more" {
		t.Errorf("an event without end gave the error %v", err)
	}
	half := `{"a":"` + strings.Repeat(text, 512) + `"}`
	events, err := readAll(Read("chat", strings.NewReader("data: "+half+"\n\n")))
	if err != nil || len(events) != 1 {
		t.Errorf("an event of 32 MiB gave %d events and the error %v", len(events), err)
	}
}

// This test is not parallel: it measures memory.
func TestMemoryDoesNotGrowWithTheFile(t *testing.T) {
	event := `{"a":"` + strings.Repeat("x", 2000) + `"}`
	const events = 20_000
	for format, separator := range map[string]string{"NDJSON": "\n", "event stream": "\n\ndata: "} {
		start := strings.TrimLeft(separator, "\n")
		file := io.MultiReader(strings.NewReader(start), io.LimitReader(&endless{text: event + separator}, int64(events*(len(event)+len(separator)))-int64(len(start))))
		count := 0
		var largest uint64
		for _, err := range Read(format, file) {
			if err != nil {
				t.Fatalf("%s, after %d events: %v", format, count, err)
			}
			if count++; count%5_000 == 0 {
				runtime.GC()
				var memory runtime.MemStats
				runtime.ReadMemStats(&memory)
				largest = max(largest, memory.HeapAlloc)
			}
		}
		if count != events || largest > 10<<20 {
			t.Errorf("%s: %d events with up to %d MiB in memory", format, count, largest>>20)
		}
	}
}

func TestRecordedFiles(t *testing.T) {
	t.Parallel()
	var ndjson, stream []string
	for file, events := range map[string]*[]string{"recipe-card.ndjson": &ndjson, "recipe-card.sse": &stream} {
		opened := must.Have(os.Open(filepath.Join("../../testdata/recordings", file)))(t)
		defer opened.Close()
		for event, err := range Read(file, opened) {
			must.Do(t, err)
			*events = append(*events, string(event.Raw))
		}
	}
	if len(ndjson) == 0 || !slices.Equal(ndjson, stream) {
		t.Errorf("the recording has %d events as NDJSON and %d as an event stream, or other ones", len(ndjson), len(stream))
	}
}

func FuzzRead(f *testing.F) {
	events := []string{`{"type":"RUN_STARTED","threadId":"t","runId":"r"}`, `{"delta":"\ud83d\"}\\"}`, `{"a":[{}, 1e400]}`}
	for _, file := range inEveryFormat(events) {
		f.Add([]byte(file))
		f.Add([]byte(file[:len(file)/2]))
		f.Add([]byte(byteOrderMark + strings.ReplaceAll(file, "\n", "\r")))
	}
	f.Add([]byte(": ping\r\n\r\nevent: x\r\ndata: {\r\ndata: }\r\n\r\ndata: [DONE]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var read [][]byte
		line := 1
		for event, err := range Read("fuzz", bytes.NewReader(text)) {
			var problem *Error
			switch {
			case err == nil:
				if !json.Valid(event.Raw) || !utf8.Valid(event.Raw) || event.Raw[0] != '{' || event.Raw[len(event.Raw)-1] != '}' {
					t.Fatalf("not an event: %q", event.Raw)
				}
				if event.Line < line {
					t.Fatalf("line %d after line %d", event.Line, line)
				}
				line = event.Line
				read = append(read, event.Raw)
			case !errors.As(err, &problem) || problem.Line < line || strings.ContainsRune(err.Error(), '\n'):
				t.Fatalf("not an error that names the place: %q", err)
			}
		}
		joined := bytes.Join(read, []byte{0})
		var again [][]byte
		for event, err := range Read("again", bytes.NewReader(joined)) {
			must.Do(t, err)
			again = append(again, event.Raw)
		}
		if !slices.EqualFunc(read, again, bytes.Equal) {
			t.Fatalf("%q came back as %q", read, again)
		}
	})
}

func BenchmarkRead(b *testing.B) {
	for format, file := range inEveryFormat(slices.Repeat([]string{`{"type":"TEXT_MESSAGE_CONTENT","messageId":"message-1","delta":"Hello, \"world\" "}`}, 10_000)) {
		b.Run(format, func(b *testing.B) {
			b.SetBytes(int64(len(file)))
			for b.Loop() {
				for _, err := range Read(format, strings.NewReader(file)) {
					must.Do(b, err)
				}
			}
		})
	}
}
