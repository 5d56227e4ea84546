package rawjson

import (
	"encoding/binary"
	"iter"
	"math/bits"
)

// This file scans JSON text in place. It accepts exactly what encoding/json accepts, decodes
// nothing, and returns sub-slices of its input. All functions take the text and the offset to start at and return the
// offset after what they read, or the offset of the problem and false.

// MaxDepth is how deep values may be nested, the limit of encoding/json.
const MaxDepth = 10000

// WalkArray reads the array that starts at the offset; element reads each value and returns the offset after it.
func WalkArray(text []byte, at int, element func(at int) (int, bool)) (int, bool) {
	at = SkipSpace(text, at+1)
	if at < len(text) && text[at] == ']' {
		return at + 1, true
	}
	for {
		end, ok := element(at)
		if !ok {
			return end, false
		}
		at = SkipSpace(text, end)
		if at == len(text) {
			return at, false
		}
		switch text[at] {
		case ',':
			at = SkipSpace(text, at+1)
		case ']':
			return at + 1, true
		default:
			return at, false
		}
	}
}

// WalkObject reads the object that starts at the offset; member gets each key, as it is written between its quotes, and reads
// the value at the offset that it is given.
func WalkObject(text []byte, at int, member func(key []byte, at int) (int, bool)) (int, bool) {
	at = SkipSpace(text, at+1)
	if at < len(text) && text[at] == '}' {
		return at + 1, true
	}
	for {
		if at >= len(text) || text[at] != '"' { // past the end of an empty text
			return at, false
		}
		end, ok := SkipString(text, at)
		if !ok {
			return end, false
		}
		key := text[at+1 : end-1]
		at = SkipSpace(text, end)
		if at == len(text) || text[at] != ':' {
			return at, false
		}
		end, ok = member(key, SkipSpace(text, at+1))
		if !ok {
			return end, false
		}
		at = SkipSpace(text, end)
		if at == len(text) {
			return at, false
		}
		switch text[at] {
		case ',':
			at = SkipSpace(text, at+1)
		case '}':
			return at + 1, true
		default:
			return at, false
		}
	}
}

// Elements yields the elements of an array that is known to be valid JSON.
func Elements(array []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		WalkArray(array, 0, func(at int) (int, bool) {
			end, ok := SkipValue(array, at, 0)
			return end, ok && yield(array[at:end])
		})
	}
}

// Members yields the keys, as written between their quotes, and the values of an object that is known to be valid JSON.
func Members(object []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		WalkObject(object, 0, func(key []byte, at int) (int, bool) {
			end, ok := SkipValue(object, at, 0)
			return end, ok && yield(key, object[at:end])
		})
	}
}

// MemberOf returns the value of a key of an object that is known to be valid JSON, or nil. Of duplicate keys the last wins.
func MemberOf(object []byte, name string) []byte {
	start, end := PlaceOf(object, name)
	if end == 0 {
		return nil
	}
	return object[start:end]
}

// PlaceOf is MemberOf, but returns the offsets at which the value begins and ends; 0 and 0: there is none.
func PlaceOf(object []byte, name string) (start, end int) {
	WalkObject(object, SkipSpace(object, 0), func(key []byte, at int) (int, bool) {
		next, ok := SkipValue(object, at, 0)
		if ok && SameKey(key, name) {
			start, end = at, next
		}
		return next, ok
	})
	return start, end
}

// SkipSpace returns the offset of the first byte that is not white space.
func SkipSpace(text []byte, at int) int {
	for at < len(text) && (text[at] == ' ' || text[at] == '\n' || text[at] == '\t' || text[at] == '\r') {
		at++
	}
	return at
}

// SkipValue reads any value; depth is the number of arrays and objects around it.
func SkipValue(text []byte, at, depth int) (int, bool) {
	if at == len(text) {
		return at, false
	}
	switch text[at] {
	case '"':
		return SkipString(text, at)
	case '{':
		if depth == MaxDepth {
			return at, false
		}
		return WalkObject(text, at, func(_ []byte, at int) (int, bool) { return SkipValue(text, at, depth+1) })
	case '[':
		if depth == MaxDepth {
			return at, false
		}
		return WalkArray(text, at, func(at int) (int, bool) { return SkipValue(text, at, depth+1) })
	case 't':
		return skipWord(text, at, "true")
	case 'f':
		return skipWord(text, at, "false")
	case 'n':
		return skipWord(text, at, "null")
	default:
		return SkipNumber(text, at)
	}
}

func skipWord(text []byte, at int, word string) (int, bool) {
	if len(text)-at >= len(word) && string(text[at:at+len(word)]) == word {
		return at + len(word), true
	}
	return at, false
}

func SkipNumber(text []byte, at int) (int, bool) {
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

// SkipString reads the string whose opening quote is at the offset.
func SkipString(text []byte, at int) (int, bool) {
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
