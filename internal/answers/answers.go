// Package answers reads what a run brought for the interrupts of the run before it.
package answers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/transcript"
)

// An Answer is an interrupt and what was answered to it.
type Answer struct {
	Question string          `json:"question,omitempty"`
	Reason   string          `json:"reason,omitempty"`
	Status   string          `json:"status"` // Answered, Cancelled, Not answered, or what the answer says
	Payload  json.RawMessage `json:"payload,omitempty"`
}

// Of returns the interrupts that are open after a run, with what the next one brought for them. messages are those of the conversation,
// which may have the tool call that is asked about.
func Of(ctx context.Context, store *pgagui.Store, thread, run, next string, messages []json.RawMessage) (all []Answer, err error) {
	interrupts, err := store.Interrupts(ctx, thread, pgagui.At{RunID: run})
	if err != nil || len(interrupts) == 0 {
		return nil, err
	}
	input, err := inputOf(ctx, store, pgagui.RunRef{ThreadID: thread, RunID: next})
	if err != nil {
		return nil, err
	}
	for _, interrupt := range interrupts {
		answer := Answer{Question: transcript.Question(interrupt.JSON, messages), Reason: interrupt.Reason, Status: "Not answered"}
		for _, given := range input.Resume {
			if given.InterruptID == interrupt.ID {
				answer.Status = cmp.Or(map[string]string{"resolved": "Answered", "cancelled": "Cancelled"}[given.Status], given.Status)
				answer.Payload = given.Payload
			}
		}
		// The clients of LangGraph answer what was asked.
		if command := input.ForwardedProps.Command.Resume; input.Resume == nil && command != nil {
			answer.Status, answer.Payload = "Answered", command
		}
		all = append(all, answer)
	}
	return all, nil
}

type input struct {
	Resume []struct {
		InterruptID, Status string
		Payload             json.RawMessage
	}
	ForwardedProps struct {
		Command struct{ Resume json.RawMessage }
	}
}

// inputOf returns the answers in the input of a run, which stands beside its events or in RUN_STARTED. An odd one has none.
func inputOf(ctx context.Context, store *pgagui.Store, run pgagui.RunRef) (in input, err error) {
	beside, err := store.RunInput(ctx, run)
	if err == nil {
		_ = json.Unmarshal(beside, &in)
		return in, nil
	} else if !errors.Is(err, pgagui.ErrUnknownInput) {
		return in, err
	}
	read, err := store.History(ctx, run.ThreadID, pgagui.HistoryOptions{RunID: run.RunID, NoLineage: true, Types: []string{"RUN_STARTED"}, Raw: true, Limit: 1})
	if err != nil {
		return in, err
	}
	for _, started := range read.Events {
		var event struct{ Input input }
		_ = json.Unmarshal(started.JSON, &event)
		in = event.Input
	}
	return in, nil
}
