package pgagui

import (
	"container/list"
	"encoding/json"
	"sync"
	"time"

	"github.com/pgagui/pgagui/internal/buckets"
	"github.com/pgagui/pgagui/internal/live"
)

// maxMoved and maxPinned bound the threads and the scopes that a directory has beside its buckets.
const maxMoved, maxPinned = 10_000, 10_000

// directory is what a process knows about which node has which threads. A node that refuses a thread
// says who has it, so the directory need not be up to date.
type directory struct {
	mu        sync.Mutex // guards what follows
	hasMap    bool
	buckets   buckets.Places
	pinned    map[string]int             // the buckets of scopes whose threads are all in one
	moved     map[live.Key]*list.Element // threads that are not where their bucket is
	lastMoved list.List                  // of movedThread, the one learned last first
	refreshed time.Time
}

type movedThread struct {
	key  live.Key
	node string
}

func newDirectory() *directory {
	return &directory{pinned: map[string]int{}, moved: map[live.Key]*list.Element{}}
}

func (d *directory) isLoaded() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.hasMap
}

// take learns a map.
func (d *directory) take(known buckets.Map) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hasMap = true
	d.buckets.Take(known)
}

// nodeOf returns the node of a thread. Empty: not known.
func (d *directory) nodeOf(key live.Key) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if element := d.moved[key]; element != nil {
		d.lastMoved.MoveToFront(element)
		return element.Value.(movedThread).node
	}
	bucket, isPinned := d.pinned[key.Scope]
	if !isPinned {
		bucket = buckets.Of(threadKey(key))
	}
	return d.buckets[bucket].Node
}

// pin notes the bucket of the threads of a scope, as a node says it of one. The caller holds the lock.
func (d *directory) pin(key live.Key, bucket int) {
	if bucket == buckets.Of(threadKey(key)) {
		delete(d.pinned, key.Scope)
		return
	}
	if len(d.pinned) >= maxPinned {
		clear(d.pinned) // nodes say it again
	}
	d.pinned[key.Scope] = bucket
}

// learn learns from a refusal of threads. detail is that of UI027.
func (d *directory) learn(detail string) {
	var places []struct {
		Scope, ThreadID, Node string
		Bucket                int
		Epoch                 int64
		OfThread              bool
	}
	if json.Unmarshal([]byte(detail), &places) != nil {
		return
	}
	for _, place := range places {
		key := live.Key{Scope: place.Scope, ThreadID: place.ThreadID}
		if place.OfThread {
			d.put(key, place.Node)
			continue
		}
		d.mu.Lock()
		d.drop(key) // it is where its bucket is
		if place.Bucket >= 0 && place.Bucket < buckets.Count {
			d.pin(key, place.Bucket)
			d.buckets.Put(place.Bucket, buckets.Place{Node: place.Node, Epoch: place.Epoch})
		}
		d.mu.Unlock()
	}
}

// put notes that a node has a thread, whatever its bucket says.
func (d *directory) put(key live.Key, node string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.drop(key)
	d.moved[key] = d.lastMoved.PushFront(movedThread{key, node})
	if len(d.moved) > maxMoved {
		d.drop(d.lastMoved.Back().Value.(movedThread).key)
	}
}

// drop forgets that a thread is not where its bucket is. The caller holds the lock.
func (d *directory) drop(key live.Key) {
	if element := d.moved[key]; element != nil {
		d.lastMoved.Remove(element)
		delete(d.moved, key)
	}
}

// mayRefresh reports whether the maps of the nodes were not queried for some time, and notes that they
// are queried now.
func (d *directory) mayRefresh() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Since(d.refreshed) < mapPause {
		return false
	}
	d.refreshed = time.Now()
	return true
}
