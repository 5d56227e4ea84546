package pgagui

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"github.com/pgagui/pgagui/internal/jsontree"
)

// DiffOptions are the two points of a thread that Diff compares. The zero value of each is the end
// of the head.
type DiffOptions struct {
	From At
	To   At
}

// Diff is the difference between a conversation at two points of its thread.
type Diff struct {
	From DiffPoint `json:"from"`
	To   DiffPoint `json:"to"`
	// Messages lists those that differ: first those that were removed, then the others in their
	// order at To.
	Messages []MessageDiff `json:"messages"`
	// StatePatch is a JSON Patch (RFC 6902) that turns the state at From into the state at To. An
	// empty array if they are equal.
	StatePatch json.RawMessage `json:"statePatch"`
	// StateBefore has, for each operation of StatePatch, the value that it removes or replaces; null
	// for an add.
	StateBefore []json.RawMessage `json:"stateBefore"`
	// StateMergePatch is a JSON Merge Patch (RFC 7396) that does the same. It is null if there is
	// none: a merge patch cannot set a member to null, for example.
	StateMergePatch json.RawMessage `json:"stateMergePatch"`
}

// DiffPoint is one of the two points that were compared.
type DiffPoint struct {
	RunID string `json:"runId"`
	// Seq is that of the last event that counts there.
	Seq int64 `json:"seq"`
}

// MessageDiff is a message that differs between two points of a thread.
type MessageDiff struct {
	ID     string        `json:"id"`
	Change MessageChange `json:"change"`
	// Index is its place among the messages at To, or at From if it was removed; the first one is
	// 0.
	Index int `json:"index"`
	// From and To are the message at the two points, null where it does not exist.
	From json.RawMessage `json:"from"`
	To   json.RawMessage `json:"to"`
}

// MessageChange is the kind of a difference.
type MessageChange string

const (
	MessageAdded   MessageChange = "added"
	MessageRemoved MessageChange = "removed"
	MessageChanged MessageChange = "changed"
	// MessageMoved is an equal message at another place among those that both points have.
	MessageMoved MessageChange = "moved"
)

// Diff compares the conversation at two points of a thread, which may be on different branches of
// its tree. It compares messages by id.
//
// Errors: ErrUnknownThread, ErrUnknownRun, ErrKeyCollision, ErrQuarantined, ErrFoldLimit.
func (s *Store) Diff(ctx context.Context, threadID string, options DiffOptions) (*Diff, error) {
	from, err := s.Restore(ctx, threadID, options.From)
	if err != nil {
		return nil, err
	}
	to, err := s.Restore(ctx, threadID, options.To)
	if err != nil {
		return nil, err
	}
	diff := &Diff{From: DiffPoint{from.RunID, from.Seq}, To: DiffPoint{to.RunID, to.Seq}}
	if diff.Messages, err = diffMessages(from.Messages, to.Messages); err != nil {
		return nil, fmt.Errorf("diff thread %q: %w", threadID, err)
	}
	if diff.StatePatch, diff.StateBefore, err = jsontree.CreatePatch(from.State, to.State); err != nil {
		return nil, fmt.Errorf("diff thread %q: the state: %w", threadID, err)
	}
	diff.StateMergePatch = mergePatch(from.State, to.State)
	return diff, nil
}

// mergePatch returns null where applying the patch would not give the target.
func mergePatch(from, to json.RawMessage) json.RawMessage {
	null := json.RawMessage("null")
	patch, err := jsonpatch.CreateMergePatch(from, to)
	if err != nil {
		return null
	}
	result, err := jsonpatch.MergePatch(from, patch)
	if err != nil || !jsontree.Equal(result, to) {
		return null
	}
	return patch
}

// messagePlace is a message and where it stands. Of messages with the same id, the first of one
// list belongs to the first of the other.
type messagePlace struct {
	messageKey
	index   int
	message json.RawMessage
}

type messageKey struct {
	id  string
	nth int
}

func placesOfMessages(messages []json.RawMessage) ([]messagePlace, error) {
	places := make([]messagePlace, len(messages))
	count := map[string]int{}
	for i, message := range messages {
		var fields struct {
			ID string `json:"id"`
		}
		if err := json.Unmarshal(message, &fields); err != nil {
			return nil, fmt.Errorf("message %d: %w", i+1, err)
		}
		places[i] = messagePlace{messageKey{fields.ID, count[fields.ID]}, i, message}
		count[fields.ID]++
	}
	return places, nil
}

func diffMessages(from, to []json.RawMessage) ([]MessageDiff, error) {
	before, err := placesOfMessages(from)
	if err != nil {
		return nil, err
	}
	after, err := placesOfMessages(to)
	if err != nil {
		return nil, err
	}
	earlier := make(map[messageKey]messagePlace, len(before))
	for _, place := range before {
		earlier[place.messageKey] = place
	}
	var inBoth []int // the places at From of what both have, in the order at To
	isThere := make(map[messageKey]bool, len(after))
	for _, place := range after {
		isThere[place.messageKey] = true
		if was, found := earlier[place.messageKey]; found {
			inBoth = append(inBoth, was.index)
		}
	}
	hasStayed := longestRise(inBoth)

	diffs := []MessageDiff{}
	for _, place := range before {
		if !isThere[place.messageKey] {
			diffs = append(diffs, MessageDiff{ID: place.id, Change: MessageRemoved, Index: place.index, From: place.message})
		}
	}
	for _, place := range after {
		was, found := earlier[place.messageKey]
		diff := MessageDiff{ID: place.id, Index: place.index, From: was.message, To: place.message}
		switch {
		case !found:
			diff.Change = MessageAdded
		case !jsontree.Equal(was.message, place.message):
			diff.Change = MessageChanged
		case !hasStayed[was.index]:
			diff.Change = MessageMoved
		default:
			continue
		}
		diffs = append(diffs, diff)
	}
	return diffs, nil
}

// longestRise returns the members of a longest rising subsequence of different numbers.
func longestRise(numbers []int) map[int]bool {
	ends := []int{} // of the best subsequence of each length, its last place in numbers
	previous := make([]int, len(numbers))
	for at, number := range numbers {
		length := sort.Search(len(ends), func(i int) bool { return numbers[ends[i]] >= number })
		previous[at] = -1
		if length > 0 {
			previous[at] = ends[length-1]
		}
		if length == len(ends) {
			ends = append(ends, at)
		} else {
			ends[length] = at
		}
	}
	members := make(map[int]bool, len(ends))
	if len(ends) > 0 {
		for at := ends[len(ends)-1]; at >= 0; at = previous[at] {
			members[numbers[at]] = true
		}
	}
	return members
}
