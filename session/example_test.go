package session_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/fxamacker/cbor/v2"

	"github.com/pgagui/pgagui/session"
)

// Facts are a state: plain data.
type Facts struct {
	Known []string `json:"known"`
}

// A Memory is a behaviour: it works with a state and has what no document can hold.
type Memory struct {
	facts    *Facts
	database string // in a real program, the client of one
}

func (m *Memory) Learn(fact string) { m.facts.Known = append(m.facts.Known, fact) }

// newRegistry is what an agent sets up when it starts.
func newRegistry(database string) *session.Registry {
	registry := session.NewRegistry()
	session.Register(registry, "Memory", func(_ context.Context, facts *Facts) (*Memory, error) {
		return &Memory{facts, database}, nil
	})
	return registry
}

func Example() {
	ctx := session.WithRegistry(context.Background(), newRegistry("first server"))
	s := session.New("thread-1")
	memory, _ := session.Behaviour[*Memory](ctx, &s)
	memory.Learn("likes tea")
	text, _ := json.Marshal([]session.Session{s})
	fmt.Println(string(text))

	// Later, elsewhere.
	ctx = session.WithRegistry(context.Background(), newRegistry("second server"))
	var restored []session.Session
	_ = json.Unmarshal(text, &restored)
	memory, _ = session.Behaviour[*Memory](ctx, &restored[0])
	fmt.Println(memory.facts.Known, "on the", memory.database)
	// Output:
	// [{"threadId":"thread-1","runId":null,"state":{"Memory":{"$type":"Memory","known":["likes tea"]}},"versions":{}}]
	// [likes tea] on the second server
}

// A session of another framework is changed in place, and keeps what is unknown here.
func ExampleBehaviour() {
	var s session.Session
	_ = json.Unmarshal([]byte(`{"stateBag":{"mine":{"$type":"Memory","known":["a"],"score":1.0},"Other":{"n":1.50}},"owner":"x"}`), &s)
	ctx := session.WithRegistry(context.Background(), newRegistry("server"))
	memory, err := session.Behaviour[*Memory](ctx, &s)
	if err != nil {
		fmt.Println(err)
		return
	}
	memory.Learn("b")
	text, _ := s.MarshalJSON()
	fmt.Println(string(text))
	// Output: {"stateBag":{"mine":{"$type":"Memory","known":["a","b"],"score":1.0},"Other":{"n":1.50}},"owner":"x"}
}

// Two memories in one session are distinguished by their keys.
func ExampleBehaviourAt() {
	ctx := session.WithRegistry(context.Background(), newRegistry("server"))
	s := session.New("thread-1")
	for _, key := range []string{"user", "team"} {
		memory, _ := session.BehaviourAt[*Memory](ctx, &s, key)
		memory.Learn("something about the " + key)
	}
	_, err := session.Behaviour[*Memory](ctx, &s)
	fmt.Println(err)
	// Output: session: several behaviours fit: the states "user", "team" all have a behaviour that is a *session_test.Memory: say which with BehaviourAt
}

// Who only wants the data needs neither registry nor behaviour.
func ExampleStateOf() {
	var s session.Session
	_ = json.Unmarshal([]byte(`{"threadId":"t","runId":"r","state":{"Memory":{"known":["likes tea"]}}}`), &s)
	facts, _ := session.StateOf[Facts](&s, "Memory")
	fmt.Println(facts.Known)
	// Output: [likes tea]
}

// Journal is a behaviour of the old kind, which writes itself.
type Journal struct{ lines int }

func (j *Journal) Serialize() (json.RawMessage, error) {
	return json.Marshal(map[string]int{"lines": j.lines})
}

func ExampleRegisterSerializer() {
	registry := session.NewRegistry()
	session.RegisterSerializer(registry, "Journal", func(_ context.Context, document json.RawMessage) (*Journal, error) {
		var restored struct{ Lines int }
		if document != nil { // nil: a new one
			if err := json.Unmarshal(document, &restored); err != nil {
				return nil, err
			}
		}
		return &Journal{restored.Lines}, nil
	})
	s := session.New("thread-1")
	journal, _ := session.Behaviour[*Journal](session.WithRegistry(context.Background(), registry), &s)
	journal.lines++
	state, _ := s.State("Journal")
	fmt.Println(string(state))
	// Output: {"$type":"Journal","lines":1}
}

func ExampleSession_MarshalCBOR() {
	s := session.New("thread-1")
	_ = s.SetState("price", json.RawMessage(`{"amount":12.5,"shown":"12.50","exact":12.50}`))
	data, _ := cbor.Marshal(s)
	notation, _ := cbor.Diagnose(data)
	fmt.Println(notation)
	// Output: {"threadId": "thread-1", "runId": null, "state": {"price": {"amount": 12.5, "shown": "12.50", "exact": 262(h'31322e3530')}}, "versions": {}}
}

// What is written in the usual way may go to a client.
func ExampleThreadSnapshot() {
	var stored session.StoredThreadSnapshot
	_ = json.Unmarshal([]byte(`{"messages":[],"state":{"seats":2},"interrupt":null,"session_state":{"prompt":"secret"}}`), &stored)

	forClient, _ := json.Marshal(stored.ThreadSnapshot)
	forStorage, _ := json.Marshal(stored)
	fmt.Println(string(forClient))
	fmt.Println(string(forStorage))
	// Output:
	// {"messages":[],"state":{"seats":2},"interrupt":null}
	// {"messages":[],"state":{"seats":2},"interrupt":null,"session_state":{"prompt":"secret"}}
}

func ExampleParentsFirst() {
	var checkpoints []session.Checkpoint
	for _, document := range []string{
		`{"workflow_name":"w","checkpoint_id":"c2","previous_checkpoint_id":"c1","iteration_count":2}`,
		`{"workflow_name":"w","checkpoint_id":"c1","previous_checkpoint_id":null,"iteration_count":1}`,
	} {
		c, err := session.ReadCheckpoint(json.RawMessage(document))
		if err != nil {
			fmt.Println(err)
			return
		}
		checkpoints = append(checkpoints, c)
	}
	ordered, _ := session.ParentsFirst(checkpoints)
	for _, c := range ordered {
		fmt.Printf("%s %s after %q\n", c.Namespace, c.ID, c.ParentID)
	}
	// Output:
	// w c1 after ""
	// w c2 after "c1"
}
