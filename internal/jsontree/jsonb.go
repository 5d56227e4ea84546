package jsontree

import (
	"bytes"
	"slices"
	"sync"

	"github.com/pgagui/pgagui/internal/rawjson"
)

// PrintJSONB writes a valid JSON text as PostgreSQL prints it once it is jsonb: members in the order of the lengths of their keys and
// then of their bytes, of duplicate keys the last, a space after each comma and colon. The reducer in SQL keeps what patches
// changed as jsonb, so this is how both keep it.
//
// It reports false for the few texts that it leaves to the server: with numbers that have an exponent, hundreds of digits or begin
// with -0, or with an escape in a key.
func PrintJSONB(text []byte) (printed []byte, ok bool) {
	scratch := scratches.Get().(*[]byte)
	defer scratches.Put(scratch)
	p := jsonbPrinter{out: make([]byte, 0, len(text)+len(text)/8), scratch: scratch}
	_, ok = p.Value(text, rawjson.SkipSpace(text, 0))
	return p.out, ok
}

var scratches = sync.Pool{New: func() any { return new([]byte) }}

type jsonbPrinter struct {
	out     []byte
	scratch *[]byte // of an object whose members change their order
}

type printedMember struct {
	key        []byte
	start, end int // in out
}

// Value prints the value that stands at the offset.
func (p *jsonbPrinter) Value(text []byte, at int) (end int, ok bool) {
	switch text[at] {
	case '{':
		return p.object(text, at)
	case '[':
		p.out = append(p.out, '[')
		isFirst := true
		end, ok = rawjson.WalkArray(text, at, func(at int) (int, bool) {
			if !isFirst {
				p.out = append(p.out, ", "...)
			}
			isFirst = false
			return p.Value(text, at)
		})
		p.out = append(p.out, ']')
		return end, ok
	case '"':
		end, ok = rawjson.SkipString(text, at)
		if ok {
			p.out = append(p.out, '"')
			p.out = append(p.out, usual(text[at+1:end-1])...)
			p.out = append(p.out, '"')
			return end, true
		}
	default:
		end, ok = rawjson.SkipValue(text, at, 0)
		if number := text[at:end]; ok && isNumber(Raw(number)) {
			ok = len(number) < 250 && !bytes.ContainsAny(number, "eE") && !bytes.HasPrefix(number, []byte("-0"))
		}
	}
	p.out = append(p.out, text[at:end]...)
	return end, ok
}

func (p *jsonbPrinter) object(text []byte, at int) (end int, ok bool) {
	var few [16]printedMember
	members := few[:0]
	start := len(p.out)
	inOrder := true
	p.out = append(p.out, '{')
	end, ok = rawjson.WalkObject(text, at, func(key []byte, at int) (int, bool) {
		if bytes.IndexByte(key, '\\') >= 0 {
			return at, false
		}
		if len(members) > 0 {
			p.out = append(p.out, ", "...)
			inOrder = inOrder && compareKeys(members[len(members)-1].key, key) < 0
		}
		begin := len(p.out)
		p.out = append(p.out, '"')
		p.out = append(p.out, key...)
		p.out = append(p.out, `": `...)
		end, ok := p.Value(text, at)
		members = append(members, printedMember{key, begin, len(p.out)})
		return end, ok
	})
	if ok && !inOrder {
		p.sort(members, start)
	}
	p.out = append(p.out, '}')
	return end, ok
}

// sort writes the members of the object that starts at the offset in out once more, in their order.
func (p *jsonbPrinter) sort(members []printedMember, start int) {
	slices.SortStableFunc(members, func(a, b printedMember) int { return compareKeys(a.key, b.key) })
	unordered := append((*p.scratch)[:0], p.out[start:]...)
	*p.scratch = unordered
	p.out = append(p.out[:start], '{')
	for i, m := range members {
		if i+1 < len(members) && bytes.Equal(m.key, members[i+1].key) {
			continue
		}
		if len(p.out) > start+1 {
			p.out = append(p.out, ", "...)
		}
		p.out = append(p.out, unordered[m.start-start:m.end-start]...)
	}
}

func compareKeys(a, b []byte) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return bytes.Compare(a, b)
}
