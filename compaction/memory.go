package compaction

import "unsafe"

// MemorySize estimates how many bytes of memory folds take together. A message or a state that several of them share counts once. It takes time
// for the messages of all folds, and for the parts that patches have taken apart.
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
			total += int64(len(f.index.messages)+len(f.index.calls)) * memoryOfEntry
		}
		for place := range f.messages.len() {
			m := f.messages.at(place)
			once(m, m.memory)
		}
		once(identity(f.state.root), func() int64 { return memoryOf(f.state.root) })
		if f.stateText != nil {
			once(identity(raw(f.stateText)), func() int64 { return int64(len(f.stateText)) })
		}
	}
	return total
}

// memoryOfEntry is about what an entry of a map takes beside the text of its key.
const memoryOfEntry = 64

// identity is the same for two values that are one.
func identity(v value) any {
	if text, ok := v.(raw); ok {
		return unsafe.SliceData(text)
	}
	return v
}

func (m *Message) memory() int64 {
	size := int64(unsafe.Sizeof(*m)) + int64(len(m.id)+len(m.role)+len(m.body))
	for _, call := range m.calls {
		size += int64(unsafe.Sizeof(call)) + int64(len(call.id))
	}
	if m.tree != nil {
		size += memoryOf(m.tree)
	}
	return size
}

func memoryOf(v value) int64 {
	switch v := v.(type) {
	case raw:
		return int64(unsafe.Sizeof(v)) + int64(len(v))
	case *text:
		return int64(unsafe.Sizeof(*v)) + int64(cap(v.bytes))
	case *object:
		size := int64(unsafe.Sizeof(*v)) + int64(len(v.places))*memoryOfEntry + int64(cap(v.members))*int64(unsafe.Sizeof(member{}))
		for i := range v.members {
			m := &v.members[i]
			size += int64(len(m.key)+len(m.name)) + memoryOf(m.value)
		}
		return size
	case *array:
		size := int64(unsafe.Sizeof(*v)) + int64(cap(v.items))*int64(unsafe.Sizeof(value(nil)))
		for _, item := range v.items {
			size += memoryOf(item)
		}
		return size
	default: // no value
		return 0
	}
}
