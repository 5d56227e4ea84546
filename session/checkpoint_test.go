package session_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/session"
)

func TestCheckpointsSayWhoTheyAreAndWhomTheyFollow(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]session.Checkpoint{
		"workflow_checkpoint_python.json": {Namespace: "expense-approval", ID: "6b0f5d1e-0c1b-4f6e-9f53-1f5ab2a0c002", ParentID: "6b0f5d1e-0c1b-4f6e-9f53-1f5ab2a0c001"},
		"workflow_checkpoint_dotnet.json": {ThreadID: "5f1e", ParentID: "0d6e9a7c4b1f4f2c8a4b1f0e2d3c4b5a"},

		"workflow_checkpoint_dotnet_stored.json": {ThreadID: "5f1e", ID: "77aa"},

		"langgraph_tuple.json": {ThreadID: "1", Namespace: "child:6f2a|grandchild:77", ID: "1f099caa-09a3-6f8e-8001-68a280505302", ParentID: "1f099ca9-f32e-6f60-8000-39e123e7199c"},
		"langgraph_row.json":   {ThreadID: "1", ID: "1ef4f797-8335-6428-8001-8a1503f9b875"},
		"langgraph_state.json": {ThreadID: "t-7", ID: "c-2", ParentID: "c-1"},
	} {
		document := golden(t, name)
		got := must.Have(session.ReadCheckpoint(document))(t)
		wantBytes(t, got.Document, document)
		if got.Document = nil; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	for _, document := range []string{`{`, `[]`, `{}`, `{"config":{}}`, `{"checkpoint_id":7,"iteration_count":1}`} {
		if c, err := session.ReadCheckpoint(json.RawMessage(document)); !errors.Is(err, session.ErrInvalidCheckpoint) {
			t.Errorf("%s: %+v, %v", document, c, err)
		}
	}
}

func TestParentsComeFirst(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	var tree []session.Checkpoint
	for i := range 10_000 {
		c := session.Checkpoint{Namespace: fmt.Sprint(i % 2), ID: fmt.Sprint(i / 2), ParentID: "not in the list"}
		if i > 1 {
			c.ParentID = fmt.Sprint(max(0, i/2-1-random.IntN(3)))
		}
		tree = append(tree, c)
	}
	inOrder := must.Have(session.ParentsFirst(tree))(t)
	shuffled := slices.Clone(tree)
	random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	for i, c := range inOrder {
		if fmt.Sprint(c) != fmt.Sprint(tree[i]) {
			t.Fatal("checkpoints in order are put into another")
		}
	}
	reversed := slices.Clone(tree)
	slices.Reverse(reversed)
	for _, list := range [][]session.Checkpoint{shuffled, reversed} {
		ordered := must.Have(session.ParentsFirst(list))(t)
		if len(ordered) != len(tree) {
			t.Fatalf("%d of %d checkpoints", len(ordered), len(tree))
		}
		seen := map[[2]string]bool{}
		for _, c := range ordered {
			if c.ParentID != "not in the list" && !seen[[2]string{c.Namespace, c.ParentID}] {
				t.Fatalf("%+v stands before its parent", c)
			}
			seen[[2]string{c.Namespace, c.ID}] = true
		}
	}
	for _, circle := range [][]session.Checkpoint{
		{{ID: "a", ParentID: "a"}},
		{{ID: "a", ParentID: "c"}, {ID: "b", ParentID: "a"}, {ID: "c", ParentID: "b"}, {ID: "d", ParentID: "a"}},
	} {
		if _, err := session.ParentsFirst(circle); !errors.Is(err, session.ErrInvalidCheckpoint) {
			t.Fatal(err)
		}
	}
}
