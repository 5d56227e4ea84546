// Package printable makes text that others wrote harmless for a terminal: nothing in it moves the cursor, changes colors, sets titles or links, or
// turns the direction of what stands beside it.
package printable

import (
	"strconv"
	"strings"
	"unicode"
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

func escape(text string, layout func(rune) (string, bool)) string {
	var escaped strings.Builder
	for _, character := range text {
		if kept, ok := layout(character); ok {
			escaped.WriteString(kept)
		} else if unicode.IsControl(character) || unicode.In(character, unicode.Zl, unicode.Zp, unicode.Bidi_Control) {
			quoted := strconv.QuoteRune(character)
			escaped.WriteString(quoted[1 : len(quoted)-1])
		} else {
			escaped.WriteRune(character)
		}
	}
	return escaped.String()
}
