package explorer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/transcript"
)

// mostAnswered is how many runs of a page show what was answered to them.
const mostAnswered = 10

// withRuns puts the beginnings of runs between the parts of a conversation, and the ends of those
// that did not finish: errors, and what was answered to interrupts.
func (q *request) withRuns(ctx context.Context, parts []part, head threadHead, runs []pgagui.Run) (all []part, err error) {
	byID := make(map[string]pgagui.Run, len(runs))
	for _, run := range runs {
		byID[run.ID] = run
	}
	answered := 0
	marked := map[string]bool{}
	var before pgagui.Run // none at first
	for _, p := range parts {
		if p.Place != nil && !marked[p.Place.RunID] { // a list of messages may have changed their order
			if next, isThere := byID[p.Place.RunID]; isThere {
				marked[next.ID] = true
				switch before.Status {
				case pgagui.Failed, pgagui.CutOff, pgagui.Cancelled:
					all = append(all, part{Key: fmt.Sprint("end-", before.Number), End: endOf(before)})
				case pgagui.Interrupted:
					if answered++; answered <= mostAnswered && next.ParentRunID == before.ID {
						answers, err := q.readAnswers(ctx, head.ID, before.ID, next.ID)
						if err != nil {
							return nil, err
						}
						if len(answers) > 0 {
							all = append(all, part{Key: fmt.Sprint("answers-", before.Number), Answers: answers})
						}
					}
				}
				mark := &runMark{Run: next, Link: link("thread", "id", head.ID, "run", next.ID)}
				if !next.EndedAt.IsZero() {
					mark.Duration = durationText(next.EndedAt.Sub(next.StartedAt))
				}
				all = append(all, part{Key: fmt.Sprint("begin-", next.Number), Run: mark})
				before = next
			}
		}
		all = append(all, p)
	}
	return all, nil
}

// readAnswers returns the interrupts of a run, with what the next one brought for them.
func (q *request) readAnswers(ctx context.Context, thread, run, next string) (answers []answer, err error) {
	interrupts, err := q.store.Interrupts(ctx, thread, pgagui.At{RunID: run})
	if err != nil || len(interrupts) == 0 {
		return nil, err
	}
	resume, err := q.readResume(ctx, thread, next)
	if err != nil {
		return nil, err
	}
	for _, interrupt := range interrupts {
		given := answer{Question: short(transcript.Question(interrupt.JSON, nil), 400), Reason: short(interrupt.Reason, 80), Status: "Not answered"}
		for _, one := range resume {
			if one.InterruptID == interrupt.ID {
				given.Status = cmp.Or(map[string]string{"resolved": "Answered", "cancelled": "Cancelled"}[one.Status], short(one.Status, 40))
				given.Payload, _ = cut(pretty(one.Payload))
			}
		}
		answers = append(answers, given)
	}
	return answers, nil
}

// resumed is an element of resume in the input of a run.
type resumed struct {
	InterruptID, Status string
	Payload             json.RawMessage
}

// readResume returns what the input of a run answers.
func (q *request) readResume(ctx context.Context, thread, run string) ([]resumed, error) {
	read, err := q.store.History(ctx, thread, pgagui.HistoryOptions{RunID: run, NoLineage: true, Types: []string{"RUN_STARTED"}, Raw: true, Limit: 1})
	if err != nil {
		return nil, err
	}
	var event struct{ Input struct{ Resume []resumed } }
	for _, started := range read.Events {
		_ = json.Unmarshal(started.JSON, &event) // an odd one has no answers
	}
	if event.Input.Resume != nil {
		return event.Input.Resume, nil
	}
	input, err := q.store.RunInput(ctx, pgagui.RunRef{ThreadID: thread, RunID: run})
	if errors.Is(err, pgagui.ErrUnknownInput) {
		return nil, nil
	}
	_ = json.Unmarshal(input, &event.Input)
	return event.Input.Resume, err
}
