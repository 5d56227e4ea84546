package compaction

import (
	"fmt"
	"iter"

	"github.com/pgagui/pgagui/internal/rawjson"
)

// A SyntaxError says where a text is not JSON.
type SyntaxError struct {
	Offset int // in bytes from the start of the text
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("compaction: not a JSON array of events: invalid JSON at byte %d: pass the events as they were stored", e.Offset)
}

// Split yields the elements of a JSON array as they are written, without the white space around
// them. The slices point into the batch. If the text is not a JSON array, the last error is a
// *[SyntaxError], after the elements before the fault.
func Split(batch []byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		stopped := false
		problem := walkBatch(batch, func(at int) (int, bool) {
			end, ok := rawjson.SkipValue(batch, at, 0)
			if ok && !yield(batch[at:end], nil) {
				stopped = true
				return end, false
			}
			return end, ok
		})
		if problem != nil && !stopped {
			yield(nil, problem)
		}
	}
}

// Members yields the members of an object: its keys decoded, its values as they are written. The
// values are slices of the object, which must be valid JSON, as the database returns it.
func Members(object []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for key, value := range rawjson.Members(object) {
			if !yield(string(rawjson.Decode(nil, key)), value) {
				return
			}
		}
	}
}

// walkBatch reads a text that is one JSON array; element is as in walkArray.
func walkBatch(batch []byte, element func(at int) (int, bool)) error {
	at := rawjson.SkipSpace(batch, 0)
	if at == len(batch) || batch[at] != '[' {
		return &SyntaxError{Offset: at}
	}
	at, ok := rawjson.WalkArray(batch, at, element)
	if ok {
		at = rawjson.SkipSpace(batch, at)
		ok = at == len(batch)
	}
	if !ok {
		return &SyntaxError{Offset: at}
	}
	return nil
}
