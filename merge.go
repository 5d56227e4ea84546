package pgagui

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// listPage is a page of a list, as a node or a whole cluster returns it.
type listPage[T any] struct {
	items []T
	// next is the cursor behind which the list goes on. Empty: it ends with the page.
	next string
}

// listOrder is the order of a list that all nodes have. A cursor is a place in it that means the same
// on each of them.
type listOrder[T any] struct {
	cursorOf func(T) string
	// keyOf says what an item is. Of a thread that is being moved, two nodes may have it.
	keyOf   func(T) any
	compare func(cursorA, cursorB string) int
}

// merge makes the page of the cluster of those of the nodes, each of which has up to limit items
// behind the same cursor.
func (o listOrder[T]) merge(pages []listPage[T], limit int) (merged listPage[T]) {
	if len(pages) == 1 {
		return pages[0]
	}
	merged.items = []T{}
	// Behind the end of a page, its node may have items that come before those of others.
	known := ""
	for _, page := range pages {
		merged.items = append(merged.items, page.items...)
		if page.next != "" && (known == "" || o.compare(page.next, known) < 0) {
			known = page.next
		}
	}
	slices.SortStableFunc(merged.items, func(a, b T) int { return o.compare(o.cursorOf(a), o.cursorOf(b)) })
	seen := map[any]bool{}
	merged.items = slices.DeleteFunc(merged.items, func(item T) bool {
		isDouble := seen[o.keyOf(item)]
		seen[o.keyOf(item)] = true
		return isDouble || known != "" && o.compare(o.cursorOf(item), known) > 0
	})
	merged.next = known
	if len(merged.items) > limit {
		merged.items = merged.items[:limit]
		merged.next = o.cursorOf(merged.items[limit-1])
	}
	return merged
}

// pagesOf are the pages of the nodes that answered.
func pagesOf[T, A any](replies []reply[A], pageOf func(A) listPage[T]) (pages []listPage[T]) {
	for _, answered := range replies {
		pages = append(pages, pageOf(answered.value))
	}
	return pages
}

// compareRecent compares cursors of lists with the newest first: 16 hexadecimal digits of a time in
// microseconds, and what orders items of the same time.
func compareRecent(a, b string) int {
	timeOf := func(cursor string) int64 {
		micros, _ := strconv.ParseUint(cursor[:min(16, len(cursor))], 16, 64)
		return int64(micros) // negative before 1970
	}
	return cmp.Or(cmp.Compare(timeOf(b), timeOf(a)), cmp.Compare(b, a))
}

// compareFound compares cursors of Search: rank, time, thread key and a number. The best come first, of
// them the newest.
func compareFound(a, b string) int {
	left, right := strings.Fields(a), strings.Fields(b)
	if len(left) != 4 || len(right) != 4 {
		return cmp.Compare(a, b)
	}
	number := func(text string) float64 { n, _ := strconv.ParseFloat(text, 64); return n }
	whole := func(text string) int64 { n, _ := strconv.ParseInt(text, 10, 64); return n }
	return cmp.Or(
		cmp.Compare(number(right[0]), number(left[0])), cmp.Compare(whole(right[1]), whole(left[1])),
		cmp.Compare(left[2], right[2]), cmp.Compare(whole(left[3]), whole(right[3])),
	)
}

// mergeRows joins the rows of the nodes that have the same key, and puts them in the order that those of
// one database have. Without replies there are no rows.
func mergeRows[R any, K comparable](replies []reply[[]R], keyOf func(R) K, add func(sum *R, row R), compare func(a, b R) int) []R {
	switch len(replies) {
	case 0:
		return nil
	case 1:
		return replies[0].value
	}
	merged := []R{}
	places := map[K]int{}
	for _, answered := range replies {
		for _, row := range answered.value {
			if place, isKnown := places[keyOf(row)]; isKnown {
				add(&merged[place], row)
			} else {
				places[keyOf(row)] = len(merged)
				merged = append(merged, row)
			}
		}
	}
	slices.SortStableFunc(merged, compare)
	return merged
}

// emptyLast compares texts as the database does, where the empty one stands for none.
func emptyLast(a, b string) int {
	if (a == "") != (b == "") {
		return cmp.Compare(len(b), len(a))
	}
	return cmp.Compare(a, b)
}

// take adds the nodes of an error that says which ones did not answer. It returns any other error.
func (e *UnansweredError) take(err error) error {
	var unanswered *UnansweredError
	if !errors.As(err, &unanswered) {
		return err
	}
	if e.Nodes == nil {
		e.Nodes = map[string]error{}
	}
	maps.Copy(e.Nodes, unanswered.Nodes)
	return nil
}

// orNil returns the error if it has nodes.
func (e *UnansweredError) orNil() error {
	if len(e.Nodes) == 0 {
		return nil
	}
	return e
}

// positions are the positions of changes in a cluster, by node.
type positions map[string]string

func (p positions) String() string {
	if len(p) == 0 {
		return ""
	}
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // of texts
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

func readPositions(text string) (p positions, err error) {
	if text == "" {
		return positions{}, nil
	}
	document, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(document, &p)
	}
	switch {
	case err == nil && p != nil:
		return p, nil
	case strings.Contains(text, " all ") || strings.Contains(text, " changed "):
		return nil, &Error{
			Kind: ErrOtherHistory, Message: fmt.Sprintf("changes: the position %.100q is one of a single database", text),
			Hint: "Begin with no position, which returns all runs.",
		}
	default:
		return nil, &Error{
			Kind: ErrInvalidArgument, Message: fmt.Sprintf("changes: %.100q is not a position of a cluster", text),
			Hint: "Use the position of a change; none begins with all runs.",
		}
	}
}

// mergeChanges takes changes from the nodes in turn, up to limit. A position is that of all nodes.
func mergeChanges(replies []reply[[]Change], after positions, limit int) []Change {
	if len(replies) == 1 && replies[0].node == "" {
		return replies[0].value
	}
	changes := []Change{}
	at := maps.Clone(after)
	for i := 0; ; i++ {
		isMore := false
		for _, answered := range replies {
			if i >= len(answered.value) {
				continue
			}
			if len(changes) == limit {
				return changes
			}
			isMore = true
			change := answered.value[i]
			at[answered.node] = change.Position
			change.Position = at.String()
			changes = append(changes, change)
		}
		if !isMore {
			return changes
		}
	}
}

// shareOf is how many changes of each node make a page. A limit that is refused is passed on.
func (s *Store) shareOf(limit int32) int32 {
	if s.cluster == nil || limit < 1 || limit > 10_000 {
		return limit
	}
	nodes := int32(len(s.cluster.members))
	return (limit + nodes - 1) / nodes
}
