package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/session"
)

// Driver C of the decision record.
func TestCallersGetAtBehavioursTheSameOneEachTime(t *testing.T) {
	t.Parallel()
	literal := session.Session{ID: "t"}
	literal.Keys() // its first use
	for name, s := range map[string]session.Session{
		"read":    read(t, `{"threadId":"t","state":{"History":{"messages":[]}}}`),
		"new":     session.New("t"),
		"literal": literal,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var made atomic.Int32
			registry := session.NewRegistry()
			session.Register(registry, "History", func(_ context.Context, history *ChatHistory) (MessageStore, error) {
				made.Add(1)
				return &historyStore{history, &Client{}}, nil
			})
			ctx := session.WithRegistry(context.Background(), registry)
			stores := make([]MessageStore, 32)
			var wait sync.WaitGroup
			for i := range stores {
				wait.Go(func() { stores[i], _ = session.Behaviour[MessageStore](ctx, &s) })
			}
			wait.Wait()
			for _, store := range stores {
				if store == nil || store != stores[0] {
					t.Fatal("callers got different behaviours")
				}
			}
			if made.Load() != 1 {
				t.Fatalf("it was made %d times", made.Load())
			}
			stores[0].Add("user", "hi")
			if history := must.Have(session.StateOf[ChatHistory](&s, "History"))(t); history.Messages[0].Text != "hi" {
				t.Fatal("the state is not that of the behaviour")
			}
		})
	}
}

func TestWhatAStateSaysOfItsTypeDecides(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ state, key string }{
		{`{"a":{"$type":"History","type":"Other"}}`, "a"},
		{`{"a":{"type":"History"}}`, "a"},
		{`{"History":{}}`, "History"},
		{`{"History":{"type":"of another meaning"}}`, "History"},
		{`{"History":{"$type":7}}`, "History"},
		{`{"b":{"$type":"Unknown"},"History":{"messages":null}}`, "History"},
	} {
		s := read(t, `{"threadId":"t","state":`+test.state+`}`)
		behaviour[MessageStore](t, newAgent(&Client{}, "History"), &s).Add("user", "hi")
		state := must.Have(s.State(test.key))(t)
		if !strings.Contains(string(state), `"messages":[{"role":"user","text":"hi"}]`) || len(s.Keys()) != strings.Count(test.state, ":{") {
			t.Errorf("%s became %s", test.state, written(t, s))
		}
	}
}

func TestUnknownTypesAreKeptAsTheyCame(t *testing.T) {
	t.Parallel()
	const text = `{"threadId":"t","state":{"x":{"$type":"Demo.Unknown, Demo","n":1.0}},"versions":{"x":1}}`
	s := read(t, text)
	behaviour[MessageStore](t, newAgent(&Client{}, "History"), &s)
	wantText(t, written(t, s), strings.Replace(text, `1.0}}`, `1.0},"History":{"$type":"History","messages":null}}`, 1))
}

func TestNewStatesSayTheirTypeAsTheShapeHasIt(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"stateBag":{}}`:               `{"stateBag":{"History":{"$type":"History","messages":null}}}`,
		`{"session_id":"s","state":{}}`: `{"session_id":"s","state":{"History":{"type":"History","messages":null}}}`,
	} {
		s := read(t, text)
		behaviour[MessageStore](t, newAgent(&Client{}, "History"), &s)
		wantText(t, written(t, s), want)
	}
}

func TestStatesThatAreNoObjectsGoByTheirKey(t *testing.T) {
	t.Parallel()
	type notes []string
	type notebook struct{ notes *notes }
	registry := session.NewRegistry()
	session.Register(registry, "Notes", func(_ context.Context, n *notes) (*notebook, error) { return &notebook{n}, nil })
	ctx := session.WithRegistry(context.Background(), registry)
	s := session.New("t")
	book := behaviour[*notebook](t, ctx, &s)
	*book.notes = append(*book.notes, "one")
	wantText(t, written(t, s), `{"threadId":"t","runId":null,"state":{"Notes":["one"]},"versions":{}}`)
	again := read(t, written(t, s))
	if book := behaviour[*notebook](t, ctx, &again); (*book.notes)[0] != "one" {
		t.Fatal(book.notes)
	}
}

func TestWhatCannotBeFoundIsSaidPlainly(t *testing.T) {
	t.Parallel()
	agent := newAgent(&Client{}, "History")
	two := session.NewRegistry()
	for _, name := range []string{"Redis", "Memory"} {
		session.Register(two, name, func(context.Context, *ChatHistory) (MessageStore, error) { return nil, io.ErrUnexpectedEOF })
	}
	both := session.WithRegistry(context.Background(), two)
	for _, test := range []struct {
		name  string
		ctx   context.Context
		state string
		find  func(context.Context, *session.Session) error
		want  error
		says  []string
	}{
		{"no registry", context.Background(), `{}`, findStore, session.ErrNoRegistry, []string{"MessageStore", "WithRegistry"}},
		{"not registered", agent, `{}`, findReader, session.ErrNoBehaviour, []string{"io.Reader"}},
		{"two states", agent, `{"a":{"$type":"History"},"b":{"$type":"History"}}`, findStore, session.ErrAmbiguous, []string{`"a", "b"`, "BehaviourAt"}},
		{"two types", both, `{}`, findStore, session.ErrAmbiguous, []string{`"Redis", "Memory"`, "BehaviourAt"}},
		{"key in use", agent, `{"History":{"$type":"Unknown"}}`, findStore, session.ErrNoBehaviour, []string{`"History"`, `"Unknown"`}},
		{"unknown type at key", agent, `{"a":{"$type":"Unknown"}}`, findStoreAt, session.ErrNoBehaviour, []string{`"a"`, `"Unknown"`}},
		{"another behaviour at key", agent, `{"a":{"$type":"todo_list"}}`, findStoreAt, session.ErrNoBehaviour, []string{`"a"`, "Todos", "MessageStore"}},
		{"state of another form", agent, `{"a":{"$type":"History","messages":7}}`, findStore, session.ErrInvalidState, []string{`"a"`, `"History"`, "ChatHistory", "messages"}},
		{"factory that fails", both, `{"Redis":{}}`, findStore, io.ErrUnexpectedEOF, []string{`"Redis"`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			text := `{"threadId":"t","state":` + test.state + `}`
			s := read(t, text)
			err := test.find(test.ctx, &s)
			if !errors.Is(err, test.want) {
				t.Fatalf("%v, want %v", err, test.want)
			}
			for _, part := range test.says {
				if !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "\n") {
					t.Errorf("%v does not say %s in one line", err, part)
				}
			}
			wantText(t, written(t, s), text)
		})
	}
}

func findStore(ctx context.Context, s *session.Session) error {
	_, err := session.Behaviour[MessageStore](ctx, s)
	return err
}

func findStoreAt(ctx context.Context, s *session.Session) error {
	_, err := session.BehaviourAt[MessageStore](ctx, s, "a")
	return err
}

func findReader(ctx context.Context, s *session.Session) error {
	_, err := session.Behaviour[io.Reader](ctx, s)
	return err
}

type middleware func() string

func TestABehaviourOfAnotherTypeIsNoneOfThisType(t *testing.T) {
	t.Parallel()
	registry := session.NewRegistry()
	session.Register(registry, "Greeting", func(context.Context, *struct{}) (func() string, error) {
		return func() string { return "hi" }, nil
	})
	ctx := session.WithRegistry(context.Background(), registry)
	s := session.New("t")
	wantText(t, behaviour[func() string](t, ctx, &s)(), "hi")
	// Go would assign one to the other.
	if _, err := session.Behaviour[middleware](ctx, &s); !errors.Is(err, session.ErrNoBehaviour) {
		t.Error(err)
	}
	if _, err := session.BehaviourAt[middleware](ctx, &s, "Greeting"); !errors.Is(err, session.ErrNoBehaviour) {
		t.Error(err)
	}
}

func TestBehavioursAreChosenByKey(t *testing.T) {
	t.Parallel()
	ctx := newAgent(&Client{}, "History")
	s := read(t, `{"stateBag":{"a":{"$type":"History"},"b":{"$type":"History"},"custom":{"messages":[]}}}`)
	stores := map[MessageStore]bool{}
	for _, key := range []string{"a", "b", "custom", "new", "History", "a"} {
		store := must.Have(session.BehaviourAt[MessageStore](ctx, &s, key))(t)
		if !stores[store] {
			store.Add("user", key)
		}
		stores[store] = true
	}
	if len(stores) != 5 {
		t.Fatal(len(stores))
	}
	wantText(t, written(t, s), `{"stateBag":{"a":{"$type":"History","messages":[{"role":"user","text":"a"}]},"b":{"$type":"History","messages":[{"role":"user","text":"b"}]},`+
		`"custom":{"messages":[{"role":"user","text":"custom"}]},"new":{"$type":"History","messages":[{"role":"user","text":"new"}]},`+
		`"History":{"$type":"History","messages":[{"role":"user","text":"History"}]}}}`)
}

func TestAFactoryThatFailsIsTriedAgain(t *testing.T) {
	t.Parallel()
	var calls int
	registry := session.NewRegistry()
	session.Register(registry, "History", func(_ context.Context, history *ChatHistory) (MessageStore, error) {
		if calls++; calls == 1 {
			history.Messages = append(history.Messages, Message{"user", "of the first try"})
			return nil, io.ErrUnexpectedEOF
		}
		return &historyStore{history, nil}, nil
	})
	ctx := session.WithRegistry(context.Background(), registry)
	s := session.New("t")
	if err := findStore(ctx, &s); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	if s.Keys() != nil {
		t.Fatal("a factory that failed left a state")
	}
	behaviour[MessageStore](t, ctx, &s)
	wantText(t, string(must.Have(s.State("History"))(t)), `{"$type":"History","messages":null}`)
}

func TestAFactoryThatPanicsLetsOthersTry(t *testing.T) {
	t.Parallel()
	var calls int
	registry := session.NewRegistry()
	session.Register(registry, "History", func(_ context.Context, history *ChatHistory) (MessageStore, error) {
		if calls++; calls == 1 {
			panic("first")
		}
		return &historyStore{history, nil}, nil
	})
	ctx := session.WithRegistry(context.Background(), registry)
	s := session.New("t")
	func() {
		defer func() { _ = recover() }()
		_ = findStore(ctx, &s)
	}()
	behaviour[MessageStore](t, ctx, &s)
}

// A reducer is a behaviour that needs another.
type reducer struct{ store MessageStore }

func TestFactoriesMayAskForOtherBehaviours(t *testing.T) {
	t.Parallel()
	s := session.New("t")
	registry := session.NewRegistry()
	session.Register(registry, "History", func(_ context.Context, history *ChatHistory) (MessageStore, error) {
		return &historyStore{history, nil}, nil
	})
	session.Register(registry, "Reducer", func(ctx context.Context, _ *struct{}) (*reducer, error) {
		store, err := session.Behaviour[MessageStore](ctx, &s)
		return &reducer{store}, err
	})
	ctx := session.WithRegistry(context.Background(), registry)
	if behaviour[*reducer](t, ctx, &s).store != behaviour[MessageStore](t, ctx, &s) {
		t.Fatal("the reducer has another store")
	}

	session.Register(registry, "Snake", func(ctx context.Context, _ *struct{}) (io.Reader, error) {
		return session.Behaviour[io.Reader](ctx, &s)
	})
	if err := findReader(ctx, &s); !errors.Is(err, session.ErrCycle) {
		t.Fatal(err)
	}
}

func TestBehavioursThatNeedEachOtherAreToldSoWhoeverMakesThem(t *testing.T) {
	t.Parallel()
	var chicken, egg sync.Once
	chickenBegun, eggBegun := make(chan struct{}), make(chan struct{})
	s := session.New("t")
	registry := session.NewRegistry()
	session.Register(registry, "Chicken", func(ctx context.Context, _ *struct{}) (io.Reader, error) {
		chicken.Do(func() { close(chickenBegun) })
		<-eggBegun
		_, err := session.Behaviour[io.Writer](ctx, &s)
		return strings.NewReader(""), err
	})
	session.Register(registry, "Egg", func(ctx context.Context, _ *struct{}) (io.Writer, error) {
		egg.Do(func() { close(eggBegun) })
		<-chickenBegun
		_, err := session.Behaviour[io.Reader](ctx, &s)
		return io.Discard, err
	})
	ctx, giveUp := context.WithTimeout(session.WithRegistry(context.Background(), registry), time.Minute)
	defer giveUp()

	failed := make(chan error)
	go func() { failed <- findReader(ctx, &s) }()
	go func() {
		_, err := session.Behaviour[io.Writer](ctx, &s)
		failed <- err
	}()
	for range 2 {
		if err := <-failed; !errors.Is(err, session.ErrCycle) {
			t.Error(err)
		}
	}
}

func TestFactoriesOfTwoSessionsThatNeedEachOtherFail(t *testing.T) {
	t.Parallel()
	one, two := session.New("1"), session.New("2")
	registry := session.NewRegistry()
	session.Register(registry, "Chicken", func(ctx context.Context, _ *struct{}) (io.Reader, error) {
		_, err := session.Behaviour[io.Writer](ctx, &two)
		return strings.NewReader(""), err
	})
	session.Register(registry, "Egg", func(ctx context.Context, _ *struct{}) (io.Writer, error) {
		return io.Discard, findReader(ctx, &one)
	})
	if err := findReader(session.WithRegistry(t.Context(), registry), &one); !errors.Is(err, session.ErrCycle) {
		t.Fatal(err)
	}
}

func TestWhoWaitsForABehaviourCanGiveUp(t *testing.T) {
	t.Parallel()
	begun, goOn := make(chan struct{}), make(chan struct{})
	registry := session.NewRegistry()
	session.Register(registry, "History", func(_ context.Context, history *ChatHistory) (MessageStore, error) {
		close(begun)
		<-goOn
		return &historyStore{history, nil}, nil
	})
	ctx := session.WithRegistry(context.Background(), registry)
	s := session.New("t")
	made := make(chan error)
	go func() { made <- findStore(ctx, &s) }()
	<-begun
	impatient, giveUp := context.WithCancel(ctx)
	giveUp()
	if err := findStore(impatient, &s); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	wantText(t, written(t, s), `{"threadId":"t","runId":null,"state":{},"versions":{}}`) // nor does writing wait
	close(goOn)
	must.Do(t, <-made)
}

func TestAStateThatIsSetWhileItsBehaviourIsMadeCounts(t *testing.T) {
	t.Parallel()
	s := read(t, `{"threadId":"t","state":{"History":{"messages":[{"role":"old"}]}}}`)
	registry := session.NewRegistry()
	var roles []string
	session.Register(registry, "History", func(_ context.Context, history *ChatHistory) (MessageStore, error) {
		if roles = append(roles, history.Messages[0].Role); len(roles) == 1 {
			must.Do(t, s.SetState("History", json.RawMessage(`{"messages":[{"role":"new"}]}`)))
		}
		return &historyStore{history, nil}, nil
	})
	behaviour[MessageStore](t, session.WithRegistry(context.Background(), registry), &s).Add("user", "hi")
	wantText(t, strings.Join(roles, " "), "old new")
	wantText(t, string(must.Have(s.State("History"))(t)), `{"messages":[{"role":"new"},{"role":"user","text":"hi"}]}`)
}

func TestAStateIsOfOneType(t *testing.T) {
	t.Parallel()
	s := read(t, `{"threadId":"t","state":{"History":{"messages":[]}}}`)
	history := must.Have(session.StateOf[ChatHistory](&s, "History"))(t)
	ctx := newAgent(&Client{}, "History")
	behaviour[MessageStore](t, ctx, &s).Add("user", "hi")
	if len(history.Messages) != 1 {
		t.Fatal("the behaviour has not the state that was in use already")
	}
	if _, err := session.StateOf[TodoList](&s, "History"); !errors.Is(err, session.ErrInvalidState) {
		t.Fatal(err)
	}
	todos := must.Have(session.StateOf[TodoList](&s, "todos"))(t)
	todos.Items = append(todos.Items, Todo{ID: 1})
	wantText(t, string(must.Have(s.State("todos"))(t)), `{"items":[{"id":1,"done":false}]}`)
	if _, err := session.BehaviourAt[MessageStore](ctx, &s, "todos"); !errors.Is(err, session.ErrInvalidState) {
		t.Fatal(err)
	}
}

// An oldStore has the methods of old: it writes itself, and is made of what it wrote.
type oldStore struct {
	lines  []string
	client *Client
}

func (o *oldStore) Serialize() (json.RawMessage, error) {
	if slices.Contains(o.lines, "unwritable") {
		return nil, io.ErrShortWrite
	}
	return json.Marshal(map[string]any{"lines": o.lines})
}

// migratedList reads two formats and writes the newer one.
type migratedList struct{ items []int }

func (m *migratedList) Serialize() (json.RawMessage, error) {
	return json.Marshal(map[string]any{"v": 2, "list": m.items})
}

// A mixture of two formats would be none: a reader that goes by v would miss the change.
func TestASerialiserWithAnotherFormatWritesAllOfIt(t *testing.T) {
	t.Parallel()
	registry := session.NewRegistry()
	session.RegisterSerializer(registry, "List", func(_ context.Context, document json.RawMessage) (*migratedList, error) {
		var restored struct{ Items, List []int }
		err := json.Unmarshal(document, &restored)
		return &migratedList{append(restored.Items, restored.List...)}, err
	})
	ctx := session.WithRegistry(context.Background(), registry)
	for before, after := range map[string]string{
		`{"$type":"List","v":1,"items":[1]}`:                     `{"$type":"List","list":[1,2],"v":2}`,
		`{"$type":"List", "v": 2, "list": [1], "note": "stays"}`: `{"$type":"List", "v": 2, "list": [1,2], "note": "stays"}`,
	} {
		const around = `{"threadId":"t","state":{"x":STATE}}`
		s := read(t, strings.Replace(around, "STATE", before, 1))
		list := behaviour[*migratedList](t, ctx, &s)
		wantText(t, written(t, s), strings.Replace(around, "STATE", before, 1))
		list.items = append(list.items, 2)
		wantText(t, written(t, s), strings.Replace(around, "STATE", after, 1))
	}
}

func TestBehavioursThatSerialiseThemselves(t *testing.T) {
	t.Parallel()
	client := &Client{}
	registry := session.NewRegistry()
	session.RegisterSerializer(registry, "OldStore", func(_ context.Context, document json.RawMessage) (*oldStore, error) {
		restored := struct{ Lines []string }{}
		if document != nil {
			if err := json.Unmarshal(document, &restored); err != nil {
				return nil, err
			}
		}
		return &oldStore{restored.Lines, client}, nil
	})
	ctx := session.WithRegistry(context.Background(), registry)

	s := session.New("t")
	store := behaviour[*oldStore](t, ctx, &s)
	store.lines = append(store.lines, "a")
	wantText(t, string(must.Have(s.State("OldStore"))(t)), `{"$type":"OldStore","lines":["a"]}`)

	const text = `{"threadId":"t","state":{"x":{"$type":"OldStore", "lines":[ "a" ], "kept":1.0}}}`
	s = read(t, text)
	store = behaviour[*oldStore](t, ctx, &s)
	wantText(t, written(t, s), text)
	store.lines = append(store.lines, "b")
	wantText(t, written(t, s), strings.Replace(text, `[ "a" ]`, `[ "a", "b" ]`, 1))
	store.lines = []string{"unwritable"}
	if _, err := json.Marshal(s); !errors.Is(err, io.ErrShortWrite) || !strings.Contains(err.Error(), `"x"`) {
		t.Fatal(err)
	}
}

func TestMistakesInARegistryPanic(t *testing.T) {
	t.Parallel()
	registry := session.NewRegistry()
	register := func(name string) (panicked any) {
		defer func() { panicked = recover() }()
		session.Register(registry, name, func(context.Context, *ChatHistory) (MessageStore, error) { return nil, nil })
		return nil
	}
	if register("History") != nil || register("History") == nil || register("") == nil {
		t.Fatal("a name is taken twice, or is empty")
	}
	s := session.New("t")
	if err := findStore(session.WithRegistry(context.Background(), registry), &s); !errors.Is(err, session.ErrNoBehaviour) {
		t.Fatalf("a factory that gives nil: %v", err)
	}
}
