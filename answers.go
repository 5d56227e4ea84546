package pgagui

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
)

// A GivenAnswer is an interrupt, with what a run brought for it.
type GivenAnswer struct {
	Interrupt
	// Status is Answered, Cancelled, Not answered, or what the answer says of itself.
	Status string
	// Payload is the answer. Nil if there is none.
	Payload json.RawMessage
}

// GivenAnswers returns the interrupts that are open after the run parentRunID, with what the run below it brought for them: in
// resume of its input, or in forwardedProps.command.resume, as clients of LangGraph answer.
//
// Errors: ErrUnknownThread, ErrUnknownRun, ErrKeyCollision, ErrQuarantined, ErrFoldLimit, ErrLimitExceeded.
func (s *Store) GivenAnswers(ctx context.Context, run RunRef, parentRunID string) (all []GivenAnswer, err error) {
	interrupts, err := s.Interrupts(ctx, run.ThreadID, At{RunID: parentRunID})
	if err != nil || len(interrupts) == 0 {
		return nil, err
	}
	input, err := s.answersIn(ctx, run)
	if err != nil {
		return nil, err
	}
	for _, interrupt := range interrupts {
		answer := GivenAnswer{Interrupt: interrupt, Status: "Not answered"}
		for _, given := range input.Resume {
			if given.InterruptID == interrupt.ID {
				answer.Status = cmp.Or(map[string]string{"resolved": "Answered", "cancelled": "Cancelled"}[given.Status], given.Status)
				answer.Payload = given.Payload
			}
		}
		if command := input.ForwardedProps.Command.Resume; input.Resume == nil && command != nil {
			answer.Status, answer.Payload = "Answered", command
		}
		all = append(all, answer)
	}
	return all, nil
}

type answersInput struct {
	Resume []struct {
		InterruptID, Status string
		Payload             json.RawMessage
	}
	ForwardedProps struct {
		Command struct{ Resume json.RawMessage }
	}
}

// answersIn returns the answers in the input of a run, which stands beside its events or in RUN_STARTED. An odd one has none.
func (s *Store) answersIn(ctx context.Context, run RunRef) (input answersInput, err error) {
	beside, err := s.RunInput(ctx, run)
	if err == nil {
		_ = json.Unmarshal(beside, &input)
		return input, nil
	} else if !errors.Is(err, ErrUnknownInput) {
		return input, err
	}
	read, err := s.History(ctx, run.ThreadID, HistoryOptions{RunID: run.RunID, NoLineage: true, Types: []string{"RUN_STARTED"}, Raw: true, Limit: 1})
	if err != nil {
		return input, err
	}
	for _, started := range read.Events {
		var event struct{ Input answersInput }
		_ = json.Unmarshal(started.JSON, &event)
		input = event.Input
	}
	return input, nil
}
