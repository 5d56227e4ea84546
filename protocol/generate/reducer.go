package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/pgagui/pgagui/protocol"
)

// reducer writes the tables of package compaction.
func reducer(w *bytes.Buffer, l *protocol.List) {
	fmt.Fprint(w, "package compaction\n\n")
	fmt.Fprintf(w, "// Rules is the version of the rules that a [Fold] follows. A fold of other rules may mean something else.\nconst Rules = %d\n\n", l.Rules)
	fields := fieldsRead(l)
	fmt.Fprint(w, "// The fields of events that the reducer reads, and those that it must tell from unknown ones.\nconst (\n")
	for i, name := range fields {
		fmt.Fprint(w, fieldInGo(name))
		if i == 0 {
			fmt.Fprint(w, " field = iota")
		}
		fmt.Fprintln(w)
	}
	fmt.Fprint(w, "fieldOther // all others\nfieldCount\n)\n\n")
	fmt.Fprint(w, "func fieldOf(key string) field {\nswitch key {\n")
	for _, name := range fields {
		fmt.Fprintf(w, "case %q:\nreturn %s\n", name, fieldInGo(name))
	}
	fmt.Fprint(w, "default:\nreturn fieldOther\n}\n}\n\n")

	fmt.Fprint(w, "// What events open, continue and close.\nconst (\nnoPart partKind = iota\n")
	for _, p := range l.Parts {
		fmt.Fprintf(w, "%s // %s\n", partInGo(p.Name), p.Meaning)
	}
	fmt.Fprint(w, ")\n\nvar partKinds = [...]partEvents{\n")
	for _, p := range l.Parts {
		fmt.Fprintf(w, "%s: {%q, %q, %q, %q},\n", partInGo(p.Name), first(p.Starts), first(p.Continues), first(p.Ends), p.ID)
	}
	fmt.Fprint(w, "}\n\n// What events do.\nconst (\n")
	for i, does := range actions(l) {
		fmt.Fprint(w, actionInGo(does))
		if i == 0 {
			fmt.Fprint(w, " action = iota")
		}
		fmt.Fprintln(w)
	}
	fmt.Fprint(w, ")\n\nvar eventTypes = map[string]*eventType{\n")
	for i := range l.Types {
		t := &l.Types[i]
		members := []string{"does: " + actionInGo(t.Does)}
		if t.Part != "" {
			members = append(members, "part: "+partInGo(t.Part))
		}
		if t.Became != "" {
			members = append(members, fmt.Sprintf("became: %q", t.Became))
		}
		if t.IsFolded() {
			members = append(members, "isFolded: true")
			if t.Closes != "" {
				closes := map[string]string{"own": "ownLane", "named": "namedLane", "all": "allLanes"}[t.Closes]
				members = append(members, "closes: "+closes)
			}
			members = append(members, shape(t)...)
		}
		fmt.Fprintf(w, "%q: {%s},\n", t.Name, strings.Join(members, ", "))
	}
	fmt.Fprintf(w, "}\n\n// questionName is the name of an event that asks.\nconst questionName = %q\n\n", l.Question.Name)
	fmt.Fprint(w, "// questionMembers are the members of the interrupt that it makes, and where they may stand.\nvar questionMembers = []questionMember{\n")
	for _, m := range l.Question.Members {
		fmt.Fprintf(w, "{%q, [][]string{", m.Name)
		for _, path := range m.Paths {
			fmt.Fprintf(w, "{\"%s\"},", strings.ReplaceAll(path, ".", `", "`))
		}
		fmt.Fprint(w, "}},\n")
	}
	fmt.Fprint(w, "}\n")
}

// fieldsRead returns the names of the fields in the order of the list, the type first.
func fieldsRead(l *protocol.List) []string {
	names := []string{"type"}
	add := func(name string) {
		if !slices.Contains(names, name) && !strings.Contains(name, ".") {
			names = append(names, name)
		}
	}
	for _, t := range l.Types {
		if !t.IsFolded() {
			continue
		}
		for _, f := range t.Fields {
			if f.IsRead() {
				add(f.Name)
			}
		}
	}
	for _, f := range l.Fields {
		add(f.Name)
	}
	return names
}

// shape writes which JSON types the fields of an event need to have.
func shape(t *protocol.Type) []string {
	var members []string
	for _, f := range t.Fields {
		kinds := f.Kinds()
		if !f.IsRead() || kinds == nil || strings.Contains(f.Name, ".") || f.InsteadOf != "" {
			continue
		}
		for i, kind := range kinds {
			kinds[i] = "is" + inGo(kind)
		}
		isNeeded := f.IsNeeded() && t.Alternative(f.Name) == nil
		members = append(members, fmt.Sprintf("{%s, %s, %t}", fieldInGo(f.Name), strings.Join(kinds, " | "), isNeeded))
	}
	if members == nil {
		return nil
	}
	return []string{"shape: shape{" + strings.Join(members, ", ") + "}"}
}

// actions returns what the types do, each once.
func actions(l *protocol.List) []string {
	all := []string{""}
	for _, t := range l.Types {
		if !slices.Contains(all, t.Does) {
			all = append(all, t.Does)
		}
	}
	return all
}

func first(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return names[0]
}
