package session

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/pgagui/pgagui/internal/rawjson"
)

// A state in Go often lacks parts of the document that it was read from: members that another program added, the
// spelling of a number, the order. So a state does not replace its document. The difference between what the
// state was written as when it was read, and what it is written as now, is applied to the document.

// merge applies the change of a value, from before to after, to a document. All three are valid JSON. A value that
// did not change leaves the document as it is.
//
//   - In objects, members that the value does not have are kept, and all stay in their places; new ones come last. As encoding/json
//     reads "Messages" into a field named "messages", so this writes it there. Of members for one name that was changed, one is left.
//   - In arrays, elements that did not change are found wherever they moved. If the number of elements between two
//     of those is the same as before, they count as the same elements, changed, unless their ids differ.
//   - Anything else becomes what it is after.
func merge(document, before, after json.RawMessage) json.RawMessage {
	if bytes.Equal(before, after) {
		return document
	}
	if d, ok := rawjson.ParseObject(document); ok {
		b, wasObject := rawjson.ParseObject(before)
		a, isObject := rawjson.ParseObject(after)
		if wasObject && isObject {
			return mergeObject(d, b, a)
		}
	}
	if d, ok := rawjson.ParseArray(document); ok {
		b, wasArray := rawjson.ParseArray(before)
		a, isArray := rawjson.ParseArray(after)
		if wasArray && isArray && len(d.Members) == len(b.Members) { // it was read element by element
			return mergeArray(d, b, a)
		}
	}
	return after
}

func mergeObject(document, before, after rawjson.Object) json.RawMessage {
	was, is := before.Values(), after.Values()
	names := namesIn(document, was, is)
	last, times := map[string]int{}, map[string]int{}
	for i, name := range names {
		last[name] = i
		times[name]++
	}
	merged := rawjson.Object{Head: document.Head, Tail: document.Tail}
	for i, m := range document.Members {
		name := names[i]
		b, a := was[name], is[name]
		switch {
		case bytes.Equal(b, a): // unchanged, or unknown
		case a == nil || i != last[name]:
			continue
		case times[name] > 1: // all of them together were read as what it was before
			m.Value = a
		default:
			m.Value = merge(m.Value, b, a)
		}
		merged.Members = append(merged.Members, m)
	}
	for _, m := range after.Members {
		if times[m.Key] == 0 && !bytes.Equal(was[m.Key], m.Value) {
			merged.Add(m.Key, m.Value)
		}
	}
	return merged.Text()
}

// namesIn returns, for each member of a document, the name that the value gives it: its key, or else a key that differs in upper and
// lower case alone.
func namesIn(document rawjson.Object, before, after map[string]json.RawMessage) []string {
	folded := map[string]string{}
	for _, known := range []map[string]json.RawMessage{before, after} {
		for key := range known {
			folded[strings.ToLower(key)] = key
		}
	}
	names := make([]string, len(document.Members))
	for i, m := range document.Members {
		names[i] = m.Key
		name, ok := folded[strings.ToLower(m.Key)]
		if ok && before[m.Key] == nil && after[m.Key] == nil {
			names[i] = name
		}
	}
	return names
}

func mergeArray(document, before, after rawjson.Object) json.RawMessage {
	merged := rawjson.Object{Head: document.Head, Tail: document.Tail}
	for i, place := range matches(before.Members, after.Members) {
		if place < 0 {
			merged.Append(nil, after.Members[i].Value)
			continue
		}
		m := document.Members[place]
		m.Value = merge(m.Value, before.Members[place].Value, after.Members[i].Value)
		merged.Members = append(merged.Members, m)
	}
	return merged.Text()
}

// matches returns, for each element after, the place that it had before, or -1 for a new one.
func matches(before, after []rawjson.Member) []int {
	places := map[string][]int{}
	for i, element := range before {
		places[string(element.Value)] = append(places[string(element.Value)], i)
	}
	match := make([]int, len(after))
	taken := make([]bool, len(before))
	for i, element := range after {
		match[i] = -1
		if equal := places[string(element.Value)]; len(equal) > 0 {
			match[i], places[string(element.Value)] = equal[0], equal[1:]
			taken[equal[0]] = true
		}
	}
	for start := 0; start < len(after); start++ {
		if match[start] >= 0 {
			continue
		}
		end := start
		for end < len(after) && match[end] < 0 {
			end++
		}
		from, to := 0, len(before)
		if start > 0 {
			from = match[start-1] + 1
		}
		if end < len(after) {
			to = match[end]
		}
		if to-from == end-start && !slices.Contains(taken[from:to], true) {
			for i := range end - start {
				if sameID(before[from+i].Value, after[start+i].Value) {
					match[start+i] = from + i
				}
			}
		}
		start = end
	}
	return match
}

// sameID reports whether two values can be versions of one value: not if they are objects with different ids.
func sameID(a, b json.RawMessage) bool {
	x, xIsObject := rawjson.ParseObject(a)
	y, yIsObject := rawjson.ParseObject(b)
	return !xIsObject || !yIsObject || bytes.Equal(x.Get("id"), y.Get("id"))
}
