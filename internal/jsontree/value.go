package jsontree

import (
	"bytes"
	"encoding/json"
	"math/big"
	"slices"
	"strconv"

	"github.com/pgagui/pgagui/internal/rawjson"
)

// A Value is a [Raw], *[Text], *[Object] or *[Array]. An absent value is nil.
type Value interface {
	// Size is the length of the JSON text.
	Size() int
	// AppendTo appends the JSON text.
	AppendTo(dst []byte) []byte
}

// Raw is any JSON value as text. The bytes are never changed.
type Raw []byte

// Text is a string that grows: its JSON text without the quotes.
type Text struct {
	owner *Owner
	bytes []byte
}

// Object keeps its members in the order in which they were added.
type Object struct {
	owner   *Owner
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
	value Value
}

// Array is a JSON array.
type Array struct {
	owner *Owner
	items []Value
	measure
}

// measure is the size (size.go) of a container that is part of a document under patches.
type measure struct {
	octets int64  // 0: not measured
	noted  uint64 // the patch that noted what it was
}

// An Owner is the only one that may change its containers: one clone of a fold.
type Owner struct {
	patches uint64          // that were applied to its documents
	octets  map[*byte]int64 // the sizes of long texts in them, by their first bytes
}

// searchUpTo is the number of members up to which an object is searched one by one.
const searchUpTo = 12

// NewObject returns an empty object with room for so many members.
func NewObject(by *Owner, capacity int) *Object {
	o := &Object{owner: by}
	if capacity > 0 {
		o.members = make([]member, 0, capacity)
	}
	return o
}

// NewArray returns an empty array.
func NewArray(by *Owner) *Array { return &Array{owner: by} }

// NewText returns an empty string.
func NewText(by *Owner) *Text { return &Text{owner: by} }

// --- objects ---

// place returns where the member with the key is, or -1.
func (o *Object) place(key string) int {
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

// Get returns the value of a member, nil when the object does not have it.
func (o *Object) Get(key string) Value {
	if at := o.place(key); at >= 0 {
		return o.members[at].value
	}
	return nil
}

// MemberJSON returns a member as JSON text, nil if there is none.
func (o *Object) MemberJSON(key string) []byte {
	if member := o.Get(key); member != nil {
		return JSON(member)
	}
	return nil
}

// Set gives a member a value. A new member comes last.
func (o *Object) Set(key string, v Value) {
	if at := o.place(key); at >= 0 {
		o.members[at].value = v
		return
	}
	o.Add(key, v)
}

// Add appends a member that the object does not have.
func (o *Object) Add(key string, v Value) {
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

func (o *Object) addMember(m member) {
	o.members = append(o.members, m)
	if o.places != nil {
		o.places[m.key] = len(o.members) - 1
	}
}

// removeAt takes the value out of a member, which keeps its place.
func (o *Object) removeAt(at int) {
	if o.places != nil {
		delete(o.places, o.members[at].key)
	}
	o.members[at].value = nil
	o.removed++
}

// restoreAt undoes removeAt.
func (o *Object) restoreAt(at int, v Value) {
	o.members[at].value = v
	o.removed--
	if o.places != nil {
		o.places[o.members[at].key] = at
	}
}

// dropLast undoes add.
func (o *Object) dropLast() {
	last := len(o.members) - 1
	if o.places != nil {
		delete(o.places, o.members[last].key)
	}
	o.members = o.members[:last]
}

// Delete removes a member, if the object has it.
func (o *Object) Delete(key string) {
	if at := o.place(key); at >= 0 {
		o.removeAt(at)
		o.sweep()
	}
}

// sweep forgets removed members when they are the greater part.
func (o *Object) sweep() {
	if o.removed > len(o.members)/2 {
		o.members = slices.DeleteFunc(o.members, func(m member) bool { return m.value == nil })
		o.places, o.removed = nil, 0
	}
}

func (o *Object) len() int { return len(o.members) - o.removed }

// --- taking apart ---

// Open returns the container that a raw array or object stands for, with raw values in it. It
// returns other values as they are.
func Open(v Value, by *Owner) Value {
	source, ok := v.(Raw)
	if !ok {
		return v
	}
	switch source[0] {
	case '{':
		o := &Object{owner: by}
		for key, member := range rawjson.Members(source) {
			o.parseMember(key, Raw(member))
		}
		return o
	case '[':
		a := &Array{owner: by}
		for item := range rawjson.Elements(source) {
			a.items = append(a.items, Raw(item))
		}
		return a
	default:
		return v
	}
}

// parsedWhole is parsed, with all that is in the value taken apart too, in one pass.
func parsedWhole(source Raw, by *Owner) Value {
	_, v := parsedAt(source, 0, by)
	return v
}

func parsedAt(source Raw, at int, by *Owner) (end int, v Value) {
	switch source[at] {
	case '{':
		o := &Object{owner: by}
		end, _ = rawjson.WalkObject(source, at, func(key []byte, at int) (int, bool) {
			end, member := parsedAt(source, at, by)
			o.parseMember(key, member)
			return end, true
		})
		return end, o
	case '[':
		a := &Array{owner: by}
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
func (o *Object) parseMember(written []byte, v Value) {
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

// Own returns the value ready for a change by the owner: opened, and not shared with another owner.
func Own(v Value, by *Owner) Value {
	switch v := v.(type) {
	case Raw:
		return Open(v, by)
	case *Text:
		if v.owner != by {
			return &Text{owner: by, bytes: bytes.Clone(v.bytes)}
		}
	case *Object:
		if v.owner != by {
			return &Object{owner: by, members: slices.Clone(v.members), removed: v.removed, measure: measure{octets: v.octets}}
		}
	case *Array:
		if v.owner != by {
			return &Array{owner: by, items: slices.Clone(v.items), measure: measure{octets: v.octets}}
		}
	}
	return v
}

// OwnMember makes a member ready for a change and returns its value, nil if there is none.
func (o *Object) OwnMember(key string) Value {
	at := o.place(key)
	if at < 0 {
		return nil
	}
	o.members[at].value = Own(o.members[at].value, o.owner)
	return o.members[at].value
}

// OpenMember opens a member for reading and returns it, nil if there is none.
func (o *Object) OpenMember(key string) Value {
	at := o.place(key)
	if at < 0 {
		return nil
	}
	o.members[at].value = Open(o.members[at].value, o.owner)
	return o.members[at].value
}

// With returns a copy of the object, for writing, in which one member has another value.
func (o *Object) With(key string, v Value) *Object {
	changed := &Object{members: slices.Clone(o.members), removed: o.removed}
	changed.Set(key, v)
	return changed
}

// AppendText appends to a member that is a string; one that is not counts as empty. The delta is JSON text between quotes.
func (o *Object) AppendText(key string, delta []byte) {
	delta = usual(delta)
	at := o.place(key)
	if at < 0 {
		o.Add(key, &Text{owner: o.owner, bytes: bytes.Clone(delta)})
		return
	}
	if t, ok := o.members[at].value.(*Text); ok && t.owner == o.owner {
		t.bytes = append(t.bytes, delta...)
		return
	}
	existing, _ := StringText(o.members[at].value)
	o.members[at].value = &Text{owner: o.owner, bytes: slices.Concat(existing, delta)}
}

// Push appends an item.
func (a *Array) Push(v Value) { a.items = append(a.items, v) }

// OwnItem makes an item ready for a change by the owner and returns it.
func (a *Array) OwnItem(at int, by *Owner) Value {
	a.items[at] = Own(a.items[at], by)
	return a.items[at]
}

// OpenItem opens an item for reading and returns it.
func (a *Array) OpenItem(at int) Value {
	a.items[at] = Open(a.items[at], a.owner)
	return a.items[at]
}

// Copy returns a copy that shares no part that can change.
func Copy(v Value, by *Owner) Value {
	switch v := v.(type) {
	case *Text:
		return &Text{owner: by, bytes: bytes.Clone(v.bytes)}
	case *Object:
		o := &Object{owner: by, members: make([]member, 0, v.len()), measure: measure{octets: v.octets}}
		for _, m := range v.members {
			if m.value != nil {
				m.value = Copy(m.value, by)
				o.members = append(o.members, m)
			}
		}
		return o
	case *Array:
		a := &Array{owner: by, items: make([]Value, len(v.items)), measure: measure{octets: v.octets}}
		for i, item := range v.items {
			a.items[i] = Copy(item, by)
		}
		return a
	default:
		return v
	}
}

// --- writing ---

func (r Raw) Size() int                  { return len(r) }
func (r Raw) AppendTo(dst []byte) []byte { return append(dst, r...) }

func (t *Text) Size() int { return len(t.bytes) + 2 }
func (t *Text) AppendTo(dst []byte) []byte {
	dst = append(dst, '"')
	dst = append(dst, t.bytes...)
	return append(dst, '"')
}

func (o *Object) Size() int {
	size := 2 + max(0, o.len()-1)
	for i := range o.members {
		if m := &o.members[i]; m.value != nil {
			size += m.nameSize() + 1 + m.value.Size()
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

func (o *Object) AppendTo(dst []byte) []byte {
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
		dst = m.value.AppendTo(dst)
	}
	return append(dst, '}')
}

func (a *Array) Size() int {
	size := 2 + max(0, len(a.items)-1)
	for _, item := range a.items {
		size += item.Size()
	}
	return size
}

func (a *Array) AppendTo(dst []byte) []byte {
	dst = append(dst, '[')
	for i, item := range a.items {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = item.AppendTo(dst)
	}
	return append(dst, ']')
}

// skipIn returns the offset after the value's JSON text, if that stands in a text at an offset; otherwise, or if the offset is negative, a
// negative one.
func skipIn(text []byte, at int, v Value) int {
	switch v := v.(type) {
	case Raw:
		if at >= 0 && bytes.HasPrefix(text[at:], v) {
			return at + len(v)
		}
	case *Object:
		before := byte('{')
		for i := range v.members {
			m := &v.members[i]
			if m.value == nil {
				continue
			}
			at = skipByte(text, at, before)
			if name := m.nameSize(); m.name != nil {
				at = skipIn(text, at, Raw(m.name))
			} else if at >= 0 && len(text)-at >= name && text[at] == '"' && string(text[at+1:at+name-1]) == m.key && text[at+name-1] == '"' {
				at += name
			} else {
				return -1
			}
			at = skipIn(text, skipByte(text, at, ':'), m.value)
			before = ','
		}
		if v.len() == 0 {
			at = skipByte(text, at, '{')
		}
		return skipByte(text, at, '}')
	case *Array:
		before := byte('[')
		for _, item := range v.items {
			at = skipIn(text, skipByte(text, at, before), item)
			before = ','
		}
		if len(v.items) == 0 {
			at = skipByte(text, at, '[')
		}
		return skipByte(text, at, ']')
	}
	return -1
}

func skipByte(text []byte, at int, c byte) int {
	if at >= 0 && at < len(text) && text[at] == c {
		return at + 1
	}
	return -1
}

// JSON returns the JSON text of a value. The caller may keep it, but not change it.
func JSON(v Value) []byte {
	if r, ok := v.(Raw); ok {
		return r
	}
	return v.AppendTo(make([]byte, 0, v.Size()))
}

// --- comparing ---

// Equal reports whether two JSON texts mean the same: white space, the order of members and the
// spelling of strings and numbers do not count. A text that is not JSON equals only the same bytes.
func Equal(a, b []byte) bool {
	a, b = bytes.TrimSpace(a), bytes.TrimSpace(b)
	return bytes.Equal(a, b) || json.Valid(a) && json.Valid(b) && equal(Raw(a), Raw(b), sameNumberValue)
}

// equal compares two values as JSON does: objects without regard to order, strings by their characters. Numbers are the same
// if sameNumber, which gets their texts, says so.
func equal(a, b Value, sameNumber func(a, b []byte) bool) bool {
	if a, ok := a.(Raw); ok {
		if b, ok := b.(Raw); ok && bytes.Equal(a, b) {
			return true
		}
	}
	switch a := Open(a, nil).(type) {
	case *Object:
		b, ok := Open(b, nil).(*Object)
		if !ok || a.len() != b.len() {
			return false
		}
		for _, m := range a.members {
			if m.value == nil {
				continue
			}
			if other := b.Get(m.key); other == nil || !equal(m.value, other, sameNumber) {
				return false
			}
		}
		return true
	case *Array:
		b, ok := Open(b, nil).(*Array)
		return ok && slices.EqualFunc(a.items, b.items, func(a, b Value) bool { return equal(a, b, sameNumber) })
	default:
		return equalScalars(a, b, sameNumber)
	}
}

func equalScalars(a, b Value, sameNumber func(a, b []byte) bool) bool {
	aString, aIsString := StringText(a)
	bString, bIsString := StringText(b)
	if aIsString || bIsString {
		return aIsString && bIsString && len(aString) <= 6*len(bString) && len(bString) <= 6*len(aString) && rawjson.SameString(aString, bString)
	}
	x, y := a.(Raw), Raw(nil)
	if b, ok := b.(Raw); ok {
		y = b
	}
	if isNumber(x) && isNumber(y) {
		return sameNumber(x, y)
	}
	return bytes.Equal(x, y) // true, false, null, or not of one type
}

// StringText returns the JSON text between the quotes of a string.
func StringText(v Value) ([]byte, bool) {
	switch v := v.(type) {
	case Raw:
		if len(v) > 0 && v[0] == '"' {
			return v[1 : len(v)-1], true
		}
	case *Text:
		return v.bytes, true
	}
	return nil, false
}

// StringValue decodes a string; other values, and none, give false.
func StringValue(v Value) (string, bool) {
	written, ok := StringText(v)
	if !ok {
		return "", false
	}
	if bytes.IndexByte(written, '\\') < 0 {
		return string(written), true
	}
	return string(rawjson.Decode(nil, written)), true
}

func isNumber(r Raw) bool {
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
func depth(v Value) int {
	deepest := 0
	switch v := v.(type) {
	case Raw:
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
	case *Object:
		for _, m := range v.members {
			if m.value != nil {
				deepest = max(deepest, depth(m.value))
			}
		}
		return deepest + 1
	case *Array:
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
