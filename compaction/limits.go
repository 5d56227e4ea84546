package compaction

// Limits bound what JSON patches may make of a document, a state or the content of an activity, and what they may take. A patch
// that goes beyond one of them fails as any patch fails: it is undone whole. What an event brings as a whole is kept, however
// large; then every patch fails of which the first operation does not make it smaller.
//
// The size of a value is the number of octets that PostgreSQL prints for it as jsonb, so the reducer in SQL has the same limits:
// ", " and ": " between elements, plain decimals, and of duplicate keys the last. A backslash, \u0000 and a lone surrogate count 7.
type Limits struct {
	DocumentBytes     int64 // the size of the document after each operation
	DocumentDepth     int   // how deep an operation may nest arrays and objects
	PatchOperations   int   // the operations of a patch
	PatchCopiedBytes  int64 // the size of all values that `copy` and `move` put in place in a patch
	PatchShiftedItems int64 // the items behind the places in arrays where a patch inserts or removes one
}

// DefaultLimits returns the limits of a fold unless [Fold.SetLimits] changes them. They are the defaults of the database's
// settings document_bytes, document_depth, patch_operations, patch_copied_bytes and patch_shifted_items.
func DefaultLimits() Limits {
	return Limits{
		DocumentBytes:     16 << 20,
		DocumentDepth:     1000,
		PatchOperations:   10_000,
		PatchCopiedBytes:  64 << 20,
		PatchShiftedItems: 100_000_000,
	}
}

// SetLimits changes the limits for the events that follow. Clones that are made later have them too.
func (f *Fold) SetLimits(limits Limits) { f.limits = limits }
