package compaction

import "github.com/pgagui/pgagui/internal/jsontree"

import "unsafe"

// MemorySize estimates the memory of folds in bytes. A message or state that several folds share
// counts once. It takes time for the messages of all folds, and for the parts that patches have
// opened.
func MemorySize(folds ...*Fold) int64 {
	total := int64(0)
	isCounted := map[any]bool{}
	once := func(part any, memory func() int64) {
		if !isCounted[part] {
			isCounted[part] = true
			total += memory()
		}
	}
	for _, f := range folds {
		total += int64(f.messages.len())*int64(unsafe.Sizeof((*Message)(nil))) + int64(len(f.interrupts))
		if f.index != nil {
			total += int64(len(f.index.messages)+len(f.index.calls)) * jsontree.MemoryOfMapEntry
		}
		for place := range f.messages.len() {
			m := f.messages.at(place)
			once(m, m.memory)
		}
		once(jsontree.Identity(f.state.Value()), func() int64 { return jsontree.MemoryOf(f.state.Value()) })
		if f.stateText != nil {
			once(jsontree.Identity(jsontree.Raw(f.stateText)), func() int64 { return int64(len(f.stateText)) })
		}
	}
	return total
}

func (m *Message) memory() int64 {
	size := int64(unsafe.Sizeof(*m)) + int64(len(m.id)+len(m.role)+len(m.body))
	for _, call := range m.calls {
		size += int64(unsafe.Sizeof(call)) + int64(len(call.id))
	}
	if m.tree != nil {
		size += jsontree.MemoryOf(m.tree)
	}
	return size
}
