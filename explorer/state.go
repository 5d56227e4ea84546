package explorer

import (
	"bytes"
	"encoding/json"
	"html/template"
	"slices"
	"strconv"
	"strings"

	"github.com/pgagui/pgagui/compaction"
)

// mostStateLines bounds how much of a state a page shows.
const mostStateLines = 1500

// stateLine is a line of a state: a value, or the beginning or the end of an object or a list.
type stateLine struct {
	Depth     int
	Key       string
	HasKey    bool
	Text      string
	IsChanged bool
}

// stateLines lays a state out. What lies at one of the paths that changed, JSON Pointers, or below is
// marked. isCut is true if the state is longer than a page shows.
func stateLines(state json.RawMessage, changed []string) (lines []stateLine, isCut bool) {
	if !json.Valid(state) {
		return nil, false
	}
	layout := stateLayout{changed: changed}
	layout.value(bytes.TrimSpace(state), "", stateLine{}, "")
	if len(layout.lines) > mostStateLines {
		return layout.lines[:mostStateLines], true
	}
	return layout.lines, false
}

type stateLayout struct {
	changed []string
	lines   []stateLine
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

func (l *stateLayout) value(value []byte, path string, line stateLine, after string) {
	if len(l.lines) > mostStateLines || line.Depth > 60 {
		return
	}
	line.IsChanged = line.IsChanged || slices.Contains(l.changed, path)
	begin, end := "", ""
	switch {
	case value[0] == '{' && len(bytes.TrimSpace(value[1:len(value)-1])) > 0:
		begin, end = "{", "}"
	case value[0] == '[' && len(bytes.TrimSpace(value[1:len(value)-1])) > 0:
		begin, end = "[", "]"
	default:
		if line.Text, _ = cut(string(value)); len(line.Text) > 2000 {
			line.Text = strings.ToValidUTF8(line.Text[:2000], "") + "…"
		}
		line.Text += after
		l.lines = append(l.lines, line)
		return
	}
	line.Text = begin
	l.lines = append(l.lines, line)
	inner := stateLine{Depth: line.Depth + 1, IsChanged: line.IsChanged}
	last := -1 // the line of the last element, which has no comma
	if begin == "{" {
		for key, member := range compaction.Members(value) {
			inner.Key, inner.HasKey = key, true
			l.value(member, path+"/"+pointerEscapes.Replace(key), inner, ",")
			last = len(l.lines) - 1
		}
	} else {
		at := 0
		for element, err := range compaction.Split(value) {
			if err != nil {
				break
			}
			l.value(element, path+"/"+strconv.Itoa(at), inner, ",")
			last, at = len(l.lines)-1, at+1
		}
	}
	if last >= 0 {
		l.lines[last].Text = strings.TrimSuffix(l.lines[last].Text, ",")
	}
	l.lines = append(l.lines, stateLine{Depth: line.Depth, Text: end + after, IsChanged: line.IsChanged})
}

// Indent is the white space before the line.
func (l stateLine) Indent() string { return strings.Repeat("  ", l.Depth) }

// stateHTML writes lines as a template would, of which a state may have too many for a template.
func stateHTML(lines []stateLine) template.HTML {
	var out strings.Builder
	for _, line := range lines {
		out.WriteString("<div")
		if line.IsChanged {
			out.WriteString(` class="changed"`)
		}
		out.WriteString(">" + line.Indent())
		if line.HasKey {
			out.WriteString(`<span class="key">` + template.HTMLEscapeString(strconv.Quote(line.Key)) + "</span>: ")
		}
		out.WriteString(`<span class="value">` + template.HTMLEscapeString(line.Text) + "</span></div>")
	}
	return template.HTML(out.String())
}
