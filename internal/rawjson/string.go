package rawjson

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

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

// EscapeFrom returns the offset of the first backslash; the end of the text if there is none.
func EscapeFrom(text []byte, at int) int {
	if length := bytes.IndexByte(text[at:], '\\'); length >= 0 {
		return at + length
	}
	return len(text)
}

// Decode appends the characters of a string, written as JSON text between its quotes. Two texts decode to the same bytes
// only if they are the same string: a surrogate pair becomes its character, a lone surrogate the three bytes that UTF-8 would
// have for it (WTF-8), \u0000 a zero byte.
func Decode(dst, text []byte) []byte {
	for at := 0; ; {
		escape := EscapeFrom(text, at)
		dst = append(dst, text[at:escape]...)
		if at = escape; at == len(text) {
			return dst
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
			unit := CodeUnit(text[at:])
			at += 6
			if IsHighSurrogate(unit) && len(text)-at >= 6 && text[at] == '\\' && text[at+1] == 'u' {
				if low := CodeUnit(text[at:]); IsLowSurrogate(low) {
					dst = utf8.AppendRune(dst, (unit-0xd800)<<10+(low-0xdc00)+0x10000)
					at += 6
					continue
				}
			}
			if IsHighSurrogate(unit) || IsLowSurrogate(unit) {
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
}

// CodeUnit reads \uXXXX.
func CodeUnit(text []byte) (unit rune) {
	for _, c := range text[2:6] {
		unit = unit<<4 | hexDigit(c)
	}
	return unit
}

// IsHighSurrogate reports whether a code unit is the first half of a surrogate pair.
func IsHighSurrogate(unit rune) bool { return 0xd800 <= unit && unit < 0xdc00 }

// IsLowSurrogate reports whether a code unit is the second half of a surrogate pair.
func IsLowSurrogate(unit rune) bool { return 0xdc00 <= unit && unit < 0xe000 }

// Quote appends the JSON text, with its quotes, of a decoded string.
func Quote(dst []byte, decoded string) []byte {
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

// IsPlain reports whether a decoded string is written as itself between quotes.
func IsPlain(decoded string) bool {
	for at := range len(decoded) {
		if c := decoded[at]; c < 0x20 || c == '"' || c == '\\' || c == 0xed {
			return false
		}
	}
	return true
}

// SameString compares two strings given as JSON text between the quotes.
func SameString(a, b []byte) bool {
	if bytes.IndexByte(a, '\\') >= 0 {
		a = Decode(nil, a)
	}
	if bytes.IndexByte(b, '\\') >= 0 {
		b = Decode(nil, b)
	}
	return bytes.Equal(a, b)
}

// SameKey compares a key, given as JSON text between the quotes, with a decoded name.
func SameKey(written []byte, name string) bool {
	if bytes.IndexByte(written, '\\') >= 0 {
		written = Decode(nil, written)
	}
	return string(written) == name
}

// HasLowSurrogate reports whether a text begins with the escape of the second half of a surrogate pair.
func HasLowSurrogate(text []byte) bool {
	return len(text) >= 6 && text[0] == '\\' && text[1] == 'u' && IsLowSurrogate(CodeUnit(text))
}
