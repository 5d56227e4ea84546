package jsontree

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/pgagui/pgagui/internal/rawjson"
)

// CreatePatch returns a JSON Patch (RFC 6902) that turns one JSON document into another: an array of add, remove and replace
// operations, which is empty if the documents say the same. Object members are compared by name. Array items are compared by
// place, after those that both arrays begin and end with. before has, for each operation, the value that it removes or replaces;
// null for an add. It returns an error if a document is not JSON.
func CreatePatch(from, to json.RawMessage) (patch json.RawMessage, before []json.RawMessage, err error) {
	if !json.Valid(from) || !json.Valid(to) {
		return nil, nil, errors.New("jsontree: a document to compare is not JSON")
	}
	d := differ{patch: []byte{'['}, before: []json.RawMessage{}}
	d.compare(parsedWhole(bytes.TrimSpace(from), nil), parsedWhole(bytes.TrimSpace(to), nil))
	return append(d.patch, ']'), d.before, nil
}

// differ writes a patch.
type differ struct {
	patch  []byte
	before []json.RawMessage
	path   []string // the tokens on the way to what is compared
}

func (d *differ) compare(from, to Value) {
	switch to := to.(type) {
	case *Object:
		if from, ok := from.(*Object); ok {
			d.compareObjects(from, to)
			return
		}
	case *Array:
		if from, ok := from.(*Array); ok {
			d.compareArrays(from, to)
			return
		}
	default:
		if Same(from, to) {
			return
		}
	}
	d.write("replace", from, to)
}

func (d *differ) compareObjects(from, to *Object) {
	for _, member := range from.members {
		if to.Get(member.key) == nil {
			d.at(member.key, func() { d.write("remove", member.value, nil) })
		}
	}
	for _, member := range to.members {
		d.at(member.key, func() {
			if before := from.Get(member.key); before != nil {
				d.compare(before, member.value)
			} else {
				d.write("add", nil, member.value)
			}
		})
	}
}

func (d *differ) compareArrays(from, to *Array) {
	begin, end := 0, 0
	if len(from.items) != len(to.items) {
		shorter := min(len(from.items), len(to.items))
		for begin < shorter && Same(from.items[begin], to.items[begin]) {
			begin++
		}
		for end < shorter-begin && Same(from.items[len(from.items)-1-end], to.items[len(to.items)-1-end]) {
			end++
		}
	}
	before, after := from.items[begin:len(from.items)-end], to.items[begin:len(to.items)-end]
	both := min(len(before), len(after))
	for i := range both {
		d.at(strconv.Itoa(begin+i), func() { d.compare(before[i], after[i]) })
	}
	// From the last one on, so that the places of the others stay.
	for i := len(before) - 1; i >= both; i-- {
		d.at(strconv.Itoa(begin+i), func() { d.write("remove", before[i], nil) })
	}
	for i := both; i < len(after); i++ {
		d.at(strconv.Itoa(begin+i), func() { d.write("add", nil, after[i]) })
	}
}

// at calls what compares the values that a token leads to.
func (d *differ) at(token string, compare func()) {
	d.path = append(d.path, token)
	compare()
	d.path = d.path[:len(d.path)-1]
}

// escapeToken writes a token as a JSON Pointer has it (RFC 6901).
var escapeToken = strings.NewReplacer("~", "~0", "/", "~1")

// write writes an operation at the path, where a value is and another will be; nil: none.
func (d *differ) write(operation string, before, value Value) {
	if before == nil {
		d.before = append(d.before, json.RawMessage("null"))
	} else {
		d.before = append(d.before, before.AppendTo(nil))
	}
	if len(d.patch) > 1 {
		d.patch = append(d.patch, ',')
	}
	var path strings.Builder
	for _, token := range d.path {
		path.WriteByte('/')
		path.WriteString(escapeToken.Replace(token))
	}
	d.patch = append(d.patch, `{"op":"`+operation+`","path":`...)
	d.patch = rawjson.Quote(d.patch, path.String())
	if value != nil {
		d.patch = append(d.patch, `,"value":`...)
		d.patch = value.AppendTo(d.patch)
	}
	d.patch = append(d.patch, '}')
}

// Same reports whether two values say the same, their numbers in the same spelling.
func Same(a, b Value) bool { return equal(a, b, sameNumberText) }
