package session_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/session"
)

// The test binary runs again as an agent in a process of its own, which reads a session from stdin, goes on, and writes it to stdout.
const asAgent = "SESSION_TEST_AGENT"

func TestMain(m *testing.M) {
	history, isAgent := os.LookupEnv(asAgent)
	if !isAgent {
		os.Exit(m.Run())
	}
	if err := goOn(history); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func goOn(history string) error {
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	var s session.Session
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	client := &Client{fmt.Sprint("process ", os.Getpid())}
	store, err := session.Behaviour[MessageStore](newAgent(client, history), &s)
	if err != nil {
		return err
	}
	if store.Client() != client {
		return fmt.Errorf("the behaviour has the client %v", store.Client())
	}
	store.Add("assistant", "back 😀")
	written, err := s.MarshalJSON()
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(written)
	return err
}

func TestASessionGoesOnInANewProcess(t *testing.T) {
	t.Parallel()
	const added = `{"role":"assistant","text":"back 😀"}`
	for _, shape := range []struct{ file, history, from, to string }{
		{"session_python.json", pythonHistory, `"chatcmpl-7"}]`, `"chatcmpl-7"}, ` + added + `]`},
		{"session_dotnet.json", dotnetHistory, `{"tokens":12345678901234567890}}]`, `{"tokens":12345678901234567890}},` + added + `]`},
	} {
		t.Run(shape.file, func(t *testing.T) {
			t.Parallel()
			text := golden(t, shape.file)
			agent := exec.CommandContext(t.Context(), must.Have(os.Executable())(t))
			agent.Env = append(os.Environ(), asAgent+"="+shape.history)
			agent.Stdin = bytes.NewReader(text)
			agent.Stderr = os.Stderr
			want := strings.Replace(string(text), shape.from, shape.to, 1)
			wantText(t, string(must.Have(agent.Output())(t)), want)
		})
	}
}
