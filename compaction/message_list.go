package compaction

import "slices"

// A messageList is the messages of a fold in their order. It is a slice until a message is put into the middle of a long one. From
// then on it is a row of rings, all full but the last one: an insertion moves the messages of one ring, and one message from each
// ring to the next.
type messageList struct {
	flat  []*Message // while rings is nil
	rings []*ring
	count int // of those in rings
}

const (
	ringBits = 9
	ringSize = 1 << ringBits
)

type ring struct {
	messages [ringSize]*Message
	first    int
}

func (r *ring) at(i int) **Message { return &r.messages[(r.first+i)%ringSize] }

func (l *messageList) len() int {
	if l.rings == nil {
		return len(l.flat)
	}
	return l.count
}

func (l *messageList) at(place int) *Message {
	if l.rings == nil {
		return l.flat[place]
	}
	return *l.rings[place>>ringBits].at(place % ringSize)
}

func (l *messageList) set(place int, m *Message) {
	if l.rings == nil {
		l.flat[place] = m
		return
	}
	*l.rings[place>>ringBits].at(place % ringSize) = m
}

// all returns the messages as a slice, which is the list's own until the next insertion.
func (l *messageList) all() []*Message {
	if l.rings != nil {
		flat := make([]*Message, 0, l.count+l.count/8)
		for place := range l.count {
			flat = append(flat, l.at(place))
		}
		*l = messageList{flat: flat}
	}
	return l.flat
}

func (l *messageList) push(m *Message) {
	if l.rings == nil {
		l.flat = append(l.flat, m)
		return
	}
	if l.count == len(l.rings)*ringSize {
		l.rings = append(l.rings, new(ring))
	}
	*l.rings[l.count>>ringBits].at(l.count % ringSize) = m
	l.count++
}

func (l *messageList) insert(place int, m *Message) {
	if l.rings == nil && len(l.flat)-place < 4*ringSize {
		l.flat = slices.Insert(l.flat, place, m)
		return
	}
	if l.rings == nil {
		flat := l.flat
		*l = messageList{rings: []*ring{}}
		for _, m := range flat {
			l.push(m)
		}
	}
	if l.count == len(l.rings)*ringSize {
		l.rings = append(l.rings, new(ring))
	}
	l.count++
	last, number := (l.count-1)>>ringBits, place>>ringBits
	for n := last; n > number; n-- {
		r := l.rings[n]
		r.first = (r.first + ringSize - 1) % ringSize // the last message has gone to the next ring
		*r.at(0) = *l.rings[n-1].at(ringSize - 1)
	}
	r := l.rings[number]
	for i := min(ringSize-1, l.count-1-number*ringSize); i > place%ringSize; i-- {
		*r.at(i) = *r.at(i - 1)
	}
	*r.at(place % ringSize) = m
}
