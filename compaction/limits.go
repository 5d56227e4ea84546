package compaction

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/pgagui/pgagui/internal/jsontree"
	"github.com/pgagui/pgagui/internal/refusal"
)

// Limits bound what a fold, and the JSON patches in it, may make and take.
//
// A patch that exceeds one of the first five fails as any patch fails: it is undone as a whole, and
// the fold goes on. A value that an event brings as a whole is kept, whatever its size; then all
// patches fail whose first operation does not make it smaller.
//
// A fold that exceeds one of the others ends with a [*LimitError]. The fold does not count its size
// event by event. It is measured when the events since the last measurement may have made it too
// large, and at the latest at the end of the run.
//
// The size of a document is the number of bytes that PostgreSQL prints for it as jsonb, so the
// reducer in SQL has the same limits: ", " and ": " between elements, plain decimals, and the last
// of duplicate keys. A backslash, \u0000 and a lone surrogate count 7. Each comma and each opening
// bracket outside of strings counts 32 more: PostgreSQL takes far more for an element than it prints.
type Limits struct {
	DocumentBytes     int64 // the size of the document after each operation
	DocumentDepth     int   // how deep an operation may nest arrays and objects
	PatchOperations   int   // the operations of a patch
	PatchCopiedBytes  int64 // the size of all values that `copy` and `move` put in place in a patch
	PatchShiftedItems int64 // the items after the places in arrays where a patch inserts or removes one

	FoldBytes    int64 // messages, state and interrupts together, as they are stored
	FoldMessages int   // the messages
	FoldLanes    int   // the streams of chunks that are open
	FoldFuel     int64 // the work of one run; see docs/settings.md
}

// DefaultLimits returns the limits of a fold unless [Fold.SetLimits] changes them. They are the defaults of the database's
// settings of these names: document_bytes and so on.
func DefaultLimits() Limits {
	return Limits{
		DocumentBytes:     16 << 20,
		DocumentDepth:     1000,
		PatchOperations:   10_000,
		PatchCopiedBytes:  64 << 20,
		PatchShiftedItems: 100_000_000,
		FoldBytes:         64 << 20,
		FoldMessages:      200_000,
		FoldLanes:         256,
		FoldFuel:          4_000_000_000,
	}
}

// ErrLimit matches every [*LimitError] with errors.Is.
var ErrLimit error = refusal.FoldLimit

// A LimitError says which limit a fold exceeds.
type LimitError struct {
	Setting string // the name of the database's setting
	Allowed int64
	Found   int64
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("the events cannot be folded: they exceed the limit %s (allowed %d, found %d)", e.Setting, e.Allowed, e.Found)
}

func (e *LimitError) Unwrap() error { return ErrLimit }

// SetLimits sets the limits for the events that follow. Clones made later have them too.
func (f *Fold) SetLimits(limits Limits) {
	f.limits = limits
	f.patchLimits = limits.ofPatches()
	f.usage.nextLook = limits.lookEvery()
}

func (l *Limits) ofPatches() jsontree.Limits {
	return jsontree.Limits{
		DocumentBytes: l.DocumentBytes,
		DocumentDepth: l.DocumentDepth,
		Operations:    l.PatchOperations,
		CopiedBytes:   l.PatchCopiedBytes,
		ShiftedItems:  l.PatchShiftedItems,
	}
}

// Err returns why the fold has ended, a [*LimitError]. From then on the fold ignores all events. Err
// returns nil while the fold goes on.
func (f *Fold) Err() error { return f.usage.err }

// EndRun ends a run: the fold measures its size, and the next run has fuel of its own, also if this
// one has failed. It returns Err.
func (f *Fold) EndRun() error {
	f.endPart()
	f.usage.spent = 0
	f.isBetweenRuns = true
	return f.usage.err
}

// --- what a fold uses ---

// What work costs besides the bytes that events bring.
const fuelOfMessage = 64 // that is looked at

// usage is what counts towards the limits of a fold. The reducer in SQL counts the same: agui_internal.fold_steps, fold_events.
type usage struct {
	// size is that of the fold when it was looked at last, and what its documents may have grown by copying since. What events have
	// brought since is added to it: brought is that of this run.
	size, brought int64
	nextLook      int64    // what has to be brought until then
	copied        []string // the ids of the activities that patches with copies have changed since the last look; "" is the state
	spent         int64    // the fuel of this run, but for what was brought
	err           error
}

// lookEvery is how much events may bring until the fold may have to be looked at.
func (l *Limits) lookEvery() int64 { return max(l.FoldBytes/4, 1) }

func (f *Fold) refuse(setting string, allowed, found int64) {
	if f.usage.err == nil {
		f.usage.err = &LimitError{Setting: setting, Allowed: allowed, Found: found}
	}
}

// beforeEvent is called before each event that is not skipped, and reports whether the fold goes on.
func (f *Fold) beforeEvent() bool {
	u := &f.usage
	if u.brought >= u.nextLook {
		f.look()
		every := f.limits.lookEvery()
		u.nextLook = (u.brought/every + 1) * every
	}
	return u.err == nil
}

// afterEvent looks at the limits that can be told at once.
func (f *Fold) afterEvent() {
	if found := f.usage.spent + f.usage.brought; found > f.limits.FoldFuel {
		f.refuse("fold_fuel", f.limits.FoldFuel, found)
	}
}

// endPart measures the fold and restarts the count of what events bring, as the reducer in SQL does after each part of the events.
func (f *Fold) endPart() {
	u := &f.usage
	f.look()
	f.afterEvent()
	u.size += u.brought
	u.spent += u.brought
	u.brought = 0
	u.nextLook = f.limits.lookEvery()
	u.copied = nil
}

// look finds out how large the fold is, if it may be too large.
func (f *Fold) look() {
	u := &f.usage
	if u.size+u.brought <= f.limits.FoldBytes || u.err != nil {
		return
	}
	size := f.storedSize()
	if size > f.limits.FoldBytes {
		f.refuse("fold_bytes", f.limits.FoldBytes, size)
	}
	u.size = size - u.brought
	u.spent += size
	u.copied = nil
}

// storedSize is the size of all that is in the fold, as it is stored: documents that patches changed as jsonb prints them.
func (f *Fold) storedSize() int64 {
	size := int64(len(f.interrupts))
	if f.statePatched {
		size += jsontree.StoredOctets(f.state.Value())
	} else {
		size += int64(len(f.State()))
	}
	for _, m := range f.messages.all() {
		size += int64(m.Size())
		if m.patched {
			content := m.member("content")
			size += jsontree.StoredOctets(content) - int64(content.Size())
		}
	}
	return size
}

// holdsMessages looks at the number of messages after some were added.
func (f *Fold) holdsMessages() {
	if f.messages.len() > f.limits.FoldMessages {
		f.refuse("fold_messages", int64(f.limits.FoldMessages), int64(f.messages.len()))
	}
}

// looksAtMessages notes that an event takes a look at all messages.
func (f *Fold) looksAtMessages() { f.usage.spent += fuelOfMessage * int64(f.messages.len()) }

// mayHaveGrown notes that a document was patched by copies: how large it is now is known only when the fold is looked at.
func (f *Fold) mayHaveGrown(id string) {
	if !slices.Contains(f.usage.copied, id) {
		f.usage.copied = append(f.usage.copied, id)
		f.usage.size += f.limits.DocumentBytes
	}
}

// --- what events bring ---

// broughtBy counts the bytes of some fields of an event.
func (e *event) broughtBy(names fields) (octets int64) {
	for name := field(0); names != 0; name, names = name+1, names>>1 {
		if names&1 != 0 && e.values[name] != nil {
			octets += jsontree.HeldOctets(e.values[name])
		}
	}
	return octets
}

// What any event of a message or a tool call brings.
const (
	broughtByMessage = 1<<fieldMessageID | 1<<fieldSubagentRunID | 1<<fieldMetadata | 1<<fieldRole
	broughtByCall    = 1<<fieldToolCallID | 1<<fieldSubagentRunID | 1<<fieldMetadata | 1<<fieldRole
)

// bring counts what an event of the right shape brings.
func (f *Fold) bring(e *event, names fields) { f.usage.brought += e.broughtBy(names) }

// bringPiece counts a piece of a string, as most events are.
func (f *Fold) bringPiece(e *event, names fields) {
	delta := e.inner(fieldDelta)
	if e.values[fieldMetadata] != nil {
		f.bring(e, names|fieldDelta.set())
	} else if bytes.IndexByte(delta, '\\') < 0 {
		f.usage.brought += int64(len(delta)) + 3
	} else {
		f.usage.brought += jsontree.HeldOctets(e.values[fieldDelta]) + 1
	}
}
