// Package clients holds the server against software of others, unchanged: both lines of the AG-UI client, CopilotKit's core, and
// agents of several frameworks. The package has tests only. The JavaScript runs in one Node process (host.mjs), which the tests
// ask line by line.
package clients

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testneeds"
)

// patience bounds what a test waits for.
const patience = 30 * time.Second

func TestMain(m *testing.M) { testdb.Main(m) }

// nodeHost is a Node process with the stock clients.
type nodeHost struct {
	in io.WriteCloser

	mu      sync.Mutex
	nextID  int
	pending map[int]chan hostAnswer
}

type hostAnswer struct {
	ID     int             `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  string          `json:"error"`
}

// startHost starts a Node process, which ends with the test. It skips the test where the clients are not installed.
func startHost(t *testing.T) *nodeHost {
	t.Helper()
	command, in, out := testneeds.StartNode(t, ".", "make clients", "host.mjs")
	h := &nodeHost{in: in, pending: map[int]chan hostAnswer{}}
	read := make(chan error, 1)
	go func() { read <- h.read(out) }()
	t.Cleanup(func() {
		var unhandled []string
		if answer, err := h.ask("unhandled", nil); err != nil {
			t.Error(err)
		} else if err := json.Unmarshal(answer, &unhandled); err != nil || len(unhandled) > 0 {
			t.Errorf("the clients left errors unhandled: %v%s", err, strings.Join(unhandled, "; "))
		}
		in.Close()
		if err := errors.Join(<-read, command.Wait()); err != nil {
			t.Error("the host of the clients:", err)
		}
	})
	return h
}

// read takes the answers.
func (h *nodeHost) read(out io.Reader) error {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var answer hostAnswer
		if err := json.Unmarshal(lines.Bytes(), &answer); err != nil {
			return fmt.Errorf("%w in %.200s", err, lines.Bytes())
		}
		h.mu.Lock()
		waiting := h.pending[answer.ID]
		delete(h.pending, answer.ID)
		h.mu.Unlock()
		if waiting != nil {
			waiting <- answer
		}
	}
	return lines.Err()
}

// begin sends a call. The answer comes on the channel.
func (h *nodeHost) begin(op string, args map[string]any) <-chan hostAnswer {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.nextID++
	call := map[string]any{"id": h.nextID, "op": op}
	maps.Copy(call, args)
	answer := make(chan hostAnswer, 1)
	line, err := json.Marshal(call)
	if err == nil {
		h.pending[h.nextID] = answer
		_, err = h.in.Write(append(line, '\n'))
	}
	if err != nil {
		answer <- hostAnswer{Error: err.Error()}
	}
	return answer
}

// ask sends a call and waits for its answer.
func (h *nodeHost) ask(op string, args map[string]any) (json.RawMessage, error) {
	select {
	case answer := <-h.begin(op, args):
		if answer.Error != "" {
			return nil, fmt.Errorf("%s: %s", op, answer.Error)
		}
		return answer.Result, nil
	case <-time.After(patience):
		return nil, fmt.Errorf("%s: no answer", op)
	}
}
