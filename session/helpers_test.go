package session_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/session"
)

// The agent of these tests: a chat history, of which a store is made that has a client, and a todo list.

type ChatHistory struct {
	Messages []Message `json:"messages"`
}

type Message struct {
	Role string `json:"role"`
	Text string `json:"text,omitempty"`
}

type MessageStore interface {
	Add(role, text string)
	Client() *Client
}

// Client stands for the client of an SDK, which cannot be written to a document.
type Client struct{ endpoint string }

type historyStore struct {
	history *ChatHistory
	client  *Client
}

func (h *historyStore) Add(role, text string) {
	h.history.Messages = append(h.history.Messages, Message{role, text})
}
func (h *historyStore) Client() *Client { return h.client }

type TodoList struct {
	Items []Todo `json:"items"`
}

type Todo struct {
	ID   int  `json:"id"`
	Done bool `json:"done"`
}

type Todos struct{ list *TodoList }

func (t *Todos) Finish(id int) {
	for i := range t.list.Items {
		if t.list.Items[i].ID == id {
			t.list.Items[i].Done = true
		}
	}
}

// The names that chat histories have in the documents of testdata.
const (
	pythonHistory = "in_memory"
	dotnetHistory = "InMemoryChatHistoryProvider"
)

// newAgent returns what an agent runs in.
func newAgent(client *Client, history string) context.Context {
	registry := session.NewRegistry()
	session.Register(registry, history, func(_ context.Context, history *ChatHistory) (MessageStore, error) {
		return &historyStore{history, client}, nil
	})
	session.Register(registry, "todo_list", func(_ context.Context, list *TodoList) (*Todos, error) { return &Todos{list}, nil })
	return session.WithRegistry(context.Background(), registry)
}

func behaviour[T any](t testing.TB, ctx context.Context, s *session.Session) T {
	t.Helper()
	return must.Have(session.Behaviour[T](ctx, s))(t)
}

func golden(t testing.TB, name string) []byte {
	t.Helper()
	return must.Have(os.ReadFile(filepath.Join("testdata", name)))(t)
}

func read(t testing.TB, text string) session.Session {
	t.Helper()
	var s session.Session
	must.Do(t, json.Unmarshal([]byte(text), &s))
	return s
}

// written is the session byte for byte; json.Marshal would make it compact.
func written(t testing.TB, s session.Session) string {
	t.Helper()
	return string(must.Have(s.MarshalJSON())(t))
}

func wantBytes(t testing.TB, got, want []byte) {
	t.Helper()
	if bytes.Equal(got, want) {
		return
	}
	at := 0
	for at < len(got) && at < len(want) && got[at] == want[at] {
		at++
	}
	t.Fatalf("got\n%s\nwant\n%s\nthey differ from byte %d on: %q, want %q", got, want, at, clip(got[at:]), clip(want[at:]))
}

func clip(text []byte) []byte { return text[:min(len(text), 40)] }

func wantText(t testing.TB, got, want string) {
	t.Helper()
	wantBytes(t, []byte(got), []byte(want))
}
