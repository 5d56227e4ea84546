package explorer

import (
	"context"
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
						given, err := q.readAnswers(ctx, head.ID, before.ID, next.ID)
						if err != nil {
							return nil, err
						}
						if len(given) > 0 {
							all = append(all, part{Key: fmt.Sprint("answers-", before.Number), Answers: given})
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
func (q *request) readAnswers(ctx context.Context, thread, run, next string) (shown []answer, err error) {
	all, err := q.store.GivenAnswers(ctx, pgagui.RunRef{ThreadID: thread, RunID: next}, run)
	for _, one := range all {
		given := answer{Question: short(transcript.Question(one.JSON, nil), 400), Reason: short(one.Reason, 80), Status: short(one.Status, 40)}
		if one.Payload != nil {
			given.Payload, _ = cut(pretty(one.Payload))
		}
		shown = append(shown, given)
	}
	return shown, err
}
