package accept

import (
	"bytes"
	"cmp"

	"github.com/pgagui/pgagui/internal/rawjson"
)

// A Run names a run.
type Run struct {
	ThreadID string
	RunID    string
}

// Stats count what a filter did, in events.
type Stats struct {
	// Added were put in by the filter.
	Added int
	// Changed lost members, or got those that they need.
	Changed int
	// Malformed were left out because they are no events, of no type that the clients know, too
	// large, or because the schema of a client refuses them.
	Malformed int
	// Misplaced were left out because the verifier of a client refuses them at their place, or
	// because a later RUN_FINISHED replaced them.
	Misplaced int
	// Skipped were left out because they change nothing where the log is folded: patches that fail, pieces of messages that are not there.
	Skipped int
}

// A Filter keeps the stream to one client valid; see the package. Its state depends on nothing but
// the calls of its methods:
//
//   - A client that attaches with a new verifier gets a new filter. It takes the history of the
//     attachment first, then the events behind it.
//   - If a client resumes a stream with the same verifier, it gets a new filter, which first takes
//     exactly what the old one took, and the caller drops the results: the history of the same
//     attachment, if the stream began with one, and each event since. A snapshot or a compacted
//     stream is not enough instead: the verifier has open what these leave out.
//
// A filter belongs to one goroutine at a time.
type Filter struct {
	clients  Clients
	phase    phase
	finished []byte // the RUN_FINISHED that waits for the end of the answer
	threadID []byte // of the run, in JSON
	runID    []byte
	state    state
	stats    Stats
	skips    func(event []byte) bool
	// While an event is read:
	event  event
	before [][]byte
	prune  []field // members that the event must lose
	text   []byte
	// isSkipped: it is left out because the folds skip it.
	isSkipped bool
}

// A phase is the progress of a run, as the client knows it.
type phase uint8

const (
	beforeRun phase = iota
	running
	hasFinished
	hasFailed
)

// maxEvent keeps a frame under the 10 MiB (in UTF-16) that 1.0.0 buffers.
const maxEvent = 10<<20 - 1<<10

// New returns a filter for a stream that begins with a run. clients are those for which it must be
// valid; 0 means all.
func New(run Run, clients Clients) *Filter {
	clients = cmp.Or(clients, allClients)
	f := &Filter{clients: clients, state: newState()}
	f.begin(run)
	return f
}

// Consult gives the filter a function that reports whether the folds of the log skip the event at hand, so that a page does not show what
// is gone after a reload. The filter calls it for patches, and for pieces of messages that it has not seen begin. Without it, it lets
// patches pass, and leaves such pieces out.
func (f *Filter) Consult(skips func(event []byte) bool) { f.skips = skips }

// Begin says that the next events are those of another run of the same stream. It returns what to
// send first, as End does, if the run before has no end. It is needed only where the run may lack
// its RUN_STARTED, or the run before its end.
func (f *Filter) Begin(run Run) [][]byte {
	ends := f.End("")
	f.begin(run)
	return ends
}

func (f *Filter) begin(run Run) {
	f.phase, f.threadID, f.runID = beforeRun, rawjson.Quote(nil, run.ThreadID), rawjson.Quote(nil, run.RunID)
	f.state.reset()
}

// Push takes the next event of the log and returns what to send in its place: the events before,
// which have no position, and then the event itself. If send is nil, the client gets the event's
// position alone. send is the event, unless it had to lose members. Push keeps nothing of event.
//
// For RUN_FINISHED, too, send is nil. It comes with the next RUN_STARTED or RUN_ERROR, or from End;
// see Holding.
func (f *Filter) Push(event []byte) (before [][]byte, send []byte) {
	f.before = nil
	send = f.push(event)
	f.event.forget()
	f.text = nil
	return f.before, send
}

// Holding reports whether a RUN_FINISHED waits for End. A caller does not send its position: a
// client that comes back with an earlier one gets the event then.
func (f *Filter) Holding() bool { return f.finished != nil }

// End says that the agent's answer ended, and returns the end of the run, with what must come before
// it: the RUN_FINISHED that was held; if none came, a RUN_ERROR with the message failure, or a
// RUN_FINISHED if failure is empty. After an end it returns nothing.
func (f *Filter) End(failure string) [][]byte {
	f.before = nil
	if f.phase == hasFinished || f.phase == hasFailed {
		return nil
	}
	f.startRun()
	switch {
	case f.finished != nil:
		f.release()
	case failure != "":
		f.add(newEvent("RUN_ERROR", jsonMember{fieldMessage, rawjson.Quote(nil, failure)}))
		f.phase = hasFailed
	default:
		f.finished = newEvent("RUN_FINISHED", jsonMember{fieldThreadID, f.threadID}, jsonMember{fieldRunID, f.runID})
		f.stats.Added++
		f.release()
	}
	return f.before
}

// Stats returns what the filter did so far.
func (f *Filter) Stats() Stats { return f.stats }

func (f *Filter) push(text []byte) []byte {
	e := &f.event
	if !e.scan(text) || f.isTooLarge(text) {
		f.stats.Malformed++
		return nil
	}
	kind := eventKinds[string(e.text(fieldType))]
	if kind == nil {
		return f.unknown(text)
	}
	isRepaired := false
	if f.clients&^kind.knownTo != 0 {
		if kind.instead == "" {
			return f.unknown(text)
		}
		if text = withType(text, kind.instead); !e.scan(text) {
			return nil
		}
		kind, isRepaired = eventKinds[kind.instead], true
	}
	if refuse, wrong, spare := e.refusals(kind.rules, f.clients); refuse != 0 || spare != nil {
		text = f.repaired(kind, text, wrong, spare)
		if text == nil || !e.scan(text) {
			f.stats.Malformed++
			return nil
		}
		isRepaired = true
	}
	f.prune = nil
	f.isSkipped = false
	if !f.admit(kind, text) {
		if f.isSkipped {
			f.stats.Skipped++
		} else {
			f.stats.Misplaced++
		}
		return nil
	}
	if f.isSkipped {
		f.stats.Skipped++
		return f.metadataAlone()
	}
	if f.prune != nil {
		text, isRepaired = without(text, f.prune), true
	}
	if isRepaired {
		f.stats.Changed++
	}
	if kind.does == doesFinishRun {
		return nil
	}
	return text
}

// unknown returns what to send in place of an event of a type that the clients do not know.
func (f *Filter) unknown(text []byte) []byte {
	if f.clients == Client1 && len(f.event.text(fieldType)) > 0 {
		return text // this client drops it, unless a program has taught it the type
	}
	f.stats.Malformed++
	return nil
}

// isTooLarge: 1.0.0 gives up on a frame over 10 MiB, counted in UTF-16.
func (f *Filter) isTooLarge(text []byte) bool {
	if f.clients&Client1 == 0 || len(text) <= maxEvent {
		return false
	}
	units := 0
	for _, c := range text {
		if c < 0x80 || c >= 0xc0 {
			units++ // the first byte of a character
		}
		if c >= 0xf0 {
			units++ // of two units
		}
	}
	return units > maxEvent
}

// repaired returns the event without the members that a client refuses and the event does not need; nil if that is not enough.
func (f *Filter) repaired(kind *eventKind, text []byte, wrong, spare []field) []byte {
	if wrong == nil {
		return without(text, spare)
	}
	object, _ := rawjson.ParseObject(text)
	for _, w := range spare {
		object.Remove(fieldNames[w])
	}
	for _, w := range wrong {
		switch {
		case w == fieldMessages && f.event.values[w] != nil && f.event.values[w][0] == '[':
			object.Set(fieldNames[w], f.accepted(f.event.values[w]))
		case f.takesWithoutNulls(kind, w, &object):
		case w == fieldInput:
			f.repairInput(&object, f.event.values[w])
		case !kind.isOfRun():
			return nil
		case w == fieldThreadID:
			object.Set(fieldNames[w], f.threadID)
		case w == fieldRunID:
			object.Set(fieldNames[w], f.runID)
		case w == fieldMessage:
			object.Set(fieldNames[w], []byte(`"The run failed."`))
		default:
			object.Remove(fieldNames[w])
		}
	}
	return object.Text()
}

// repairInput leaves out the messages of an input that a client refuses, and adds what it lacks besides messages. If that is not
// enough, it leaves out the input.
func (f *Filter) repairInput(event *rawjson.Object, input []byte) {
	object, ok := rawjson.ParseObject(input)
	if messages := object.Get("messages"); ok && messages != nil && messages[0] == '[' {
		object.Set("messages", f.accepted(messages))
		for _, m := range []struct {
			name  string
			value []byte
		}{{"threadId", f.threadID}, {"runId", f.runID}, {"tools", []byte("[]")}, {"context", []byte("[]")}} {
			if object.Get(m.name) == nil {
				object.Set(m.name, m.value)
			}
		}
		input = object.Text()
	}
	if isInput(input)&f.clients == 0 {
		event.Set(fieldNames[fieldInput], input)
	} else {
		event.Remove(fieldNames[fieldInput])
	}
}

// accepted returns a list of messages without those that a client refuses. A message may lose members that are null.
func (f *Filter) accepted(list []byte) []byte {
	array, _ := rawjson.ParseArray(list)
	kept := array.Members[:0]
	for _, m := range array.Members {
		if isMessage(m.Value)&f.clients != 0 {
			m.Value = withoutNulls(m.Value)
		}
		if isMessage(m.Value)&f.clients == 0 {
			kept = append(kept, m)
		}
	}
	array.Members = kept
	return array.Text()
}

// takesWithoutNulls takes the members out of a value that are null, if it is an outcome or a usage that a client takes then. Agents in
// Python write each optional member of an interrupt.
func (f *Filter) takesWithoutNulls(kind *eventKind, w field, object *rawjson.Object) bool {
	if w != fieldOutcome && w != fieldUsage || f.event.values[w] == nil {
		return false
	}
	value := withoutNulls(f.event.values[w])
	for i := range kind.rules {
		if rule := &kind.rules[i]; rule.field == w && rule.check(value)&f.clients == 0 {
			object.Set(fieldNames[w], value)
			return true
		}
	}
	return false
}

// withoutNulls returns an object without its members that are null, and a list of such objects. The interrupts of an outcome are one.
func withoutNulls(value []byte) []byte {
	if array, ok := rawjson.ParseArray(value); ok {
		for i := range array.Members {
			array.Members[i].Value = withoutNulls(array.Members[i].Value)
		}
		return array.Text()
	}
	object, ok := rawjson.ParseObject(value)
	if !ok {
		return value
	}
	for _, key := range object.Keys() {
		switch member := object.Get(key); {
		case string(member) == "null":
			object.Remove(key)
		case key == "interrupts":
			object.Set(key, withoutNulls(member))
		}
	}
	return object.Text()
}

// metadataAlone writes the event at hand, a patch of an activity that fails, without the patch: its metadata counts.
func (f *Filter) metadataAlone() []byte {
	values := &f.event.values
	return newEvent("ACTIVITY_SNAPSHOT", jsonMember{fieldMessageID, values[fieldMessageID]}, jsonMember{fieldActivityType, values[fieldActivityType]},
		jsonMember{fieldContent, []byte("{}")}, jsonMember{fieldReplace, []byte("false")}, jsonMember{fieldMetadata, values[fieldMetadata]})
}

// --- the life of runs ---

func (f *Filter) add(event []byte) {
	f.stats.Added++
	f.before = append(f.before, event)
}

// startRun puts in the RUN_STARTED that is missing.
func (f *Filter) startRun() {
	if f.phase == beforeRun {
		f.add(newEvent("RUN_STARTED", jsonMember{fieldThreadID, f.threadID}, jsonMember{fieldRunID, f.runID}))
		f.phase = running
	}
}

// release puts in the RUN_FINISHED that was held, behind the ends of what is open.
func (f *Filter) release() {
	for _, closing := range f.state.closings() {
		f.add(closing)
	}
	f.before = append(f.before, f.finished)
	f.finished, f.phase = nil, hasFinished
}

// admit reports whether the verifier accepts the event here, and records what it means. It puts in what must come before.
func (f *Filter) admit(kind *eventKind, text []byte) bool {
	switch kind.does {
	case doesStartRun:
		return f.admitRunStarted()
	case doesFinishRun:
		return f.admitRunFinished(text)
	case doesFailRun:
		return f.admitRunError()
	}
	if f.phase == hasFinished || f.phase == hasFailed {
		return false
	}
	closing := -1
	tag := f.event.text(fieldSubagentRunID)
	if kind.closesLane && len(f.state.lanes) > 0 {
		closing = f.state.laneOf(tag)
	}
	closing = f.closeEnded(closing)
	isFirst := f.phase == beforeRun
	f.startRun()
	f.isSkipped = kind.isPatch() && f.skips != nil && f.skips(text)
	if f.isSkipped && kind.does == doesPatchActivity && f.event.values[fieldMetadata] != nil {
		return true
	}
	if !f.isSkipped && kind.admit == nil {
		f.state.closeLane(closing)
		return true
	}
	f.text = text
	if !f.isSkipped && kind.admit(f, kind, tag, closing) {
		return true
	}
	if closing >= 0 {
		f.state.lanes[closing].hasEnded = true
	}
	if isFirst { // nothing has begun
		f.stats.Added, f.before, f.phase = f.stats.Added-1, nil, beforeRun
	}
	return false
}

// closeEnded has the client close the lanes that what it did not get has ended, but for the one that the event at hand closes. A patch
// without operations does nothing else. It returns the place of that one.
func (f *Filter) closeEnded(closing int) int {
	for place := len(f.state.lanes) - 1; place >= 0; place-- {
		if l := &f.state.lanes[place]; l.hasEnded && place != closing {
			f.add(newEvent("STATE_DELTA", jsonMember{fieldDelta, []byte("[]")}, jsonMember{fieldSubagentRunID, l.owner.tag()}))
			f.state.closeLane(place)
			if place < closing {
				closing--
			}
		}
	}
	return closing
}

func (f *Filter) admitRunStarted() bool {
	if f.phase == running && f.finished == nil {
		f.state.endLanes()
		return false
	}
	if f.finished != nil {
		f.release()
	}
	f.phase = running
	f.state.reset()
	f.threadID, f.runID = bytes.Clone(f.event.values[fieldThreadID]), bytes.Clone(f.event.values[fieldRunID])
	if input := f.event.values[fieldInput]; input != nil && input[0] == '{' {
		f.learn(rawjson.MemberOf(input, "messages"), false)
	}
	return true
}

func (f *Filter) admitRunFinished(text []byte) bool {
	if f.phase == hasFinished || f.phase == hasFailed {
		return false
	}
	f.startRun()
	if f.finished != nil {
		f.stats.Misplaced++ // the last one counts
	}
	f.finished = bytes.Clone(text)
	f.state.endLanes()
	return true
}

func (f *Filter) admitRunError() bool {
	if f.phase == hasFailed {
		return false
	}
	if f.finished != nil {
		f.release()
	}
	f.phase = hasFailed
	return true
}

// learn records which agents the messages of a list and their calls belong to. A snapshot overwrites earlier records.
func (f *Filter) learn(list []byte, isSnapshot bool) {
	if list == nil || list[0] != '[' {
		return
	}
	s := &f.state
	record := func(b bucket, id, tag []byte) *part {
		p := s.add(b, id)
		if p != nil && (isSnapshot || !p.hasOwner) {
			s.own(p, ownerOf(tag))
		}
		if p != nil {
			p.isGone = false
		}
		return p
	}
	for message := range rawjson.Elements(list) {
		id := stringOf(rawjson.MemberOf(message, "id"))
		if id == nil {
			continue
		}
		tag := stringOf(rawjson.MemberOf(message, "subagentRunId"))
		b := messages
		switch string(stringOf(rawjson.MemberOf(message, "role"))) {
		case "reasoning":
			b = reasoning
		case "activity":
			b = activities
		}
		record(b, id, tag)
		calls := rawjson.MemberOf(message, "toolCalls")
		if b != messages || calls == nil || calls[0] != '[' {
			continue
		}
		for call := range rawjson.Elements(calls) {
			if id := stringOf(rawjson.MemberOf(call, "id")); id != nil {
				p := record(toolCalls, id, tag)
				if function := rawjson.MemberOf(call, "function"); p != nil && (isSnapshot || !p.isNamed) && function != nil && function[0] == '{' {
					s.call(p, string(stringOf(rawjson.MemberOf(function, "name"))))
				}
			}
		}
	}
}

// stringOf decodes a JSON string; nil if it is none.
func stringOf(value []byte) []byte {
	if value == nil || value[0] != '"' {
		return nil
	}
	return rawjson.Decode([]byte{}, value[1:len(value)-1])
}
