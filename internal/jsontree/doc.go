// Package jsontree holds JSON documents that patches change.
//
// A [Value] is a tree that is taken apart only where something changes. All other parts stay the
// text that they came as ([Raw]): they keep their spelling, and cost neither time nor memory. Trees
// are copied on write. A container belongs to an [Owner], which alone may change it. A change first
// copies the containers on its way that belong to another owner, but not what is below them.
//
// A [Document] is a value under JSON Patches (RFC 6902). A patch is applied as a whole or not at
// all, within [Limits]. [CreatePatch] compares two documents and returns a patch. [PrintJSONB]
// prints a document as PostgreSQL prints a jsonb value; the limits count the bytes of that text.
//
//   - value.go: the trees, and their comparison
//   - patch.go: JSON Patch, with undo
//   - size.go: sizes as PostgreSQL counts them
//   - jsonb.go: the spelling of jsonb
//   - spelling.go: the spelling in which values are kept
//   - diff.go: a patch from two documents
//   - memory.go: an estimate of the memory that trees take
//
// Package rawjson scans JSON text, and changes single members of a document whose other bytes stay
// as they are. This package is for documents that many patches change.
package jsontree
