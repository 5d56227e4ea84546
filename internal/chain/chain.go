// Package chain computes the hashes that chain the log of a thread, as agui_internal.chain_link does. Each hash covers the
// events of one append and the hash before it, so no event can be changed, removed or moved unnoticed. The package needs
// only the raw rows of the database.
package chain

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// Origin takes the place of the previous hash in the first link of a thread.
func Origin(scope, threadID string) []byte {
	content := []byte("pgagui chain 1")
	content = appendText(content, scope)
	content = appendText(content, threadID)
	return sum(content)
}

// Link is the input of a hash.
type Link struct {
	// Previous is the hash of the link before in the thread.
	Previous []byte
	// FirstSeq is the seq of its first event.
	FirstSeq int64
	// Times are those of its events.
	Times []time.Time
	// RunID is the id of their run.
	RunID string
	// Beginning is set where the run begins with the link.
	Beginning *Beginning
	// Events are its events, byte for byte.
	Events [][]byte
}

// Beginning holds what the first link of a run covers as well.
type Beginning struct {
	// ParentID is the id of the run that it goes on from; nil: none.
	ParentID *string
	// InputHash is the SHA-256 of the input beside the events; nil: there is none.
	InputHash []byte
}

// Hash computes the hash of the link.
func (l Link) Hash() []byte {
	content := bytes.Clone(l.Previous)
	content = binary.BigEndian.AppendUint64(content, uint64(l.FirstSeq))
	content = binary.BigEndian.AppendUint32(content, uint32(len(l.Events)))
	content = appendTimes(content, l.Times)
	content = appendText(content, l.RunID)
	content = l.Beginning.append(content)
	content = append(content, Array(l.Events)...)
	return sum(content)
}

// Array is the JSON array of events as the log of a chained thread has it: commas and nothing else between them.
func Array(events [][]byte) []byte {
	array := append([]byte{'['}, bytes.Join(events, []byte{','})...)
	return append(array, ']')
}

func (b *Beginning) append(content []byte) []byte {
	if b == nil {
		return append(content, 0)
	}
	content = append(content, 1)
	if b.ParentID == nil {
		content = append(content, 0)
	} else {
		content = appendText(append(content, 1), *b.ParentID)
	}
	if b.InputHash == nil {
		return append(content, 0)
	}
	return append(append(content, 1), b.InputHash...)
}

// epoch is where PostgreSQL counts microseconds from.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()

// appendTimes appends one time for all events where they are equal.
func appendTimes(content []byte, times []time.Time) []byte {
	areEqual := true
	for _, at := range times {
		areEqual = areEqual && at.Equal(times[0])
	}
	if areEqual && len(times) > 0 {
		times = times[:1]
	}
	content = binary.BigEndian.AppendUint32(content, uint32(len(times)))
	for _, at := range times {
		content = binary.BigEndian.AppendUint64(content, uint64(at.UnixMicro()-epoch))
	}
	return content
}

func appendText(content []byte, text string) []byte {
	content = binary.BigEndian.AppendUint32(content, uint32(len(text)))
	return append(content, text...)
}

func sum(content []byte) []byte {
	hash := sha256.Sum256(content)
	return hash[:]
}
