package main

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"github.com/pgagui/pgagui/protocol"
)

// docs writes docs/reference/events.md.
func docs(l *protocol.List) ([]byte, error) {
	var page bytes.Buffer
	page.WriteString("# Event types\n\nWhat each event does to messages, state and interrupts. [reducer.md](../reducer.md) has what holds for all of them.\n" +
		"Each rule has a stream of events and its result in [test/golden/rules.json](../../test/golden/rules.json), which the tests run\n" +
		"through the reducer in SQL, the reducer in Go and the official client.\n\n" +
		"This page is written from [protocol/events.json](../../protocol/README.md): go run ./protocol/generate\n\n" +
		"| Event | Field | JSON type | What it does |\n|---|---|---|---|\n")
	for i := range l.Types {
		t := &l.Types[i]
		name := "`" + t.Name + "`"
		row := func(field, kinds, effect string) {
			fmt.Fprintf(&page, "| %s | %s | %s | %s |\n", name, field, kinds, strings.ReplaceAll(effect, "|", `\|`))
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
	return page.Bytes(), nil
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
