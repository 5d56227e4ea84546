// Package protocol reads events.json, the list of event types. All that the code knows about types as such is
// generated from it: see README.md and the folder generate.
package protocol

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
)

//go:embed events.json
var source []byte

// A List is what events.json says, in its order.
type List struct {
	Reference string // the package whose schemas have the same types and fields
	Rules     int    // the version of what the reducer makes of stored events
	Fields    fields // of every event
	Parts     []Part
	Question  Question
	Types     []Type
}

// A Question is how agents ask by an event of a type that does "ask".
type Question struct {
	Meaning string
	Name    string // of the event
	// Members are those of the interrupt, each with the paths in the event where it may stand, the first first.
	Members []QuestionMember
	Answers []string // the paths in an input where an answer may stand
}

// A QuestionMember is a member of the interrupt of a [Question].
type QuestionMember struct {
	Name  string
	Paths []string
}

// A Part is something that events open, continue and close.
type Part struct {
	Name       string
	Meaning    string
	ID         string // the field that names it; "" if nothing does
	OfSubagent bool   // two subagents may have one of the same name

	// The types that do so, in the order of the list.
	Starts, Continues, Ends, Chunks []string
}

// A Type is a type of events. README.md describes its members.
type Type struct {
	Name             string
	Meaning          string
	Since, Until     string
	Proposed         bool
	Became           string
	OlderClientsTake string
	Part             string
	Does             string
	Names            string
	Closes           string
	Brings           []string
	Changes          []string
	Effect           string
	Fields           fields
}

// A Field is a member of an event, or with a dot in its name, a part of one.
type Field struct {
	Name          string
	Meaning       string
	Kind          string
	Required      bool
	RequiredSince string
	Since         string
	Nullable      bool
	Values        []string
	Form          string
	InsteadOf     string

	// What the reducer does with it.
	Effect string
	Takes  string
	Needed *bool
	Limits []string
}

// Events returns the list of this checkout.
func Events() *List {
	list, err := Parse(source)
	if err != nil {
		panic(err) // a test reads it
	}
	return list
}

var roles = sync.OnceValue(func() map[string]*Type {
	roles := map[string]*Type{}
	types := Events().Types
	for i := range types {
		roles[types[i].Name] = &types[i]
	}
	return roles
})

// RoleOf returns what an event of a type does, to which part if it is about one, and the field that names what it is about. An
// unknown type does nothing.
func RoleOf(eventType string) (does, part, names string) {
	if t := roles()[eventType]; t != nil {
		return t.Does, t.Part, t.Names
	}
	return "", "", ""
}

// Parse reads a list, and checks that its parts fit together.
func Parse(text []byte) (*List, error) {
	var file struct {
		Reference string
		Rules     int
		Fields    fields
		Parts     inOrder[Part]
		Question  struct {
			Meaning, Name string
			Members       inOrder[[]string]
			Answers       []string
		}
		Types inOrder[Type]
	}
	if err := strictly(text, &file); err != nil {
		return nil, fmt.Errorf("events.json: %w", err)
	}
	l := &List{Reference: file.Reference, Rules: file.Rules}
	l.Fields = file.Fields
	l.Question = Question{Meaning: file.Question.Meaning, Name: file.Question.Name, Answers: file.Question.Answers}
	for _, m := range file.Question.Members {
		l.Question.Members = append(l.Question.Members, QuestionMember{m.name, m.value})
	}
	for _, p := range file.Parts {
		p.value.Name = p.name
		l.Parts = append(l.Parts, p.value)
	}
	for _, entry := range file.Types {
		t := entry.value
		t.Name = entry.name
		if t.Part != "" {
			p := l.part(t.Part)
			if p == nil {
				return nil, fmt.Errorf("events.json: %s: there is no part %q", t.Name, t.Part)
			}
			t.Names = p.ID
			switch t.Does {
			case "start":
				p.Starts = append(p.Starts, t.Name)
			case "continue":
				p.Continues = append(p.Continues, t.Name)
			case "end":
				p.Ends = append(p.Ends, t.Name)
			case "chunk":
				p.Chunks = append(p.Chunks, t.Name)
			default:
				return nil, fmt.Errorf("events.json: %s: an event of a part does start, continue, end or chunk, not %q", t.Name, t.Does)
			}
		}
		l.Types = append(l.Types, t)
	}
	return l, l.check()
}

// bringers are the ways of naming a message that agui_internal.brings_message knows.
var bringers = []string{"", "messageId", "parentMessageId toolCallId", "messages", "input.messages"}

// check looks for what the decoder cannot see.
func (l *List) check() error {
	kinds := []string{"any", "array", "boolean", "number", "object", "string"}
	for _, t := range l.Types {
		for _, name := range append(slices.Clone(t.Brings), t.Names) {
			if name != "" && t.Field(name) == nil {
				return fmt.Errorf("events.json: %s: it has no field %q", t.Name, name)
			}
		}
		for _, other := range []string{t.Became, t.OlderClientsTake} {
			if other != "" && l.Type(other) == nil {
				return fmt.Errorf("events.json: %s: there is no type %q", t.Name, other)
			}
		}
		if brings := strings.Join(t.Brings, " "); !slices.Contains(bringers, brings) {
			return fmt.Errorf("events.json: %s: nothing finds a message by %q", t.Name, brings)
		}
		if !slices.Contains([]string{"", "own", "named", "all"}, t.Closes) {
			return fmt.Errorf("events.json: %s: an event closes own, named or all lanes, not %q", t.Name, t.Closes)
		}
		for _, f := range t.Fields {
			for _, kind := range append(strings.Split(f.Kind, " | "), f.kindsTaken()...) {
				if !slices.Contains(kinds, kind) {
					return fmt.Errorf("events.json: %s: %s: there is no kind %q", t.Name, f.Name, kind)
				}
			}
			if (f.Meaning == "") == (f.Effect == "") {
				return fmt.Errorf("events.json: %s: %s: a field has either a meaning or an effect", t.Name, f.Name)
			}
		}
	}
	return nil
}

// Type returns the type of a name, nil if there is none.
func (l *List) Type(name string) *Type {
	for i := range l.Types {
		if l.Types[i].Name == name {
			return &l.Types[i]
		}
	}
	return nil
}

func (l *List) part(name string) *Part {
	for i := range l.Parts {
		if l.Parts[i].Name == name {
			return &l.Parts[i]
		}
	}
	return nil
}

// Those returns the names of the types for which is holds.
func (l *List) Those(is func(t *Type) bool) (names []string) {
	for i := range l.Types {
		if is(&l.Types[i]) {
			names = append(names, l.Types[i].Name)
		}
	}
	return names
}

// Field returns the field of a name, nil if there is none.
func (t *Type) Field(name string) *Field {
	for i := range t.Fields {
		if t.Fields[i].Name == name {
			return &t.Fields[i]
		}
	}
	return nil
}

// IsCurrent reports whether clients of the newest protocol know the type.
func (t *Type) IsCurrent() bool { return t.Until == "" && !t.Proposed }

// IsFolded reports whether the type has a meaning for the reducer.
func (t *Type) IsFolded() bool { return t.Until == "" && (t.Closes != "" || len(t.Changes) > 0) }

// IsRead reports whether the reducer reads the field.
func (f *Field) IsRead() bool { return f.Effect != "" }

// Kinds returns the JSON types that the reducer takes; nil means any.
func (f *Field) Kinds() []string {
	taken := f.kindsTaken()
	if taken == nil {
		taken = strings.Split(f.Kind, " | ")
	}
	if slices.Contains(taken, "any") {
		return nil
	}
	return taken
}

func (f *Field) kindsTaken() []string {
	if f.Takes == "" {
		return nil
	}
	return strings.Split(f.Takes, " | ")
}

// IsNeeded reports whether the reducer skips an event without the field.
func (f *Field) IsNeeded() bool {
	if f.Needed != nil {
		return *f.Needed
	}
	return f.Required
}

// Alternative returns the field that may stand in place of another one, nil if there is none.
func (t *Type) Alternative(name string) *Field {
	for i := range t.Fields {
		if t.Fields[i].InsteadOf == name {
			return &t.Fields[i]
		}
	}
	return nil
}

// --- reading ---

// inOrder is a JSON object that keeps the order of its members.
type inOrder[T any] []named[T]

type named[T any] struct {
	name  string
	value T
}

func (o *inOrder[T]) UnmarshalJSON(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if _, err := decoder.Token(); err != nil {
		return err
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return err
		}
		n := named[T]{name: key.(string)}
		if slices.ContainsFunc(*o, func(other named[T]) bool { return other.name == n.name }) {
			return fmt.Errorf("%s stands twice", n.name)
		}
		if err := decoder.Decode(&n.value); err != nil {
			return fmt.Errorf("%s: %w", n.name, err)
		}
		*o = append(*o, n)
	}
	return nil
}

type fields []Field

func (fs *fields) UnmarshalJSON(text []byte) error {
	var members inOrder[Field]
	if err := members.UnmarshalJSON(text); err != nil {
		return err
	}
	for _, m := range members {
		m.value.Name = m.name
		*fs = append(*fs, m.value)
	}
	return nil
}

func strictly(text []byte, to any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	return decoder.Decode(to)
}
