package compaction

// An eventType is what protocol/events.json says of a type; protocol_generated.go has all of them. What they do is code, here.
type eventType struct {
	name string // set by init
	does action
	part partKind // what it is done to
	// became is the type that says the same in the newest protocol; "": this one does, or none.
	became string
	// isFolded says that the reducer reads events of the type. It skips others, and those that do not have the shape.
	isFolded bool
	shape    shape
	// closes says which streams of chunks end with the event.
	closes closing

	// read, if set, converts the event to the form that apply reads. An event that it refuses is skipped too.
	read func(*event) bool
	// apply changes the fold; nil for an event that means nothing to it.
	apply func(*Fold, *event)
}

// An action is what events do, a partKind what they do it to.
type (
	action   uint8
	partKind uint8
)

// partEvents are the types of the events that pgagui writes about a part, and the field that names it; "" where there is none.
type partEvents struct{ opens, continues, closes, idName string }

// A method is the code of an action.
type method struct {
	read  func(*event) bool
	apply func(*Fold, *event)
}

// methods has the code of each action that is not about a part.
var methods = map[action]method{
	doesNothing:             {},
	doesListMessages:        {apply: (*Fold).snapshotMessages},
	doesAddResult:           {apply: (*Fold).addToolResult},
	doesEncrypt:             {apply: (*Fold).setEncryptedValue},
	doesShowActivity:        {apply: (*Fold).snapshotActivity},
	doesPatchActivity:       {apply: (*Fold).patchActivity},
	doesShowOrPatchActivity: {apply: (*Fold).proposedActivity},
	doesSetState:            {readStateSnapshot, (*Fold).snapshotState},
	doesPatchState:          {readStateDelta, (*Fold).patchState},
	doesStartRun:            {readInput, (*Fold).startRun},
	doesFinishRun:           {readOutcome, (*Fold).finishRun},
	doesFailRun:             {apply: (*Fold).failRun},
	doesAsk:                 {}, // ask; what clients see does not change
}

func init() {
	for name, t := range eventTypes {
		t.name = name
		if t.part == noPart {
			t.read, t.apply = methods[t.does].read, methods[t.does].apply
			continue
		}
		stream := t.stream()
		if stream == nil {
			continue // steps, subagents and spans of reasoning have no place in messages
		}
		switch t.does {
		case doesStart:
			t.apply = stream.start
		case doesContinue:
			t.apply = stream.proceed
		case doesEnd:
			t.apply = stream.end
		case doesChunk:
			t.apply = stream.apply
			stream.described = fieldType.set() | fieldTimestamp.set()
			for _, s := range t.shape {
				stream.described |= s.field.set()
			}
			stream.described &^= fieldMetadata.set()
		}
	}
}

func (f *Fold) applyEvent(e *event) {
	f.skipped = ""
	t := f.foldedType(e)
	if t == nil {
		return
	}
	if !f.beforeEvent() {
		return
	}
	f.closeLanes(t.closes, e)
	if t.apply != nil {
		t.apply(f, e)
		f.afterEvent()
	}
	f.ask(t, e)
}

// foldedType returns the type that the event is folded by; nil if the event is skipped.
func (f *Fold) foldedType(e *event) *eventType {
	t := typeOf(e)
	f.hasFailed = f.hasFailed && !f.isBetweenRuns && t.does != doesStartRun
	if f.isBetweenRuns || t.does == doesStartRun {
		f.asked = nil
	}
	f.isBetweenRuns = false
	if f.hasFailed {
		return nil
	}
	if after, id := f.thinking.read(t, e.values[fieldMessageID], f.at.runID, f.at.seq); after != t {
		t = after
		e.values[fieldMessageID] = id
	}
	if t.takes(e) {
		return t
	}
	return nil
}

// takes reports whether an event has what one of the type needs to have an effect.
func (t *eventType) takes(e *event) bool {
	return t.isFolded && e.has(t.shape) && (t.read == nil || t.read(e))
}

// isLate reports whether an event means nothing behind RUN_ERROR, but would mean something before it.
func (t *eventType) isLate() bool { return t.apply != nil && t.does != doesStartRun }

// typeOf returns what the list says of the event's type, whether or not the event is skipped.
func typeOf(e *event) *eventType {
	if t := eventTypes[string(e.typeName())]; t != nil {
		return t
	}
	return unknownType
}

var unknownType = &eventType{}
