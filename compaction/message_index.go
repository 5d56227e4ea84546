package compaction

// An index finds the first message with an id, and the first one that holds a tool call. Messages that are put in between move
// those after them, so a place in the index is where to start looking: never after the message that it is for.
type index struct {
	messages map[string]int
	calls    map[string]callPlace
	// ofAssistants finds the first call in an assistant message after that in calls.
	ofAssistants map[string]callPlace
	// repeatsIDs says that there may be two messages with one id.
	repeatsIDs bool
	// passed counts the messages that were passed on the way from the noted place to the true one. An index that costs more than a
	// new one is dropped.
	passed int
}

type callPlace struct {
	message int
	call    int // its place in toolCalls
}

func (f *Fold) indexed() *index {
	if f.index == nil {
		f.index = &index{messages: make(map[string]int, f.messages.len()), calls: map[string]callPlace{}}
		for place, m := range f.messages.all() {
			f.noteMessage(m, place)
		}
	}
	return f.index
}

// noteMessage enters a message that stands after all messages of the index.
func (f *Fold) noteMessage(m *Message, place int) {
	x := f.index
	if m.hasID {
		if _, known := x.messages[m.id]; known {
			x.repeatsIDs = true
		} else {
			x.messages[m.id] = place
		}
	}
	for i, call := range m.calls {
		if !call.hasID {
			continue
		}
		at := callPlace{message: place, call: i}
		if _, known := x.calls[call.id]; !known {
			x.calls[call.id] = at
		} else if _, known := x.ofAssistants[call.id]; !known && m.role == roleAssistant {
			if x.ofAssistants == nil {
				x.ofAssistants = map[string]callPlace{}
			}
			x.ofAssistants[call.id] = at
		}
	}
}

// passedOver notes that a look-up went over n messages in vain.
func (f *Fold) passedOver(n int) {
	f.index.passed += n
	if f.index.passed > f.messages.len() {
		f.index = nil
	}
}

// MessageIDs returns the ids of the messages that have one.
func (f *Fold) MessageIDs() []string {
	var ids []string
	for place := range f.messages.len() {
		if m := f.messages.at(place); m.hasID {
			ids = append(ids, m.id)
		}
	}
	return ids
}

// find returns the place of the first message with the id, given decoded, or -1.
func (f *Fold) find(id []byte) int {
	x := f.indexed()
	noted, ok := x.messages[string(id)]
	if !ok {
		return -1
	}
	place := noted
	for m := f.messages.at(place); !m.hasID || m.id != string(id); m = f.messages.at(place) {
		place++
	}
	if place > noted {
		x.messages[string(id)] = place
		f.passedOver(place - noted)
	}
	return place
}

// findCall returns the first message that holds a tool call with the id, given decoded, and the call's place in it.
func (f *Fold) findCall(id []byte) (callPlace, bool) {
	return f.findCallIn(f.indexed().calls, id, func(*Message) bool { return true })
}

func (f *Fold) findCallIn(places map[string]callPlace, id []byte, fits func(*Message) bool) (callPlace, bool) {
	noted, ok := places[string(id)]
	if !ok {
		return callPlace{}, false
	}
	found := noted
	for m := f.messages.at(found.message); !m.hasCall(found.call, id) || !fits(m); m = f.messages.at(found.message) {
		found.message++
	}
	if found != noted {
		places[string(id)] = found
		f.passedOver(found.message - noted.message)
	}
	return found, true
}

func (m *Message) hasCall(call int, id []byte) bool {
	return call < len(m.calls) && m.calls[call].hasID && m.calls[call].id == string(id)
}

// push appends a message.
func (f *Fold) push(m *Message) {
	f.messages.push(m)
	if f.index != nil {
		f.noteMessage(m, f.messages.len()-1)
	}
	f.holdsMessages()
}

// insert puts a message without tool calls at a place.
func (f *Fold) insert(place int, m *Message) {
	if place == f.messages.len() {
		f.push(m)
		return
	}
	first := f.find([]byte(m.id))
	f.messages.insert(place, m)
	if f.index != nil {
		f.index.repeatsIDs = f.index.repeatsIDs || first >= 0
		if first < 0 || place <= first {
			f.index.messages[m.id] = place
		}
	}
	f.holdsMessages()
}
