package test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testfile"
	"github.com/pgagui/pgagui/session"
)

// chatHistory is a state as frameworks keep it: what the Go type does not know of it must stay.
type chatHistory struct {
	Messages []json.RawMessage `json:"messages"`
}

// messageStore is the behaviour of a chat history. It needs a client, which no document can hold.
type messageStore struct {
	history  *chatHistory
	database *pgxpool.Pool
}

// add notes which database the store works with.
func (s *messageStore) add(ctx context.Context) error {
	var name string
	if err := s.database.QueryRow(ctx, "select current_database()").Scan(&name); err != nil {
		return err
	}
	s.history.Messages = append(s.history.Messages, json.RawMessage(`{"role":"assistant","text":"from `+name+`"}`))
	return nil
}

// sessionAgent, when set, makes the test binary an agent that goes on with the session of the thread t in a database.
const sessionAgent = "PGAGUI_TEST_SESSION_AGENT"

// goOnWithSession is what that agent does: "address key" says where.
func goOnWithSession(where string) error {
	ctx := context.Background()
	address, key, _ := strings.Cut(where, " ")
	pool, err := pgxpool.New(ctx, address)
	if err != nil {
		return err
	}
	defer pool.Close()
	store := pgagui.New(pool, nil)

	registry := session.NewRegistry()
	session.Register(registry, key, func(_ context.Context, history *chatHistory) (*messageStore, error) {
		return &messageStore{history, pool}, nil
	})
	saved, err := store.Sessions().Load(ctx, pgagui.SessionKey{ThreadID: "t", Key: "session"}, pgagui.LoadOptions{RunID: "r2"})
	if err != nil {
		return err
	}
	var restored session.Session
	if err := json.Unmarshal(saved.JSON, &restored); err != nil {
		return err
	}
	messages, err := session.Behaviour[*messageStore](session.WithRegistry(ctx, registry), &restored)
	if err != nil {
		return err
	}
	if err := messages.add(ctx); err != nil {
		return err
	}
	document, err := restored.MarshalJSON()
	if err != nil {
		return err
	}
	_, err = store.Sessions().Save(ctx, pgagui.SessionKey{ThreadID: "t", Key: "session"}, document, pgagui.SaveOptions{RunID: "r2", ExpectedVersion: saved.Version})
	return err
}

// A document that another framework wrote is saved after a run, and goes on after the next one in another process, where its behaviour works with that
// process's client. The run before, and a branch beside it, have what was there.
func TestSessionsOfFrameworksGoOnInAnotherProcess(t *testing.T) {
	t.Parallel()
	for file, part := range map[string]struct{ key, lastMessage string }{
		"session_python.json": {"in_memory", `"chatcmpl-7"}]`},
		"session_dotnet.json": {"InMemoryChatHistoryProvider", `{"tokens":12345678901234567890}}]`},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			address := testdb.New(t)
			pool := testdb.Connect(t, address)
			store := pgagui.New(pool, nil)
			document := testfile.Read(t, filepath.Join("../session/testdata", file))
			mustAppend(t, store, "t", "r1", run("r1", nil))
			version := must.Have(store.Sessions().Save(t.Context(), pgagui.SessionKey{ThreadID: "t", Key: "session"}, document, pgagui.SaveOptions{RunID: "r1"}))(t)
			mustAppend(t, store, "t", "r2", run("r2", nil))
			mustAppend(t, store, "t", "r3", events(`
				{"type":"RUN_STARTED","threadId":"t","runId":"r3","parentRunId":"r1"}
				{"type":"RUN_FINISHED","threadId":"t","runId":"r3"}`))

			program, err := os.Executable()
			must.Do(t, err)
			agent := exec.CommandContext(t.Context(), program)
			agent.Env = append(os.Environ(), sessionAgent+"="+address+" "+part.key)
			if output, err := agent.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, output)
			}

			name := testdb.Ask[string](t, pool, "select current_database()")
			separator := ","
			if strings.Contains(string(document), `, "`) {
				separator = ", " // as Python writes lists
			}
			added := strings.TrimSuffix(part.lastMessage, "]") + separator + `{"role":"assistant","text":"from ` + name + `"}]`
			changed := strings.Replace(string(document), part.lastMessage, added, 1)
			for runID, want := range map[string]string{"r1": string(document), "r2": changed, "r3": string(document)} {
				loaded, err := store.Sessions().Load(t.Context(), pgagui.SessionKey{ThreadID: "t", Key: "session"}, pgagui.LoadOptions{RunID: runID})
				if err != nil || string(loaded.JSON) != want {
					t.Errorf("%s has, error %v,\n%s\nwant\n%s", runID, err, loaded.JSON, want)
				}
			}
			_, err = store.Sessions().Save(t.Context(), pgagui.SessionKey{ThreadID: "t", Key: "session"}, document, pgagui.SaveOptions{RunID: "r2", ExpectedVersion: version})
			if !errors.Is(err, pgagui.ErrStaleVersion) {
				t.Errorf("a writer that has not seen what the agent saved: %v", err)
			}
		})
	}
}

// A whole session is loaded after a run, changed by behaviours, and saved after the next run with its versions; other documents stay as they are.
func TestAWholeSessionGoesThroughBehaviours(t *testing.T) {
	t.Parallel()
	store := pgagui.New(testdb.Pool(t), nil)
	ctx := t.Context()
	mustAppend(t, store, "t", "r1", run("r1", nil))
	mustAppend(t, store, "t", "r2", run("r2", nil))
	for key, document := range map[string]string{
		"history": `{ "messages": [], "$type": "ChatHistory", "score": 1.0 }`,
		"other":   `{"$type":"Unknown","a":"\u0000\ud83d","a":1e400}`,
	} {
		must.Have(store.Sessions().Save(ctx, pgagui.SessionKey{ThreadID: "t", Key: key}, json.RawMessage(document), pgagui.SaveOptions{RunID: "r1"}))(t)
	}
	registry := session.NewRegistry()
	session.Register(registry, "ChatHistory", func(_ context.Context, history *chatHistory) (*messageStore, error) {
		return &messageStore{history: history}, nil
	})

	document := must.Have(store.Sessions().LoadAll(ctx, pgagui.SessionRef{ThreadID: "t", RunID: "r2"}))(t)
	var whole session.Session
	must.Do(t, json.Unmarshal(document, &whole))
	if whole.ID != "t" || whole.RunID != "r2" || len(whole.Versions) != 2 {
		t.Errorf("the session says %+v", whole)
	}
	messages, err := session.Behaviour[*messageStore](session.WithRegistry(ctx, registry), &whole)
	must.Do(t, err)
	messages.history.Messages = append(messages.history.Messages, json.RawMessage(`"hi"`))
	if document, err = whole.MarshalJSON(); err != nil {
		t.Fatal(err)
	}
	must.Have(store.Sessions().SaveAll(ctx, document))(t)
	for _, want := range []pgagui.SessionState{
		{Key: "history", RunID: "r2", Version: 2, JSON: json.RawMessage(`{ "messages": ["hi"], "$type": "ChatHistory", "score": 1.0 }`)},
		{Key: "other", RunID: "r1", Version: 1, JSON: json.RawMessage(`{"$type":"Unknown","a":"\u0000\ud83d","a":1e400}`)},
	} {
		got, err := store.Sessions().Load(ctx, pgagui.SessionKey{ThreadID: "t", Key: want.Key}, pgagui.LoadOptions{RunID: "r2"})
		if err != nil || got.RunID != want.RunID || got.Version != want.Version || string(got.JSON) != string(want.JSON) {
			t.Errorf("%+v %s, error %v, want %+v %s", got, got.JSON, err, want, want.JSON)
		}
	}
}

// Checkpoints of workflow engines and of LangGraph, in whatever order they come, are stored behind their parents and come back byte for byte,
// each with its lineage.
func TestCheckpointsOfFrameworksComeBackWithTheirLineage(t *testing.T) {
	t.Parallel()
	store := pgagui.New(testdb.Pool(t), nil)
	ctx := t.Context()
	for _, file := range []string{
		"workflow_checkpoint_python.json", "workflow_checkpoint_dotnet.json", "workflow_checkpoint_dotnet_stored.json", "langgraph_tuple.json", "langgraph_state.json", "langgraph_row.json",
	} {
		document := testfile.Read(t, filepath.Join("../session/testdata", file))
		last, err := session.ReadCheckpoint(document)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if last.ID == "" {
			last.ID = "given by the store" // as the documents of .NET are
		}
		// Those before it, the youngest first.
		checkpoints := []session.Checkpoint{last}
		for parentID := last.ParentID; parentID != "" && len(checkpoints) < 4; {
			earlier := session.Checkpoint{Namespace: last.Namespace, ID: parentID, Document: json.RawMessage(`{"id": "` + parentID + `"}`)}
			if len(checkpoints) < 3 {
				earlier.ParentID = "before " + parentID
			}
			parentID = earlier.ParentID
			checkpoints = append(checkpoints, earlier)
		}
		if checkpoints, err = session.ParentsFirst(checkpoints); err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, checkpoint := range checkpoints {
			want = append(want, string(checkpoint.Document))
			if _, err := store.Checkpoints().Save(ctx, file, pgagui.Checkpoint{
				ID: checkpoint.ID, ParentID: checkpoint.ParentID, Namespace: checkpoint.Namespace, JSON: checkpoint.Document,
			}); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
		}
		lineage := must.Have(store.Checkpoints().Lineage(ctx, file, pgagui.CheckpointRef{Namespace: last.Namespace, ID: last.ID}))(t)
		var got []string
		for _, checkpoint := range lineage {
			got = append(got, string(checkpoint.JSON))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: the lineage is\n%s\nwant\n%s", file, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// What agents keep for themselves is in nothing that a client gets of the thread.
func TestSessionStateReachesNoClient(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	ctx := t.Context()
	document := testfile.Read(t, "../session/testdata/thread_snapshot.json")
	var snapshot session.StoredThreadSnapshot
	must.Do(t, json.Unmarshal(document, &snapshot))
	if !strings.Contains(string(snapshot.SessionState), "secret") {
		t.Fatal("the snapshot has no secret to keep")
	}
	for _, line := range []string{
		`{"type":"RUN_STARTED","threadId":"t","runId":"r1"}`,
		`{"type":"MESSAGES_SNAPSHOT","messages":` + string(snapshot.Messages) + `}`,
		`{"type":"STATE_SNAPSHOT","snapshot":` + string(snapshot.State) + `}`,
		`{"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":` + string(snapshot.Interrupt) + `}}`,
	} {
		mustAppend(t, store, "t", "r1", []json.RawMessage{json.RawMessage(line)})
	}
	must.Have(store.Sessions().Save(ctx, pgagui.SessionKey{ThreadID: "t", Key: "snapshot"}, document, pgagui.SaveOptions{RunID: "r1"}))(t)
	stored, err := store.Sessions().Load(ctx, pgagui.SessionKey{ThreadID: "t", Key: "snapshot"}, pgagui.LoadOptions{RunID: "r1"})
	if err != nil || string(stored.JSON) != string(document) {
		t.Errorf("stored %s, error %v", stored.JSON, err)
	}
	if text, err := json.Marshal(snapshot.ThreadSnapshot); err != nil || strings.Contains(string(text), "secret") {
		t.Errorf("a client gets %s, error %v", text, err)
	}
	for _, query := range []string{
		"agui.restore('t')", "agui.replay('t') as item", "agui.replay('t', shape => 'stream') as item", "agui.events('t') as item",
		"agui.history('t') as item", "agui.messages('t') as item", "agui.session_messages('t') as item", "agui.tool_calls('t') as item",
		"agui.poll(array['t'], array[0]::bigint[]) as item", "agui.event as item",
	} {
		text := testdb.Ask[string](t, pool, "select string_agg(item::text, ' ') from "+strings.Replace(query, "restore('t')", "restore('t') as item", 1))
		if strings.Contains(text, "secret") || text == "" {
			t.Errorf("%s gives %s", query, text)
		}
	}
}
