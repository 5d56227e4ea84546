// Package jsontext reads and writes small parts of JSON texts. What it is not asked about keeps its
// bytes.
package jsontext

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"unicode"
	"unicode/utf16"
)

// IsObject reports whether a text, if it is JSON, is an object.
func IsObject(text []byte) bool { return bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{")) }

// ReadString reads a string. null is an empty one. With ErrHalf it returns what Go makes of the text.
func ReadString(value []byte) (text string, err error) {
	if err := json.Unmarshal(value, &text); err != nil {
		return "", errors.New("expected a string")
	}
	if HasHalf(value) {
		return text, ErrHalf
	}
	return text, nil
}

// ErrHalf is the error of a text that names something and holds one half of a surrogate pair. Go has
// another character in its place, so the text would name something else.
var ErrHalf = errors.New("a text has one half of a surrogate pair, which is no character")

// HasHalf reports whether a JSON text holds one half of a surrogate pair.
func HasHalf(text []byte) bool {
	for at := bytes.IndexByte(text, '\\'); at >= 0 && at+1 < len(text); {
		size := 2
		if text[at+1] == 'u' {
			size = 6
			if first := codeUnit(text[at:]); utf16.IsSurrogate(first) {
				if utf16.DecodeRune(first, codeUnit(text[at+size:])) == unicode.ReplacementChar {
					return true
				}
				size = 12
			}
		}
		next := bytes.IndexByte(text[at+size:], '\\')
		if next < 0 {
			return false
		}
		at += size + next
	}
	return false
}

// codeUnit returns the code unit that a text begins with as \uXXXX. 0: it does not.
func codeUnit(text []byte) rune {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0
	}
	unit, _ := strconv.ParseUint(string(text[2:6]), 16, 16) // it is JSON
	return rune(unit)
}

// Quote returns a text as a JSON string.
func Quote(text string) json.RawMessage {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a string cannot fail
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n"))
}

// Object is a JSON object that is written member by member. Stored JSON texts keep their bytes.
type Object struct{ buffer bytes.Buffer }

// Raw adds a member with a JSON text; null if it is empty.
func (o *Object) Raw(name string, text []byte) *Object {
	if o.buffer.Len() == 0 {
		o.buffer.WriteByte('{')
	} else {
		o.buffer.WriteByte(',')
	}
	o.buffer.Write(Quote(name))
	o.buffer.WriteByte(':')
	if len(text) == 0 {
		text = []byte("null")
	}
	o.buffer.Write(text)
	return o
}

// Value adds a member.
func (o *Object) Value(name string, value any) *Object {
	text, _ := json.Marshal(value)
	return o.Raw(name, text)
}

// List adds a member with an array of JSON texts.
func (o *Object) List(name string, items []json.RawMessage) *Object { return o.Raw(name, Array(items)) }

// Array returns an array of JSON texts.
func Array(items []json.RawMessage) json.RawMessage {
	size := 2
	for _, item := range items {
		size += len(item) + 1
	}
	array := append(make(json.RawMessage, 0, size), '[')
	for i, item := range items {
		if i > 0 {
			array = append(array, ',')
		}
		array = append(array, item...)
	}
	return append(array, ']')
}

// End returns the text of the object.
func (o *Object) End() []byte {
	if o.buffer.Len() == 0 {
		o.buffer.WriteByte('{')
	}
	o.buffer.WriteByte('}')
	return o.buffer.Bytes()
}
