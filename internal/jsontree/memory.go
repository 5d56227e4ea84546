package jsontree

import "unsafe"

// Identity returns a key that two values share if they are the same object.
func Identity(v Value) any {
	if text, ok := v.(Raw); ok {
		return unsafe.SliceData(text)
	}
	return v
}

// MemoryOfMapEntry estimates the bytes of an entry of a map, without the text of its key.
const MemoryOfMapEntry = 64

// MemoryOf estimates how many bytes of memory a value takes.
func MemoryOf(v Value) int64 {
	switch v := v.(type) {
	case Raw:
		return int64(unsafe.Sizeof(v)) + int64(len(v))
	case *Text:
		return int64(unsafe.Sizeof(*v)) + int64(cap(v.bytes))
	case *Object:
		size := int64(unsafe.Sizeof(*v)) + int64(len(v.places))*MemoryOfMapEntry + int64(cap(v.members))*int64(unsafe.Sizeof(member{}))
		for i := range v.members {
			m := &v.members[i]
			size += int64(len(m.key)+len(m.name)) + MemoryOf(m.value)
		}
		return size
	case *Array:
		size := int64(unsafe.Sizeof(*v)) + int64(cap(v.items))*int64(unsafe.Sizeof(Value(nil)))
		for _, item := range v.items {
			size += MemoryOf(item)
		}
		return size
	default: // no value
		return 0
	}
}
