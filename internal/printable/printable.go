// Package printable makes untrusted text safe for a terminal: it cannot move the cursor, change colors, set titles or links, or
// change the direction of the text beside it.
package printable

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Line returns a text for a place within a line: characters that act on the terminal, line ends and tabs too, come out as escapes such as \x1b or
// \u202e, and bytes that are not UTF-8 as U+FFFD.
func Line(text string) string {
	return escape(text, func(rune) (string, bool) { return "", false })
}

// Text returns a text of any number of lines. It keeps line ends, as \n, and puts spaces for tabs; everything else is as in Line.
func Text(text string) string {
	return escape(strings.ReplaceAll(text, "\r\n", "\n"), func(character rune) (string, bool) {
		switch character {
		case '\n', '\u2028', '\u2029':
			return "\n", true
		case '\t':
			return "    ", true
		}
		return "", false
	})
}

// Writer passes text on to a terminal, from any number of goroutines. Characters that act on it come out as escapes such as \u001b, as JSON has them, but for line ends and tabs;
// bytes that are not UTF-8 as U+FFFD. A string in JSON stays the string that it was.
type Writer struct {
	mutex    sync.Mutex
	terminal io.Writer
	pending  []byte // the beginning of a character
}

// NewWriter returns a Writer for a terminal.
func NewWriter(terminal io.Writer) *Writer { return &Writer{terminal: terminal} }

func (w *Writer) Write(text []byte) (int, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	escaped := make([]byte, 0, len(text)+utf8.UTFMax)
	rest := append(w.pending, text...)
	for len(rest) > 0 && utf8.FullRune(rest) {
		character, size := utf8.DecodeRune(rest)
		rest = rest[size:]
		if character != '\n' && character != '\t' && acts(character) {
			escaped = fmt.Appendf(escaped, `\u%04x`, character)
		} else {
			escaped = utf8.AppendRune(escaped, character)
		}
	}
	w.pending = append([]byte(nil), rest...)
	if _, err := w.terminal.Write(escaped); err != nil {
		return 0, err
	}
	return len(text), nil
}

// acts reports whether a character affects a terminal, or the text beside it.
func acts(character rune) bool {
	return unicode.IsControl(character) || unicode.In(character, unicode.Zl, unicode.Zp, unicode.Bidi_Control)
}

func escape(text string, layout func(rune) (string, bool)) string {
	var escaped strings.Builder
	for _, character := range text {
		if kept, ok := layout(character); ok {
			escaped.WriteString(kept)
		} else if acts(character) {
			quoted := strconv.QuoteRune(character)
			escaped.WriteString(quoted[1 : len(quoted)-1])
		} else {
			escaped.WriteRune(character)
		}
	}
	return escaped.String()
}
