package rawjson

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// An Object is a JSON object that is written as it was read, byte for byte, except for changed members. It also represents an
// array, whose members have no keys.
type Object struct {
	Head    []byte // up to the first member
	Members []Member
	Tail    []byte // from the closing brace on
}

// A Member is a member of an object, or an element of an array.
type Member struct {
	Key   string // decoded; half an emoji, \ud83d, is the three bytes that UTF-8 would have for it
	Lead  []byte // all that stands before the value: white space, the key as it was written, the colon
	Value json.RawMessage
	Trail []byte // white space after the value
}

// NewObject returns an object without members.
func NewObject() Object { return Object{Head: []byte("{"), Tail: []byte("}")} }

// ParseObject parses a text that is valid JSON, and keeps the text. It returns false if it is not an object.
func ParseObject(text []byte) (Object, bool) { return parse(text, '{') }

// ParseArray does the same with an array.
func ParseArray(text []byte) (Object, bool) { return parse(text, '[') }

func parse(text []byte, bracket byte) (Object, bool) {
	open := SkipSpace(text, 0)
	if open == len(text) || text[open] != bracket {
		return Object{}, false
	}
	from := open + 1 // of what is not in a member yet
	o := Object{Head: text[:from]}
	add := func(key []byte, start int) (int, bool) {
		end, ok := SkipValue(text, start, 0)
		next := SkipSpace(text, end)
		o.Members = append(o.Members, Member{
			Key:   string(Decode(nil, key)),
			Lead:  slices.Clip(text[from:start]),
			Value: slices.Clip(text[start:end]),
			Trail: slices.Clip(text[end:next]),
		})
		from = next + 1
		return end, ok
	}
	if bracket == '{' {
		WalkObject(text, open, add)
	} else {
		WalkArray(text, open, func(at int) (int, bool) { return add(nil, at) })
	}
	if o.Members == nil {
		o.Head = text[:SkipSpace(text, from)]
		o.Tail = text[len(o.Head):]
	} else {
		o.Tail = text[from-1:]
	}
	return o, true
}

// Text writes the object.
func (o *Object) Text() json.RawMessage {
	out := bytes.Clone(o.Head)
	for i, m := range o.Members {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, m.Lead...)
		out = append(out, m.Value...)
		out = append(out, m.Trail...)
	}
	return append(out, o.Tail...)
}

// Place returns where the member with the key is, or -1. Of duplicate keys the last counts.
func (o *Object) Place(key string) int {
	for i := len(o.Members) - 1; i >= 0; i-- {
		if o.Members[i].Key == key {
			return i
		}
	}
	return -1
}

// Get returns the value of a member, or nil.
func (o *Object) Get(key string) json.RawMessage {
	if at := o.Place(key); at >= 0 {
		return o.Members[at].Value
	}
	return nil
}

// Set gives a member a value in its place. A new one comes last.
func (o *Object) Set(key string, value json.RawMessage) {
	if at := o.Place(key); at >= 0 {
		o.Members[at].Value = value
		return
	}
	o.Add(key, value)
}

// Add appends a member that the object does not have.
func (o *Object) Add(key string, value json.RawMessage) {
	o.Append(append(Quote(nil, strings.ToValidUTF8(key, "\ufffd")), ':'), value)
	o.Members[len(o.Members)-1].Key = key
}

// Append appends a member, or an element of an array, in the way in which the last one stands: in a line of its own, say.
func (o *Object) Append(lead []byte, value json.RawMessage) {
	added := Member{Lead: lead, Value: value}
	if len(o.Members) > 0 {
		last := &o.Members[len(o.Members)-1]
		added.Lead = slices.Concat(last.Lead[:SkipSpace(last.Lead, 0)], lead)
		added.Trail, last.Trail = last.Trail, nil
	}
	o.Members = append(o.Members, added)
}

// Remove removes all members with the key.
func (o *Object) Remove(key string) {
	o.Members = slices.DeleteFunc(o.Members, func(m Member) bool { return m.Key == key })
}

// Keys returns the keys in order, each once.
func (o *Object) Keys() []string {
	last := map[string]int{}
	for i, m := range o.Members {
		last[m.Key] = i
	}
	var keys []string
	for i, m := range o.Members {
		if last[m.Key] == i {
			keys = append(keys, m.Key)
		}
	}
	return keys
}

// Values returns the members' values by their keys.
func (o *Object) Values() map[string]json.RawMessage {
	values := make(map[string]json.RawMessage, len(o.Members))
	for _, m := range o.Members {
		values[m.Key] = m.Value
	}
	return values
}

// Clone returns an independent copy. The bytes are shared, because they never change.
func (o *Object) Clone() Object {
	return Object{Head: o.Head, Members: slices.Clone(o.Members), Tail: o.Tail}
}
