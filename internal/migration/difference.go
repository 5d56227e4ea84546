package migration

import (
	"fmt"
	"slices"
	"strings"
)

// difference is the SQL that makes of a database with one state one with another. It drops what is gone and what PostgreSQL cannot
// replace as it is, with what depends on that, and creates it; everything else is replaced in place, so that calls in
// progress, dependents and privileges keep what they have. It is empty when the states are the same.
func difference(from, to *state) (string, error) {
	dropped := toDrop(from, to)
	touched, err := toTouch(from, to, dropped)
	if err != nil {
		return "", err
	}

	var drops, changes writer
	before, err := inOrderOfNeed(from.objects)
	if err != nil {
		return "", err
	}
	after, err := inOrderOfNeed(to.objects)
	if err != nil {
		return "", err
	}
	for _, object := range slices.Backward(before) {
		if dropped[object.key()] {
			drops.WriteString(object.drop() + ";\n")
		}
	}
	for _, object := range after {
		previous := from.find(object.key())
		switch {
		case object.kind == "table" || object.kind == "index":
			continue
		case previous == nil || dropped[object.key()]:
			changes.object(object, object.attributes)
			continue
		}
		attributes, err := changedAttributes(previous, object)
		if err != nil {
			return "", fmt.Errorf("sql/functions/%s: %w", object.path, err)
		}
		if previous.create.String() != object.create.String() || touched[object.key()] {
			changes.object(object, attributes)
		} else if len(attributes) > 0 {
			changes.attributes(object.path, attributes)
		}
	}

	var all strings.Builder
	if drops.Len() > 0 {
		all.WriteString(drops.String() + "\n")
	}
	if changes.Len() > 0 {
		// Functions may call each other in any order: bodies in quotes are not looked at when a function is created. Set and
		// reset rather than "set local", which does nothing when a tool sends statement by statement.
		fmt.Fprintf(&all, "set check_function_bodies = off;\n\n%sreset check_function_bodies;\n\n", changes.String())
	}
	return all.String(), nil
}

// toDrop returns the keys of what must go from a state on the way to another one.
func toDrop(from, to *state) map[string]bool {
	dropped := map[string]bool{}
	names := map[string]bool{}
	drop := func(object *object) {
		dropped[object.key()] = true
		if object.kind != "trigger" {
			names[object.name] = true
		}
	}
	for _, object := range from.objects {
		if object.kind == "table" || object.kind == "index" {
			continue
		}
		if next := to.find(object.key()); next == nil || next.create.String() != object.create.String() && !canReplace(object, next) {
			drop(object)
		}
	}
	// Dependents of a dropped object would block its drop.
	for grown := true; grown; {
		grown = false
		for _, object := range from.objects {
			if dropped[object.key()] || object.kind == "table" || object.kind == "index" {
				continue
			}
			for _, name := range object.needs {
				if names[name] && name != object.name {
					drop(object)
					grown = true
					break
				}
			}
		}
	}
	return dropped
}

// canReplace reports whether CREATE OR REPLACE makes of an object what it is to become.
func canReplace(from, to *object) bool {
	if from.kind != to.kind || !strings.HasPrefix(strings.ToLower(to.create.String()), "create or replace ") {
		return false
	}
	switch from.kind {
	case "function", "procedure":
		if !strings.EqualFold(from.signature(), to.signature()) || from.returns != to.returns {
			return false
		}
		for i, argument := range from.arguments {
			if argument.hasDefault && !to.arguments[i].hasDefault {
				return false
			}
		}
		return true
	case "trigger":
		return true
	case "view":
		columns, known := viewColumns(from.create)
		nextColumns, nextKnown := viewColumns(to.create)
		return known && nextKnown && len(columns) <= len(nextColumns) && slices.Equal(columns, nextColumns[:len(columns)])
	}
	return false
}

// viewColumns returns the names of the columns of a view, as far as its statement tells.
func viewColumns(create statement) (columns []string, known bool) {
	var (
		item      []token
		depth     int
		isInList  bool
		lastWord  string
		allKnown  = true
		addColumn = func() {
			item = slices.DeleteFunc(item, func(t token) bool { return t.text == " " })
			if len(item) == 0 {
				allKnown = false
				return
			}
			last := item[len(item)-1]
			if !last.isWord && !strings.HasPrefix(last.text, `"`) {
				allKnown = false
				return
			}
			columns = append(columns, strings.Trim(last.text, `"`))
			item = nil
		}
	)
	for token := range tokens(create.text) {
		switch {
		case token.text == "(" || token.text == "[":
			depth++
		case token.text == ")" || token.text == "]":
			depth--
		case depth == 0 && !isInList && token.is("select"):
			isInList = true
			continue
		case depth == 0 && isInList && token.text == ",":
			addColumn()
			continue
		case depth == 0 && isInList && token.is("from") && !strings.EqualFold(lastWord, "distinct"):
			addColumn()
			return columns, allKnown
		}
		if token.isWord {
			lastWord = token.text
		}
		if isInList {
			item = append(item, token)
		}
	}
	return nil, false
}

// toTouch returns the keys of routines that stay as they are but hold, in variables of their bodies, the identity of a type that is
// recreated. Replacing them makes sessions that have run them read their bodies once more.
func toTouch(from, to *state, dropped map[string]bool) (map[string]bool, error) {
	types := map[string]bool{}
	for _, object := range from.objects {
		if dropped[object.key()] && (object.kind == "type" || object.kind == "domain" || object.kind == "view") {
			types[object.name] = true
		}
	}
	touched := map[string]bool{}
	if len(types) == 0 {
		return touched, nil
	}
	for _, object := range to.objects {
		if groupOf(object.kind) != "routine" || dropped[object.key()] {
			continue
		}
		name := object.create.mentionsAnywhere(types)
		if name == "" {
			continue
		}
		if previous := from.find(object.key()); previous != nil && !canReplace(previous, object) {
			return nil, fmt.Errorf(`sql/functions/%s: its body names %s, which is recreated: begin it with "create or replace"`, object.path, name)
		}
		touched[object.key()] = true
	}
	return touched, nil
}

// changedAttributes are those that an object gets beside what it has.
func changedAttributes(from, to *object) ([]attribute, error) {
	var changed []attribute
	for _, old := range from.attributes {
		if slices.ContainsFunc(to.attributes, func(next attribute) bool { return next.subject == old.subject }) {
			continue
		}
		if !strings.HasPrefix(strings.ToLower(old.subject), "comment on ") {
			return nil, fmt.Errorf("%q is gone: take it back in a migration written by hand", beginning(old.statement))
		}
		changed = append(changed, attribute{old.subject, splitStatements(old.subject + " is null;")[0]})
	}
	for _, next := range to.attributes {
		if !slices.ContainsFunc(from.attributes, func(old attribute) bool { return old.String() == next.String() }) {
			changed = append(changed, next)
		}
	}
	return changed, nil
}

// writer writes statements, and above them where they come from.
type writer struct {
	strings.Builder
	path string
}

func (w *writer) statement(text string) { w.WriteString(text + "\n\n") }

func (w *writer) from(path string) {
	if path != w.path {
		w.WriteString(pathMarker + path + "\n")
		w.path = path
	}
}

func (w *writer) object(object *object, attributes []attribute) {
	w.from(object.path)
	w.statement(object.create.source)
	w.attributes(object.path, attributes)
}

func (w *writer) attributes(path string, attributes []attribute) {
	w.from(path)
	for _, attribute := range attributes {
		w.statement(attribute.source)
	}
}
