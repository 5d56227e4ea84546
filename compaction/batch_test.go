package compaction

import (
	"errors"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/internal/must"
)

func TestSplit(t *testing.T) {
	t.Parallel()
	var got []string
	for element, err := range Split([]byte(" [ {\"a\" : [1, 2]} ,\n7,\t\"],\" ] ")) {
		must.Do(t, err)
		got = append(got, string(element))
	}
	if strings.Join(got, "|") != `{"a" : [1, 2]}|7|"],"` {
		t.Errorf("got %q", got)
	}
	for range Split([]byte(`[1,2]`)) {
		break // must not go on
	}
}

func TestDamagedBatches(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		batch    string
		offset   int
		elements int
	}{
		{``, 0, 0}, {`{}`, 0, 0}, {`[`, 1, 0}, {`[{}`, 3, 1}, {`[{} {}]`, 4, 1}, {`[{},]`, 4, 1}, {`[{}]x`, 4, 1}, {`[{"type":"TEXT_MESSAGE_START","messageId":tru}]`, 42, 0}, {`[{},{"a":"` + "\n" + `"}]`, 10, 1},
	} {
		var syntax *SyntaxError
		if _, err := New().ApplyBatch([]byte(test.batch)); !errors.As(err, &syntax) || syntax.Offset != test.offset {
			t.Errorf("ApplyBatch %q: got %v, want a problem at byte %d", test.batch, err, test.offset)
		}
		count := 0
		var last error
		for _, err := range Split([]byte(test.batch)) {
			if last = err; err == nil {
				count++
			}
		}
		if !errors.As(last, &syntax) || syntax.Offset != test.offset || count != test.elements {
			t.Errorf("Split %q: got %d elements and %v, want %d and a problem at byte %d", test.batch, count, last, test.elements, test.offset)
		}
	}
}
