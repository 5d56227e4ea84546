package compaction

import (
	"bytes"

	"github.com/pgagui/pgagui/internal/jsontree"
	"github.com/pgagui/pgagui/internal/rawjson"
)

// This file reads an event: its few top-level fields that the reducer looks at, in one pass over the text.

// A field is one of the top-level fields.
type field uint8

func fieldNamed(key []byte) field {
	if bytes.IndexByte(key, '\\') >= 0 {
		key = rawjson.Decode(nil, key)
	}
	return fieldOf(string(key))
}

// fields is a set of fields.
type fields uint32

func (f field) set() fields { return 1 << f }

// An event is the fields of one event, as slices of the event's text.
type event struct {
	values [fieldCount][]byte
	// present are the fields that the event has, null or not; those that are null have no value, but for the state: "any JSON
	// value" includes it.
	present fields
	// isState says that the snapshot is the state of the fold, to the byte.
	isState bool
	text    []byte // of the whole event
}

// scan reads the event that starts at the offset, which must be an object, and checks all of it but for the state of the fold. state may
// be nil.
func (e *event) scan(text []byte, at int, state *jsontree.Document) (int, bool) {
	e.clear()
	if at == len(text) || text[at] != '{' {
		return at, false
	}
	end, ok := rawjson.WalkObject(text, at, func(key []byte, at int) (int, bool) {
		name := fieldNamed(key)
		end, ok := at, false
		if name == fieldSnapshot && state != nil {
			end, ok = state.SkipIn(text, at)
			e.isState = ok
		}
		if !ok {
			end, ok = rawjson.SkipValue(text, at, 1)
		}
		if ok {
			e.present |= name.set()
			e.values[name] = text[at:end]
			if text[at] == 'n' && name != fieldSnapshot && name != fieldState {
				e.values[name] = nil
			}
		}
		return end, ok
	})
	e.text = text[at:end]
	return end, ok
}

// scanWhole reads a text that is one event, and reports whether it is.
func (e *event) scanWhole(text []byte, state *jsontree.Document) bool {
	end, ok := e.scan(text, rawjson.SkipSpace(text, 0), state)
	return ok && rawjson.SkipSpace(text, end) == len(text)
}

// clear forgets the event's text, which belongs to the caller.
func (e *event) clear() { *e = event{} }

// inner returns the JSON text between the quotes of a field that is a string.
func (e *event) inner(name field) []byte {
	return e.values[name][1 : len(e.values[name])-1]
}

// decoded returns a field that is a string. The result is valid until the fold's next event.
func (e *event) decoded(name field) []byte {
	inner := e.inner(name)
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	return rawjson.Decode(nil, inner)
}

// kinds is a set of JSON types.
type kinds uint8

const (
	isString kinds = 1 << iota
	isObject
	isArray
	isBoolean
	isNull
	isNumeric
)

func kindOf(value []byte) kinds {
	switch value[0] {
	case '"':
		return isString
	case '{':
		return isObject
	case '[':
		return isArray
	case 't', 'f':
		return isBoolean
	case 'n':
		return isNull
	default:
		return isNumeric
	}
}

// A shape is what an event must look like to have an effect. A field that is null counts as absent.
type shape []fieldShape

type fieldShape struct {
	field    field
	kinds    kinds
	required bool
}

func (e *event) has(s shape) bool {
	for i := range s {
		value := e.values[s[i].field]
		if value == nil || value[0] == 'n' {
			if s[i].required {
				return false
			}
		} else if kindOf(value)&s[i].kinds == 0 {
			return false
		}
	}
	return true
}

// typeName returns the decoded type, nil if the event has none that is a string. The result is valid until the next event.
func (e *event) typeName() []byte {
	if e.values[fieldType] == nil || kindOf(e.values[fieldType]) != isString {
		return nil
	}
	return e.decoded(fieldType)
}

// EventType returns the decoded type of an event, "" if it has none that is a string.
func EventType(payload []byte) string {
	eventType, _, _ := readType(payload)
	return eventType
}

// CheckEvent is EventType for a text that may be no event. isEvent is true if it is one JSON object and nothing else, as
// encoding/json reads it.
func CheckEvent(text []byte) (eventType string, isEvent bool) {
	eventType, end, ok := readType(text)
	return eventType, ok && rawjson.SkipSpace(text, end) == len(text)
}

// readType reads the object that a text begins with, and returns its type and where it ends.
func readType(text []byte) (eventType string, end int, ok bool) {
	at := rawjson.SkipSpace(text, 0)
	if at == len(text) || text[at] != '{' {
		return "", at, false
	}
	var value []byte
	end, ok = rawjson.WalkObject(text, at, func(key []byte, at int) (int, bool) {
		end, ok := rawjson.SkipValue(text, at, 1)
		if ok && rawjson.SameKey(key, "type") {
			value = text[at:end]
		}
		return end, ok
	})
	if !ok || value == nil || value[0] != '"' {
		return "", end, ok
	}
	name := value[1 : len(value)-1]
	if known := eventTypes[string(name)]; known != nil {
		return known.name, end, ok
	}
	return string(rawjson.Decode(nil, name)), end, ok
}
