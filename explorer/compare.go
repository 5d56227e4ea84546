package explorer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pgagui/pgagui"
)

type comparePage struct {
	Head     threadHead
	Tree     tree
	From, To string
	Runs     []choice // to compare with
	Others   []choice
	Messages []messagePair
	State    []stateChange
	IsSame   bool
}

// messagePair is a message that differs.
type messagePair struct {
	Change   string
	Class    string
	ID       string
	From, To []part
	Index    int
}

// stateChange is a difference of the state.
type stateChange struct {
	Op, Path, Before, After string
}

// mostChoices bounds a list of runs to choose from.
const mostChoices = 300

// showCompare compares the conversation at two runs.
func (h *Handler) showCompare(q *request) error {
	q.query.Set("run", cmp.Or(q.text("to"), q.text("run")))
	head, runs, err := q.readThread("compare")
	if err != nil {
		return err
	}
	body := comparePage{Head: head, To: head.Run.ID, From: q.text("from")}
	if body.From == "" { // what the run continued, or the one before it
		body.From = head.Run.ParentRunID
		for _, run := range runs {
			if body.From == "" && run.ID != head.Run.ID {
				body.From = run.ID
			}
		}
		body.From = cmp.Or(body.From, body.To)
	}
	for i := len(runs) - 1; i >= 0; i-- {
		run := runs[i]
		text := fmt.Sprintf("#%d %s, %s", run.Number, short(run.ID, 30), statusOf(run.Status).Text)
		if len(body.Runs) < mostChoices || run.ID == body.From {
			body.Runs = append(body.Runs, choice{run.ID, text, run.ID == body.From})
		}
		if len(body.Others) < mostChoices || run.ID == body.To {
			body.Others = append(body.Others, choice{run.ID, text, run.ID == body.To})
		}
	}
	diff, err := q.store.Diff(q.Context(), head.ID, pgagui.DiffOptions{From: pgagui.At{RunID: body.From}, To: pgagui.At{RunID: body.To}})
	if err != nil {
		return err
	}
	for _, message := range diff.Messages {
		pair := messagePair{Change: string(message.Change), ID: message.ID, Index: message.Index}
		pair.Class = map[pgagui.MessageChange]string{
			pgagui.MessageAdded: "good", pgagui.MessageRemoved: "bad", pgagui.MessageChanged: "waiting",
		}[message.Change]
		side := func(name string, text json.RawMessage) []part {
			if len(text) == 0 || string(text) == "null" {
				return nil
			}
			parts := partsOf(said{thread: head.ID, messages: []json.RawMessage{text}})
			for i := range parts {
				parts[i].Key = fmt.Sprintf("%s-%d-%d", name, len(body.Messages), i)
			}
			return parts
		}
		pair.From, pair.To = side("a", message.From), side("b", message.To)
		body.Messages = append(body.Messages, pair)
	}
	body.State = stateChanges(diff.StatePatch, diff.StateBefore)
	body.IsSame = len(body.Messages)+len(body.State) == 0
	return q.write("compare", "Compare runs of "+cmp.Or(head.Title, head.ID), body)
}

// stateChanges lays a JSON Patch out. before has the values that its operations replace.
func stateChanges(patch json.RawMessage, before []json.RawMessage) (changes []stateChange) {
	var operations []struct {
		Op, Path, From string
		Value          json.RawMessage
	}
	if json.Unmarshal(patch, &operations) != nil {
		return nil
	}
	for i, operation := range operations {
		change := stateChange{Op: operation.Op, Path: cmp.Or(operation.Path, "(the whole state)")}
		if operation.From != "" {
			change.After = "from " + operation.From
		}
		if operation.Value != nil {
			change.After, _ = cut(pretty(operation.Value))
		}
		if i < len(before) && operation.Op != "add" && strings.TrimSpace(string(before[i])) != "" {
			change.Before, _ = cut(pretty(before[i]))
		}
		changes = append(changes, change)
	}
	return changes
}
