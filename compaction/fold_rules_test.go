package compaction

import "testing"

// What each type does has code: a method, or for what makes a message or a call, a stream.
func TestEachActionHasItsCode(t *testing.T) {
	t.Parallel()
	for name, e := range eventTypes {
		_, isMethod := methods[e.does]
		switch {
		case e.part == noPart && !isMethod:
			t.Errorf("%s: fold_rules.go has no method for what it does", name)
		case e.part != noPart && isMethod:
			t.Errorf("%s: what it does to a part is read as something else", name)
		case e.does == doesChunk && e.stream() == nil:
			t.Errorf("%s: fold_chunks.go does not know how its part is made of chunks", name)
		case e.isFolded && e.part == noPart && e.does != doesNothing && e.does != doesFailRun && e.does != doesAsk && e.apply == nil:
			t.Errorf("%s: it does something, but there is no code for it", name)
		}
	}
}
