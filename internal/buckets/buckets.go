// Package buckets has the map of a cluster: which node has which part of the threads.
package buckets

import (
	"encoding/json"
	"fmt"
)

// Count is the number of buckets, the parts that the threads of a cluster are divided into.
const Count = 1024

// Of returns the bucket of the thread with a key, as agui_internal.bucket_of does.
func Of(key [16]byte) int { return int(key[8])<<2 | int(key[9])>>6 }

// Map is the answer of agui.cluster_map.
type Map struct {
	Node    string  `json:"node"` // which node gave it; empty: the database is no node
	Buckets []Range `json:"buckets"`
}

// Range says which node has the buckets from First to Last.
type Range struct {
	First int    `json:"first"`
	Last  int    `json:"last"`
	Node  string `json:"node"`
	Epoch int64  `json:"epoch"`
}

// Read reads a map.
func Read(document []byte) (known Map, err error) {
	if err := json.Unmarshal(document, &known); err != nil {
		return known, err
	}
	for _, part := range known.Buckets {
		if part.First < 0 || part.First > part.Last || part.Last >= Count {
			return known, fmt.Errorf("it has buckets from %d to %d", part.First, part.Last)
		}
	}
	return known, nil
}

// Place is where a bucket is.
type Place struct {
	Node  string // empty: not known
	Epoch int64  // counts the moves of the bucket
}

// Places are the places of all buckets, as far as they are known.
type Places [Count]Place

// Take learns a map: the newer place of each bucket counts.
func (p *Places) Take(known Map) {
	for _, part := range known.Buckets {
		for bucket := part.First; bucket <= part.Last; bucket++ {
			p.Put(bucket, Place{part.Node, part.Epoch})
		}
	}
}

// Put learns the place of a bucket, unless a newer one is known.
func (p *Places) Put(bucket int, place Place) {
	if place.Epoch > p[bucket].Epoch {
		p[bucket] = place
	}
}
