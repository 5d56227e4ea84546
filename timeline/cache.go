package timeline

import (
	"container/list"
	"context"
	"sync"

	"github.com/pgagui/pgagui"
)

// defaultBytes is the memory of a Cache unless it says otherwise.
const defaultBytes = 256 << 20

// A Cache keeps timelines in memory, those that were used last. It is for the Stores of one database,
// in any scopes. Its methods may be called from several goroutines.
type Cache struct {
	most int64

	mu    sync.Mutex
	used  int64
	lines map[key]*list.Element
	order *list.List // of *entry, the one used last in front
}

type key struct{ scope, threadID, runID string }

type entry struct {
	key   key
	line  *line
	bytes int64
}

// NewCache returns a Cache that keeps about maxBytes of timelines; 256 MB if zero. A run that needs
// more by itself works too, but slower: less of it is kept.
func NewCache(maxBytes int64) *Cache {
	if maxBytes <= 0 {
		maxBytes = defaultBytes
	}
	return &Cache{most: maxBytes, lines: map[key]*list.Element{}, order: list.New()}
}

// Open returns the timeline of a run, or of the head if run.RunID is empty, up to its last event so
// far. It asks the database for the run with each call, so the rights of the Store count. It reads the
// log if the Cache does not have it, or as far as it has grown since.
//
// Errors: pgagui.ErrUnknownThread, pgagui.ErrUnknownRun, pgagui.ErrInvalidEvents (a log that is no
// stream), pgagui.ErrKeyCollision, pgagui.ErrQuarantined, pgagui.ErrFoldLimit.
func (c *Cache) Open(ctx context.Context, store *pgagui.Store, run pgagui.RunRef) (*Timeline, error) {
	status, err := store.Status(ctx, run)
	if err != nil {
		return nil, err
	}
	line := c.lineOf(key{store.Scope(), run.ThreadID, status.RunID})
	line.mu.Lock()
	defer line.mu.Unlock()
	defer c.settle(line)
	if err := line.catchUp(ctx, store, status); err != nil {
		line.forget()
		return nil, err
	}
	return &Timeline{cache: c, store: store, line: line, run: *status, marks: line.marks[:len(line.marks):len(line.marks)]}, nil
}

// lineOf returns the line of a run, which is now the one used last.
func (c *Cache) lineOf(k key) *line {
	c.mu.Lock()
	defer c.mu.Unlock()
	element := c.lines[k]
	if element == nil {
		element = c.order.PushFront(&entry{key: k, line: &line{key: k, most: c.most}})
		c.lines[k] = element
	}
	c.order.MoveToFront(element)
	return element.Value.(*entry).line
}

// settle notes what a line takes, and drops those used longest ago if all take too much. The caller
// holds the line.
func (c *Cache) settle(l *line) {
	l.shrink()
	c.mu.Lock()
	defer c.mu.Unlock()
	element := c.lines[l.key]
	if element == nil || element.Value.(*entry).line != l {
		return // it was dropped meanwhile; who uses it keeps it alive
	}
	own := element.Value.(*entry)
	c.used += l.bytes() - own.bytes
	own.bytes = l.bytes()
	for c.used > c.most && c.order.Len() > 1 {
		last := c.order.Back()
		if last == element {
			last = last.Prev()
		}
		dropped := c.order.Remove(last).(*entry)
		delete(c.lines, dropped.key)
		c.used -= dropped.bytes
	}
}
