package pgagui

import (
	"cmp"
	"context"
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
	switch len(pages) {
	case 0: // no database has answered
		return merged
	case 1:
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

// gatherPage makes the page of a list of those of all databases. Behind a full page, the list goes on
// after its last item.
func gatherPage[T any](
	ctx context.Context, s *Store, order listOrder[T], limit int, call func(ctx context.Context, on part) ([]T, error),
) (listPage[T], error) {
	pages, err := gather(ctx, s, func(ctx context.Context, on part) (page listPage[T], err error) {
		page.items, err = call(ctx, on)
		if n := len(page.items); n > 0 && n == limit {
			page.next = order.cursorOf(page.items[n-1])
		}
		return page, err
	})
	return order.merge(pages, limit), err
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
// one database have. Without answers there are no rows.
func mergeRows[R any, K comparable](answers [][]R, keyOf func(R) K, add func(sum *R, row R), compare func(a, b R) int) []R {
	switch len(answers) {
	case 0:
		return nil
	case 1:
		return answers[0]
	}
	merged := []R{}
	places := map[K]int{}
	for _, rows := range answers {
		for _, row := range rows {
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
