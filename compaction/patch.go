package compaction

import (
	"slices"
	"strings"
)

// This file applies JSON Patch (RFC 6902) to a value, in place. Each change is noted, so that a patch of which any operation
// fails is undone: it is applied whole or not at all.

// maxDocument bounds, in bytes of JSON text, what a `copy` may make of a document: a few of them, each doubling it, would take
// all memory. An operation that goes beyond it fails. It is the size up to which PostgreSQL holds a jsonb.
const maxDocument = 255 << 20

// A document is a value under patches.
type document struct {
	owner *owner
	root  value
	// bytes is the size of the JSON text, kept up to date with every change. Keys that stood twice in an object may still
	// count twice.
	bytes   int
	changes []change
}

// A change is what it takes to undo one step of a patch.
type change struct {
	kind   changeKind
	target value // *object or *array; nil for the root
	place  int   // of the member or item
	old    value // what was there
}

type changeKind int8

const (
	replaced changeKind = iota
	added
	removed
)

// patch applies a list of operations, given as valid JSON, and reports whether all of them succeeded; otherwise the document is
// what it was. The document keeps no part of the operations' text.
func (d *document) patch(operations []byte) bool {
	if operations[0] != '[' {
		return false
	}
	before, unpatched := d.bytes, d.root
	// Without white space, the text of what was patched does not depend on which parts of it were looked at.
	if text, ok := d.root.(raw); ok {
		d.root = raw(compacted(text))
		d.bytes -= len(text) - len(d.root.(raw))
	}
	succeeded := true
	for operation := range elements(operations) {
		if !d.apply(operation) {
			succeeded = false
			break
		}
	}
	if succeeded {
		d.sweep()
	} else {
		d.undo()
		d.bytes = before
		if _, ok := unpatched.(raw); ok {
			d.root = unpatched
		}
	}
	clear(d.changes)
	d.changes = d.changes[:0]
	return succeeded
}

func (d *document) apply(operation []byte) bool {
	if operation[0] != '{' {
		return false
	}
	var op, pathText, fromText, operand raw
	for key, value := range members(operation) {
		switch {
		case sameKey(key, "op"):
			op = value
		case sameKey(key, "path"):
			pathText = value
		case sameKey(key, "from"):
			fromText = value
		case sameKey(key, "value"):
			operand = value
		}
	}
	path, ok := pointer(pathText)
	if !ok {
		return false
	}
	kind, ok := stringText(op)
	switch {
	case !ok:
		return false
	case sameKey(kind, "add"):
		return operand != nil && d.add(path, raw(kept(compacted(operand))))
	case sameKey(kind, "remove"):
		_, ok := d.remove(path)
		return ok
	case sameKey(kind, "replace"):
		return operand != nil && d.replace(path, raw(kept(compacted(operand))))
	case sameKey(kind, "test"):
		found, ok := d.get(path)
		return ok && operand != nil && equal(found, operand, sameNumberValue)
	case sameKey(kind, "copy"):
		from, ok := pointer(fromText)
		return ok && d.copy(from, path)
	case sameKey(kind, "move"):
		from, ok := pointer(fromText)
		return ok && d.move(from, path)
	default:
		return false
	}
}

// pointer reads a JSON Pointer (RFC 6901), given as a JSON string, into its decoded tokens.
func pointer(written raw) ([]string, bool) {
	path, ok := stringValue(written)
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

func (d *document) add(path []string, v value) bool {
	if len(path)+v.size()/2 > maxDepth && len(path)+depth(v) > maxDepth {
		return false
	}
	if len(path) == 0 {
		d.replaceRoot(v)
		return true
	}
	last := path[len(path)-1]
	switch parent := d.container(path[:len(path)-1]).(type) {
	case *object:
		if at := parent.place(last); at >= 0 {
			d.replaceMember(parent, at, v)
			return true
		}
		parent.add(last, v)
		d.note(change{kind: added, target: parent})
		d.bytes += parent.members[len(parent.members)-1].nameSize() + 1 + v.size() + comma(parent.len())
		return true
	case *array:
		at, ok := arrayIndex(last)
		if last == "-" {
			at, ok = len(parent.items), true
		}
		if !ok || at > len(parent.items) {
			return false
		}
		parent.items = slices.Insert(parent.items, at, v)
		d.note(change{kind: added, target: parent, place: at})
		d.bytes += v.size() + comma(len(parent.items))
		return true
	default:
		return false
	}
}

func (d *document) remove(path []string) (value, bool) {
	if len(path) == 0 {
		old := d.root
		d.replaceRoot(raw("null"))
		return old, true
	}
	last := path[len(path)-1]
	switch parent := d.container(path[:len(path)-1]).(type) {
	case *object:
		at := parent.place(last)
		if at < 0 {
			return nil, false
		}
		old := parent.members[at].value
		d.bytes -= parent.members[at].nameSize() + 1 + old.size() + comma(parent.len())
		parent.removeAt(at)
		d.note(change{kind: removed, target: parent, place: at, old: old})
		return old, true
	case *array:
		at, ok := arrayIndex(last)
		if !ok || at >= len(parent.items) {
			return nil, false
		}
		old := parent.items[at]
		d.bytes -= old.size() + comma(len(parent.items))
		parent.items = slices.Delete(parent.items, at, at+1)
		d.note(change{kind: removed, target: parent, place: at, old: old})
		return old, true
	default:
		return nil, false
	}
}

func (d *document) replace(path []string, v value) bool {
	if len(path)+v.size()/2 > maxDepth && len(path)+depth(v) > maxDepth {
		return false
	}
	if len(path) == 0 {
		d.replaceRoot(v)
		return true
	}
	last := path[len(path)-1]
	switch parent := d.container(path[:len(path)-1]).(type) {
	case *object:
		at := parent.place(last)
		if at < 0 {
			return false
		}
		d.replaceMember(parent, at, v)
		return true
	case *array:
		at, ok := arrayIndex(last)
		if !ok || at >= len(parent.items) {
			return false
		}
		d.note(change{kind: replaced, target: parent, place: at, old: parent.items[at]})
		d.bytes += v.size() - parent.items[at].size()
		parent.items[at] = v
		return true
	default:
		return false
	}
}

func (d *document) copy(from, path []string) bool {
	source, ok := d.get(from)
	if !ok || d.root.size()+source.size() > maxDocument {
		return false
	}
	return d.add(path, copied(source, d.owner))
}

func (d *document) move(from, path []string) bool {
	if len(from) < len(path) && slices.Equal(from, path[:len(from)]) {
		return false // into its own child
	}
	if len(from) == 0 {
		return true // the whole document to where it is
	}
	moved, ok := d.remove(from)
	return ok && d.add(path, moved)
}

// --- the way to a value ---

// container returns the array or object at a path, ready to be changed, or another value.
func (d *document) container(path []string) value {
	d.root = owned(d.root, d.owner)
	at := d.root
	for _, token := range path {
		switch parent := at.(type) {
		case *object:
			at = parent.ownMember(token)
		case *array:
			index, ok := arrayIndex(token)
			if !ok || index >= len(parent.items) {
				return nil
			}
			parent.items[index] = owned(parent.items[index], d.owner)
			at = parent.items[index]
		default:
			return nil
		}
	}
	return at
}

func (d *document) get(path []string) (value, bool) {
	if len(path) == 0 {
		return d.root, true
	}
	last := path[len(path)-1]
	switch parent := d.container(path[:len(path)-1]).(type) {
	case *object:
		found := parent.get(last)
		return found, found != nil
	case *array:
		if index, ok := arrayIndex(last); ok && index < len(parent.items) {
			return parent.items[index], true
		}
	}
	return nil, false
}

// --- changes and undoing them ---

func (d *document) note(c change) { d.changes = append(d.changes, c) }

func (d *document) replaceRoot(v value) {
	d.note(change{kind: replaced, old: d.root})
	d.root, d.bytes = v, v.size()
}

func (d *document) replaceMember(o *object, at int, v value) {
	d.note(change{kind: replaced, target: o, place: at, old: o.members[at].value})
	d.bytes += v.size() - o.members[at].value.size()
	o.members[at].value = v
}

// comma is what the comma beside one of n elements takes.
func comma(n int) int { return min(1, n-1) }

func (d *document) undo() {
	for _, c := range slices.Backward(d.changes) {
		switch target := c.target.(type) {
		case nil:
			d.root = c.old
		case *object:
			switch c.kind {
			case replaced:
				target.members[c.place].value = c.old
			case added:
				target.dropLast()
			case removed:
				target.restoreAt(c.place, c.old)
			}
		case *array:
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

// sweep forgets what removals left behind. Only here, for undo needs the places.
func (d *document) sweep() {
	for _, c := range d.changes {
		if o, ok := c.target.(*object); ok && c.kind == removed {
			o.sweep()
		}
	}
}
