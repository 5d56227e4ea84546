package printable

import (
	"strings"
	"testing"
)

func TestWhatActsOnTheTerminalIsEscaped(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ text, line, lines string }{
		"plain text":          {"naïve 日本 🧑‍🚀", "naïve 日本 🧑‍🚀", "naïve 日本 🧑‍🚀"},
		"line ends and tabs":  {"a\nb\r\nc\td", `a\nb\r\nc\td`, "a\nb\nc    d"},
		"other line ends":     {"a\u2028b\u2029c\u0085d", `a\u2028b\u2029c\u0085d`, "a\nb\nc\\u0085d"},
		"a color":             {"\x1b[31mred", `\x1b[31mred`, `\x1b[31mred`},
		"a link":              {"\x1b]8;;http://x\x1b\\y", `\x1b]8;;http://x\x1b\y`, `\x1b]8;;http://x\x1b\y`},
		"C1":                  {"\u009b31m", `\u009b31m`, `\u009b31m`},
		"overwriting":         {"good\rbad\b\x7f", `good\rbad\b\x7f`, `good\rbad\b\x7f`},
		"the other direction": {"a\u202eb\u2066c\u200f", `a\u202eb\u2066c\u200f`, `a\u202eb\u2066c\u200f`},
		"no UTF-8":            {"a\xffb\xed\xa0\x80", "a\ufffdb\ufffd\ufffd\ufffd", "a\ufffdb\ufffd\ufffd\ufffd"},
	}
	for name, test := range tests {
		if got := Line(test.text); got != test.line {
			t.Errorf("%s: Line(%q) = %q, want %q", name, test.text, got, test.line)
		}
		if got := Text(test.text); got != test.lines {
			t.Errorf("%s: Text(%q) = %q, want %q", name, test.text, got, test.lines)
		}
	}
}

// Whatever comes, in pieces of whatever size, a terminal gets no more than characters, line ends and tabs.
func TestWriterEscapesWhatActsOnTheTerminal(t *testing.T) {
	t.Parallel()
	const text, want = "{\"日\":\"\x1b[31m\u009b\u202e\x7f\",\r\t\n}\xff🧑‍🚀", `{"日":"\u001b[31m\u009b\u202e\u007f",\u000d` + "\t\n}\ufffd🧑‍🚀"
	for size := 1; size <= len(text); size++ {
		var terminal strings.Builder
		writer := NewWriter(&terminal)
		for start := 0; start < len(text); start += size {
			piece := text[start:min(start+size, len(text))]
			if n, err := writer.Write([]byte(piece)); n != len(piece) || err != nil {
				t.Fatalf("%d, %v", n, err)
			}
		}
		if got := terminal.String(); got != want {
			t.Errorf("in pieces of %d bytes: got %q, want %q", size, got, want)
		}
	}
}
