package core

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/server/internal/jsontext"
	"github.com/pgagui/pgagui/server/problem"
)

// An answer is what an input says to a question with which a run ended: resume, or command.resume of forwardedProps, which clients
// of LangGraph send.
type answer struct {
	text []byte   // nil: the input has none
	ids  []string // of the interrupts that it names
	// question is the value of the CUSTOM event that asked, which useInterrupt of CopilotKit repeats; nil: the input does not say it.
	question json.RawMessage
	// asked is the run that asks: as the client names it with the id that its own run should have, or as the log knows it.
	asked string
}

// mostAnswers bounds how many answers to one run are looked at: those that failed, and those whose run asks more.
const mostAnswers = 32

func (a *answer) readResume(resume []byte) {
	if resume[0] != '[' {
		return
	}
	for item, err := range compaction.Split(resume) {
		if err != nil {
			return
		}
		var named struct{ InterruptID string }
		if json.Unmarshal(item, &named) == nil {
			a.ids = append(a.ids, named.InterruptID)
		}
		a.text = resume
	}
}

func (a *answer) readCommand(command []byte) {
	named := members(command)
	if resume := named["resume"]; resume != nil && !bytes.Equal(resume, []byte("null")) && a.ids == nil {
		a.text, a.question = command, named["interruptEvent"]
	}
}

// claim takes the place of the run. CopilotKit's useInterrupt gives an answer the id of the run that asks. It becomes a run of its
// own, with an id that is made of the run that asks and the answer: the same request finds it. An answer that failed leaves the
// question open, and so the next one gets another id. So does an answer to what the run of an answer asks: the page names it with the
// id of the first run. isKnown means that the same request came before.
func (s *Server) claim(ctx context.Context, to Tenant, agent *Agent, in *Input) (claim *pgagui.Claim, isKnown bool, err error) {
	for range mostAnswers {
		claim, err = to.Claim(ctx, pgagui.RunRef{ThreadID: in.ThreadID, RunID: in.RunID}, pgagui.ClaimOptions{
			Input: in.json, ParentRunID: in.parentRunID, NoParent: in.hasParent && in.parentRunID == "", Parallel: agent.Parallel,
		})
		isKnown = errors.Is(err, pgagui.ErrRunIDInUse)
		isOther := errors.Is(err, pgagui.ErrConflictingRepeat)
		switch {
		case !isKnown && !isOther || in.answer.text == nil || isKnown && in.answer.asked == "":
			return claim, isKnown, err
		case in.answer.asked == "":
			in.answer.asked = in.RunID
		default:
			known, unknown := to.Status(ctx, pgagui.RunRef{ThreadID: in.ThreadID, RunID: in.RunID})
			asksMore := isOther && known != nil && known.Status == pgagui.Interrupted
			if unknown != nil || known.Status != pgagui.Failed && known.Status != pgagui.CutOff && !asksMore {
				return nil, isKnown, err
			}
		}
		in.nameAnswer()
	}
	return nil, isKnown, err
}

// nameAnswer gives the run of an answer an id of its own.
func (in *Input) nameAnswer() {
	hash := sha256.Sum256(slices.Concat([]byte(in.RunID), []byte{0}, in.answer.text))
	in.RunID = in.answer.asked + "-answer-" + hex.EncodeToString(hash[:8])
	in.json = withMembers(in.json, map[string]json.RawMessage{"runId": jsontext.Quote(in.RunID)})
}

// refuseAnswered refuses an answer to what has one already: the agent would act twice on one question. A client that names the
// parent means it. An id that the conversation does not know is left to the agent. Else in.answer.asked is the run that asks.
func refuseAnswered(ctx context.Context, from Tenant, in *Input, head string) error {
	if in.answer.text == nil || in.hasParent {
		return nil
	}
	known, err := from.Answered(ctx, pgagui.RunRef{ThreadID: in.ThreadID, RunID: head}, pgagui.Question{AskedBy: in.answer.asked, InterruptIDs: in.answer.ids, Value: in.answer.question})
	switch {
	case err != nil:
		return err
	case known.AskingRunID == "" && in.answer.asked != "":
		return refusedAnswer("the conversation has gone on in another branch than that of run %q, which asks", in.answer.asked)
	case known.RunID != "":
		refused := refusedAnswer("what run %q asks was answered at %s, by run %q", known.AskingRunID, known.At.UTC().Format(time.RFC3339), known.RunID)
		refused.RunID = known.RunID
		return refused
	}
	in.answer.asked = known.AskingRunID
	return nil
}

func refusedAnswer(format string, arguments ...any) *problem.Details {
	refused := problem.Errorf(http.StatusConflict, format, arguments...)
	refused.Hint = "Load the conversation again. To answer once more, on another branch, name the run that asks as parentRunId."
	return refused
}
