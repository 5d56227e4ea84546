package accept

import (
	"bytes"

	"github.com/pgagui/pgagui/internal/rawjson"
)

// This file reads the top level of an event, in one pass over the text that also checks it.

// A field is a member of an event that the clients' schemas describe.
type field uint8

// An event is the fields of one event, as parts of its text. An absent field is nil, one that is null is not.
type event struct {
	values  [fieldCount][]byte
	present []field            // those that have a value
	scratch [fieldCount][]byte // for fields whose strings have escapes
}

// scan reads a text, which must be one JSON object and nothing else.
func (e *event) scan(text []byte) bool {
	e.clear()
	at := rawjson.SkipSpace(text, 0)
	if at == len(text) || text[at] != '{' {
		return false
	}
	end, ok := rawjson.WalkObject(text, at, func(key []byte, at int) (int, bool) {
		end, ok := rawjson.SkipValue(text, at, 1)
		if ok {
			if bytes.IndexByte(key, '\\') >= 0 {
				key = rawjson.Decode(nil, key)
			}
			f := fieldOf(string(key))
			if e.values[f] == nil {
				e.present = append(e.present, f)
			}
			e.values[f] = text[at:end]
		}
		return end, ok
	})
	return ok && rawjson.SkipSpace(text, end) == len(text)
}

// text returns a field that is a string, decoded; nil if it is not one. It is valid until the next event.
func (e *event) text(f field) []byte {
	value := e.values[f]
	if value == nil || value[0] != '"' {
		return nil
	}
	inner := value[1 : len(value)-1]
	if bytes.IndexByte(inner, '\\') >= 0 {
		e.scratch[f] = rawjson.Decode(e.scratch[f][:0], inner)
		inner = e.scratch[f]
	}
	if inner == nil {
		inner = []byte{}
	}
	return inner
}

// clear takes the values away.
func (e *event) clear() {
	for _, f := range e.present {
		e.values[f] = nil
	}
	e.present = e.present[:0]
}

// forget drops what belongs to the caller, and large buffers.
func (e *event) forget() {
	e.clear()
	for f := range e.scratch {
		if cap(e.scratch[f]) > 1<<10 {
			e.scratch[f] = nil
		}
	}
}

// without returns an event without some of its fields.
func without(text []byte, fields []field) []byte {
	object, _ := rawjson.ParseObject(text)
	for _, f := range fields {
		object.Remove(fieldNames[f])
	}
	return object.Text()
}

// withType returns an event with another type.
func withType(text []byte, eventType string) []byte {
	object, _ := rawjson.ParseObject(text)
	object.Set(fieldNames[fieldType], rawjson.Quote(nil, eventType))
	return object.Text()
}

// A jsonMember is a member of an event that the filter writes; without a value it is left out.
type jsonMember struct {
	field field
	value []byte
}

// newEvent writes an event.
func newEvent(eventType string, members ...jsonMember) []byte {
	text := append([]byte(`{"type":"`), eventType...)
	text = append(text, '"')
	for _, m := range members {
		if m.value != nil {
			text = append(text, `,"`...)
			text = append(text, fieldNames[m.field]...)
			text = append(text, `":`...)
			text = append(text, m.value...)
		}
	}
	return append(text, '}')
}
