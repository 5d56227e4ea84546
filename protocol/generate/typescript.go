package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/pgagui/pgagui/protocol"
)

// runner writes what the CopilotKit runner knows of types: those of the clients that it serves, which speak version 0.
func runner(l *protocol.List) ([]byte, error) {
	var w bytes.Buffer
	fmt.Fprintf(&w, "// %s\n\n", notice)
	fmt.Fprint(&w, "/** What events open, continue and close: the types that begin it, go on with it and end it, and the field that names it. */\n")
	fmt.Fprint(&w, "export const parts = {\n")
	for _, p := range l.Parts {
		fmt.Fprintf(&w, "  %q: { id: %q, start: %q, piece: %q, end: %q },\n", p.Name, p.ID, first(p.Starts), first(p.Continues), first(p.Ends))
	}
	fmt.Fprint(&w, "} as const;\n\nexport type Part = keyof typeof parts;\n\n")
	fmt.Fprint(&w, "/** What each type does, and to which part. */\nexport const actions: ReadonlyMap<string, { does: string; part?: Part }> = new Map([\n")
	for _, t := range l.Types {
		part := ""
		if t.Part != "" {
			part = fmt.Sprintf(", part: %q", t.Part)
		}
		fmt.Fprintf(&w, "  [%q, { does: %q%s }],\n", t.Name, t.Does, part)
	}
	fmt.Fprint(&w, "] as const);\n\n/** The types that end the stream of chunks of their agent. */\nexport const closesLane: ReadonlySet<string> = new Set([\n")
	writeNames(&w, l.Those(func(t *protocol.Type) bool { return t.Closes == "own" || t.Closes == "named" }))
	fmt.Fprint(&w, "]);\n\n/** The types of newer clients, with those that take their place. */\n")
	fmt.Fprint(&w, "export const instead: ReadonlyMap<string, string> = new Map<string, string>([\n")
	for _, t := range l.Types {
		if t.OlderClientsTake != "" {
			fmt.Fprintf(&w, "  [%q, %q],\n", t.Name, t.OlderClientsTake)
		}
	}
	fmt.Fprint(&w, "]);\n\n/** The types of older protocols, with those that took their place. */\n")
	fmt.Fprint(&w, "export const became: ReadonlyMap<string, string> = new Map([\n")
	for _, t := range l.Types {
		if t.Became != "" && !t.Proposed {
			fmt.Fprintf(&w, "  [%q, %q],\n", t.Name, t.Became)
		}
	}
	fmt.Fprint(&w, "]);\n\n/** The members of each type, by what they hold: a kind or form of values, or these words. With ?, it may be absent. */\n")
	fmt.Fprint(&w, "export const schemas: Readonly<Record<string, Readonly<Record<string, string | readonly string[]>>>> = {\n")
	for i := range l.Types {
		t := &l.Types[i]
		if clientsSince(t.Since) != "allClients" || t.Proposed {
			continue
		}
		var members []string
		for _, f := range t.Fields {
			if !isInSchema(t, &f) || f.Since != "" || f.Name == "subagentRunId" && !f.Required {
				continue
			}
			name, holds := f.Name, fmt.Sprintf("%q", f.Kind)
			if !f.Required {
				name = fmt.Sprintf("%q", name+"?")
			}
			switch {
			case f.Form != "":
				holds = fmt.Sprintf("%q", f.Form)
			case f.Values != nil:
				holds = "[" + strings.Join(quoted(f.Values), ", ") + "]"
			}
			members = append(members, name+": "+holds)
		}
		body := "{}"
		if members != nil {
			body = "{ " + strings.Join(members, ", ") + " }"
		}
		fmt.Fprintf(&w, "  %s: %s,\n", t.Name, body)
	}
	fmt.Fprint(&w, "};\n")
	return w.Bytes(), nil
}

// client writes what the package for clients knows of types.
func client(l *protocol.List) ([]byte, error) {
	var w bytes.Buffer
	fmt.Fprintf(&w, "// %s\n\n/** The types that are about reasoning and activities, not about what is said. */\n", notice)
	fmt.Fprint(&w, "export const aside: ReadonlySet<string> = new Set([\n")
	writeNames(&w, l.Those(func(t *protocol.Type) bool {
		for _, what := range t.Changes {
			if what != "reasoning" && what != "activities" {
				return false
			}
		}
		return t.Changes != nil || t.Part == "span" || strings.HasPrefix(t.Part, "thinking")
	}))
	fmt.Fprint(&w, "]);\n")
	return w.Bytes(), nil
}

func writeNames(w *bytes.Buffer, names []string) {
	for _, name := range names {
		fmt.Fprintf(w, "  %q,\n", name)
	}
}
