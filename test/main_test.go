// Package test holds the tests that need more than one part of the project: the two reducers and the official client against each
// other, recorded streams through the whole store, the SQL surface from psql alone, and what the catalog must look like.
package test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/compaction/compactiontest"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testneeds"
)

func TestMain(m *testing.M) {
	if where := os.Getenv(sessionAgent); where != "" {
		if err := goOnWithSession(where); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	fmt.Printf("go test ./test -seed %d -streams %d\n", *firstSeed, *streamCount) // go test shows it with failures
	testdb.Main(m)
}

// meaning is what a reducer makes of a stream.
type meaning struct {
	Messages   []json.RawMessage `json:"messages"`
	State      json.RawMessage   `json:"state"`
	Interrupts []json.RawMessage `json:"interrupts"`
	Error      string            `json:"error"`

	// Of a client that was started with --verify: whether its verifier accepts the stream, and why not.
	Verified    bool   `json:"verified"`
	VerifyError string `json:"verifyError"`
}

// shown returns what a client has of a meaning: not the interrupts that CUSTOM events made.
func (m meaning) shown() meaning {
	m.Interrupts = slices.DeleteFunc(slices.Clone(m.Interrupts), func(interrupt json.RawMessage) bool {
		var asked struct{ Source struct{ Type string } }
		return json.Unmarshal(interrupt, &asked) == nil && asked.Source.Type == "CUSTOM"
	})
	return m
}

// differences compares two meanings as JSON values.
func differences(a, b meaning) string {
	if len(a.Messages) != len(b.Messages) {
		return fmt.Sprintf("%d messages, not %d:\n%s\n%s", len(a.Messages), len(b.Messages), a.Messages, b.Messages)
	}
	for i := range a.Messages {
		if canonical(a.Messages[i]) != canonical(b.Messages[i]) {
			return fmt.Sprintf("message %d is\n%s\nnot\n%s", i, a.Messages[i], b.Messages[i])
		}
	}
	if canonical(a.State) != canonical(b.State) {
		return fmt.Sprintf("the state is\n%s\nnot\n%s", a.State, b.State)
	}
	if len(a.Interrupts) != len(b.Interrupts) {
		return fmt.Sprintf("interrupts are %s, not %s", a.Interrupts, b.Interrupts)
	}
	for i := range a.Interrupts {
		if canonical(a.Interrupts[i]) != canonical(b.Interrupts[i]) {
			return fmt.Sprintf("interrupt %d is %s, not %s", i, a.Interrupts[i], b.Interrupts[i])
		}
	}
	return ""
}

// canonical spells a JSON value in one way: keys sorted, no white space, equal numbers alike.
func canonical(value json.RawMessage) string {
	if len(value) == 0 {
		return ""
	}
	decoder := json.NewDecoder(strings.NewReader(string(value)))
	decoder.UseNumber()
	var decoded any
	if err := decoder.Decode(&decoded); err != nil {
		return fmt.Sprintf("not JSON (%v): %s", err, value)
	}
	text, err := json.Marshal(canonicalNumbers(decoded))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func canonicalNumbers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = canonicalNumbers(v[key])
		}
		// A message of thinking has an id of its run, which the streams of these tests do not always name.
		if id, ok := v["id"].(string); ok {
			if at := strings.LastIndex(id, "-thinking-"); at >= 0 {
				v["id"] = id[at:]
			}
		}
	case []any:
		for i := range v {
			v[i] = canonicalNumbers(v[i])
		}
	case json.Number:
		if exact, ok := new(big.Rat).SetString(string(v)); ok {
			return exact.RatString()
		}
	}
	return value
}

// oracle is the official client in a process of its own, see test/oracle.
type oracle struct {
	ask    *bufio.Writer
	answer *bufio.Scanner
}

// startOracle skips the test where Node or the client is not installed. The flags are further ones of oracle.mjs.
func startOracle(t *testing.T, flags ...string) *oracle {
	t.Helper()
	command, in, out := testneeds.StartNode(t, "oracle", "npm ci in test/oracle", append([]string{filepath.Join("oracle", "oracle.mjs"), "--ours"}, flags...)...)
	t.Cleanup(func() {
		in.Close()
		if err := command.Wait(); err != nil {
			t.Errorf("oracle: %v", err)
		}
	})
	answers := bufio.NewScanner(out)
	answers.Buffer(nil, 64<<20)
	return &oracle{ask: bufio.NewWriter(in), answer: answers}
}

// fold returns what the client makes of each stream.
func (o *oracle) fold(t *testing.T, streams ...[]json.RawMessage) []meaning {
	t.Helper()
	// The client answers while it is still asked.
	asked := make(chan error, 1)
	go func() {
		for _, stream := range streams {
			line := append([]byte(`{"events":`), compactiontest.Batch(stream)...)
			// A line is a stream: an event that was written over several lines goes into one.
			o.ask.Write(bytes.ReplaceAll(bytes.ReplaceAll(line, []byte("\n"), []byte(" ")), []byte("\r"), []byte(" ")))
			o.ask.WriteString("}\n")
		}
		asked <- o.ask.Flush()
	}()
	folded := make([]meaning, len(streams))
	for i := range streams {
		if !o.answer.Scan() {
			t.Fatalf("oracle: %v", o.answer.Err())
		}
		must.Do(t, json.Unmarshal(o.answer.Bytes(), &folded[i]))
	}
	must.Do(t, <-asked)
	return folded
}
