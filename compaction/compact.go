package compaction

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pgagui/pgagui/internal/jsontree"
	"github.com/pgagui/pgagui/internal/rawjson"
)

// The compacted form of a stream. A program in another language that follows these rules gives the same events.
//
// Repair. If a run goes on after its end, ends with something open, starts twice, or begins with another event than
// RUN_STARTED, the events that the protocol requires are inserted first (repair.go).
//
// Runs. A RUN_STARTED begins a run; each run is compacted for itself, so that its end means what it meant. What stands before the
// first RUN_STARTED is the rest of a run. RUN_STARTED stays as it is, but input.messages loses the messages whose id is known (to
// the lineage or to an earlier message of the list) and what is neither an object nor a string; when it loses none, it keeps its
// text.
//
// Thinking. THINKING_* become the REASONING_* that they mean (thinking.go), and lose nothing.
//
// What stays as it came, in its order: RUN_FINISHED, RUN_ERROR, RAW, CUSTOM, STEP_*, SUBAGENT_*, REASONING_START, REASONING_END,
// unknown types and what is not an event; in shape stream also TOOL_CALL_RESULT, REASONING_ENCRYPTED_VALUE, and
// MESSAGES_SNAPSHOT but for "superseded" below. All other events are merged; of those only the fields go into the result that
// the reducer reads, so not rawEvent, timestamp and unknown fields.
//
// Chunks count as the events that they stand for; the stream of chunks ends its message or call.
//
// Text, reasoning, tool calls. The events of one kind (text, reasoning, tool) and one id make a block, which stands where its
// first event stood. A *_START joins the block of its id if that begins with a *_START, else it begins a block; any other event
// joins the block of its id, but a piece (*_CONTENT, TOOL_CALL_ARGS) begins a new one after a block without start that has its
// end. Left out are pieces that change nothing: the fold has no such message (that is not an activity) or call (with a
// function) when they come, or they have neither text nor metadata and the message has text (a content that is a string) or it is a
// call; and the metadata of an end of which there is no such message or call. A block is written as up to three events:
//   - the start, if there was one: id, role ("assistant" unless given; reasoning always "reasoning") and name, or toolCallName and
//     parentMessageId, and subagentRunId, as in the first *_START, but the toolCallName of the last; then the metadata of all
//     events of the block, merged key by key;
//   - the piece, if there is text: id, delta; also without text if there was a piece and either the message had no text before the
//     block's first event, or there is metadata and no start to have it. It has the metadata if there is no start;
//   - the end, if the last event that is a start or an end was an end: id, and the metadata if nothing before has it.
//
// Only starts name the subagent. One that does not, although the message (of a call: its parent, an assistant message) belongs to a
// subagent after a message that input.messages lost, names that one.
//
// Activities. The events of one id make a block in the same way: an ACTIVITY_SNAPSHOT of what the activity is in the end
// (messageId, activityType, content, subagentRunId, metadata of all events), and where its content is not an object, with the
// content {} and an ACTIVITY_DELTA that replaces the whole. Events that find nothing to change (a delta without its activity, a
// snapshot with replace false on another message, an ACTIVITY without snapshot and patch) are left out.
//
// MESSAGES_SNAPSHOT ends all blocks: later events begin new ones.
//
// State. If a run has a STATE_SNAPSHOT or a STATE_DELTA that succeeds, the last of them becomes a STATE_SNAPSHOT of the state at
// the end of the run, the others go.
//
// Superseded. At the last MESSAGES_SNAPSHOT at which no *_START of the run waits for its end (chunks do not count), all that
// changed messages before it goes, and in its place stands the whole list as it is there, written as a snapshot of the list (see
// below), unless an id was started (by a *_START or a chunk; a TOOL_CALL_RESULT counts as one of text) both before and after it.
// Only an end stays there, bare, when it is the first of its id, and the id was not started in the run: it ends what began earlier.
//
// Shape snapshot. The last run (earlier ones come in shape stream, for each whole list would make the size grow with the square)
// has no events of messages and state; before its first RUN_FINISHED or RUN_ERROR, or at its end, stand a snapshot of the list, if
// any event of messages was there, and the STATE_SNAPSHOT, if any of the state. Bare ends stay as above. A run that goes on
// then has a *_START for each id that waits for its end.
//
// A snapshot of the list is one MESSAGES_SNAPSHOT with the list, which claims all activities (metadata
// {"@ag-ui/client":{"authoritativeActivityTypes":null}}) if there were some before the run's events and the list has none. Where
// that does not give the list, because it keeps the order of what was there, a first MESSAGES_SNAPSHOT clears: [] or, if there was
// reasoning, one empty reasoning message with an id of its own ("cleared" and as many "-" as it takes); it claims the
// activities, if there were any. Where this does not give the list either, there is none. A message that says the same
// as before the run is written as it was then.
//
// Open chunks. The streams of chunks that are open at the end, and that the events written do not leave open, are reopened at
// the very end by a chunk without a delta each (id, role, name, toolCallName, parentMessageId, subagentRunId; of one that was open
// before the run's events, from the message or call that it is about, with role assistant where that is none of text). Those
// of which the run has no block with a start get one before all these chunks (start and end), but not in a run that is a snapshot.
// A run is neither a snapshot nor superseded if a list of messages would give such a message or call to another agent than the
// chunks do.
//
// Choice. A run comes in the first of these forms that gives the same messages and open chunks, also before each
// MESSAGES_SNAPSHOT that it keeps: snapshot (in that shape), superseded, merged, as it came (RUN_STARTED as above). It comes as it
// came, too, when it holds an event of a merged type (or MESSAGES_SNAPSHOT, RUN_STARTED, RUN_FINISHED) that the reducer skips for
// its shape, an id that is open in chunks and by a *_START at once, or an event of messages or state after its RUN_FINISHED or RUN_ERROR.

// A Shape is the form of compacted events.
type Shape string

const (
	// StreamShape gives each message and each call as a start, one piece and an end, at the place
	// where it began.
	StreamShape Shape = "stream"
	// SnapshotShape gives one MESSAGES_SNAPSHOT of the whole lineage and one STATE_SNAPSHOT, before the end of the run.
	SnapshotShape Shape = "snapshot"
)

// ParseShape reads the name of a shape.
func ParseShape(name string) (Shape, error) {
	switch shape := Shape(name); shape {
	case StreamShape, SnapshotShape:
		return shape, nil
	default:
		return "", fmt.Errorf("compaction: there is no shape %q: use %q or %q", name, StreamShape, SnapshotShape)
	}
}

// CompactEvents returns fewer events that mean the same: folded after the same lineage, they give
// the same messages, state, interrupts and open streams of chunks. If the verifier of the client
// accepts the events, or refuses them only for the life of their runs ([RepairEvents]), it accepts
// the result. Compacting the result once more changes no byte. Events that are merged lose the
// fields that the reducer does not read, such as rawEvent.
//
// after is the fold of the lineage before the events, nil for none; it does not change. An input
// that is stored beside the events of a run goes into its RUN_STARTED first ([WithInput]). Of
// several runs, each means what it meant before; only the last one comes in SnapshotShape. The time
// is linear in the number of events, plus the length of the list of messages for each run and each
// MESSAGES_SNAPSHOT. Events that are not merged share their memory with the given ones.
//
// If a run (from one RUN_STARTED to the next) or the stream as a whole exceeds the limits of after,
// the error is a [*LimitError].
func CompactEvents(events []json.RawMessage, shape Shape, after *Fold) ([]json.RawMessage, error) {
	if after == nil {
		after = New()
	}
	events = asReasoning(events, after)
	c := compact(events, shape, after)
	if err := c.truth.Err(); err != nil {
		return nil, err
	}
	if !c.life.isNeeded {
		return c.compacted, nil
	}
	// Compaction may change what a repair sees, so the steps repeat until nothing changes.
	for range maxSteps {
		if c.life.isNeeded {
			c = compact(RepairEvents(events, after), shape, after)
		}
		if slices.EqualFunc(c.compacted, events, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
			break
		}
		events = c.compacted
		c = compact(events, shape, after)
	}
	return events, nil
}

// maxSteps bounds how often events are repaired and compacted. The second time usually changes nothing.
const maxSteps = 4

func compact(events []json.RawMessage, shape Shape, after *Fold) *compactor {
	c := &compactor{truth: after.Clone(), replica: after.Clone(), life: newRepair(after)}
	c.truth.runsByEvents, c.replica.runsByEvents = true, true
	c.begin(nil)
	for _, event := range events {
		c.add(event)
	}
	c.finish(shape)
	return c
}

// A compactor takes events one after another and compacts run by run.
//
// It keeps two folds: of the events given, and of the events returned. If a run would mean
// something else in one compact form, the compactor tries the next form. If none is left, it
// returns the run as it came. So every stream keeps its meaning, and the rules of the compact forms
// need to cover only ordinary streams.
type compactor struct {
	truth     *Fold // of the events as they came
	replica   *Fold // of the compacted ones
	compacted []json.RawMessage
	life      *repair // whether the events need one

	run          *run
	truthStart   *Fold // at the beginning of the run, its RUN_STARTED included
	replicaStart *Fold

	event event // the event at hand
}

// begin begins a run; started is its RUN_STARTED, nil at the beginning of events that begin in the middle of one.
func (c *compactor) begin(started json.RawMessage) {
	c.run = newRun()
	if started != nil {
		normal, dropped := normalizedInput(started, &c.event, c.truth)
		c.run.dropped = dropped
		c.compacted = append(c.compacted, normal)
		c.replica.Apply(normal)
		c.truth.applyEvent(&c.event)
	}
	c.truthStart, c.replicaStart = c.truth.Clone(), c.replica.Clone()
}

// finish ends a run: it chooses the first of its forms that means what the run means.
func (c *compactor) finish(shape Shape) {
	c.run.finish(c.truth)
	for form := range c.run.forms(shape, c.truthStart, c.replicaStart, c.truth) {
		if c.accepts(form) {
			c.compacted = append(c.compacted, form.events...)
			return
		}
		c.replica = c.replicaStart.Clone()
	}
	c.compacted = append(c.compacted, c.run.events...)
	c.replica.applyAll(c.run.events)
}

// accepts folds a form of the run and reports whether it means what the run means. It also reopens
// the streams of chunks that are open at the end of the run.
func (c *compactor) accepts(w *form) bool {
	applied := 0
	for _, check := range w.checks {
		c.replica.applyAll(w.events[applied:check.events])
		applied = check.events
		if !c.agree(check.messages) {
			return false
		}
	}
	c.replica.applyAll(w.events[applied:])
	if !sameLanes(c.truth, c.replica) {
		reopening := c.run.reopen(w, c.truth, c.replica)
		c.replica.applyAll(reopening)
		w.add(reopening...)
	}
	return sameLanes(c.truth, c.replica) && c.agree(c.truth.Messages()) && (!w.hasList || c.truth.listsOpenChunks())
}

// listsOpenChunks reports whether the messages give each open stream of chunks the subagent of its
// chunks. The client's verifier requires that they agree.
func (f *Fold) listsOpenChunks() bool {
	return !slices.ContainsFunc(f.lanes, func(l lane) bool {
		id, _ := jsontree.StringValue(jsontree.Raw(l.id))
		kind := textPart
		if l.kind == toolStream {
			kind = toolPart
		}
		_, owner, ok := f.subject(kind, id)
		return ok && l.subagent != nil && (owner == nil || !sameJSONString(owner, l.subagent))
	})
}

func (f *Fold) applyAll(events []json.RawMessage) {
	for _, event := range events {
		f.Apply(event)
	}
}

func (c *compactor) add(text json.RawMessage) {
	e := &c.event
	defer e.clear()
	if !e.scanWhole(text, nil) {
		e.clear()
	}
	c.life.add(text, e)
	c.truth.at.next(text, typeOf(e))
	t := c.truth.foldedType(e)
	if t != nil && t.does == doesStartRun {
		c.finish(StreamShape)
		c.begin(text)
		return
	}
	c.run.events = append(c.run.events, text)
	if t == nil {
		c.run.addSkipped(text, e)
		return
	}
	c.truth.closeLanes(t.closes, e)
	c.run.add(text, e, t, c.truth)
}

// agree reports whether the replica has the messages that the truth has, or had. (State and interrupts agree by the way the forms
// are made.) Messages that neither changed since the run began are not looked into.
func (c *compactor) agree(truth []*Message) bool {
	replica := c.replica.Messages()
	if len(truth) != len(replica) {
		return false
	}
	start := 0 // the place in the list that the run began with
	for i := range truth {
		if start < len(c.truthStart.Messages()) {
			if truth[i] == c.truthStart.Messages()[start] && replica[i] == c.replicaStart.Messages()[start] {
				start++
				continue
			}
			if truth[i].hasID && truth[i].id == c.truthStart.Messages()[start].id {
				start++
			}
		}
		if !truth[i].says(replica[i]) {
			return false
		}
	}
	return sameRepeats(truth, replica)
}

// sameRepeats reports whether two lists of the same length have the same message in the same places.
func sameRepeats(a, b []*Message) bool {
	var firstA, firstB map[*Message]int // the place of a message that stands at several
	for i := range a {
		if !a[i].repeated && !b[i].repeated {
			continue
		}
		if firstA == nil {
			firstA, firstB = map[*Message]int{}, map[*Message]int{}
		}
		placeA, repeatsA := firstA[a[i]]
		placeB, repeatsB := firstB[b[i]]
		if repeatsA != repeatsB || placeA != placeB {
			return false
		}
		if !repeatsA {
			firstA[a[i]], firstB[b[i]] = i, i
		}
	}
	return true
}

// means reports whether two folds mean the same.
func (f *Fold) means(other *Fold) bool {
	return slices.EqualFunc(f.Messages(), other.Messages(), func(a, b *Message) bool { return a == b || a.says(b) }) &&
		sameRepeats(f.Messages(), other.Messages()) && sameLanes(f, other) &&
		jsontree.Same(jsontree.Raw(f.State()), jsontree.Raw(other.State())) && jsontree.Same(jsontree.Raw(f.interrupts), jsontree.Raw(other.interrupts))
}

// sameLanes reports whether later events that do not name what they continue mean the same after both folds.
func sameLanes(a, b *Fold) bool {
	lanesA, lanesB := a.Lanes(), b.Lanes()
	return bytes.Equal(lanesA, lanesB) || lanesA != nil && lanesB != nil && jsontree.Same(jsontree.Raw(lanesA), jsontree.Raw(lanesB))
}

func sameLane(a, b lane) bool {
	sameSubagent := a.subagent == nil && b.subagent == nil ||
		a.subagent != nil && b.subagent != nil && sameJSONString(a.subagent, b.subagent)
	return sameSubagent && a.kind == b.kind && sameJSONString(a.id, b.id)
}

// normalizedInput leaves out of a RUN_STARTED, which the event holds, the messages of its input that the lineage has, and what is
// not a message; everything else stays as it was written. It returns the subagents of the messages left out, by id.
func normalizedInput(started json.RawMessage, e *event, lineage *Fold) (json.RawMessage, map[string][]byte) {
	input := e.values[fieldInput]
	if input == nil {
		return started, nil
	}
	list := rawjson.MemberOf(input, "messages")
	if list == nil || list[0] != '[' {
		return started, nil
	}
	dropped := map[string][]byte{}
	seen := map[string]bool{}
	kept, keepsAll := []byte{'['}, true
	for element := range rawjson.Elements(list) {
		keep := kindOf(element) == isString
		if kindOf(element) == isObject {
			id, hasID := jsontree.StringValue(jsontree.Raw(rawjson.MemberOf(element, "id")))
			keep = !hasID || !seen[id] && lineage.find([]byte(id)) < 0
			if !keep {
				if subagent := rawjson.MemberOf(element, "subagentRunId"); subagent != nil && kindOf(subagent) == isString {
					dropped[id] = subagent
				}
			}
			seen[id] = hasID
		}
		if !keep {
			keepsAll = false
			continue
		}
		if len(kept) > 1 {
			kept = append(kept, ',')
		}
		kept = append(kept, element...)
	}
	if keepsAll {
		return started, dropped
	}
	return withMessages(started, append(kept, ']')), dropped
}

// withMessages returns a RUN_STARTED with other messages in its input.
func withMessages(started json.RawMessage, messages []byte) json.RawMessage {
	input, _ := rawjson.PlaceOf(started, "input")
	from, to := rawjson.PlaceOf(started[input:], "messages")
	return slices.Concat(started[:input+from], messages, started[input+to:])
}
