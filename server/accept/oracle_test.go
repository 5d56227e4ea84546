package accept_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testneeds"
)

// An outcome is what one client made of a stream.
type outcome struct {
	Error      string
	Unreadable string // the client holds what JSON cannot say
	Messages   json.RawMessage
	State      json.RawMessage
	Interrupts json.RawMessage
}

func (o outcome) messages(t *testing.T) (messages []message) {
	t.Helper()
	must.Do(t, json.Unmarshal(o.Messages, &messages))
	return messages
}

type message struct {
	ID        string          `json:"id"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	ToolCalls []struct {
		ID       string
		Function struct{ Name, Arguments string }
	} `json:"toolCalls"`
}

// judge runs streams, as the text of HTTP answers, through the official clients 0.0.59 and 1.0.0. It skips the test where these
// are not installed.
func judge(t *testing.T, streams [][][]byte) [][2]outcome {
	t.Helper()
	command, in, out := testneeds.StartNode(t, "oracle", "npm ci --ignore-scripts in server/accept/oracle", filepath.Join("oracle", "oracle.mjs"))
	asked := make(chan error, 1)
	go func() { // the clients answer while they are still asked
		ask := bufio.NewWriter(in)
		for _, stream := range streams {
			line, _ := json.Marshal(string(answer(stream)))
			ask.Write(append(line, '\n'))
		}
		err := ask.Flush()
		in.Close()
		asked <- err
	}()
	answers := bufio.NewScanner(out)
	answers.Buffer(nil, 64<<20)
	outcomes := make([][2]outcome, len(streams))
	for i := range streams {
		if !answers.Scan() {
			t.Fatalf("oracle: %v", answers.Err())
		}
		if err := json.Unmarshal(answers.Bytes(), &outcomes[i]); err != nil {
			t.Fatalf("%v in %.200s", err, answers.Bytes())
		}
	}
	must.Do(t, <-asked)
	must.Do(t, command.Wait())
	return outcomes
}

// answer writes events as an HTTP answer of the server: frames of text/event-stream.
func answer(events [][]byte) []byte {
	var text bytes.Buffer
	for i, event := range events {
		fmt.Fprintf(&text, "id: %d\n", i+1)
		for line := range bytes.SplitSeq(event, []byte("\n")) {
			fmt.Fprintf(&text, "data: %s\n", line)
		}
		text.WriteByte('\n')
	}
	return text.Bytes()
}
