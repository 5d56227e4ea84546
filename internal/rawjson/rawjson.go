// Package rawjson works on JSON as text. It decodes only on request, and unchanged parts keep their spelling, white space and
// order.
//
//   - [WalkObject], [WalkArray], [SkipValue] and their like scan a text in place, and check it. They accept what encoding/json accepts.
//   - [Decode] and [Quote] turn the text of a string into its characters and back. Half of a surrogate pair is not lost.
//   - [Object] changes single members of a document.
//   - [Text] and [Binary] carry JSON between Go and the database.
package rawjson

import (
	"bytes"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// ErrInvalid means that a text was not sent, because it is not JSON, and ErrUnstorable, which is one, because jsonb cannot hold it. The
// database would refuse it, and quote it in its log.
var (
	ErrInvalid    = errors.New("it is not JSON in UTF-8")
	ErrUnstorable = fmt.Errorf(`%w that PostgreSQL's jsonb can hold (without \u0000 and halves of surrogate pairs)`, ErrInvalid)
)

// ErrTooDeep means that a text was not sent, because it is nested deeper than this program or the database could read.
var ErrTooDeep = errors.New("it is nested more than 10,000 levels deep")

// Text is a JSON text. The driver parses a json.RawMessage that it reads, which takes longer than the reading; it does not
// parse a Text.
type Text []byte

// ScanBytes reads a value of type json; NULL becomes nil.
func (t *Text) ScanBytes(text []byte) error {
	if text == nil {
		*t = nil
		return nil
	}
	*t = append(Text{}, text...) // the driver reuses its bytes
	return nil
}

// Value writes the text verbatim, in text format, which also works through poolers without prepared statements. nil becomes NULL.
func (t Text) Value() (driver.Value, error) {
	switch {
	case t == nil:
		return nil, nil
	case !utf8.Valid(t):
		return nil, ErrInvalid
	case !json.Valid(t):
		if err := json.Unmarshal(t, new(json.RawMessage)); strings.Contains(err.Error(), "depth") {
			return nil, ErrTooDeep
		}
		return nil, ErrInvalid
	default:
		return String(t), nil // the driver copies it at once
	}
}

// Binary is a JSON text for a parameter of type jsonb.
type Binary []byte

// Value is Text.Value.
func (b Binary) Value() (driver.Value, error) {
	value, err := Text(b).Value()
	if err == nil && !isBinary(b) {
		return nil, ErrUnstorable
	}
	return value, err
}

// isBinary reports whether jsonb takes a valid JSON text: it holds neither \u0000 nor half of a surrogate pair.
func isBinary(text []byte) bool {
	for {
		at := bytes.IndexByte(text, '\\')
		if at < 0 {
			return true
		}
		text = text[at:]
		if text[1] != 'u' {
			text = text[2:]
			continue
		}
		unit := CodeUnit(text)
		text = text[6:]
		switch {
		case unit == 0 || IsLowSurrogate(unit), IsHighSurrogate(unit) && !HasLowSurrogate(text):
			return false
		case IsHighSurrogate(unit):
			text = text[6:]
		}
	}
}

// String returns a text as a string that shares its memory, so the text must not be changed any more.
func String(text []byte) string { return unsafe.String(unsafe.SliceData(text), len(text)) }

// Array returns an array of elements, verbatim. null takes the place of an empty element.
func Array(elements []json.RawMessage) Text {
	size := 2
	for _, element := range elements {
		size += len(element) + 1
	}
	var array bytes.Buffer
	array.Grow(size)
	array.WriteByte('[')
	for i, element := range elements {
		if i > 0 {
			array.WriteByte(',')
		}
		if len(bytes.TrimSpace(element)) == 0 {
			element = []byte("null") // otherwise the array would have one element less
		}
		array.Write(element)
	}
	array.WriteByte(']')
	return array.Bytes()
}
