package compaction

import (
	"encoding/json"
	"slices"

	"github.com/pgagui/pgagui/internal/jsontree"
)

// This file groups the events of one run by what they are about. compact_forms.go writes them in a compact form.

// A run holds the events of one run after its RUN_STARTED.
type run struct {
	events []json.RawMessage // as they came
	items  []item
	// odd says that the run stays as it came: it holds events that are skipped here but that the client reads, one message is open
	// both in chunks and in other events, or something changes after the end of the run.
	odd bool
	// ended is the place of its end among the items, -1 as long as there is none.
	ended int
	// dropped are the subagents of the messages that were left out of the run's input, by message id.
	dropped map[string][]byte

	// The blocks that further events join: those since the last MESSAGES_SNAPSHOT.
	streams    map[streamKey]*streamBlock
	activities map[string]*activityBlock
	open       map[streamKey]*streamBlock // what a *_START of the run has begun and no event has ended
	begun      map[streamKey]bool         // what the run has begun, or ended

	state     int             // the item of the state, -1 for none
	stateText json.RawMessage // at the end of the run

	// The last MESSAGES_SNAPSHOT at which nothing was open; see afterSnapshot.
	snapshot      int        // its item, -1 for none
	list          []*Message // the messages after it
	startedBefore map[streamKey]bool
	startedSince  map[streamKey]bool
	startedTwice  bool // an id was started both before and since
}

// An item is one thing in its place in the run. An item with none of the first four is empty.
type item struct {
	event    json.RawMessage // stays as it came
	stream   *streamBlock
	activity *activityBlock
	isState  bool

	// ofMessages says that the item changes messages, so that a snapshot of them stands for it.
	ofMessages bool
	// isSnapshot says that the item is a MESSAGES_SNAPSHOT, before which the messages were these.
	isSnapshot bool
	before     []*Message
}

func newRun() *run {
	return &run{
		streams: map[streamKey]*streamBlock{}, activities: map[string]*activityBlock{}, open: map[streamKey]*streamBlock{}, begun: map[streamKey]bool{},
		ended: -1, state: -1, snapshot: -1,
		startedBefore: map[streamKey]bool{}, startedSince: map[streamKey]bool{},
	}
}

// --- taking apart ---

// add adds an event that is not skipped, and folds it.
func (r *run) add(text json.RawMessage, e *event, t *eventType, f *Fold) {
	if t.does == doesFinishRun || t.does == doesFailRun {
		if r.ended < 0 {
			r.ended = len(r.items)
		}
		r.carry(text, item{})
		if t.apply != nil {
			t.apply(f, e)
		}
		return
	}
	if t.apply == nil {
		f.ask(t, e)
		r.carry(text, item{})
		return
	}
	r.odd = r.odd || r.ended >= 0
	switch t.does {
	case doesListMessages:
		r.closeActivities(f)
		r.carry(text, item{ofMessages: true, isSnapshot: true, before: f.Clone().Messages()}) // the clone's, for the fold changes its own
		f.snapshotMessages(e)
		r.closeBlocks(f)
	case doesAddResult:
		r.noteStart(streamKey{textStream, string(e.decoded(fieldMessageID))})
		r.carry(text, item{ofMessages: true})
		f.addToolResult(e)
	case doesSetState:
		f.snapshotState(e)
		r.addState()
	case doesPatchState:
		if f.patchedState(e) {
			r.addState()
		}
	case doesShowActivity, doesPatchActivity, doesShowOrPatchActivity:
		r.addToActivity(t.does, e, f)
		t.apply(f, e)
	case doesStart, doesContinue, doesEnd, doesChunk:
		r.addToStream(t.does, t.stream(), e, f)
	default:
		r.carry(text, item{ofMessages: true})
		t.apply(f, e)
	}
}

// addSkipped adds an event that the reducer skips.
func (r *run) addSkipped(text json.RawMessage, e *event) {
	switch t := typeOf(e); t.does {
	case doesAddResult, doesEncrypt: // they stay as they came
	default:
		r.odd = r.odd || t.apply != nil
	}
	r.carry(text, item{})
}

// carry adds an event that stays as it came.
func (r *run) carry(text json.RawMessage, i item) {
	i.event = text
	r.items = append(r.items, i)
}

// addState puts the state where it stood last.
func (r *run) addState() {
	if r.state >= 0 {
		r.items[r.state].isState = false
	}
	r.state = len(r.items)
	r.items = append(r.items, item{isState: true})
}

// closeBlocks ends all blocks, for a MESSAGES_SNAPSHOT does not let later events pass.
func (r *run) closeBlocks(f *Fold) {
	clear(r.streams)
	if len(r.open) > 0 {
		return
	}
	r.snapshot = len(r.items) - 1
	r.list = f.Clone().Messages() // not changed by what follows
	for key := range r.startedSince {
		r.startedBefore[key] = true
	}
	clear(r.startedSince)
	r.startedTwice = false
}

func (r *run) noteStart(key streamKey) {
	r.startedSince[key] = true
	r.startedTwice = r.startedTwice || r.startedBefore[key]
}

// finish ends the run.
func (r *run) finish(f *Fold) {
	r.closeActivities(f)
	if r.state >= 0 {
		r.stateText = f.State()
	}
}

// --- text, reasoning and tool calls ---

// A streamKey names the message or call that an event is about.
type streamKey struct {
	kind streamKind
	id   string // decoded
}

// A streamBlock is what the events about one message or call become: a start, one piece and an end.
type streamBlock struct {
	key streamKey
	// The fields of the events, as JSON. name is that of the message or of the tool.
	id, role, name, parent, subagent []byte

	metadata jsontree.Object // holds the key "metadata" when an event has it
	text     []byte          // of all pieces, as JSON text between quotes
	// hasPiece says that there is a piece, textless that one of no length means something: the message had no text.
	hasPiece, textless bool
	started, ended     bool
	// endsEarlier says that the block ends what was begun before the run's events.
	endsEarlier bool
}

func (r *run) addToStream(does action, kind *shorthand, e *event, f *Fold) {
	if does == doesChunk {
		r.addChunk(kind, e, f)
		return
	}
	key := keyOf(kind.kind, e)
	switch does {
	case doesStart:
		b := r.startBlock(key, e, f)
		b.ended = false
		r.open[key] = b
		r.odd = r.odd || f.holds(key)
		kind.start(f, e)
	case doesContinue:
		if f.takesPiece(key, e) {
			r.blockOf(key, e, f, true).addPiece(e)
			kind.proceed(f, e)
		}
	case doesEnd:
		b := r.blockOf(key, e, f, false)
		b.ended = true
		b.endsEarlier = b.endsEarlier || !r.begun[key]
		r.begun[key] = true
		if f.has(key) {
			mergeMetadata(&b.metadata, e.values[fieldMetadata])
		}
		delete(r.open, key)
		kind.end(f, e)
	}
}

// addChunk adds the events that a chunk stands for. Each stream of chunks ends, at the latest with the events, where
// reopen opens it anew. So its block has an end.
func (r *run) addChunk(kind *shorthand, e *event, f *Fold) {
	starts, proceeds := f.expandChunk(kind, e)
	if starts {
		key := keyOf(kind.kind, e)
		r.startBlock(key, e, f).ended = true
		r.odd = r.odd || r.open[key] != nil
		kind.start(f, e)
	}
	if !proceeds {
		return
	}
	key := keyOf(kind.kind, e)
	if !f.takesPiece(key, e) {
		return
	}
	if r.streams[key] == nil {
		// The stream was open when the events began.
		b := streamOf(kind.kind, e.values[kind.kind.idField()], f)
		b.subagent, b.started, b.ended = e.values[fieldSubagentRunID], true, true
		r.addBlock(b, f)
	}
	r.streams[key].addPiece(e)
	kind.proceed(f, e)
}

func keyOf(kind streamKind, e *event) streamKey {
	return streamKey{kind, string(e.decoded(kind.idField()))}
}

// takesPiece reports whether a piece changes anything.
func (f *Fold) takesPiece(key streamKey, e *event) bool {
	return f.has(key) && (len(e.inner(fieldDelta)) > 0 || e.values[fieldMetadata] != nil || !f.hasText(key))
}

// has reports whether the fold has the message or call that a piece is about.
func (f *Fold) has(key streamKey) bool {
	if key.kind == toolStream {
		place, ok := f.findCall([]byte(key.id))
		return ok && f.messages.at(place.message).function(place.call) != nil
	}
	place := f.find([]byte(key.id))
	return place >= 0 && f.messages.at(place).role != roleActivity
}

// hasText reports whether a message that the fold has has content that is text. A call needs none.
func (f *Fold) hasText(key streamKey) bool {
	if key.kind == toolStream {
		return true
	}
	_, ok := jsontree.StringText(f.messages.at(f.find([]byte(key.id))).member("content"))
	return ok
}

// holds reports whether a stream of chunks is open.
func (f *Fold) holds(key streamKey) bool {
	return slices.ContainsFunc(f.lanes, func(l lane) bool {
		id, _ := jsontree.StringValue(jsontree.Raw(l.id))
		return l.kind == key.kind && id == key.id
	})
}

// startBlock returns the block that a start belongs to: the one of its id if that begins with a start, too, otherwise a new one.
func (r *run) startBlock(key streamKey, e *event, f *Fold) *streamBlock {
	b := r.streams[key]
	if b == nil || !b.started {
		b = &streamBlock{
			key: key, id: e.values[key.kind.idField()], role: e.values[fieldRole], name: e.values[fieldName],
			parent: e.values[fieldParentMessageID], subagent: e.values[fieldSubagentRunID], started: true,
		}
		if key.kind == textStream && b.role == nil {
			b.role = []byte(`"assistant"`)
		}
		if b.subagent == nil {
			b.subagent = r.droppedSubagent(b, f)
		}
		r.addBlock(b, f)
	}
	if key.kind == toolStream {
		b.name = e.values[fieldToolCallName]
	}
	mergeMetadata(&b.metadata, e.values[fieldMetadata])
	r.begun[key] = true
	r.noteStart(key)
	return b
}

// droppedSubagent returns the subagent of a message that is started or gets a call, if it was named by a message that
// the run's input lost. The client's verifier requires that all events about a message agree on the subagent. On the
// message, which exists, it has no effect.
func (r *run) droppedSubagent(b *streamBlock, f *Fold) []byte {
	id := b.key.id
	if b.key.kind == toolStream {
		id, _ = jsontree.StringValue(jsontree.Raw(b.parent))
	}
	subagent := r.dropped[id]
	if subagent == nil {
		return nil
	}
	place := f.find([]byte(id))
	if place < 0 || b.key.kind == toolStream && f.messages.at(place).role != roleAssistant {
		return nil
	}
	return subagent
}

// blockOf returns the block of an event that is not a start. A piece after the end of a block without a start begins a new one.
func (r *run) blockOf(key streamKey, e *event, f *Fold, isPiece bool) *streamBlock {
	if b := r.streams[key]; b != nil && (b.started || !b.ended || !isPiece) {
		return b
	}
	b := &streamBlock{key: key, id: e.values[key.kind.idField()]}
	r.addBlock(b, f)
	return b
}

// addBlock puts a block into its place, before its first event is folded.
func (r *run) addBlock(b *streamBlock, f *Fold) {
	b.textless = f.has(b.key) && !f.hasText(b.key)
	r.streams[b.key] = b
	r.items = append(r.items, item{stream: b, ofMessages: true})
}

func (b *streamBlock) addPiece(e *event) {
	b.hasPiece = true
	b.text = append(b.text, e.inner(fieldDelta)...)
	mergeMetadata(&b.metadata, e.values[fieldMetadata])
}

// streamOf returns the block, without events, of a message or call that the fold has.
func streamOf(kind streamKind, id []byte, f *Fold) *streamBlock {
	b := &streamBlock{id: id}
	decoded, _ := jsontree.StringValue(jsontree.Raw(id))
	b.key = streamKey{kind, decoded}
	switch kind {
	case textStream:
		b.role = []byte(`"assistant"`)
		if place := f.find([]byte(decoded)); place >= 0 {
			switch m := f.messages.at(place); m.role {
			case "developer", "system", "user", roleAssistant: // those of text
				b.role, b.name = jsonString(m.member("role")), jsonString(m.member("name"))
			}
		}
	case toolStream:
		if place, ok := f.findCall([]byte(decoded)); ok {
			if function := f.messages.at(place.message).function(place.call); function != nil {
				b.name = jsonString(function.Get("name"))
			}
		}
		if b.name == nil {
			b.name = []byte(`""`)
		}
	}
	return b
}

// jsonString returns a string as JSON text, nil for any other value.
func jsonString(v jsontree.Value) []byte {
	if _, ok := jsontree.StringText(v); !ok {
		return nil
	}
	return jsontree.JSON(v)
}

// --- activities ---

// An activityBlock is what the events about one activity become: an ACTIVITY_SNAPSHOT.
type activityBlock struct {
	id       []byte
	metadata jsontree.Object
	// What the activity is at last; activityType is nil when there is none.
	activityType, content, subagent []byte
}

// addToActivity adds an event that is not folded yet. It leaves out an event without effect.
func (r *run) addToActivity(does action, e *event, f *Fold) {
	id := string(e.decoded(fieldMessageID))
	place := f.find([]byte(id))
	isActivity := place >= 0 && f.messages.at(place).role == roleActivity
	isSnapshot := does == doesShowActivity || does == doesShowOrPatchActivity && e.values[fieldSnapshot] != nil
	replaces := e.values[fieldReplace] == nil || e.values[fieldReplace][0] == 't' || does == doesShowOrPatchActivity
	b := r.activities[id]
	switch {
	case does == doesShowOrPatchActivity && e.values[fieldSnapshot] == nil && e.values[fieldPatch] == nil:
		return
	case isActivity && b != nil:
	case isActivity, isSnapshot && (place < 0 || replaces):
		b = &activityBlock{id: e.values[fieldMessageID]}
		r.activities[id] = b
		r.items = append(r.items, item{activity: b, ofMessages: true})
	default:
		return
	}
	mergeMetadata(&b.metadata, e.values[fieldMetadata])
}

// closeActivities stores the activities as they are at the end.
func (r *run) closeActivities(f *Fold) {
	for id, b := range r.activities {
		if place := f.find([]byte(id)); place >= 0 && f.messages.at(place).role == roleActivity {
			m := f.messages.at(place)
			b.activityType, b.subagent = jsonString(m.member("activityType")), jsonString(m.member("subagentRunId"))
			if content := m.member("content"); content != nil {
				b.content = slices.Clone(jsontree.JSON(content))
			}
		}
	}
	clear(r.activities)
}
