package cluster

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/buckets"
	"github.com/pgagui/pgagui/internal/live"
)

// Pin says that all threads of a scope are in one bucket.
type Pin struct {
	Scope  string `json:"scope"`
	Bucket int    `json:"bucket"`
	// Node is the node of the bucket.
	Node string `json:"node"`
}

// pin is a pin as a node knows it.
type pin struct {
	Scope  string `json:"scope"`
	Bucket *int32 `json:"bucket"` // nil: the scope is pinned no longer
	Epoch  int64  `json:"epoch"`
}

// BucketOfScope returns a bucket for a scope, from a hash of it, so that many pinned scopes are spread.
func BucketOfScope(scope string) int {
	hash := sha256.Sum256([]byte(scope))
	return int(binary.BigEndian.Uint16(hash[:]) >> 6)
}

// Pins returns the scopes that are pinned, in their order.
func (c *Cluster) Pins(ctx context.Context) (pinned []Pin, err error) {
	m := &mover{cluster: c}
	var places buckets.Places
	for _, node := range c.nodes {
		own, err := node.readMap(ctx)
		if err != nil {
			return nil, err
		}
		places.Take(own)
	}
	_, newest, err := m.pins(ctx)
	for _, pin := range newest {
		if pin.Bucket != nil {
			pinned = append(pinned, Pin{pin.Scope, int(*pin.Bucket), places[*pin.Bucket].Node})
		}
	}
	slices.SortFunc(pinned, func(a, b Pin) int { return cmp.Compare(a.Scope, b.Scope) })
	return pinned, err
}

// PinScope puts all threads of a scope into one bucket, so that they are on one node, and move
// together. Those that it has are moved to the node of the bucket, while they are in use, and so are
// threads that were moved away from the bucket alone. PinScope may be interrupted, as Move may: call it
// again.
func (c *Cluster) PinScope(ctx context.Context, scope string, bucket int, options MoveOptions) (Moved, error) {
	return c.work(ctx, options, func(ctx context.Context, m *mover) error {
		if bucket < 0 || bucket >= Buckets {
			return fmt.Errorf("there is no bucket %d (they are numbered from 0 to %d)", bucket, Buckets-1)
		}
		number := int32(bucket)
		places, err := m.setPin(ctx, scope, &number)
		if err != nil {
			return err
		}
		return m.move(ctx, []int{bucket}, places[bucket].Node)
	})
}

// UnpinScope ends PinScope: the threads of the scope are moved to the buckets of their hashes.
func (c *Cluster) UnpinScope(ctx context.Context, scope string, options MoveOptions) (Moved, error) {
	return c.work(ctx, options, func(ctx context.Context, m *mover) error {
		places, err := m.setPin(ctx, scope, nil)
		if err != nil {
			return err
		}
		numbers, err := m.bucketsOfScope(ctx, scope)
		if err != nil {
			return err
		}
		for _, node := range c.nodes {
			var ofNode []int
			for _, bucket := range numbers {
				if places[bucket].Node == node.name {
					ofNode = append(ofNode, bucket)
				}
			}
			if len(ofNode) == 0 {
				continue
			}
			if err := m.move(ctx, ofNode, node.name); err != nil {
				return err
			}
		}
		return nil
	})
}

// bucketsOfScope returns the buckets of the hashes of the threads of a scope that are elsewhere than their buckets.
func (m *mover) bucketsOfScope(ctx context.Context, scope string) (numbers []int, err error) {
	isKnown := map[int]bool{}
	for _, node := range m.cluster.nodes {
		text, err := node.queries.ThreadsOfScopeElsewhere(ctx, db.ThreadsOfScopeElsewhereParams{Scope: scope})
		if err != nil {
			return nil, inNode(node, err)
		}
		var threads []struct {
			ThreadKey pgtype.UUID `json:"thread_key"`
		}
		if err := json.Unmarshal(text, &threads); err != nil {
			return nil, inNode(node, err)
		}
		for _, thread := range threads {
			if bucket := buckets.Of(thread.ThreadKey.Bytes); !isKnown[bucket] {
				isKnown[bucket] = true
				numbers = append(numbers, bucket)
			}
		}
	}
	return numbers, nil
}

// setPin makes a pin known to all nodes, unless they know it.
func (m *mover) setPin(ctx context.Context, scope string, bucket *int32) (places buckets.Places, err error) {
	if places, err = m.places(ctx); err != nil {
		return places, err
	}
	if err := m.finish(ctx); err != nil {
		return places, err
	}
	_, newest, err := m.pins(ctx)
	if err != nil {
		return places, err
	}
	before := newest[scope]
	if before.Bucket == bucket || before.Bucket != nil && bucket != nil && *before.Bucket == *bucket {
		return places, nil
	}
	return places, m.givePin(ctx, pin{scope, bucket, before.Epoch + 1}, before, m.cluster.nodes, places)
}

// pins returns the pins that each node knows, and the newest of each scope.
func (m *mover) pins(ctx context.Context) (known []map[string]pin, newest map[string]pin, err error) {
	newest = map[string]pin{}
	for _, node := range m.cluster.nodes {
		text, err := node.queries.Pins(ctx)
		if err != nil {
			return nil, nil, inNode(node, err)
		}
		var list []pin
		if err := json.Unmarshal(text, &list); err != nil {
			return nil, nil, inNode(node, err)
		}
		own := map[string]pin{}
		for _, pin := range list {
			own[pin.Scope] = pin
			if pin.Epoch > newest[pin.Scope].Epoch {
				newest[pin.Scope] = pin
			}
		}
		known = append(known, own)
	}
	return known, newest, nil
}

// announcePins makes the newest pins known to the nodes that do not know them: an interrupted call reached only some, or a node is new.
func (m *mover) announcePins(ctx context.Context, places buckets.Places) error {
	known, newest, err := m.pins(ctx)
	if err != nil {
		return err
	}
	for scope, pin := range newest {
		var missing []*node
		for i, node := range m.cluster.nodes {
			if known[i][scope].Epoch < pin.Epoch {
				missing = append(missing, node)
			}
		}
		if len(missing) == 0 {
			continue
		}
		if err := m.givePin(ctx, pin, known[slices.Index(m.cluster.nodes, missing[0])][scope], missing, places); err != nil {
			return err
		}
	}
	return nil
}

// givePin makes a pin known to nodes. At any time one node at most takes a new thread of the scope: the node that had them all
// learns of the pin first, and the node that gets them all last. Before each, it gets to know which threads of the scope are on others, and what
// was erased there.
func (m *mover) givePin(ctx context.Context, pin, before pin, nodes []*node, places buckets.Places) error {
	rank := func(node *node) int {
		switch {
		case pin.Bucket != nil && places[*pin.Bucket].Node == node.name:
			return 1
		case before.Bucket != nil && places[*before.Bucket].Node == node.name:
			return -1
		}
		return 0
	}
	ordered := slices.Clone(nodes)
	slices.SortStableFunc(ordered, func(a, b *node) int { return cmp.Compare(rank(a), rank(b)) })
	for _, node := range ordered {
		pauses := live.Pauses(5*time.Millisecond, 500*time.Millisecond)
		for isDone := false; !isDone; {
			for _, other := range m.cluster.nodes {
				if other == node {
					continue
				}
				elsewhere, err := other.queries.ThreadsOfScopeElsewhere(ctx, db.ThreadsOfScopeElsewhereParams{Scope: pin.Scope, ToNode: node.name})
				if err != nil {
					return inNode(other, err)
				}
				if err := m.copyErasures(ctx, other, node, elsewhere, time.Time{}); err != nil {
					return err
				}
			}
			if err := m.step(ctx, node, func(queries *db.Queries) error { return queries.KeepThreadsOfScope(ctx, pin.Scope) }); err != nil {
				return err
			}
			if err := m.fence(ctx, node, func(ctx context.Context, queries *db.Queries) (err error) {
				isDone, err = queries.PinScope(ctx, db.PinScopeParams{Scope: pin.Scope, Bucket: pin.Bucket, Epoch: pin.Epoch})
				return err
			}); err != nil {
				return err
			}
			if isDone {
				continue
			}
			if err := sleep(ctx, pauses.NextBackOff()); err != nil { // a run is claimed whose thread is not born
				return err
			}
		}
	}
	return nil
}
