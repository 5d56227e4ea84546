package jsontree

import (
	"bytes"
	"slices"

	"github.com/pgagui/pgagui/internal/rawjson"
)

// Kept returns a copy of a valid JSON value as a fold keeps it, as the reducer in SQL does: a string in its usual spelling, and any other value as it
// is written.
func Kept(value []byte) Raw {
	if value[0] == '"' {
		return slices.Concat([]byte{'"'}, usual(value[1:len(value)-1]), []byte{'"'})
	}
	return AsWritten(value)
}

// AsWritten returns a copy of a valid JSON value, in which a backslash and a lone surrogate have one spelling each: the reducer in SQL
// (agui_internal.json_guard) does not keep theirs.
func AsWritten(value []byte) Raw {
	if !bytes.Contains(value, []byte(`\u`)) {
		return bytes.Clone(value)
	}
	written := make([]byte, 0, len(value))
	for at := 0; ; {
		escape := rawjson.EscapeFrom(value, at)
		written = append(written, value[at:escape]...)
		if at = escape; at == len(value) {
			return written
		}
		length := 2
		if value[at+1] == 'u' {
			length = 6
			switch unit := rawjson.CodeUnit(value[at:]); {
			case unit == '\\':
				written = append(written, `\\`...)
				at += 6
				continue
			case rawjson.IsHighSurrogate(unit) && rawjson.HasLowSurrogate(value[at+6:]):
				length = 12
			case rawjson.IsHighSurrogate(unit) || rawjson.IsLowSurrogate(unit):
				written = append(written, bytes.ToLower(value[at:at+6])...)
				at += 6
				continue
			}
		}
		written = append(written, value[at:at+length]...)
		at += length
	}
}

// usual returns the usual spelling of a string, as JSON text between the quotes: only what must be escaped is.
func usual(text []byte) []byte {
	at := rawjson.EscapeFrom(text, 0)
	for at < len(text) && text[at+1] != 'u' && text[at+1] != '/' {
		at = rawjson.EscapeFrom(text, at+2)
	}
	if at == len(text) {
		return text
	}
	quoted := rawjson.Quote(nil, string(rawjson.Decode(nil, text)))
	return quoted[1 : len(quoted)-1]
}

// compacted returns a copy of a valid JSON value without the white space that means nothing.
func compacted(value []byte) []byte {
	compact := make([]byte, 0, len(value))
	from := 0 // of what is not copied yet
	for at := 0; at < len(value); {
		switch value[at] {
		case ' ', '\n', '\t', '\r':
			compact = append(compact, value[from:at]...)
			at = rawjson.SkipSpace(value, at)
			from = at
		case '"':
			at, _ = rawjson.SkipString(value, at)
		default:
			at++
		}
	}
	return append(compact, value[from:]...)
}
