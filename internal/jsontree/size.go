package jsontree

import (
	"bytes"
	"math"

	"github.com/pgagui/pgagui/internal/rawjson"
)

// This file measures values: the bytes that PostgreSQL prints for them as jsonb, and elementOctets for each element. A container
// keeps its size once it is known, and a patch corrects the sizes of the containers on its way. So no operation measures the
// document as a whole.

// elementOctets is what each comma, and each opening bracket, counts more than the bytes that are printed. It stands for what
// PostgreSQL holds of an element while it makes jsonb. The reducer in SQL counts the same: agui_internal.json_element_bytes.
const elementOctets = 32

// oneElement is an element in a size: the bytes that are printed are in its lower bits, the number of elements is above them. Sums and
// differences of sizes keep both apart.
const oneElement = 1 << 36

// printed returns the bytes that PostgreSQL prints for a value of a size, as jsonb.
func printed(size int64) int64 { return size & (oneElement - 1) }

// counted returns what a size counts for the limits.
func counted(size int64) int64 { return printed(size) + elementOctets*(size/oneElement) }

// A ruler says what the reducer in SQL prints differently from jsonb: what jsonb does not hold.
type ruler struct {
	backslash, surrogate int64 // a lone surrogate or \u0000
	huge                 int64 // more than its text, for a number that is out of range
	element              int64 // oneElement, where they count
}

var (
	guarded = ruler{backslash: 7, surrogate: 7, huge: 5, element: oneElement} // while it is folded: agui_internal.json_guard
	stored  = ruler{backslash: 2, surrogate: 6}                               // once it is stored
)

// OctetsOf returns what a value counts for the limits.
func OctetsOf(v Value) int64 { return counted(sizeOf(v)) }

// sizeOf returns the size of a value.
func sizeOf(v Value) int64 {
	switch v := v.(type) {
	case Raw:
		_, octets := guarded.octetsAt(v, 0)
		return octets
	case *Text:
		return guarded.string(v.bytes)
	case *Object:
		if v.octets == 0 {
			v.octets = guarded.around(v.len())
			for i := range v.members {
				if m := &v.members[i]; m.value != nil {
					v.octets += m.keyOctets() + 2 + sizeOf(m.value)
				}
			}
		}
		return v.octets
	case *Array:
		if v.octets == 0 {
			v.octets = guarded.around(len(v.items))
			for _, item := range v.items {
				v.octets += sizeOf(item)
			}
		}
		return v.octets
	default:
		return 0
	}
}

// around is the size of a container of n elements without them: its brackets, and what stands between the elements.
func (r ruler) around(n int) int64 { return (2 + r.element) * int64(max(1, n)) }

// separator is the size of what stands between one of n elements and the others.
func separator(n int) int64 { return (2 + oneElement) * int64(min(1, n-1)) }

func (m *member) keyOctets() int64 {
	if m.name == nil {
		return int64(len(m.key)) + 2
	}
	return guarded.string(m.name[1 : len(m.name)-1])
}

// octetsOf is the function sizeOf with a cache for long texts: a patch that fails puts them back, and the next one may
// take them out.
func (d *Document) octetsOf(v Value) int64 {
	source, ok := v.(Raw)
	if !ok || len(source) < 4096 {
		return sizeOf(v)
	}
	octets, ok := d.owner.octets[&source[0]]
	if !ok {
		octets = sizeOf(source)
		if d.owner.octets == nil || len(d.owner.octets) == 1000 {
			d.owner.octets = map[*byte]int64{}
		}
		d.owner.octets[&source[0]] = octets
	}
	return octets
}

// octetsAt returns the end of the value that stands at the offset of a valid JSON text, and its size.
func (r ruler) octetsAt(text []byte, at int) (end int, octets int64) {
	switch text[at] {
	case '"':
		end, _ = rawjson.SkipString(text, at)
		return end, r.string(text[at+1 : end-1])
	case '{':
		return r.object(text, at)
	case '[':
		count := 0
		end, _ = rawjson.WalkArray(text, at, func(at int) (int, bool) {
			end, size := r.octetsAt(text, at)
			octets += size
			count++
			return end, true
		})
		return end, octets + r.around(count)
	case 't', 'n':
		return at + 4, 4
	case 'f':
		return at + 5, 5
	default:
		end, _ = rawjson.SkipNumber(text, at)
		return end, r.number(text[at:end])
	}
}

type measuredMember struct {
	key    []byte
	octets int64
}

func (r ruler) object(text []byte, at int) (end int, octets int64) {
	var first [16]measuredMember // members up to here are compared one by one
	known := first[:0]
	var others map[string]int64
	count := 0
	end, _ = rawjson.WalkObject(text, at, func(key []byte, at int) (int, bool) {
		end, size := r.octetsAt(text, at)
		size += r.string(key) + 2
		if bytes.IndexByte(key, '\\') >= 0 {
			key = rawjson.Decode(nil, key)
		}
		octets += size
		for i := range known {
			if bytes.Equal(known[i].key, key) {
				octets -= known[i].octets
				known[i].octets = size
				return end, true
			}
		}
		if len(known) < len(first) {
			known = append(known, measuredMember{key, size})
			count++
			return end, true
		}
		if others == nil {
			others = map[string]int64{}
		}
		if before, ok := others[string(key)]; ok {
			octets -= before
		} else {
			count++
		}
		others[string(key)] = size
		return end, true
	})
	return end, octets + r.around(count)
}

// string is the size of a string that is given as JSON text between its quotes.
func (r ruler) string(text []byte) int64 {
	octets := int64(len(text)) + 2
	for at := rawjson.EscapeFrom(text, 0); at < len(text); {
		length := 2
		printed := int64(2)
		switch text[at+1] {
		case '\\':
			printed = r.backslash
		case '/':
			printed = 1
		case 'u':
			length = 6
			unit := rawjson.CodeUnit(text[at:])
			switch {
			case unit == '\\':
				printed = r.backslash
			case unit == 0 || rawjson.IsLowSurrogate(unit):
				printed = r.surrogate
			case rawjson.IsHighSurrogate(unit):
				printed = r.surrogate
				if rest := text[at+6:]; len(rest) >= 6 && rest[0] == '\\' && rest[1] == 'u' && rawjson.IsLowSurrogate(rawjson.CodeUnit(rest)) {
					length, printed = 12, 4
				}
			case unit == '"' || unit >= '\b' && unit <= '\r' && unit != '\v':
				printed = 2
			case unit < 0x20:
				printed = 6
			case unit < 0x80:
				printed = 1
			case unit < 0x800:
				printed = 2
			default:
				printed = 3
			}
		}
		octets += printed - int64(length)
		at = rawjson.EscapeFrom(text, at+length)
	}
	return octets
}

// number is the size of a number. Those with an exponent of three digits, or with 250 digits in a row, are strings that begin
// with \# in the reducer in SQL, for jsonb does not hold them all.
func (r ruler) number(number []byte) int64 {
	exponent := 0
	mantissa := number
	if at := bytes.IndexAny(number, "eE"); at >= 0 {
		digits := number[at+1:]
		negative := digits[0] == '-'
		if negative || digits[0] == '+' {
			digits = digits[1:]
		}
		if len(digits) >= 3 {
			return int64(len(number)) + r.huge
		}
		for _, digit := range digits {
			exponent = 10*exponent + int(digit-'0')
		}
		if negative {
			exponent = -exponent
		}
		mantissa = number[:at]
	}
	negative := mantissa[0] == '-'
	if negative {
		mantissa = mantissa[1:]
	}
	whole, fraction, _ := bytes.Cut(mantissa, []byte("."))
	if len(whole) >= 250 || len(fraction) >= 250 {
		return int64(len(number)) + r.huge
	}
	point := len(whole) + exponent // digits before the decimal point
	zeros := math.MaxInt           // digits before the first that is not 0
	if at := bytes.IndexFunc(whole, isNotZero); at >= 0 {
		zeros = at
	} else if at := bytes.IndexFunc(fraction, isNotZero); at >= 0 {
		zeros = len(whole) + at
	}
	octets := 1
	if zeros < point {
		octets = point - zeros
	}
	if negative && zeros < math.MaxInt {
		octets++
	}
	if scale := len(fraction) - exponent; scale > 0 {
		octets += 1 + scale
	}
	return int64(octets)
}

func isNotZero(digit rune) bool { return digit != '0' }

// HeldOctets is the size of a JSON text as the reducer in SQL holds it: guarded, and a string in its usual spelling.
func HeldOctets(text []byte) int64 {
	if text[0] == '"' {
		return guarded.string(text[1 : len(text)-1])
	}
	return GuardedOctets(text)
}

// GuardedOctets is the size of a JSON text as it is written, guarded.
func GuardedOctets(text []byte) int64 {
	octets := int64(len(text))
	for at := rawjson.EscapeFrom(text, 0); at < len(text); at = rawjson.EscapeFrom(text, at) {
		switch text[at+1] {
		case '\\':
			octets += 5
			at += 2
		case 'u':
			unit := rawjson.CodeUnit(text[at:])
			at += 6
			switch {
			case rawjson.IsHighSurrogate(unit) && rawjson.HasLowSurrogate(text[at:]):
				at += 6
			case unit == 0 || unit == '\\' || rawjson.IsHighSurrogate(unit) || rawjson.IsLowSurrogate(unit):
				octets++
			}
		default:
			at += 2
		}
	}
	return octets
}

// StoredOctets is the size of a document that patches have changed.
func StoredOctets(v Value) int64 {
	_, octets := stored.octetsAt(JSON(v), 0)
	return octets
}
