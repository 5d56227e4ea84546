package timeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"time"

	"github.com/pgagui/pgagui"
)

// ErrNotInRun is why there is no moment at a seq: it is no event of the run.
var ErrNotInRun = errors.New("the seq is no event of the run")

// A Timeline is a run as Cache.Open found it. Its methods may be called from several goroutines.
type Timeline struct {
	cache *Cache
	store *pgagui.Store
	line  *line
	run   pgagui.RunStatus
	marks []Mark
}

// A Mark is an event of a run without its content.
type Mark struct {
	Seq        int64
	Type       string
	RecordedAt time.Time
}

// A Moment is what a conversation was after an event of a run.
type Moment struct {
	// Event is the event that brought it.
	Event pgagui.Event
	// Index is its place among the events of the run, from 0.
	Index int
	// Previous and Next are the seqs of the events of the run before and after it. 0: there is none.
	Previous, Next int64

	// Messages, State and Interrupts are those of Store.Restore.
	Messages   []json.RawMessage
	State      json.RawMessage
	Interrupts []json.RawMessage
	// Open is what events of the run have begun and not ended, in the order in which it began.
	Open []OpenPart
	// StatePaths are the places in the state that the event changed, as JSON Pointers: of a
	// STATE_DELTA those that its operations name, of an event that sets the whole state those that
	// differ from the state before. The empty pointer is the whole state. nil: it did not change the
	// state; so it is if the patch failed.
	StatePaths []string
	// Skipped are the events of the run, up to this one, that the official client would let change something and the fold does not: patches
	// that fail, and pieces of messages that are not there.
	Skipped []pgagui.MalformedEvent
}

// An OpenPart is a message, a tool call or another part that has begun and not ended.
type OpenPart struct {
	// Part is what it is: text, tool, reasoning, span, thinking, thinking span, step or subagent.
	Part string
	// ID names it: messageId, toolCallId, stepName or subagentRunId. Empty if nothing does.
	ID string
	// SubagentRunID is the subagent that its beginning names. Empty: the main agent.
	SubagentRunID string
	// Seq is the event that began it. 0 for what chunks have opened, which has no beginning of its own.
	Seq int64
}

// Run returns the run, as it was when the Timeline was opened.
func (t *Timeline) Run() pgagui.RunStatus { return t.run }

// Marks returns all events of the run in order. The caller must not change the slice.
func (t *Timeline) Marks() []Mark { return t.marks }

// At returns the moment after the event with a seq.
//
// Errors: ErrNotInRun; pgagui.ErrFoldLimit, from the event on that exceeds a limit; those of
// Cache.Open, where a part of a long run is read anew.
func (t *Timeline) At(ctx context.Context, seq int64) (*Moment, error) {
	index := sort.Search(len(t.marks), func(i int) bool { return t.marks[i].Seq >= seq })
	if index == len(t.marks) || t.marks[index].Seq != seq {
		return nil, fmt.Errorf("%w: seq %d, run %q of thread %q, whose %d events are between %d and %d",
			ErrNotInRun, seq, t.run.RunID, t.line.key.threadID, len(t.marks), t.run.FirstSeq, t.run.LastSeq)
	}
	t.line.mu.Lock()
	defer t.line.mu.Unlock()
	defer t.cache.settle(t.line)
	if !t.line.has(t.run.StartedAt, index, seq) {
		// It failed to read more, or another run has the name now.
		run, err := t.store.Status(ctx, pgagui.RunRef{ThreadID: t.line.key.threadID, RunID: t.run.RunID})
		if err != nil {
			return nil, err
		}
		if err := t.line.catchUp(ctx, t.store, run); err != nil {
			t.line.forget()
			return nil, err
		}
		if !t.line.has(t.run.StartedAt, index, seq) {
			return nil, fmt.Errorf("%w: seq %d, run %q of thread %q, which is another run of this name now", ErrNotInRun, seq, t.run.RunID, t.line.key.threadID)
		}
	}
	moment, err := t.line.momentAt(ctx, t.store, index)
	if err != nil {
		return nil, err
	}
	if index > 0 {
		moment.Previous = t.marks[index-1].Seq
	}
	if index+1 < len(t.marks) {
		moment.Next = t.marks[index+1].Seq
	}
	return moment, nil
}
