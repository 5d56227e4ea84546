package compaction

// A rule says how events of one type are folded. test/golden/rules.json has the same table with examples, and the tests
// compare both.
type rule struct {
	// shape is what an event needs to have an effect; any other is skipped.
	shape shape
	// read, if set, converts the event to the form that apply reads. An event that it refuses is skipped too.
	read func(*event) bool
	// closes says which streams of chunks end with the event.
	closes closing
	// apply changes the fold; nil for an event that means nothing to it.
	apply func(*Fold, *event)
}

// The shapes that many events share. Every event that ends the stream of its lane names its lane.
var (
	inLane       = allow(isString, fieldSubagentRunID)
	withMetadata = allow(isObject, fieldMetadata)
	ofMessage    = join(need(isString, fieldMessageID), inLane, withMetadata)
	ofToolCall   = join(need(isString, fieldToolCallID), inLane, withMetadata)
	ofChunk      = join(allow(isString, fieldDelta), inLane, withMetadata)
	withContent  = need(isString, fieldDelta)
)

func join(shapes ...shape) (all shape) {
	for _, s := range shapes {
		all = append(all, s...)
	}
	return all
}

// rules has all event types that are not skipped.
var rules = map[string]rule{
	// Text and reasoning: fold_messages.go
	"TEXT_MESSAGE_START":        {join(ofMessage, allow(isString, fieldRole, fieldName)), nil, ownLane, (*Fold).startText},
	"TEXT_MESSAGE_CONTENT":      {join(ofMessage, withContent), nil, ownLane, (*Fold).continueMessage},
	"TEXT_MESSAGE_END":          {ofMessage, nil, ownLane, (*Fold).endMessage},
	"REASONING_START":           {inLane, nil, ownLane, nil},
	"REASONING_MESSAGE_START":   {ofMessage, nil, ownLane, (*Fold).startReasoning},
	"REASONING_MESSAGE_CONTENT": {join(ofMessage, withContent), nil, ownLane, (*Fold).continueMessage},
	"REASONING_MESSAGE_END":     {ofMessage, nil, ownLane, (*Fold).endMessage},
	"REASONING_END":             {inLane, nil, ownLane, nil},
	"REASONING_ENCRYPTED_VALUE": {join(need(isString, fieldEntityID, fieldEncryptedValue), allow(isString, fieldSubtype)), nil, noLane, (*Fold).setEncryptedValue},
	"MESSAGES_SNAPSHOT":         {join(need(isArray, fieldMessages), withMetadata), nil, allLanes, (*Fold).snapshotMessages},

	// Tool calls: fold_toolcalls.go
	"TOOL_CALL_START":  {join(ofToolCall, need(isString, fieldToolCallName), allow(isString, fieldParentMessageID)), nil, ownLane, (*Fold).startToolCall},
	"TOOL_CALL_ARGS":   {join(ofToolCall, withContent), nil, ownLane, (*Fold).continueToolCall},
	"TOOL_CALL_END":    {ofToolCall, nil, ownLane, (*Fold).endToolCall},
	"TOOL_CALL_RESULT": {join(ofToolCall, need(isString, fieldMessageID), need(isString|isArray, fieldContent), allow(isString, fieldRole)), nil, ownLane, (*Fold).addToolResult},

	// Activities: fold_activities.go
	"ACTIVITY_SNAPSHOT": {join(ofMessage, need(isString, fieldActivityType), need(isObject, fieldContent), allow(isBoolean, fieldReplace)), nil, noLane, (*Fold).snapshotActivity},
	"ACTIVITY_DELTA":    {join(need(isString, fieldMessageID, fieldActivityType), withMetadata), nil, noLane, (*Fold).patchActivity},
	"ACTIVITY":          {join(ofMessage, need(isString, fieldActivityType), allow(isObject|isNull, fieldSnapshot), allow(isObject|isArray, fieldPatch)), nil, noLane, (*Fold).proposedActivity},

	// Chunks: fold_chunks.go
	"TEXT_MESSAGE_CHUNK":      {join(ofChunk, allow(isString, fieldMessageID, fieldRole, fieldName)), nil, noLane, textChunks.apply},
	"REASONING_MESSAGE_CHUNK": {join(ofChunk, allow(isString, fieldMessageID)), nil, noLane, reasoningChunks.apply},
	"TOOL_CALL_CHUNK":         {join(ofChunk, allow(isString, fieldToolCallID, fieldToolCallName, fieldParentMessageID)), nil, noLane, toolCallChunks.apply},

	// State and runs: fold_runs.go
	"STATE_SNAPSHOT": {inLane, readStateSnapshot, ownLane, (*Fold).snapshotState},
	"STATE_DELTA":    {join(allow(isArray, fieldDelta), inLane), readStateDelta, ownLane, (*Fold).patchState},
	"RUN_STARTED":    {allow(isObject, fieldInput), readInput, allLanes, (*Fold).startRun},
	"RUN_FINISHED":   {nil, readOutcome, allLanes, (*Fold).finishRun},
	"RUN_ERROR":      {nil, nil, allLanes, nil},

	"STEP_STARTED":      {inLane, nil, ownLane, nil},
	"STEP_FINISHED":     {inLane, nil, ownLane, nil},
	"CUSTOM":            {inLane, nil, ownLane, nil},
	"SUBAGENT_FINISHED": {inLane, nil, namedLane, nil},
	"SUBAGENT_ERROR":    {inLane, nil, namedLane, nil},
}

// Events without an effect are not in the table: RAW, SUBAGENT_STARTED, the THINKING_* events of protocol 0.x, and unknown
// types.

func (f *Fold) applyEvent(e *event) {
	rule, ok := ruleOf(e)
	if !ok {
		return
	}
	if !f.beforeEvent() {
		return
	}
	f.closeLanes(rule.closes, e)
	if rule.apply != nil {
		rule.apply(f, e)
		f.afterEvent()
	}
}

// ruleOf returns the rule that the event is folded by; false when the event is skipped.
func ruleOf(e *event) (rule, bool) {
	if e.values[fieldType] == nil || kindOf(e.values[fieldType]) != isString {
		return rule{}, false
	}
	r, ok := rules[string(e.decoded(fieldType))]
	return r, ok && e.has(r.shape) && (r.read == nil || r.read(e))
}
