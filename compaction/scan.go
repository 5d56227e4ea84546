package compaction

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"iter"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"
)

// This file reads JSON text in place. It accepts exactly what encoding/json accepts, decodes nothing that is not
// asked for, and hands out sub-slices of its input. All functions take the text and the offset to start at and return the
// offset behind what they read, or the offset of the problem and false.

// maxDepth is how deep values may be nested, the limit of encoding/json.
const maxDepth = 10000

// A SyntaxError says where a text stops being JSON.
type SyntaxError struct {
	Offset int // in bytes from the start of the text
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("compaction: not a JSON array of events: invalid JSON at byte %d: pass the events as they were stored", e.Offset)
}

// Split yields the elements of a JSON array as they are written, without the white space around them. The slices point into
// the batch. A text that is not a JSON array ends with a *SyntaxError; the elements before the problem are yielded first.
func Split(batch []byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		stopped := false
		problem := walkBatch(batch, func(at int) (int, bool) {
			end, ok := skipValue(batch, at, 0)
			if ok && !yield(batch[at:end], nil) {
				stopped = true
				return end, false
			}
			return end, ok
		})
		if problem != nil && !stopped {
			yield(nil, problem)
		}
	}
}

// Members yields the members of an object, with its keys decoded and its values as they are written: slices that point into the object,
// which must be valid JSON, as the database has it.
func Members(object []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for key, value := range members(object) {
			if !yield(string(decodeString(nil, key)), value) {
				return
			}
		}
	}
}

// walkBatch reads a text that is one JSON array; element is as in walkArray.
func walkBatch(batch []byte, element func(at int) (int, bool)) error {
	at := skipSpace(batch, 0)
	if at == len(batch) || batch[at] != '[' {
		return &SyntaxError{Offset: at}
	}
	at, ok := walkArray(batch, at, element)
	if ok {
		at = skipSpace(batch, at)
		ok = at == len(batch)
	}
	if !ok {
		return &SyntaxError{Offset: at}
	}
	return nil
}

// walkArray reads the array that starts at the offset; element reads each value and returns the offset behind it.
func walkArray(text []byte, at int, element func(at int) (int, bool)) (int, bool) {
	at = skipSpace(text, at+1)
	if at < len(text) && text[at] == ']' {
		return at + 1, true
	}
	for {
		end, ok := element(at)
		if !ok {
			return end, false
		}
		at = skipSpace(text, end)
		if at == len(text) {
			return at, false
		}
		switch text[at] {
		case ',':
			at = skipSpace(text, at+1)
		case ']':
			return at + 1, true
		default:
			return at, false
		}
	}
}

// walkObject reads the object that starts at the offset; member gets each key, as it is written between its quotes, and reads
// the value at the offset that it is given.
func walkObject(text []byte, at int, member func(key []byte, at int) (int, bool)) (int, bool) {
	at = skipSpace(text, at+1)
	if at < len(text) && text[at] == '}' {
		return at + 1, true
	}
	for {
		if at == len(text) || text[at] != '"' {
			return at, false
		}
		end, ok := skipString(text, at)
		if !ok {
			return end, false
		}
		key := text[at+1 : end-1]
		at = skipSpace(text, end)
		if at == len(text) || text[at] != ':' {
			return at, false
		}
		end, ok = member(key, skipSpace(text, at+1))
		if !ok {
			return end, false
		}
		at = skipSpace(text, end)
		if at == len(text) {
			return at, false
		}
		switch text[at] {
		case ',':
			at = skipSpace(text, at+1)
		case '}':
			return at + 1, true
		default:
			return at, false
		}
	}
}

// elements yields the elements of an array that is known to be valid JSON.
func elements(array []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		walkArray(array, 0, func(at int) (int, bool) {
			end, ok := skipValue(array, at, 0)
			return end, ok && yield(array[at:end])
		})
	}
}

// members yields the keys, as written between their quotes, and the values of an object that is known to be valid JSON.
func members(object []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		walkObject(object, 0, func(key []byte, at int) (int, bool) {
			end, ok := skipValue(object, at, 0)
			return end, ok && yield(key, object[at:end])
		})
	}
}

// memberOf returns the value of a key of an object that is known to be valid JSON, or nil. Of duplicate keys the last wins.
func memberOf(object []byte, name string) (found []byte) {
	for key, value := range members(object) {
		if sameKey(key, name) {
			found = value
		}
	}
	return found
}

// kept returns a copy of a valid JSON value as a fold keeps it, as the reducer in SQL does: a string in its usual spelling, and any other value as it
// is written.
func kept(value []byte) []byte {
	if value[0] == '"' {
		return slices.Concat([]byte{'"'}, usual(value[1:len(value)-1]), []byte{'"'})
	}
	return asWritten(value)
}

// asWritten returns a copy of a valid JSON value, in which a backslash and a lone surrogate have one spelling each: the reducer in SQL
// (agui_internal.json_guard) does not keep theirs.
func asWritten(value []byte) []byte {
	written := bytes.Clone(value)
	if !bytes.Contains(value, []byte(`\u`)) {
		return written
	}
	written = written[:0]
	for at := 0; at < len(value); {
		if value[at] != '\\' {
			written = append(written, value[at])
			at++
			continue
		}
		length := 2
		if value[at+1] == 'u' {
			length = 6
			switch unit := codeUnit(value[at:]); {
			case unit == '\\':
				written = append(written, `\\`...)
				at += 6
				continue
			case isHighSurrogate(unit) && hasLowSurrogate(value[at+6:]):
				length = 12
			case isHighSurrogate(unit) || isLowSurrogate(unit):
				written = append(written, bytes.ToLower(value[at:at+6])...)
				at += 6
				continue
			}
		}
		written = append(written, value[at:at+length]...)
		at += length
	}
	return written
}

// usual returns the usual spelling of a string, as JSON text between the quotes: only what must be escaped is.
func usual(text []byte) []byte {
	if bytes.IndexByte(text, '\\') < 0 {
		return text
	}
	quoted := quote(nil, string(decodeString(nil, text)))
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
			at = skipSpace(value, at)
			from = at
		case '"':
			at, _ = skipString(value, at)
		default:
			at++
		}
	}
	return append(compact, value[from:]...)
}

func skipSpace(text []byte, at int) int {
	for at < len(text) && (text[at] == ' ' || text[at] == '\n' || text[at] == '\t' || text[at] == '\r') {
		at++
	}
	return at
}

// skipValue reads any value; depth is the number of arrays and objects around it.
func skipValue(text []byte, at, depth int) (int, bool) {
	if at == len(text) {
		return at, false
	}
	switch text[at] {
	case '"':
		return skipString(text, at)
	case '{':
		if depth == maxDepth {
			return at, false
		}
		return walkObject(text, at, func(_ []byte, at int) (int, bool) { return skipValue(text, at, depth+1) })
	case '[':
		if depth == maxDepth {
			return at, false
		}
		return walkArray(text, at, func(at int) (int, bool) { return skipValue(text, at, depth+1) })
	case 't':
		return skipWord(text, at, "true")
	case 'f':
		return skipWord(text, at, "false")
	case 'n':
		return skipWord(text, at, "null")
	default:
		return skipNumber(text, at)
	}
}

func skipWord(text []byte, at int, word string) (int, bool) {
	if len(text)-at >= len(word) && string(text[at:at+len(word)]) == word {
		return at + len(word), true
	}
	return at, false
}

func skipNumber(text []byte, at int) (int, bool) {
	if at < len(text) && text[at] == '-' {
		at++
	}
	switch {
	case at < len(text) && text[at] == '0':
		at++
	default:
		var ok bool
		if at, ok = skipDigits(text, at); !ok {
			return at, false
		}
	}
	if at < len(text) && text[at] == '.' {
		var ok bool
		if at, ok = skipDigits(text, at+1); !ok {
			return at, false
		}
	}
	if at < len(text) && (text[at] == 'e' || text[at] == 'E') {
		at++
		if at < len(text) && (text[at] == '+' || text[at] == '-') {
			at++
		}
		return skipDigits(text, at)
	}
	return at, true
}

// skipDigits reads one digit or more.
func skipDigits(text []byte, at int) (int, bool) {
	start := at
	for at < len(text) && '0' <= text[at] && text[at] <= '9' {
		at++
	}
	return at, at > start
}

// skipString reads the string whose opening quote is at the offset.
func skipString(text []byte, at int) (int, bool) {
	at++
	for {
		// Eight bytes at a time, up to the first that is a quote, a backslash or a control character.
		for len(text)-at >= 8 {
			word := binary.LittleEndian.Uint64(text[at:])
			if special := specialBytes(word); special != 0 {
				at += bits.TrailingZeros64(special) / 8
				break
			}
			at += 8
		}
		if at == len(text) {
			return at, false
		}
		switch c := text[at]; {
		case c == '"':
			return at + 1, true
		case c == '\\':
			end, ok := skipEscape(text, at)
			if !ok {
				return end, false
			}
			at = end
		case c < 0x20:
			return at, false
		default:
			at++
		}
	}
}

// specialBytes marks in the high bit of each byte those of the word that end or interrupt a string. Only the lowest mark is
// reliable, and only it is used.
func specialBytes(word uint64) uint64 {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	quote := word ^ ('"' * ones)
	backslash := word ^ ('\\' * ones)
	return ((word-0x20*ones)&^word | (quote-ones)&^quote | (backslash-ones)&^backslash) & highs
}

func skipEscape(text []byte, at int) (int, bool) {
	at++
	if at == len(text) {
		return at, false
	}
	switch text[at] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return at + 1, true
	case 'u':
		for range 4 {
			at++
			if at == len(text) || hexDigit(text[at]) < 0 {
				return at, false
			}
		}
		return at + 1, true
	default:
		return at, false
	}
}

func hexDigit(c byte) rune {
	switch {
	case '0' <= c && c <= '9':
		return rune(c - '0')
	case 'a' <= c && c <= 'f':
		return rune(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return rune(c-'A') + 10
	default:
		return -1
	}
}

// decodeString appends the characters of a string, written as JSON text between its quotes. Two texts decode to the same bytes
// only if they are the same string: a surrogate pair becomes its character, a lone surrogate the three bytes that UTF-8 would
// have for it (WTF-8), \u0000 a zero byte.
func decodeString(dst, text []byte) []byte {
	for at := 0; at < len(text); {
		if text[at] != '\\' {
			dst = append(dst, text[at])
			at++
			continue
		}
		switch c := text[at+1]; c {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			unit := codeUnit(text[at:])
			at += 6
			if isHighSurrogate(unit) && len(text)-at >= 6 && text[at] == '\\' && text[at+1] == 'u' {
				if low := codeUnit(text[at:]); isLowSurrogate(low) {
					dst = utf8.AppendRune(dst, (unit-0xd800)<<10+(low-0xdc00)+0x10000)
					at += 6
					continue
				}
			}
			if isHighSurrogate(unit) || isLowSurrogate(unit) {
				dst = append(dst, 0xe0|byte(unit>>12), 0x80|byte(unit>>6)&0x3f, 0x80|byte(unit)&0x3f)
			} else {
				dst = utf8.AppendRune(dst, unit)
			}
			continue
		default:
			dst = append(dst, c)
		}
		at += 2
	}
	return dst
}

// codeUnit reads \uXXXX.
func codeUnit(text []byte) (unit rune) {
	for _, c := range text[2:6] {
		unit = unit<<4 | hexDigit(c)
	}
	return unit
}

func isHighSurrogate(unit rune) bool { return 0xd800 <= unit && unit < 0xdc00 }
func isLowSurrogate(unit rune) bool  { return 0xdc00 <= unit && unit < 0xe000 }

// quote appends the JSON text, with its quotes, of a decoded string.
func quote(dst []byte, decoded string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for at := 0; at < len(decoded); at++ {
		switch c := decoded[at]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < 0x20:
			if at := strings.IndexByte("\b\t\n\f\r", c); at >= 0 {
				dst = append(dst, '\\', "btnfr"[at])
			} else {
				dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			}
		case c == 0xed && at+2 < len(decoded) && decoded[at+1] >= 0xa0 && decoded[at+1] < 0xc0 && decoded[at+2]&0xc0 == 0x80: // a lone surrogate
			dst = append(dst, '\\', 'u', 'd', hex[decoded[at+1]>>2&15], hex[decoded[at+1]<<2&12|decoded[at+2]>>4&3], hex[decoded[at+2]&15])
			at += 2
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

// isPlain reports whether a decoded string is written as itself between quotes.
func isPlain(decoded string) bool {
	for at := range len(decoded) {
		if c := decoded[at]; c < 0x20 || c == '"' || c == '\\' || c == 0xed {
			return false
		}
	}
	return true
}
