package pgagui

import (
	"container/list"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/pgagui/pgagui/internal/live"
)

// buckets is the number of parts that the threads of a cluster are divided into. A node has whole
// buckets, but for threads that were moved alone or are being moved.
const buckets = 1024

// threadKey returns the key of a thread, as agui.thread_key does.
func threadKey(key live.Key) (id [16]byte) {
	scope, thread := sha256.Sum256([]byte(key.Scope)), sha256.Sum256([]byte(key.Scope+"\x00"+key.ThreadID))
	copy(id[:8], scope[:8])
	copy(id[8:], thread[:8])
	return id
}

// bucketOf returns the bucket of a thread, as agui.bucket does.
func bucketOf(key live.Key) int {
	id := threadKey(key)
	return int(id[8])<<2 | int(id[9])>>6
}

// maxMoved bounds the threads that a directory has beside its buckets.
const maxMoved = 10_000

// directory is what a process knows about which node has which threads. A node that refuses a thread
// says who has it, so the directory need not be up to date.
type directory struct {
	mu        sync.Mutex // guards what follows
	hasMap    bool
	buckets   [buckets]bucketPlace
	moved     map[live.Key]*list.Element // threads that are not where their bucket is
	lastMoved list.List                  // of movedThread, the one learned last first
	refreshed time.Time
}

type bucketPlace struct {
	node  string // empty: not known
	epoch int64  // counts its moves
}

type movedThread struct {
	key  live.Key
	node string
}

func newDirectory() *directory { return &directory{moved: map[live.Key]*list.Element{}} }

// clusterMap is the answer of agui.cluster_map.
type clusterMap struct {
	Node    *string // nil: the database is no node
	Buckets []struct {
		First, Last int
		Node        string
		Epoch       int64
	}
}

func readMap(document []byte) (known clusterMap, err error) {
	if err := json.Unmarshal(document, &known); err != nil {
		return known, err
	}
	for _, part := range known.Buckets {
		if part.First < 0 || part.First > part.Last || part.Last >= buckets {
			return known, fmt.Errorf("it has buckets from %d to %d", part.First, part.Last)
		}
	}
	return known, nil
}

func (d *directory) isLoaded() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.hasMap
}

// take learns a map.
func (d *directory) take(known clusterMap) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hasMap = true
	for _, part := range known.Buckets {
		for bucket := part.First; bucket <= part.Last; bucket++ {
			d.takeBucket(bucket, bucketPlace{part.Node, part.Epoch})
		}
	}
}

func (d *directory) takeBucket(bucket int, place bucketPlace) {
	if place.epoch > d.buckets[bucket].epoch {
		d.buckets[bucket] = place
	}
}

// nodeOf returns the node of a thread. Empty: not known.
func (d *directory) nodeOf(key live.Key) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if element := d.moved[key]; element != nil {
		d.lastMoved.MoveToFront(element)
		return element.Value.(movedThread).node
	}
	return d.buckets[bucketOf(key)].node
}

// learn learns from a refusal of threads, of which it returns the keys. detail is that of UI027.
func (d *directory) learn(detail string) (refused []live.Key) {
	var places []struct {
		Scope, ThreadID, Node string
		Bucket                int
		Epoch                 int64
		OfThread              bool
	}
	if json.Unmarshal([]byte(detail), &places) != nil {
		return nil
	}
	for _, place := range places {
		key := live.Key{Scope: place.Scope, ThreadID: place.ThreadID}
		refused = append(refused, key)
		if place.OfThread {
			d.put(key, place.Node)
			continue
		}
		d.mu.Lock()
		d.drop(key) // it is where its bucket is
		if place.Bucket >= 0 && place.Bucket < buckets {
			d.takeBucket(place.Bucket, bucketPlace{place.Node, place.Epoch})
		}
		d.mu.Unlock()
	}
	return refused
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
