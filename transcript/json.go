package transcript

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/rivo/uniseg"

	"github.com/pgagui/pgagui/compaction"
)

// Bounds of how JSON is shown.
const (
	mostInLine = 72 // columns of a value that stands in a line
	mostDepth  = 6  // what lies deeper is shown as JSON
)

// JSON shows any JSON value as indented lines, "key: value", in the order of the text. It is the
// default [Renderer]. Small values stand on one line. A text that is not JSON is shown as it is; an
// empty one gives no lines.
func JSON(value json.RawMessage) []Line {
	if len(value) == 0 {
		return nil
	}
	if !json.Valid(value) {
		return []Line{{Text: string(value)}}
	}
	return appendValue(nil, 0, "", bytes.TrimSpace(value))
}

// appendValue appends the lines of a value that a key may name.
func appendValue(lines []Line, depth int, key string, value []byte) []Line {
	if text, short := shortJSON(value, key == ""); short && !isTable(value) {
		return append(lines, Line{Depth: depth, Text: labelled(key, text)})
	}
	if value[0] == '"' {
		text, _ := stringOf(value)
		if key != "" && strings.Contains(text, "\n") {
			return append(lines, Line{Depth: depth, Text: key + ":"}, Line{Depth: depth + 1, Text: text})
		}
		return append(lines, Line{Depth: depth, Text: labelled(key, text)})
	}
	if depth >= mostDepth || value[0] != '{' && value[0] != '[' {
		var compact bytes.Buffer
		_ = json.Compact(&compact, value)
		return append(lines, Line{Depth: depth, Text: labelled(key, compact.String())})
	}
	if key != "" {
		lines = append(lines, Line{Depth: depth, Text: key + ":"})
		depth++
	}
	if value[0] == '{' {
		for name, member := range compaction.Members(value) {
			lines = appendValue(lines, depth, name, member)
		}
		return lines
	}
	for element := range compaction.Split(value) {
		lines = appendElement(lines, depth, element)
	}
	return lines
}

// appendElement appends the lines of an element of a list, the first of them with a bullet.
func appendElement(lines []Line, depth int, element []byte) []Line {
	first := len(lines)
	lines = appendValue(lines, depth+1, "", element)
	if lines[first].Mark == Bullet { // a list in a list
		return slices.Insert(lines, first, Line{Depth: depth, Mark: Bullet})
	}
	lines[first].Depth, lines[first].Mark = depth, Bullet
	return lines
}

// isTable reports whether a value is a list of lists or objects, which stand on lines of their own.
func isTable(value []byte) bool {
	if value[0] == '[' {
		for element := range compaction.Split(value) {
			if element != nil && (element[0] == '{' || element[0] == '[') {
				return true
			}
		}
	}
	return false
}

func labelled(key, text string) string {
	if key == "" {
		return text
	}
	return key + ": " + text
}

// shortJSON shows a value in a line if it is short enough: an object as "from: London, nights: 3" where it stands alone, else in braces.
func shortJSON(value []byte, alone bool) (text string, short bool) {
	var built strings.Builder
	value = bytes.TrimSpace(value)
	if value[0] == '"' {
		text, _ = stringOf(value)
		return text, !strings.Contains(text, "\n") && len(text) <= 4*mostInLine && uniseg.StringWidth(text) <= mostInLine
	}
	short = inLine(&built, value, alone)
	return built.String(), short && uniseg.StringWidth(built.String()) <= mostInLine
}

// inLine writes a value until it is too long, and reports whether it is complete.
func inLine(text *strings.Builder, value []byte, alone bool) bool {
	const mostBytes = 4 * mostInLine // no character that takes a column takes more
	if text.Len()+1 > mostBytes {
		return false
	}
	separator := ""
	switch value[0] {
	case '{':
		opening, closing := "{", "}"
		if alone && len(bytes.TrimSpace(value[1:len(value)-1])) > 0 {
			opening, closing = "", ""
		}
		text.WriteString(opening)
		for name, member := range compaction.Members(value) {
			text.WriteString(separator + name + ": ")
			separator = ", "
			if !inLine(text, member, false) {
				return false
			}
		}
		text.WriteString(closing)
	case '[':
		text.WriteString("[")
		for element := range compaction.Split(value) {
			text.WriteString(separator)
			separator = ", "
			if !inLine(text, element, false) {
				return false
			}
		}
		text.WriteString("]")
	case '"':
		if len(value) > mostBytes {
			return false
		}
		if word, _ := stringOf(value); isPlain(word) {
			text.WriteString(word)
		} else {
			text.Write(value)
		}
	default:
		text.Write(value)
	}
	return text.Len() <= mostBytes
}

// isPlain reports whether a text cannot be mistaken for other JSON without quotation marks.
func isPlain(text string) bool {
	return text != "" && strings.TrimSpace(text) == text && !strings.ContainsAny(text, "\n\t\r\"\\,{}[]()") && !json.Valid([]byte(text))
}
