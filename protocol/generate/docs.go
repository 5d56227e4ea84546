package main

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"github.com/pgagui/pgagui/protocol"
)

// docs writes the table of docs/reducer.md into the page.
func docs(l *protocol.List, page []byte) ([]byte, error) {
	var table bytes.Buffer
	table.WriteString("| Event | Field | JSON type | What it does |\n|---|---|---|---|\n")
	for i := range l.Types {
		t := &l.Types[i]
		name := "`" + t.Name + "`"
		row := func(field, kinds, effect string) {
			fmt.Fprintf(&table, "| %s | %s | %s | %s |\n", name, field, kinds, strings.ReplaceAll(effect, "|", `\|`))
			name = ""
		}
		if t.Effect != "" {
			row("", "", t.Effect)
		}
		for j := range t.Fields {
			if f := &t.Fields[j]; f.IsRead() {
				row("`"+f.Name+"`", kindsInDocs(t, f), f.Effect+limits(f))
			}
		}
	}
	return insert(page, "rules", table.String())
}

// insert replaces the table between two marks of a page.
func insert(page []byte, what, table string) ([]byte, error) {
	begin, end := "<!-- "+what+" -->\n\n", "\n<!-- end of the "+what+" -->"
	before, rest, begins := strings.Cut(string(page), begin)
	_, after, ends := strings.Cut(rest, end)
	if !begins || !ends {
		return nil, fmt.Errorf("there is no place for the table of %s", what)
	}
	return []byte(before + begin + table + end + after), nil
}

func kindsInDocs(t *protocol.Type, f *protocol.Field) string {
	kinds := cmp.Or(strings.Join(f.Kinds(), ", "), "any")
	if f.IsNeeded() {
		kinds += ", required"
		if other := t.Alternative(f.Name); other != nil {
			kinds += " without `" + other.Name + "`"
		}
	}
	return kinds
}

func limits(f *protocol.Field) string {
	if len(f.Limits) == 0 {
		return ""
	}
	return " Limits: `" + strings.Join(f.Limits, "`, `") + "`."
}
