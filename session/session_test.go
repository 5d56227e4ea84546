package session_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/session"
)

var shapes = []string{"session_pgagui.json", "session_dotnet.json", "session_python.json"}

// Driver A of the decision record. TestASessionGoesOnInANewProcess does the same with another process.
func TestCustomBehavioursSurviveSerialisation(t *testing.T) {
	t.Parallel()
	first := session.New("thread-1")
	behaviour[MessageStore](t, newAgent(&Client{"first"}, "History"), &first).Add("user", "hi")
	text := must.Have(json.Marshal(first))(t)
	wantText(t, string(text), `{"threadId":"thread-1","runId":null,"state":{"History":{"$type":"History","messages":[{"role":"user","text":"hi"}]}},"versions":{}}`)

	var second session.Session
	must.Do(t, json.Unmarshal(text, &second))
	client := &Client{"second"}
	store := behaviour[MessageStore](t, newAgent(client, "History"), &second)
	if store.Client() != client {
		t.Fatal("the behaviour has not the client of the agent that it runs in")
	}
	store.Add("assistant", "hello again")
	wantText(t, written(t, second), strings.Replace(string(text), `"hi"}`, `"hi"},{"role":"assistant","text":"hello again"}`, 1))
	wantBytes(t, must.Have(json.Marshal(first))(t), text)
}

// Driver B of the decision record.
func TestStandardSerialisationIsEnough(t *testing.T) {
	t.Parallel()
	type inbox struct {
		Title string
		Open  []session.Session
		ByKey map[string]*session.Session
	}
	var box inbox
	box.Title = "all shapes"
	box.ByKey = map[string]*session.Session{}
	for _, name := range shapes {
		s := read(t, string(golden(t, name)))
		box.Open = append(box.Open, s)
		box.ByKey[name] = &s
	}
	for _, format := range []struct {
		name      string
		marshal   func(any) ([]byte, error)
		unmarshal func([]byte, any) error
	}{
		{"JSON", marshalPlainly, json.Unmarshal},
		{"CBOR", cbor.Marshal, cbor.Unmarshal},
	} {
		t.Run(format.name, func(t *testing.T) {
			var again inbox
			must.Do(t, format.unmarshal(must.Have(format.marshal(box))(t), &again))
			for i, name := range shapes {
				for _, s := range []session.Session{again.Open[i], *again.ByKey[name]} {
					got, want := []byte(written(t, s)), golden(t, name)
					if format.name == "JSON" {
						want = compact(t, want) // json.Marshal makes everything in it compact
					}
					wantBytes(t, got, want)
				}
			}
		})
	}
}

func TestSessionsAreWrittenAsTheyWereRead(t *testing.T) {
	t.Parallel()
	for _, name := range shapes {
		text := golden(t, name)
		var s session.Session
		must.Do(t, json.Unmarshal(text, &s))
		wantText(t, written(t, s), string(text))

		// Nor does a state change that is in use, as long as nobody changes it.
		for _, key := range s.Keys() {
			if strings.Contains(strings.ToLower(key), "memory") {
				must.Have(session.StateOf[ChatHistory](&s, key))(t)
			}
		}
		wantText(t, written(t, s), string(text))
	}
}

func TestAStateThatWasTouchedKeepsWhatItsTypeDoesNotKnow(t *testing.T) {
	t.Parallel()
	s := read(t, string(golden(t, "session_python.json")))
	behaviour[*Todos](t, newAgent(&Client{}, pythonHistory), &s).Finish(2)
	want := strings.Replace(string(golden(t, "session_python.json")), `"title": "leave", "done": false`, `"title": "leave", "done": true`, 1)
	wantText(t, written(t, s), want)
}

func TestFieldsOfASession(t *testing.T) {
	t.Parallel()
	s := read(t, string(golden(t, "session_pgagui.json")))
	if s.ID != "thread-1" || s.RunID != "run-7" || s.ServiceID != "" || s.Versions["todo"] != 12 {
		t.Fatalf("%+v", s)
	}
	s.RunID = "run-8"
	s.Versions["todo"] = 13
	delete(s.Versions, "settings")
	want := strings.NewReplacer("run-7", "run-8", `"todo":12,"settings":1}`, `"todo":13}`).Replace(string(golden(t, "session_pgagui.json")))
	wantText(t, written(t, s), want)
	s.RunID = ""
	wantText(t, written(t, s), strings.Replace(want, `"run-8"`, "null", 1))

	s = read(t, string(golden(t, "session_python.json")))
	if s.ID != "f3b6c1de-7a55-4c38-9a4e-0d7c6a1f5b11" || s.ServiceID != "" {
		t.Fatalf("%+v", s)
	}
	s.ServiceID = "resp_<1>"
	wantText(t, written(t, s), strings.Replace(string(golden(t, "session_python.json")), `"service_session_id": null`, `"service_session_id": "resp_<1>"`, 1))

	s = read(t, `{"stateBag":{}}`)
	s.ServiceID = "conv_1"
	wantText(t, written(t, s), `{"stateBag":{},"conversationId":"conv_1"}`)
}

func TestAShapeThatHasNoPlaceForAFieldSaysSo(t *testing.T) {
	t.Parallel()
	for _, s := range []session.Session{read(t, `{"stateBag":{}}`), read(t, `{"session_id":"s","state":{}}`)} {
		s.RunID = "r"
		if _, err := json.Marshal(s); !errors.Is(err, session.ErrNoField) {
			t.Fatal(err)
		}
		s.RunID, s.Versions = "", map[string]int64{"k": 1}
		if _, err := json.Marshal(s); !errors.Is(err, session.ErrNoField) {
			t.Fatal(err)
		}
	}
}

func TestAMemberWithoutANameIsNoField(t *testing.T) {
	t.Parallel()
	s := read(t, `{"":"x","stateBag":{}}`)
	if s.ID != "" || s.RunID != "" {
		t.Errorf("ID %q, RunID %q", s.ID, s.RunID)
	}
	s.ServiceID = "c"
	wantText(t, written(t, s), `{"":"x","stateBag":{},"conversationId":"c"}`)
}

func TestANewSessionIsOnlyItsID(t *testing.T) {
	t.Parallel()
	const text = `{"threadId":"t","runId":null,"state":{},"versions":{}}`
	literal := session.Session{ID: "t"}
	for _, s := range []*session.Session{new(session.New("t")), &literal} {
		wantText(t, string(must.Have(json.Marshal(s))(t)), text)
		must.Do(t, s.SetState("k", json.RawMessage(`{ "a": 1.0 }`)))
		wantText(t, written(t, *s), `{"threadId":"t","runId":null,"state":{"k":{ "a": 1.0 }},"versions":{}}`)
	}
}

func TestCopiesShareStatesButNotFields(t *testing.T) {
	t.Parallel()
	ctx := newAgent(&Client{}, pythonHistory)
	original := read(t, `{"threadId":"t","runId":"r","state":{"in_memory":{"messages":[]}}}`)
	store := behaviour[MessageStore](t, ctx, &original)
	branch := original
	branch.RunID = "r2"
	if behaviour[MessageStore](t, ctx, &branch) != store {
		t.Fatal("the copy has a behaviour of its own")
	}
	store.Add("user", "hi")
	wantText(t, written(t, original), `{"threadId":"t","runId":"r","state":{"in_memory":{"messages":[{"role":"user","text":"hi"}]}}}`)
	wantText(t, written(t, branch), `{"threadId":"t","runId":"r2","state":{"in_memory":{"messages":[{"role":"user","text":"hi"}]}}}`)

	// What was written and read again shares nothing.
	apart := read(t, written(t, original))
	behaviour[MessageStore](t, ctx, &apart).Add("user", "apart")
	if strings.Contains(written(t, original), "apart") {
		t.Fatal("a session that was read shares its states with what was written")
	}

	// Nor does a literal that was copied before it was used.
	literal := session.Session{ID: "t"}
	other := literal
	must.Do(t, literal.SetState("k", json.RawMessage("1")))
	if other.Keys() != nil {
		t.Fatal("unused literals share their states")
	}
}

func TestStatesAreReachedByKeyInOrder(t *testing.T) {
	t.Parallel()
	s := read(t, `{"threadId":"t","state":{"b":1.0 , "a" : {"x":"<"},"b":2.50}}`)
	if keys := s.Keys(); !slices.Equal(keys, []string{"a", "b"}) {
		t.Fatal(keys)
	}
	wantText(t, string(must.Have(s.State("b"))(t)), "2.50")
	if state := must.Have(s.State("missing"))(t); state != nil {
		t.Fatalf("%s", state)
	}
	must.Do(t, s.SetState("a", json.RawMessage(`[]`)))
	must.Do(t, s.SetState("new\n", json.RawMessage(`"\ud83d"`)))
	s.RemoveState("b")
	wantText(t, written(t, s), `{"threadId":"t","state":{ "a" : [],"new\n":"\ud83d"}}`)
	if err := s.SetState("a", json.RawMessage(`{`)); !errors.Is(err, session.ErrInvalidState) {
		t.Fatal(err)
	}
}

func TestAStateThatIsSetHasANewBehaviour(t *testing.T) {
	t.Parallel()
	ctx := newAgent(&Client{}, pythonHistory)
	s := read(t, `{"threadId":"t","state":{"in_memory":{"messages":[]}}}`)
	old := behaviour[MessageStore](t, ctx, &s)
	must.Do(t, s.SetState("in_memory", json.RawMessage(`{"messages":[{"role":"user"}]}`)))
	old.Add("user", "to nobody")
	behaviour[MessageStore](t, ctx, &s).Add("assistant", "yes")
	wantText(t, string(must.Have(s.State("in_memory"))(t)), `{"messages":[{"role":"user"},{"role":"assistant","text":"yes"}]}`)
	s.RemoveState("in_memory")
	wantText(t, written(t, s), `{"threadId":"t","state":{}}`)
}

func TestDocumentsThatAreNoSessionAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]error{
		`{"id":"x","state":{}}`:           session.ErrUnknownShape,
		`{}`:                              session.ErrUnknownShape,
		`[]`:                              session.ErrInvalidDocument,
		`"session"`:                       session.ErrInvalidDocument,
		`{"threadId":"t","state":[]}`:     session.ErrInvalidDocument,
		`{"stateBag":"x"}`:                session.ErrInvalidDocument,
		`{"session_id":"s","state":1e400`: session.ErrInvalidDocument,
	} {
		var s session.Session
		err := s.UnmarshalJSON([]byte(text))
		if !errors.Is(err, want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestStatesThatAreNullOrMissingAreNone(t *testing.T) {
	t.Parallel()
	for text, with := range map[string]string{
		`{"conversationId":"c","stateBag":null}`: `{"conversationId":"c","stateBag":{"k":1}}`,
		`{"conversationId":"c"}`:                 `{"conversationId":"c","stateBag":{"k":1}}`,
		`{"session_id":null,"state": { } }`:      `{"session_id":null,"state": { "k":1} }`,
	} {
		s := read(t, text)
		wantText(t, written(t, s), text)
		must.Do(t, s.SetState("k", json.RawMessage("1")))
		wantText(t, written(t, s), with)
	}
}

func TestDocumentsThatOthersExtendKeepTheirShape(t *testing.T) {
	t.Parallel()
	// Agents of .NET that are not a chat client's put members of their own beside stateBag.
	s := read(t, `{"threadId":"codex-1","stateBag":{"a":1},"model":"m"}`)
	if s.ID != "" || !slices.Equal(s.Keys(), []string{"a"}) {
		t.Fatalf("%+v %v", s, s.Keys())
	}
}

func TestASessionIsReadFromBytesThatAreUsedAgain(t *testing.T) {
	t.Parallel()
	text := golden(t, "session_pgagui.json")
	s := read(t, string(text))
	var reused session.Session
	buffer := slices.Clone(text)
	must.Do(t, reused.UnmarshalJSON(buffer))
	for i := range buffer {
		buffer[i] = 'x'
	}
	wantText(t, written(t, reused), written(t, s))
}

func TestGoldenDocumentsAreValid(t *testing.T) {
	t.Parallel()
	for _, path := range must.Have(filepath.Glob("testdata/*.json"))(t) {
		if text := must.Have(os.ReadFile(path))(t); !json.Valid(text) {
			t.Errorf("%s is no JSON", path)
		}
	}
}

func marshalPlainly(v any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return out.Bytes(), err
}

func compact(t testing.TB, text []byte) []byte {
	var out bytes.Buffer
	must.Do(t, json.Compact(&out, text))
	return out.Bytes()
}
