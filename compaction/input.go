package compaction

import "bytes"

// This file folds the input of a run (RunAgentInput) that is stored beside its events.

// WithInput returns a RUN_STARTED event that carries the input, in place of what it had as one.
func WithInput(started, input []byte) []byte {
	end := bytes.LastIndexByte(started, '}')
	event := make([]byte, 0, len(started)+len(input)+len(`,"input":`))
	event = append(event, started[:end]...)
	event = append(event, `,"input":`...) // where a key stands twice, the last one counts
	event = append(event, input...)
	return append(event, started[end:]...)
}

// ApplyInput folds the input of a run that has no RUN_STARTED, as a RUN_STARTED that carries it.
func (f *Fold) ApplyInput(input []byte) {
	if input = bytes.TrimSpace(input); len(input) == 0 || kindOf(input) != isObject {
		return
	}
	f.event.values[fieldInput] = input
	if readInput(&f.event) && f.beforeEvent() {
		f.closeLanes(allLanes, &f.event)
		f.startRun(&f.event)
		f.endPart()
	}
	f.event.clear()
}
