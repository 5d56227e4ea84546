package timeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/internal/jsontree"
	"github.com/pgagui/pgagui/internal/rawjson"
	"github.com/pgagui/pgagui/protocol"
)

// stretch is the number of events between two copies of the fold.
const stretch = 256

// A line is what a Cache has of a run.
type line struct {
	key  key
	most int64 // bytes
	mu   sync.Mutex
	content
}

// The content of a line is its events, and folds at some of them.
//
// The fold after one event continues to the next, but for one case: an input that is stored beside the
// events counts at RUN_STARTED, or at the first event as long as there is no RUN_STARTED. So if a run
// begins with other events, no fold before RUN_STARTED leads beyond it.
type content struct {
	startedAt time.Time        // of the run; zero: nothing has been read
	base      *compaction.Fold // what the conversation was before the run
	input     json.RawMessage  // stored beside the events; nil: none
	marks     []Mark
	start     int                 // the index of the first RUN_STARTED; -1: none
	raw       [][]json.RawMessage // the events of each stretch; nil: to be read anew
	copies    []*point            // the fold before the first event of each stretch; nil: to be made
	current   *point
	skipped   map[int]string // why the fold skips an event, by its index

	rawBytes, copyBytes int64
	folded              int // events, for tests
}

// A point is the fold of the events of a run up to an index, and what is open there.
type point struct {
	index int  // of the last event; -1: none
	begun bool // the input counts at RUN_STARTED
	fold  *compaction.Fold
	open  []openedPart
	size  int64 // the memory that it does not share with the copy before it, about
}

func (p *point) clone() *point {
	return &point{index: p.index, begun: p.begun, fold: p.fold.Clone(), open: slices.Clone(p.open)}
}

// forget returns to the beginning.
func (l *line) forget() { l.content = content{} }

func (l *line) has(startedAt time.Time, index int, seq int64) bool {
	return l.startedAt.Equal(startedAt) && index < len(l.marks) && l.marks[index].Seq == seq
}

// catchUp reads what it does not have of a run up to its last event.
func (l *line) catchUp(ctx context.Context, store *pgagui.Store, run *pgagui.RunStatus) error {
	goesOn := !l.startedAt.IsZero() && l.startedAt.Equal(run.StartedAt) && l.marks[0].Seq == run.FirstSeq
	last := int64(0)
	if goesOn {
		last = l.marks[len(l.marks)-1].Seq
		if last == run.LastSeq {
			return nil
		}
	}
	if !goesOn || last > run.LastSeq {
		l.forget()
		last = 0
		if err := l.begin(ctx, store, run); err != nil {
			return err
		}
	}
	options := pgagui.EventsOptions{RunID: run.RunID, NoLineage: true, AfterSeq: last}
	for event, err := range store.Events(ctx, l.key.threadID, options) {
		if err != nil {
			return err
		}
		if event.Seq > run.LastSeq {
			break
		}
		l.add(event)
	}
	if len(l.marks) == 0 {
		return fmt.Errorf("run %q of thread %q has no events", run.RunID, l.key.threadID)
	}
	l.startedAt = run.StartedAt
	return nil
}

func (l *line) add(event pgagui.Event) {
	index := len(l.marks)
	if index%stretch == 0 {
		if l.rawBytes > l.most {
			l.dropEvents(-1)
		}
		l.raw = append(l.raw, make([]json.RawMessage, 0, stretch))
		l.copies = append(l.copies, nil)
	}
	l.marks = append(l.marks, Mark{Seq: event.Seq, Type: event.Type, RecordedAt: event.RecordedAt})
	if event.Type == "RUN_STARTED" && l.start < 0 {
		l.start = index
	}
	if part := &l.raw[index/stretch]; *part != nil {
		*part = append(*part, slices.Clone(event.JSON))
		l.rawBytes += int64(len(event.JSON))
	}
}

// begin reads what the conversation was before the run.
func (l *line) begin(ctx context.Context, store *pgagui.Store, run *pgagui.RunStatus) (err error) {
	l.start, l.skipped = -1, map[int]string{}
	limits, err := store.Maintenance().FoldLimits(ctx)
	if err != nil {
		return err
	}
	l.input, err = store.RunInput(ctx, pgagui.RunRef{ThreadID: l.key.threadID, RunID: run.RunID})
	if err != nil && !errors.Is(err, pgagui.ErrUnknownInput) {
		return err
	}
	l.base = compaction.New()
	l.base.SetLimits(limits)
	if run.ParentRunID == "" {
		return nil
	}
	events, err := store.Replay(ctx, l.key.threadID, pgagui.ReplayOptions{At: pgagui.At{RunID: run.ParentRunID}})
	if err != nil {
		return err
	}
	for _, event := range events {
		l.base.Apply(event)
	}
	l.copyBytes = compaction.MemorySize(l.base)
	return l.refusal(l.base.EndRun())
}

// refusal makes the error of a limit that of a restore.
func (l *line) refusal(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: run %q of thread %q: %w", pgagui.ErrFoldLimit, l.key.runID, l.key.threadID, err)
}

// momentAt returns the moment after the event at an index.
func (l *line) momentAt(ctx context.Context, store *pgagui.Store, index int) (*Moment, error) {
	event, err := l.event(ctx, store, index)
	if err != nil {
		return nil, err
	}
	var before json.RawMessage
	if index > 0 && l.begunAt(index) != l.begunAt(index-1) {
		if err := l.seek(ctx, store, index-1, l.begunAt(index-1)); err != nil {
			return nil, err
		}
		before = l.current.fold.State()
	}
	if err := l.seek(ctx, store, index-1, l.begunAt(index)); err != nil {
		return nil, err
	}
	fold, mark := l.current.fold, l.marks[index]
	changes := fold.StateChanges()
	if before != nil {
		changes = -1
	} else if does, _, _ := protocol.RoleOf(mark.Type); does != "patch state" {
		before = fold.State()
	}
	if err := l.apply(event); err != nil {
		return nil, err
	}
	moment := &Moment{
		Event: pgagui.Event{Seq: mark.Seq, RunID: l.key.runID, Type: mark.Type, RecordedAt: mark.RecordedAt, JSON: event},
		Index: index,
		Open:  l.current.openParts(),
	}
	for _, message := range fold.Messages() {
		body, _ := message.StoredJSON()
		moment.Messages = append(moment.Messages, body)
	}
	moment.State, _ = fold.StoredState()
	for interrupt, err := range compaction.Split(fold.Interrupts()) {
		if err != nil {
			return nil, err
		}
		moment.Interrupts = append(moment.Interrupts, interrupt)
	}
	for _, at := range slices.Sorted(maps.Keys(l.skipped)) {
		if at <= index {
			moment.Skipped = append(moment.Skipped, pgagui.MalformedEvent{Seq: l.marks[at].Seq, Type: l.marks[at].Type, Problem: l.skipped[at]})
		}
	}
	switch {
	case fold.StateChanges() == changes:
	case before == nil:
		moment.StatePaths = pathsOfDelta(event)
	default:
		if moment.StatePaths, err = pathsBetween(before, fold.State()); err != nil {
			return nil, err
		}
	}
	return moment, nil
}

// begunAt reports whether the input counts at RUN_STARTED for a moment at an index.
func (l *line) begunAt(index int) bool { return l.input == nil || l.start >= 0 && index >= l.start }

// seek moves the current point to an index, by way of the nearest point before it.
func (l *line) seek(ctx context.Context, store *pgagui.Store, index int, begun bool) error {
	at := l.current
	if at == nil || at.begun != begun || at.index > index {
		at = nil
	}
	for i := (index + 1) / stretch; i >= 0; i-- {
		if at != nil && at.index >= i*stretch-1 {
			break
		}
		if kept := l.copies[i]; kept != nil && kept.begun == begun {
			at = kept.clone()
			break
		}
	}
	if at == nil {
		at = &point{index: -1, begun: begun, fold: l.base.Clone()}
	}
	l.current = at
	for {
		if (at.index+1)%stretch == 0 {
			l.keep((at.index + 1) / stretch)
		}
		if at.index == index {
			return nil
		}
		event, err := l.event(ctx, store, at.index+1)
		if err != nil {
			return err
		}
		if err := l.apply(event); err != nil {
			return err
		}
	}
}

// apply folds the event after the current point.
func (l *line) apply(event json.RawMessage) error {
	at := l.current
	at.index++
	l.folded++
	input := compaction.Input{JSON: l.input}
	at.fold.Locate(l.key.runID, l.marks[at.index].Seq)
	switch {
	case l.input == nil:
		at.fold.Apply(event)
	case at.begun && at.index == l.start && !hasInput(event):
		at.fold.ApplyInput(event, input)
	case !at.begun && at.index == 0:
		at.fold.ApplyInput(nil, input)
		at.fold.Apply(event)
	default:
		at.fold.Apply(event)
	}
	if reason := at.fold.Skipped(); reason != "" {
		l.skipped[at.index] = reason
	}
	at.follow(l.marks[at.index], event)
	return l.refusal(at.fold.Err())
}

// hasInput reports whether a RUN_STARTED has an input of its own, which alone counts.
func hasInput(event json.RawMessage) bool {
	input := rawjson.MemberOf(event, "input")
	return len(input) > 0 && input[0] == '{'
}

// event returns an event as it was appended.
func (l *line) event(ctx context.Context, store *pgagui.Store, index int) (json.RawMessage, error) {
	number := index / stretch
	if l.raw[number] == nil {
		first := number * stretch
		end := min(first+stretch, len(l.marks))
		events := make([]json.RawMessage, 0, stretch)
		options := pgagui.EventsOptions{RunID: l.key.runID, NoLineage: true, AfterSeq: l.marks[first].Seq - 1}
		for event, err := range store.Events(ctx, l.key.threadID, options) {
			if err != nil {
				return nil, err
			}
			events = append(events, slices.Clone(event.JSON))
			l.rawBytes += int64(len(event.JSON))
			if first+len(events) == end {
				break
			}
		}
		if first+len(events) != end {
			return nil, fmt.Errorf("run %q of thread %q has fewer events than before: %w", l.key.runID, l.key.threadID, pgagui.ErrLogRewound)
		}
		l.raw[number] = events
	}
	return l.raw[number][index%stretch], nil
}

// keep stores a copy of the current point, which is before the first event of a stretch.
func (l *line) keep(number int) {
	if l.copies[number] != nil && l.copies[number].begun == l.current.begun {
		return
	}
	l.drop(number)
	kept := l.current.clone()
	before := l.base
	for i := number - 1; i >= 0; i-- {
		if l.copies[i] != nil {
			before = l.copies[i].fold
			break
		}
	}
	kept.size = sizeBeside(kept.fold, before)
	l.copies[number] = kept
	l.copyBytes += kept.size
}

func (l *line) drop(number int) {
	if kept := l.copies[number]; kept != nil {
		l.copyBytes -= kept.size
		l.copies[number] = nil
	}
}

// sizeBeside estimates the memory that a fold does not share with one from which it was cloned.
func sizeBeside(fold, before *compaction.Fold) int64 {
	const overhead = 1024
	own, others := fold.Messages(), before.Messages()
	size := int64(overhead + 8*len(own))
	for i, message := range own {
		if i >= len(others) || others[i] != message {
			size += int64(2 * message.Size())
		}
	}
	if fold.StateChanges() != before.StateChanges() {
		size += int64(2 * fold.StateSize())
	}
	return size
}

// bytes estimates the memory of the line.
func (l *line) bytes() int64 {
	const perEvent = 80
	size := l.rawBytes + l.copyBytes + int64(perEvent*len(l.marks))
	if l.current != nil && l.base != nil {
		size += sizeBeside(l.current.fold, l.base)
	}
	return size
}

// shrink drops what is far from the current point, if the line alone takes more than the Cache may.
func (l *line) shrink() {
	if l.bytes() <= l.most {
		return
	}
	here := 0
	if l.current != nil {
		here = max(0, l.current.index) / stretch
	}
	l.dropEvents(here)
	for number := range l.copies {
		if number != here && l.bytes() > l.most {
			l.drop(number)
		}
	}
}

// dropEvents drops the events of all stretches but one.
func (l *line) dropEvents(but int) {
	for number := range l.raw {
		if number == but {
			continue
		}
		for _, event := range l.raw[number] {
			l.rawBytes -= int64(len(event))
		}
		l.raw[number] = nil
	}
}

// pathsOfDelta returns the places that the operations of a STATE_DELTA name.
func pathsOfDelta(event json.RawMessage) []string {
	// A spelling of the serialization proposal: patch, a list or one operation.
	operations := rawjson.MemberOf(event, "delta")
	if len(operations) == 0 || operations[0] == 'n' {
		operations = rawjson.MemberOf(event, "patch")
	}
	if len(operations) > 0 && operations[0] == '{' {
		operations = slices.Concat([]byte{'['}, operations, []byte{']'})
	}
	var list []struct{ Op, Path, From string }
	paths := []string{}
	if json.Unmarshal(operations, &list) != nil {
		return paths
	}
	for _, operation := range list {
		if operation.Op == "test" {
			continue
		}
		if operation.Op == "move" && !slices.Contains(paths, operation.From) {
			paths = append(paths, operation.From)
		}
		if !slices.Contains(paths, operation.Path) {
			paths = append(paths, operation.Path)
		}
	}
	return paths
}

// pathsBetween returns the places at which two states differ.
func pathsBetween(before, after json.RawMessage) ([]string, error) {
	patch, _, err := jsontree.CreatePatch(before, after)
	if err != nil {
		return nil, err
	}
	paths := pathsOfDelta(slices.Concat([]byte(`{"delta":`), patch, []byte{'}'}))
	if len(paths) == 0 {
		return nil, nil // an equal one
	}
	return paths, nil
}
