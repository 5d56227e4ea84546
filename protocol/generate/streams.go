package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/pgagui/pgagui/protocol"
)

// streams writes the table that the generators of test streams emit events from.
func streams(w *bytes.Buffer, l *protocol.List) {
	fmt.Fprint(w, "package compactiontest\n\nvar eventTypes = []*eventType{\n")
	for i := range l.Types {
		t := &l.Types[i]
		fmt.Fprintf(w, "{name: %q, does: %q, part: %q, ", t.Name, t.Does, t.Part)
		if t.IsFolded() {
			fmt.Fprintf(w, "closes: %q, ", t.Closes)
		}
		if t.IsCurrent() {
			fmt.Fprint(w, "isCurrent: true, ")
		}
		if t.Proposed {
			fmt.Fprint(w, "isProposed: true, ")
		}
		fmt.Fprint(w, "fields: []fieldType{\n")
		for j := range t.Fields {
			f := &t.Fields[j]
			if strings.Contains(f.Name, ".") || f.InsteadOf != "" {
				continue
			}
			takes := ""
			if f.IsRead() && t.IsFolded() {
				takes = strings.Join(f.Kinds(), " ")
			}
			isNeeded := f.IsRead() && f.IsNeeded() && t.Alternative(f.Name) == nil
			fmt.Fprintf(w, "{%q, %q, %t, %q, %t},\n", f.Name, f.Kind, f.Required, takes, isNeeded)
		}
		fmt.Fprint(w, "}},\n")
	}
	fmt.Fprint(w, "}\n")
}
