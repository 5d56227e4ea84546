package jsontree

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/pgagui/pgagui/internal/rawjson"
)

// This file applies JSON Patch (RFC 6902) to a value, in place. Each change is noted, so that a patch of which any operation
// fails is undone: it is applied whole or not at all.

// wholeFrom is how deep a patch takes apart values one by one: to find the elements of each takes a look at all that is in it. What
// is deeper is taken apart at once.
const wholeFrom = 32

// Limits bound what patches may make and take. A patch that goes beyond one of them fails.
type Limits struct {
	DocumentBytes int64 // the size of the document after each operation
	DocumentDepth int   // how deep an operation may nest arrays and objects
	Operations    int   // the operations of a patch
	CopiedBytes   int64 // the size of all values that copy and move put in place in a patch
	ShiftedItems  int64 // the items after the places in arrays where a patch inserts or removes one
}

// A document is a value under patches.
type Document struct {
	owner *Owner
	root  Value
	// bytes is the size of the JSON text, kept up to date with every change as long as the size below is not known. Keys that stood twice in an
	// object may still count twice.
	bytes int
	// The size of the document as jsonb (size.go), kept up to date too from when it can come near its limit on; 0: not yet.
	octets int64
	// isCompact says that there is no white space in root that means nothing.
	isCompact bool

	// The patch at hand.
	limits  *Limits
	copied  int64
	shifted int64
	spent   int64 // the fuel that it used
	failure failure
	changes []change
	way     []Value // the containers from the root to the one that changes
	sizes   []noted
}

// NewDocument returns a value as a document that the owner may change.
func NewDocument(by *Owner, root Value) Document {
	d := Document{owner: by, root: root}
	if text, ok := root.(Raw); ok {
		d.bytes = len(text)
	}
	return d
}

// Value returns the document as it is now.
func (d *Document) Value() Value { return d.root }

// SkipIn returns the offset after the document's text, if that stands in a text at an offset. It does so only for a document that patches
// have taken apart.
func (d *Document) SkipIn(text []byte, at int) (end int, ok bool) {
	if !d.isCompact || measureOf(d.root) == nil {
		return at, false
	}
	end = skipIn(text, at, d.root)
	return end, end >= 0
}

// Restart makes the document one that was made of a text with SkipIn, and keeps taken apart what patches have taken apart.
func (d *Document) Restart(length int) {
	measureOf(d.root).octets = 0
	*d = Document{owner: d.owner, root: d.root, bytes: length, isCompact: true}
}

// Text returns the JSON text of the document.
func (d *Document) Text() []byte {
	text := JSON(d.root)
	d.bytes = len(text)
	return text
}

// Size returns the length of the JSON text, without making it; of a large document as jsonb prints it. It may be more where a key
// stands twice in an object.
func (d *Document) Size() int {
	if d.octets > 0 {
		return int(printed(d.octets))
	}
	return d.bytes
}

// Fuel returns the fuel that the last patch used.
func (d *Document) Fuel() int64 { return d.spent }

// A failure says why a patch fails.
type failure struct {
	operation int  // that fails, from 1 on; 0: the patch as a whole
	isLimit   bool // it goes beyond a limit
}

// Failure says in words why the last patch failed. It means nothing after one that succeeded.
func (d *Document) Failure() string {
	what, why := "the patch", "is no list of operations"
	if d.failure.operation > 0 {
		what, why = fmt.Sprintf("operation %d of the patch", d.failure.operation), "fails by RFC 6902"
	}
	if d.failure.isLimit {
		why = "goes beyond a limit of documents or patches"
	}
	return what + " " + why
}

// SetOwner makes the document one of another owner.
func (d *Document) SetOwner(to *Owner) { d.owner = to }

// Clone returns the document for another owner. Neither of them may be changed by the owner that it had.
func (d *Document) Clone(by *Owner) Document {
	return Document{owner: by, root: d.root, bytes: d.bytes, octets: d.octets}
}

// Reset gives the document another value.
func (d *Document) Reset(root Value) { d.root, d.bytes, d.octets = root, 0, 0 }

// noted is what the size of a container was before a patch.
type noted struct {
	of     *measure
	octets int64
}

// A change is what it takes to undo one step of a patch.
type change struct {
	kind   changeKind
	target Value // *object or *array; nil for the root
	place  int   // of the member or item
	old    Value // what was there
}

type changeKind int8

const (
	replaced changeKind = iota
	added
	removed
)

// Patch applies a list of operations, given as valid JSON, and reports whether all of them succeeded; otherwise the document is
// what it was, but for white space. The document keeps no part of the operations' text.
func (d *Document) Patch(operations []byte, limits *Limits) bool {
	d.limits, d.copied, d.shifted, d.spent = limits, 0, 0, 0
	d.failure = failure{}
	if operations[0] != '[' {
		return false
	}
	d.failure.isLimit = true
	if hasTooManyElements(operations, max(limits.DocumentBytes, elementsOfPatch)) {
		return false
	}
	if text, ok := d.root.(Raw); ok && hasTooManyElements(text, limits.DocumentBytes) && !beginsAnew(operations) {
		return false
	}
	d.owner.patches++
	d.begin()
	// Without white space, the text of what was patched does not depend on which parts of it were looked at.
	if text, ok := d.root.(Raw); ok && !d.isCompact {
		d.root = Raw(compacted(text))
		d.bytes -= len(text) - len(d.root.(Raw))
	}
	d.isCompact = true
	before, octetsBefore := d.bytes, d.octets
	succeeded := true
	count := 0
	for operation := range rawjson.Elements(operations) {
		count++
		isApplied := count <= limits.Operations && d.apply(operation)
		if !isApplied || d.isTooLarge() || d.shifted > limits.ShiftedItems {
			d.failure = failure{count, isApplied || count > limits.Operations || d.copied > limits.CopiedBytes}
			succeeded = false
			break
		}
	}
	if succeeded {
		d.sweep()
		d.owner.octets = nil
	} else {
		d.undo()
		d.bytes, d.octets = before, octetsBefore
	}
	clear(d.changes)
	d.changes = d.changes[:0]
	clear(d.way)
	d.way = d.way[:0]
	clear(d.sizes)
	d.sizes = d.sizes[:0]
	return succeeded
}

// hasTooManyElements reports whether the elements of a JSON text alone are more than a document may have. The reducer in SQL does
// not make jsonb of such a text.
func hasTooManyElements(text []byte, most int64) bool {
	return int64(len(text))*(elementOctets/2) > most && elementOctets*elements(text) > most
}

// elementsOfPatch is how much the elements of a patch may count whatever the limit of documents is.
const elementsOfPatch = 16 << 20

// elements counts the commas and the opening brackets of a JSON text outside of strings.
func elements(text []byte) (count int64) {
	for at := 0; at < len(text); at++ {
		switch text[at] {
		case '"':
			end, _ := rawjson.SkipString(text, at)
			at = end - 1
		case ',', '[', '{':
			count++
		}
	}
	return count
}

// beginsAnew reports whether the first operation of a patch replaces the document as a whole.
func beginsAnew(operations []byte) bool {
	for operation := range rawjson.Elements(operations) {
		if operation[0] != '{' {
			return false
		}
		path, _ := StringText(Raw(rawjson.MemberOf(operation, "path")))
		kind, _ := StringText(Raw(rawjson.MemberOf(operation, "op")))
		return path != nil && len(path) == 0 && (rawjson.SameKey(kind, "add") || rawjson.SameKey(kind, "replace") || rawjson.SameKey(kind, "remove"))
	}
	return false
}

// maxGrowth is how much a byte of JSON text can count: 1e99 takes 100 bytes as jsonb, and a comma or bracket may follow.
const maxGrowth = 26 + elementOctets/2

// begin makes the size of the document known where it matters.
func (d *Document) begin() {
	if d.octets > 0 {
		return
	}
	if m := measureOf(d.root); m != nil && m.octets > 0 {
		d.octets = m.octets
	} else if d.bytes == 0 { // the content of an activity
		if text, ok := d.root.(Raw); ok {
			d.bytes = len(text)
		} else {
			d.octets = sizeOf(d.root)
		}
	}
	d.isTooLarge()
}

func (d *Document) isTooLarge() bool {
	if d.octets == 0 && int64(d.bytes)*maxGrowth > d.limits.DocumentBytes {
		d.octets = d.octetsOf(d.root)
	}
	return counted(d.octets) > d.limits.DocumentBytes
}

func (d *Document) apply(operation []byte) bool {
	if operation[0] != '{' {
		return false
	}
	var op, pathText, fromText, operand Raw
	for key, value := range rawjson.Members(operation) {
		switch {
		case rawjson.SameKey(key, "op"):
			op = value
		case rawjson.SameKey(key, "path"):
			pathText = value
		case rawjson.SameKey(key, "from"):
			fromText = value
		case rawjson.SameKey(key, "value"):
			operand = value
		}
	}
	path, ok := pointer(pathText)
	if !ok {
		return false
	}
	kind, ok := StringText(op)
	switch {
	case !ok:
		return false
	case rawjson.SameKey(kind, "add"):
		if operand == nil {
			return false
		}
		v, octets := d.operandOf(operand)
		return d.Add(path, v, octets)
	case rawjson.SameKey(kind, "remove"):
		_, ok := d.remove(path)
		return ok
	case rawjson.SameKey(kind, "replace"):
		if operand == nil {
			return false
		}
		v, octets := d.operandOf(operand)
		return d.replace(path, v, octets)
	case rawjson.SameKey(kind, "test"):
		found := d.find(path)
		return found != nil && operand != nil && d.holds(found, d.owner, parsedWhole(operand, nil))
	case rawjson.SameKey(kind, "copy"):
		from, ok := pointer(fromText)
		return ok && d.copy(from, path)
	case rawjson.SameKey(kind, "move"):
		from, ok := pointer(fromText)
		return ok && d.move(from, path)
	default:
		return false
	}
}

// operandOf returns the value of an operation and its size, or, as long as sizes do not matter, that of its text.
func (d *Document) operandOf(operand Raw) (Raw, int64) {
	v := Kept(compacted(operand))
	if d.octets == 0 {
		return v, int64(len(v))
	}
	return v, sizeOf(v)
}

// pointer reads a JSON Pointer (RFC 6901), given as a JSON string, into its decoded tokens.
func pointer(written Raw) ([]string, bool) {
	path, ok := StringValue(written)
	if !ok {
		return nil, false
	}
	if path == "" {
		return nil, true
	}
	if path[0] != '/' {
		return nil, false
	}
	tokens := strings.Split(path[1:], "/")
	for i, token := range tokens {
		if strings.IndexByte(token, '~') < 0 {
			continue
		}
		for at := range len(token) {
			if token[at] == '~' && (at+1 == len(token) || token[at+1] != '0' && token[at+1] != '1') {
				return nil, false
			}
		}
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
	}
	return tokens, true
}

// --- operations ---

// tooDeep reports whether a value of a size would be nested too deep at a path. Each level takes two bytes.
func (d *Document) tooDeep(path []string, v Value, octets int64) bool {
	return int64(len(path))+printed(octets)/2 > int64(d.limits.DocumentDepth) && len(path)+depth(v) > d.limits.DocumentDepth
}

func (d *Document) Add(path []string, v Value, octets int64) bool {
	return d.addOrCopy(path, v, octets, false)
}

// addOrCopy adds a value, or a copy of it. What makes the document too large is not copied first.
func (d *Document) addOrCopy(path []string, v Value, octets int64, isCopy bool) bool {
	if d.tooDeep(path, v, octets) {
		return false
	}
	fits := func(growth int64) bool {
		if isCopy && d.octets > 0 && counted(d.octets+growth) > d.limits.DocumentBytes {
			return false
		}
		if isCopy {
			v = Copy(v, d.owner)
		}
		return true
	}
	if len(path) == 0 {
		if !fits(octets - d.octets) {
			return false
		}
		d.replaceRoot(v, octets)
		return true
	}
	last := path[len(path)-1]
	switch parent := d.container(path[:len(path)-1]).(type) {
	case *Object:
		if at := parent.place(last); at >= 0 {
			if !fits(octets - d.leaving(parent.members[at].value)) {
				return false
			}
			d.replaceIn(parent, at, &parent.members[at].value, v, octets)
			return true
		}
		m := newMember(last)
		growth := m.keyOctets() + 2 + octets + separator(parent.len()+1)
		if !fits(growth) {
			return false
		}
		m.value = v
		parent.addMember(m)
		d.note(change{kind: added, target: parent})
		if d.octets == 0 {
			d.bytes += m.nameSize() + 1 + v.Size() + comma(parent.len())
		}
		d.grow(growth)
		return true
	case *Array:
		at, ok := arrayIndex(last)
		if last == "-" {
			at, ok = len(parent.items), true
		}
		if !ok || at > len(parent.items) {
			return false
		}
		d.shift(len(parent.items), len(parent.items)-at)
		growth := octets + separator(len(parent.items)+1)
		if !fits(growth) {
			return false
		}
		parent.items = slices.Insert(parent.items, at, v)
		d.note(change{kind: added, target: parent, place: at})
		if d.octets == 0 {
			d.bytes += v.Size() + comma(len(parent.items))
		}
		d.grow(growth)
		return true
	default:
		return false
	}
}

// remove returns what was there.
func (d *Document) remove(path []string) (old Value, ok bool) {
	if len(path) == 0 {
		old = d.root
		d.replaceRoot(Raw("null"), 4)
		return old, true
	}
	last := path[len(path)-1]
	switch parent := d.container(path[:len(path)-1]).(type) {
	case *Object:
		at := parent.place(last)
		if at < 0 {
			return nil, false
		}
		m := &parent.members[at]
		old = m.value
		if d.octets == 0 {
			d.bytes -= m.nameSize() + 1 + m.value.Size() + comma(parent.len())
		}
		d.grow(-(m.keyOctets() + 2 + d.leaving(old) + separator(parent.len())))
		parent.removeAt(at)
		d.note(change{kind: removed, target: parent, place: at, old: old})
		return old, true
	case *Array:
		at, ok := arrayIndex(last)
		if !ok || at >= len(parent.items) {
			return nil, false
		}
		old = parent.items[at]
		if d.octets == 0 {
			d.bytes -= old.Size() + comma(len(parent.items))
		}
		d.grow(-(d.leaving(old) + separator(len(parent.items))))
		d.shift(len(parent.items), len(parent.items)-at-1)
		parent.items = slices.Delete(parent.items, at, at+1)
		d.note(change{kind: removed, target: parent, place: at, old: old})
		return old, true
	default:
		return nil, false
	}
}

func (d *Document) replace(path []string, v Value, octets int64) bool {
	if d.tooDeep(path, v, octets) {
		return false
	}
	if len(path) == 0 {
		d.replaceRoot(v, octets)
		return true
	}
	last := path[len(path)-1]
	switch parent := d.container(path[:len(path)-1]).(type) {
	case *Object:
		at := parent.place(last)
		if at < 0 {
			return false
		}
		d.replaceIn(parent, at, &parent.members[at].value, v, octets)
		return true
	case *Array:
		at, ok := arrayIndex(last)
		if !ok || at >= len(parent.items) {
			return false
		}
		d.replaceIn(parent, at, &parent.items[at], v, octets)
		return true
	default:
		return false
	}
}

func (d *Document) copy(from, path []string) bool {
	source := d.find(from)
	if source == nil {
		return false
	}
	octets := d.octetsOf(*source)
	return d.takes(octets) && d.addOrCopy(path, *source, octets, true)
}

func (d *Document) move(from, path []string) bool {
	if slices.Equal(from, path) {
		return d.find(from) != nil
	}
	if len(from) < len(path) && slices.Equal(from, path[:len(from)]) {
		return false // into its own child
	}
	moved, ok := d.remove(from)
	if !ok {
		return false
	}
	octets := d.octetsOf(moved)
	return d.takes(octets) && d.Add(path, moved, octets)
}

// takes notes that a value is copied or moved, and reports whether the patch may do that.
func (d *Document) takes(octets int64) bool {
	d.copied += counted(octets)
	d.spent += FuelOfCopiedOctet * counted(octets)
	return d.copied <= d.limits.CopiedBytes
}

// shift notes that an item of an array of a length is inserted or removed in front of so many others.
func (d *Document) shift(length, behind int) {
	d.shifted += int64(behind)
	d.spent += fuelOfShift(length, behind)
}

// --- the way to a value ---

// container returns the array or object at a path, ready to be changed, or another value.
func (d *Document) container(path []string) Value {
	d.way = d.way[:0]
	d.root = Own(d.root, d.owner)
	if m := measureOf(d.root); m != nil && d.octets > 0 {
		m.octets = d.octets
	}
	at := d.root
	for depth, token := range path {
		var place *Value
		switch parent := at.(type) {
		case *Object:
			index := parent.place(token)
			if index < 0 {
				return nil
			}
			place = &parent.members[index].value
		case *Array:
			index, ok := arrayIndex(token)
			if !ok || index >= len(parent.items) {
				return nil
			}
			place = &parent.items[index]
		default:
			return nil
		}
		d.way = append(d.way, at)
		if source, ok := (*place).(Raw); ok && depth+1 >= wholeFrom {
			*place = parsedWhole(source, d.owner)
		} else {
			*place = Own(*place, d.owner)
		}
		at = *place
	}
	d.way = append(d.way, at)
	return at
}

// find returns where the value at a path stands, nil when there is none.
func (d *Document) find(path []string) *Value {
	if len(path) == 0 {
		return &d.root
	}
	last := path[len(path)-1]
	switch parent := d.container(path[:len(path)-1]).(type) {
	case *Object:
		if at := parent.place(last); at >= 0 {
			return &parent.members[at].value
		}
	case *Array:
		if index, ok := arrayIndex(last); ok && index < len(parent.items) {
			return &parent.items[index]
		}
	}
	return nil
}

// holds reports whether a value that stands somewhere, in a container of an owner, is the same as another one. It takes apart as
// much of it as the other one has, and leaves it so: the next comparison takes no longer than the other value is.
func (d *Document) holds(place *Value, by *Owner, other Value) bool {
	switch other := other.(type) {
	case *Object:
		*place = Open(*place, by)
		found, ok := (*place).(*Object)
		if !ok || found.len() != other.len() {
			return false
		}
		for i := range other.members {
			at := found.place(other.members[i].key)
			if at < 0 || !d.holds(&found.members[at].value, found.owner, other.members[i].value) {
				return false
			}
		}
		return true
	case *Array:
		*place = Open(*place, by)
		found, ok := (*place).(*Array)
		if !ok || len(found.items) != len(other.items) {
			return false
		}
		for i := range other.items {
			if !d.holds(&found.items[i], found.owner, other.items[i]) {
				return false
			}
		}
		return true
	default:
		switch found := (*place).(type) {
		case *Object, *Array:
			return false
		case Raw:
			if found[0] == '{' || found[0] == '[' {
				return false
			}
		}
		return equalScalars(*place, other, sameNumberValue)
	}
}

func measureOf(v Value) *measure {
	switch v := v.(type) {
	case *Object:
		return &v.measure
	case *Array:
		return &v.measure
	default:
		return nil
	}
}

// --- changes and undoing them ---

func (d *Document) note(c change) { d.changes = append(d.changes, c) }

// grow corrects the sizes of the document and of the containers on the way to a change.
func (d *Document) grow(octets int64) {
	isMeasured := d.octets > 0
	if isMeasured {
		d.octets += octets
	}
	for _, v := range d.way {
		m := measureOf(v)
		if m.noted != d.owner.patches {
			m.noted = d.owner.patches
			d.sizes = append(d.sizes, noted{m, m.octets})
		}
		if !isMeasured {
			m.octets = 0
		} else if m.octets > 0 {
			m.octets += octets
		}
	}
}

func (d *Document) replaceRoot(v Value, octets int64) {
	d.note(change{kind: replaced, old: d.root})
	d.root = v
	if d.octets > 0 {
		d.octets = octets
	} else {
		d.bytes = v.Size()
	}
}

// leaving returns the size of a value that is taken out of the document, where sizes matter.
func (d *Document) leaving(v Value) int64 {
	if d.octets == 0 {
		return 0
	}
	return d.octetsOf(v)
}

// replaceIn gives the element of a container at a place another value.
func (d *Document) replaceIn(target Value, at int, place *Value, v Value, octets int64) {
	if d.octets == 0 {
		d.bytes += v.Size() - (*place).Size()
	}
	d.note(change{kind: replaced, target: target, place: at, old: *place})
	d.grow(octets - d.leaving(*place))
	*place = v
}

// comma is what the comma beside one of n elements takes.
func comma(n int) int { return min(1, n-1) }

func (d *Document) undo() {
	for _, size := range d.sizes {
		size.of.octets = size.octets
	}
	for _, c := range slices.Backward(d.changes) {
		switch target := c.target.(type) {
		case nil:
			d.root = c.old
		case *Object:
			switch c.kind {
			case replaced:
				target.members[c.place].value = c.old
			case added:
				target.dropLast()
			case removed:
				target.restoreAt(c.place, c.old)
			}
		case *Array:
			switch c.kind {
			case replaced:
				target.items[c.place] = c.old
			case added:
				target.items = slices.Delete(target.items, c.place, c.place+1)
			case removed:
				target.items = slices.Insert(target.items, c.place, c.old)
			}
		}
	}
}

// sweep drops the places of removed members. It comes after the patch, because undo needs the places.
func (d *Document) sweep() {
	for _, c := range d.changes {
		if o, ok := c.target.(*Object); ok && c.kind == removed {
			o.sweep()
		}
	}
}

// --- fuel ---

const (
	// FuelOfCopiedOctet is the fuel for each byte that a patch copies or moves.
	FuelOfCopiedOctet = 4
	// nearEnd is the number of items after a place in an array up to which a change there costs no more than these.
	nearEnd = 500
)

// fuelOfShift is the fuel of inserting or removing an item of an array of a length in front of so many others.
func fuelOfShift(length, behind int) int64 {
	if behind <= nearEnd {
		return int64(behind)
	}
	return int64(length)
}

// HasCopy reports whether a JSON patch has an operation `copy`.
func HasCopy(patch []byte) bool {
	if patch[0] != '[' || !bytes.Contains(patch, []byte(`"copy"`)) && !bytes.Contains(patch, []byte(`\u00`)) {
		return false
	}
	for operation := range rawjson.Elements(patch) {
		if operation[0] == '{' {
			if kind, ok := StringText(Raw(rawjson.MemberOf(operation, "op"))); ok && rawjson.SameKey(kind, "copy") {
				return true
			}
		}
	}
	return false
}
