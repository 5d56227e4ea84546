// Package rawjson carries JSON between Go and the database as it is.
package rawjson

import (
	"database/sql/driver"
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// ErrInvalid means that a text was not sent, because it is no JSON, or none for jsonb. The database would refuse it, and quote it in its log.
var ErrInvalid = errors.New("it is not JSON in UTF-8, or holds what PostgreSQL's jsonb cannot (\\u0000, half of a surrogate pair)")

// ErrTooDeep means that a text was not sent, because it is nested deeper than this program or the database could read.
var ErrTooDeep = errors.New("it is nested more than 10,000 levels deep")

// Text is a JSON text. The driver parses what it reads into a json.RawMessage, which takes longer than the reading; this it does not.
type Text []byte

// ScanBytes reads a value of type json; NULL becomes nil.
func (t *Text) ScanBytes(text []byte) error {
	if text == nil {
		*t = nil
		return nil
	}
	*t = append(Text{}, text...) // the driver uses its bytes again
	return nil
}

// Value writes the text verbatim, and as text: so it goes through poolers that know no prepared statements. nil becomes NULL.
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
	if !isBinary(b) {
		return nil, ErrInvalid
	}
	return Text(b).Value()
}

// isBinary reports whether jsonb takes a JSON text: it holds neither \u0000 nor half of a surrogate pair.
func isBinary(text []byte) bool {
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		i++
		if i+4 >= len(text) || text[i] != 'u' {
			continue
		}
		unit := text[i+1 : i+5]
		if string(unit) == "0000" {
			return false
		}
		if isHigh, isLow := isSurrogate(unit, "89ab"), isSurrogate(unit, "cdef"); isLow || isHigh && !followedByLow(text[i+5:]) {
			return false
		} else if isHigh {
			i += 6
		}
		i += 4
	}
	return true
}

func followedByLow(text []byte) bool {
	return len(text) >= 6 && text[0] == '\\' && text[1] == 'u' && isSurrogate(text[2:6], "cdef")
}

// isSurrogate reports whether the digits of an escape are those of half of a pair: D, then one of these.
func isSurrogate(unit []byte, seconds string) bool {
	second := unit[1] | 0x20 // in lower case
	return unit[0]|0x20 == 'd' && (second == seconds[0] || second == seconds[1] || second == seconds[2] || second == seconds[3])
}

// String returns a text as a string that shares its memory, so the text must not be changed any more.
func String(text []byte) string { return unsafe.String(unsafe.SliceData(text), len(text)) }
