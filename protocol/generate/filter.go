package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/pgagui/pgagui/protocol"
)

// filter writes the tables of package accept: what the schemas of clients say of each type, and what its events do.
func filter(w *bytes.Buffer, l *protocol.List) {
	fmt.Fprint(w, "package accept\n\n// The members of events that the clients' schemas describe.\nconst (\nnoField field = iota\nfieldType\n")
	names := []string{"type"}
	for _, t := range l.Types {
		for _, f := range slices.Concat(l.Fields, t.Fields) {
			if isInSchema(&t, &f) && !slices.Contains(names, f.Name) {
				names = append(names, f.Name)
				fmt.Fprintln(w, fieldInGo(f.Name))
			}
		}
	}
	fmt.Fprint(w, "fieldCount\n)\n\nvar fieldNames = [fieldCount]string{\n")
	for _, name := range names {
		fmt.Fprintf(w, "%s: %q,\n", fieldInGo(name), name)
	}
	fmt.Fprint(w, "}\n\nfunc fieldOf(key string) field {\nswitch key {\n")
	for _, name := range names {
		fmt.Fprintf(w, "case %q:\nreturn %s\n", name, fieldInGo(name))
	}
	fmt.Fprint(w, "default:\nreturn noField\n}\n}\n\n// What events open and close.\nconst (\nnoPart partKind = iota\n")
	for _, p := range l.Parts {
		fmt.Fprintln(w, partInGo(p.Name))
	}
	fmt.Fprint(w, ")\n\nvar partKinds = [...]struct {\nstarts, ends string\nid field\n}{\n")
	for _, p := range l.Parts {
		id := "noField"
		if p.ID != "" {
			id = fieldInGo(p.ID)
		}
		fmt.Fprintf(w, "%s: {%q, %q, %s},\n", partInGo(p.Name), first(p.Starts), first(p.Ends), id)
	}
	fmt.Fprint(w, "}\n\n// What events do.\nconst (\n")
	for i, does := range actions(l) {
		fmt.Fprint(w, actionInGo(does))
		if i == 0 {
			fmt.Fprint(w, " action = iota")
		}
		fmt.Fprintln(w)
	}
	fmt.Fprint(w, ")\n\nvar eventKinds = map[string]*eventKind{\n")
	for i := range l.Types {
		t := &l.Types[i]
		if t.Proposed {
			continue
		}
		fmt.Fprintf(w, "%q: {\ndoes: %s,\n", t.Name, actionInGo(t.Does))
		if t.Part != "" {
			fmt.Fprintf(w, "part: %s,\n", partInGo(t.Part))
		}
		if t.Closes == "own" || t.Closes == "named" {
			fmt.Fprint(w, "closesLane: true,\n")
		}
		fmt.Fprintf(w, "knownTo: %s,\n", clientsSince(t.Since))
		if t.OlderClientsTake != "" {
			fmt.Fprintf(w, "instead: %q,\n", t.OlderClientsTake)
		}
		fmt.Fprint(w, "rules: []eventRule{\n")
		if tag := t.Field("subagentRunId"); tag == nil || tag.Since != "" {
			fmt.Fprint(w, "{field: fieldSubagentRunID, check: isNoNullTag},\n")
		}
		for _, f := range slices.Concat(t.Fields, l.Fields) {
			if isInSchema(t, &f) {
				fmt.Fprintln(w, filterRule(&f))
			}
		}
		fmt.Fprint(w, "},\n},\n")
	}
	fmt.Fprint(w, "}\n")
}

// isInSchema reports whether the clients' schemas say anything of a field. Common fields have their rule once.
func isInSchema(t *protocol.Type, f *protocol.Field) bool {
	isFreeForm := f.Kind == "any" && !f.Required
	return !t.Proposed && !strings.Contains(f.Name, ".") && f.InsteadOf == "" && !isFreeForm && (f.Name != "metadata" || f.Effect == "")
}

func filterRule(f *protocol.Field) string {
	check := "is" + inGo(f.Kind)
	switch {
	case f.Form != "":
		check = "is" + inGo(f.Form)
	case f.Name == "timestamp":
		check = "isTimestamp"
	case f.Values != nil:
		check = "oneOf(" + strings.Join(quoted(f.Values), ", ") + ")"
	}
	if f.Since != "" {
		check = fmt.Sprintf("only(%s, %s)", clientsSince(f.Since), check)
	}
	rule := fmt.Sprintf("{field: %s, check: %s", fieldInGo(f.Name), check)
	if f.Required {
		rule += ", need: " + clientsSince(f.RequiredSince)
	}
	if f.Nullable {
		rule += ", nullable: true"
	}
	return rule + "},"
}

// clientsSince returns the clients that speak a major version of the protocol, or a newer one.
func clientsSince(version string) string {
	switch version {
	case "", "0":
		return "allClients"
	case "1":
		return "Client1"
	default:
		return "0"
	}
}

func quoted(values []string) (quoted []string) {
	for _, value := range values {
		quoted = append(quoted, fmt.Sprintf("%q", value))
	}
	return quoted
}
