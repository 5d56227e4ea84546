package compaction

import (
	"bytes"
	"encoding/json"
	"math/big"
	"slices"
	"strconv"

	"github.com/pgagui/pgagui/internal/rawjson"
)

// This file holds JSON values as trees that are taken apart only where something changes: all that is not touched stays the
// text it came as, so it keeps its spelling and costs neither time nor memory.
//
// Trees are copied on write. A container belongs to an owner, one clone of a fold, which alone may change it; whoever finds
// a container of another owner on the way to a change copies that container first (not what is below it).

// A value is raw, *text, *object or *array. An absent value is nil.
type value interface {
	// size is the length of the JSON text.
	size() int
	// appendTo appends the JSON text.
	appendTo(dst []byte) []byte
}

// raw is any JSON value as text. The bytes are never changed.
type raw []byte

// text is a string that grows: its JSON text without the quotes.
type text struct {
	owner *owner
	bytes []byte
}

// object keeps its members in the order in which they were added.
type object struct {
	owner   *owner
	members []member
	// places finds a member by its key; nil while the object is small.
	places map[string]int
	// removed counts the members whose value is nil. They keep their place, so that a removal can be undone.
	removed int
	measure
}

type member struct {
	key   string // decoded
	name  []byte // the key as JSON text; nil when that is the key between quotes
	value value
}

type array struct {
	owner *owner
	items []value
	measure
}

// measure is the size (octets.go) of a container that is part of a document under patches.
type measure struct {
	octets int64  // 0: not measured
	noted  uint64 // the patch that noted what it was
}

// owner is the identity of one clone of a fold.
type owner struct {
	patches uint64          // that were applied to its documents
	octets  map[*byte]int64 // the sizes of long texts in them, by their first bytes
}

// searchUpTo is the number of members up to which an object is searched one by one.
const searchUpTo = 12

// --- objects ---

// place returns where the member with the key is, or -1.
func (o *object) place(key string) int {
	if len(o.members) <= searchUpTo {
		for at := range o.members {
			if m := &o.members[at]; m.key == key && m.value != nil {
				return at
			}
		}
		return -1
	}
	if o.places == nil {
		o.places = make(map[string]int, len(o.members))
		for at, m := range o.members {
			if m.value != nil {
				o.places[m.key] = at
			}
		}
	}
	if at, ok := o.places[key]; ok {
		return at
	}
	return -1
}

func (o *object) get(key string) value {
	if at := o.place(key); at >= 0 {
		return o.members[at].value
	}
	return nil
}

// set gives a member a value. A new member comes last.
func (o *object) set(key string, v value) {
	if at := o.place(key); at >= 0 {
		o.members[at].value = v
		return
	}
	o.add(key, v)
}

// add appends a member that the object does not have.
func (o *object) add(key string, v value) {
	m := newMember(key)
	m.value = v
	o.addMember(m)
}

// newMember returns a member without a value.
func newMember(key string) member {
	m := member{key: key}
	if !rawjson.IsPlain(key) {
		m.name = rawjson.Quote(nil, key)
	}
	return m
}

func (o *object) addMember(m member) {
	o.members = append(o.members, m)
	if o.places != nil {
		o.places[m.key] = len(o.members) - 1
	}
}

// removeAt takes the value out of a member, which keeps its place.
func (o *object) removeAt(at int) {
	if o.places != nil {
		delete(o.places, o.members[at].key)
	}
	o.members[at].value = nil
	o.removed++
}

// restoreAt undoes removeAt.
func (o *object) restoreAt(at int, v value) {
	o.members[at].value = v
	o.removed--
	if o.places != nil {
		o.places[o.members[at].key] = at
	}
}

// dropLast undoes add.
func (o *object) dropLast() {
	last := len(o.members) - 1
	if o.places != nil {
		delete(o.places, o.members[last].key)
	}
	o.members = o.members[:last]
}

func (o *object) delete(key string) {
	if at := o.place(key); at >= 0 {
		o.removeAt(at)
		o.sweep()
	}
}

// sweep forgets removed members when they are the greater part.
func (o *object) sweep() {
	if o.removed > len(o.members)/2 {
		o.members = slices.DeleteFunc(o.members, func(m member) bool { return m.value == nil })
		o.places, o.removed = nil, 0
	}
}

func (o *object) len() int { return len(o.members) - o.removed }

// --- taking apart ---

// parsed returns the container that a raw array or object stands for, with raw values in it; other values as they are.
func parsed(v value, by *owner) value {
	source, ok := v.(raw)
	if !ok {
		return v
	}
	switch source[0] {
	case '{':
		o := &object{owner: by}
		for key, member := range rawjson.Members(source) {
			o.parseMember(key, raw(member))
		}
		return o
	case '[':
		a := &array{owner: by}
		for item := range rawjson.Elements(source) {
			a.items = append(a.items, raw(item))
		}
		return a
	default:
		return v
	}
}

// parsedWhole is parsed, with all that is in the value taken apart too, in one pass.
func parsedWhole(source raw, by *owner) value {
	_, v := parsedAt(source, 0, by)
	return v
}

func parsedAt(source raw, at int, by *owner) (end int, v value) {
	switch source[at] {
	case '{':
		o := &object{owner: by}
		end, _ = rawjson.WalkObject(source, at, func(key []byte, at int) (int, bool) {
			end, member := parsedAt(source, at, by)
			o.parseMember(key, member)
			return end, true
		})
		return end, o
	case '[':
		a := &array{owner: by}
		end, _ = rawjson.WalkArray(source, at, func(at int) (int, bool) {
			end, item := parsedAt(source, at, by)
			a.items = append(a.items, item)
			return end, true
		})
		return end, a
	default:
		end, _ = rawjson.SkipValue(source, at, 0)
		return end, source[at:end]
	}
}

// parseMember adds a member and writes its key in one spelling. Of equal keys the last one counts, in the place of the first.
func (o *object) parseMember(written []byte, v value) {
	m := member{key: string(written), value: v}
	if bytes.IndexByte(written, '\\') >= 0 {
		m.key = string(rawjson.Decode(nil, written))
		if !rawjson.IsPlain(m.key) {
			m.name = rawjson.Quote(nil, m.key)
		}
	}
	if at := o.place(m.key); at >= 0 {
		o.members[at].value = v
		return
	}
	o.addMember(m)
}

// owned returns the value ready for a change by the owner: taken apart and not shared with another owner.
func owned(v value, by *owner) value {
	switch v := v.(type) {
	case raw:
		return parsed(v, by)
	case *text:
		if v.owner != by {
			return &text{owner: by, bytes: bytes.Clone(v.bytes)}
		}
	case *object:
		if v.owner != by {
			return &object{owner: by, members: slices.Clone(v.members), removed: v.removed, measure: measure{octets: v.octets}}
		}
	case *array:
		if v.owner != by {
			return &array{owner: by, items: slices.Clone(v.items), measure: measure{octets: v.octets}}
		}
	}
	return v
}

// ownMember makes a member ready for a change and returns its value, nil when there is none.
func (o *object) ownMember(key string) value {
	at := o.place(key)
	if at < 0 {
		return nil
	}
	o.members[at].value = owned(o.members[at].value, o.owner)
	return o.members[at].value
}

// opened takes a member apart, for reading, and returns it; nil when there is none.
func (o *object) opened(key string) value {
	at := o.place(key)
	if at < 0 {
		return nil
	}
	o.members[at].value = parsed(o.members[at].value, o.owner)
	return o.members[at].value
}

// copied returns a copy that shares nothing that can change.
func copied(v value, by *owner) value {
	switch v := v.(type) {
	case *text:
		return &text{owner: by, bytes: bytes.Clone(v.bytes)}
	case *object:
		o := &object{owner: by, members: make([]member, 0, v.len()), measure: measure{octets: v.octets}}
		for _, m := range v.members {
			if m.value != nil {
				m.value = copied(m.value, by)
				o.members = append(o.members, m)
			}
		}
		return o
	case *array:
		a := &array{owner: by, items: make([]value, len(v.items)), measure: measure{octets: v.octets}}
		for i, item := range v.items {
			a.items[i] = copied(item, by)
		}
		return a
	default:
		return v
	}
}

// --- writing ---

func (r raw) size() int                  { return len(r) }
func (r raw) appendTo(dst []byte) []byte { return append(dst, r...) }

func (t *text) size() int { return len(t.bytes) + 2 }
func (t *text) appendTo(dst []byte) []byte {
	dst = append(dst, '"')
	dst = append(dst, t.bytes...)
	return append(dst, '"')
}

func (o *object) size() int {
	size := 2 + max(0, o.len()-1)
	for i := range o.members {
		if m := &o.members[i]; m.value != nil {
			size += m.nameSize() + 1 + m.value.size()
		}
	}
	return size
}

func (m *member) nameSize() int {
	if m.name != nil {
		return len(m.name)
	}
	return len(m.key) + 2
}

func (o *object) appendTo(dst []byte) []byte {
	dst = append(dst, '{')
	first := true
	for i := range o.members {
		m := &o.members[i]
		if m.value == nil {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		if m.name != nil {
			dst = append(dst, m.name...)
		} else {
			dst = append(dst, '"')
			dst = append(dst, m.key...)
			dst = append(dst, '"')
		}
		dst = append(dst, ':')
		dst = m.value.appendTo(dst)
	}
	return append(dst, '}')
}

func (a *array) size() int {
	size := 2 + max(0, len(a.items)-1)
	for _, item := range a.items {
		size += item.size()
	}
	return size
}

func (a *array) appendTo(dst []byte) []byte {
	dst = append(dst, '[')
	for i, item := range a.items {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = item.appendTo(dst)
	}
	return append(dst, ']')
}

// written returns the JSON text of a value. The caller may keep it, but not change it.
func written(v value) []byte {
	if r, ok := v.(raw); ok {
		return r
	}
	return v.appendTo(make([]byte, 0, v.size()))
}

// --- comparing ---

// Equal reports whether two JSON texts say the same: white space, the order of members and the spelling of strings and numbers do
// not count. Texts that are not JSON are equal to nothing but their own bytes.
func Equal(a, b []byte) bool {
	a, b = bytes.TrimSpace(a), bytes.TrimSpace(b)
	return bytes.Equal(a, b) || json.Valid(a) && json.Valid(b) && equal(raw(a), raw(b), sameNumberValue)
}

// equal compares two values as JSON does: objects without regard to order, strings by their characters. Numbers are the same
// if sameNumber, which gets their texts, says so.
func equal(a, b value, sameNumber func(a, b []byte) bool) bool {
	if a, ok := a.(raw); ok {
		if b, ok := b.(raw); ok && bytes.Equal(a, b) {
			return true
		}
	}
	switch a := parsed(a, nil).(type) {
	case *object:
		b, ok := parsed(b, nil).(*object)
		if !ok || a.len() != b.len() {
			return false
		}
		for _, m := range a.members {
			if m.value == nil {
				continue
			}
			if other := b.get(m.key); other == nil || !equal(m.value, other, sameNumber) {
				return false
			}
		}
		return true
	case *array:
		b, ok := parsed(b, nil).(*array)
		return ok && slices.EqualFunc(a.items, b.items, func(a, b value) bool { return equal(a, b, sameNumber) })
	default:
		return equalScalars(a, b, sameNumber)
	}
}

func equalScalars(a, b value, sameNumber func(a, b []byte) bool) bool {
	aString, aIsString := stringText(a)
	bString, bIsString := stringText(b)
	if aIsString || bIsString {
		return aIsString && bIsString && len(aString) <= 6*len(bString) && len(bString) <= 6*len(aString) && rawjson.SameString(aString, bString)
	}
	x, y := a.(raw), raw(nil)
	if b, ok := b.(raw); ok {
		y = b
	}
	if isNumber(x) && isNumber(y) {
		return sameNumber(x, y)
	}
	return bytes.Equal(x, y) // true, false, null, or not of one type
}

// stringText returns the JSON text between the quotes of a string.
func stringText(v value) ([]byte, bool) {
	switch v := v.(type) {
	case raw:
		if len(v) > 0 && v[0] == '"' {
			return v[1 : len(v)-1], true
		}
	case *text:
		return v.bytes, true
	}
	return nil, false
}

// stringValue decodes a string; other values, and none, give false.
func stringValue(v value) (string, bool) {
	written, ok := stringText(v)
	if !ok {
		return "", false
	}
	if bytes.IndexByte(written, '\\') < 0 {
		return string(written), true
	}
	return string(rawjson.Decode(nil, written)), true
}

func isNumber(r raw) bool {
	return len(r) > 0 && (r[0] == '-' || '0' <= r[0] && r[0] <= '9')
}

// maxDigits is how long a number may be that is compared by its value.
const maxDigits = 1000

// sameNumberValue compares numbers by their exact value: 1, 1.0 and 10e-1 are the same.
func sameNumberValue(a, b []byte) bool {
	if len(a) > maxDigits || len(b) > maxDigits {
		return bytes.Equal(a, b)
	}
	aNegative, aDigits, aExponent := decimal(a)
	bNegative, bDigits, bExponent := decimal(b)
	if len(aDigits) == 0 || len(bDigits) == 0 {
		return len(aDigits) == len(bDigits) // zeros are the same, with any sign and exponent
	}
	return aNegative == bNegative && bytes.Equal(aDigits, bDigits) && aExponent.Cmp(bExponent) == 0
}

// sameNumberText compares numbers by their spelling.
func sameNumberText(a, b []byte) bool { return bytes.Equal(a, b) }

// decimal takes a number apart into its sign, its digits without zeros at either end, and the exponent of the last digit.
func decimal(number []byte) (negative bool, digits []byte, exponent *big.Int) {
	if number[0] == '-' {
		negative, number = true, number[1:]
	}
	exponent = new(big.Int)
	if at := bytes.IndexAny(number, "eE"); at >= 0 {
		exponent.SetString(string(bytes.TrimPrefix(number[at+1:], []byte("+"))), 10)
		number = number[:at]
	}
	whole, fraction, _ := bytes.Cut(number, []byte("."))
	digits = slices.Concat(whole, fraction)
	shift := -len(fraction)
	trimmed := bytes.TrimRight(digits, "0")
	shift += len(digits) - len(trimmed)
	exponent.Add(exponent, big.NewInt(int64(shift)))
	return negative, bytes.TrimLeft(trimmed, "0"), exponent
}

// depth is how many arrays and objects a value is nested in itself.
func depth(v value) int {
	deepest := 0
	switch v := v.(type) {
	case raw:
		open := 0
		for at := 0; at < len(v); at++ {
			switch v[at] {
			case '"':
				end, _ := rawjson.SkipString(v, at)
				at = end - 1
			case '{', '[':
				open++
				deepest = max(deepest, open)
			case '}', ']':
				open--
			}
		}
		return deepest
	case *object:
		for _, m := range v.members {
			if m.value != nil {
				deepest = max(deepest, depth(m.value))
			}
		}
		return deepest + 1
	case *array:
		for _, item := range v.items {
			deepest = max(deepest, depth(item))
		}
		return deepest + 1
	default:
		return 0
	}
}

// arrayIndex reads an array index after RFC 6901: digits without a leading zero.
func arrayIndex(token string) (int, bool) {
	if token == "" || len(token) > 1 && token[0] == '0' {
		return 0, false
	}
	for at := range len(token) {
		if token[at] < '0' || token[at] > '9' {
			return 0, false
		}
	}
	index, err := strconv.Atoi(token)
	return index, err == nil
}
