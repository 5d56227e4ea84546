package session

import (
	"bytes"
	"encoding/json"
	"iter"
	"slices"
	"strings"

	"github.com/pgagui/pgagui/compaction"
)

// An object is a JSON object that is written as it was read, byte for byte, but for the members that were changed. It stands for an
// array as well, whose members have no keys.
type object struct {
	head    []byte // up to the first member
	members []member
	tail    []byte // from the closing brace on
}

type member struct {
	key   string // decoded; half an emoji, \ud83d, is the three bytes that UTF-8 would have for it
	lead  []byte // all that stands before the value: white space, the key as it was written, the colon
	value json.RawMessage
	trail []byte // white space behind the value
}

// parseObject takes apart a text that is valid JSON. It keeps the text. It returns false when that is no object.
func parseObject(text []byte) (object, bool) { return parse(text, '{', compaction.Members) }

// parseArray does the same with an array.
func parseArray(text []byte) (object, bool) {
	return parse(text, '[', func(array []byte) iter.Seq2[string, []byte] {
		return func(yield func(string, []byte) bool) {
			for element := range compaction.Split(array) {
				if !yield("", element) {
					return
				}
			}
		}
	})
}

func parse(text []byte, bracket byte, values func([]byte) iter.Seq2[string, []byte]) (object, bool) {
	open := skipSpace(text, 0)
	if open == len(text) || text[open] != bracket {
		return object{}, false
	}
	from := open + 1 // of what is not in a member yet
	o := object{head: text[:from]}
	for key, value := range values(text[open:]) {
		start := offset(text, value)
		end := start + len(value)
		next := skipSpace(text, end)
		o.members = append(o.members, member{
			key:   key,
			lead:  slices.Clip(text[from:start]),
			value: slices.Clip(value),
			trail: slices.Clip(text[end:next]),
		})
		from = next + 1
	}
	if o.members == nil {
		o.head = text[:skipSpace(text, from)]
		o.tail = text[len(o.head):]
	} else {
		o.tail = text[from-1:]
	}
	return o, true
}

// offset returns where in a text a part of it, which reaches as far as the text can be extended, begins.
func offset(text, part []byte) int { return cap(text) - cap(part) }

func skipSpace(text []byte, at int) int {
	for at < len(text) && bytes.IndexByte([]byte(" \t\r\n"), text[at]) >= 0 {
		at++
	}
	return at
}

func (o *object) text() json.RawMessage {
	out := bytes.Clone(o.head)
	for i, m := range o.members {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, m.lead...)
		out = append(out, m.value...)
		out = append(out, m.trail...)
	}
	return append(out, o.tail...)
}

// place returns where the member with the key is, or -1. Of duplicate keys the last counts.
func (o *object) place(key string) int {
	for i := len(o.members) - 1; i >= 0; i-- {
		if o.members[i].key == key {
			return i
		}
	}
	return -1
}

// get returns the value of a member, or nil.
func (o *object) get(key string) json.RawMessage {
	if at := o.place(key); at >= 0 {
		return o.members[at].value
	}
	return nil
}

// set gives a member a value in its place. A new one comes last.
func (o *object) set(key string, value json.RawMessage) {
	if at := o.place(key); at >= 0 {
		o.members[at].value = value
		return
	}
	o.add(key, value)
}

// add appends a member that the object does not have.
func (o *object) add(key string, value json.RawMessage) {
	o.append(append(appendString(nil, strings.ToValidUTF8(key, "\ufffd")), ':'), value)
	o.members[len(o.members)-1].key = key
}

// append appends a member, or an element of an array, in the way in which the last one stands: in a line of its own, say.
func (o *object) append(lead []byte, value json.RawMessage) {
	added := member{lead: lead, value: value}
	if len(o.members) > 0 {
		last := &o.members[len(o.members)-1]
		added.lead = slices.Concat(last.lead[:skipSpace(last.lead, 0)], lead)
		added.trail, last.trail = last.trail, nil
	}
	o.members = append(o.members, added)
}

func (o *object) remove(key string) {
	o.members = slices.DeleteFunc(o.members, func(m member) bool { return m.key == key })
}

// keys returns the keys in order, each once.
func (o *object) keys() []string {
	last := map[string]int{}
	for i, m := range o.members {
		last[m.key] = i
	}
	var keys []string
	for i, m := range o.members {
		if last[m.key] == i {
			keys = append(keys, m.key)
		}
	}
	return keys
}

// values returns the members' values by their keys.
func (o *object) values() map[string]json.RawMessage {
	values := make(map[string]json.RawMessage, len(o.members))
	for _, m := range o.members {
		values[m.key] = m.value
	}
	return values
}

// clone returns a copy that can be changed by itself. The bytes are shared, for they never change.
func (o *object) clone() object {
	return object{head: o.head, members: slices.Clone(o.members), tail: o.tail}
}

// stringOf decodes a JSON string; any other value gives false.
func stringOf(value json.RawMessage) (decoded string, ok bool) {
	if len(value) == 0 || value[0] != '"' {
		return "", false
	}
	return decoded, json.Unmarshal(value, &decoded) == nil
}

// appendString appends a string as JSON text that escapes only what must be escaped.
func appendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for at := range len(s) {
		switch c := s[at]; c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			if c < 0x20 {
				dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			} else {
				dst = append(dst, c)
			}
		}
	}
	return append(dst, '"')
}

// encode is json.Marshal without the escapes for HTML, which a document between programs has no use for.
func encode(v any) (json.RawMessage, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}
