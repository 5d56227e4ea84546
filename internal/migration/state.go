package migration

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// state is what a database holds, as the sources or a chain of migrations describe it.
type state struct {
	objects []*object // in the order in which they were created
	byKey   map[string]*object
}

func newState() *state { return &state{byKey: map[string]*object{}} }

// pathMarker begins the line that says where a part of a migration comes from.
const pathMarker = "-- sql/functions/"

// readSources reads what the sources describe, in the order of their paths.
func readSources(functions fs.FS) (*state, error) {
	state := newState()
	err := fs.WalkDir(functions, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(file) != ".sql" {
			return err
		}
		content, err := fs.ReadFile(functions, file)
		if err != nil {
			return err
		}
		for _, statement := range splitStatements(string(content)) {
			if err := state.addStatement(file, statement); err != nil {
				return fmt.Errorf("sql/functions/%s:%d: %w", file, statement.line, err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(state.objects) == 0 {
		return nil, errors.New("no SQL files in sql/functions")
	}
	state.objects, err = inOrderOfNeed(state.objects)
	return state, err
}

func (s *state) addStatement(file string, statement statement) error {
	created, err := createdBy(statement)
	if err != nil {
		return err
	}
	if created != nil && created.kind != "table" && created.kind != "index" {
		if other := s.find(created.key()); other != nil {
			// Calls of overloaded functions become ambiguous when an argument with a default is added, and \df lists them twice.
			return fmt.Errorf("%s is created in sql/functions/%s too: give it another name", created.name, other.path)
		}
		created.path = file
		s.add(created)
		return nil
	}
	if keys, subject := subjectOf(statement); len(keys) > 0 {
		if object := s.find(keys...); object != nil && object.path == file {
			object.attributes = append(object.attributes, attribute{subject, statement})
			return nil
		}
		return fmt.Errorf("%q is about nothing that this file has created before", beginning(statement))
	}
	return fmt.Errorf("cannot tell how to take back %q: name objects as agui.name or agui_internal.name, or put the statement into a migration",
		beginning(statement))
}

func beginning(statement statement) string {
	words := strings.Fields(statement.String())
	return strings.Join(words[:min(5, len(words))], " ") + " …"
}

// apply changes the state as an up migration changes a database. It follows the objects that have a name in a schema of pgagui; what
// else the migration does is its own.
func (s *state) apply(up string) error {
	for _, section := range sections(Body(up)) {
		for _, statement := range splitStatements(section.text) {
			if err := s.applyStatement(section.path, statement); err != nil {
				return fmt.Errorf("line %d of the part %s: %w", statement.line, section.path, err)
			}
		}
	}
	return nil
}

func (s *state) applyStatement(path string, statement statement) error {
	created, err := createdBy(statement)
	if err != nil {
		return err
	}
	if created != nil {
		created.path = path
		if previous := s.find(created.key()); previous != nil {
			created.attributes = previous.attributes // they stay when an object is replaced
			*previous = *created
			return nil
		}
		s.add(created)
		return nil
	}
	if keys, subject := subjectOf(statement); len(keys) > 0 {
		if object := s.find(keys...); object != nil {
			object.setAttribute(attribute{subject, statement})
		}
		return nil
	}
	for _, key := range droppedBy(statement) {
		s.remove(key)
	}
	return nil
}

func (o *object) setAttribute(set attribute) {
	o.attributes = slices.DeleteFunc(o.attributes, func(a attribute) bool { return a.subject == set.subject })
	if !strings.HasSuffix(strings.ToLower(set.String()), " is null") {
		o.attributes = append(o.attributes, set)
	}
}

func (s *state) find(keys ...string) *object {
	for _, key := range keys {
		if object := s.byKey[key]; object != nil {
			return object
		}
	}
	return nil
}

func (s *state) add(added *object) {
	s.objects = append(s.objects, added)
	s.byKey[added.key()] = added
}

// remove takes an object away, and what goes with a table.
func (s *state) remove(key string) {
	table, isTable := strings.CutPrefix(key, "table ")
	s.objects = slices.DeleteFunc(s.objects, func(o *object) bool {
		goes := o.key() == key || isTable && (o.kind == "trigger" || o.kind == "index") && slices.Contains(o.create.mentions(), table)
		if goes {
			delete(s.byKey, o.key())
		}
		return goes
	})
}

// withTablesOf adds the tables and indexes of another state, which no source describes.
func (s *state) withTablesOf(other *state) *state {
	joined := newState()
	for _, object := range s.objects {
		joined.add(object)
	}
	for _, object := range other.objects {
		if object.kind == "table" || object.kind == "index" {
			joined.add(object)
		}
	}
	return joined
}

// section is a part of a migration: what comes from one source, or, without a path, what was written by hand.
type section struct {
	path string
	text string
}

// sections splits a migration at the lines that say where its parts come from.
func sections(text string) []section {
	var all []section
	path, rest := "", "\n"+text
	for {
		before, after, found := strings.Cut(rest, "\n"+pathMarker)
		all = append(all, section{path, strings.TrimSpace(before)})
		if !found {
			return all
		}
		end := max(0, strings.IndexByte(after, '\n'))
		path, rest = after[:end], after[end:]
	}
}

// inOrderOfNeed puts an object after those that its statement mentions, and otherwise keeps the order.
func inOrderOfNeed(objects []*object) ([]*object, error) {
	named := map[string][]*object{}
	for _, object := range objects {
		named[object.name] = append(named[object.name], object)
	}
	var ordered, open []*object
	placed := map[*object]bool{}
	var place func(*object) error
	place = func(next *object) error {
		if placed[next] {
			return nil
		}
		if slices.Contains(open, next) {
			return fmt.Errorf("sql/functions/%s and sql/functions/%s need each other to be created first", next.path, open[len(open)-1].path)
		}
		open = append(open, next)
		for _, name := range next.create.mentions() {
			for _, needed := range named[name] {
				if needed == next {
					continue
				}
				if err := place(needed); err != nil {
					return err
				}
			}
		}
		open = open[:len(open)-1]
		ordered = append(ordered, next)
		placed[next] = true
		return nil
	}
	for _, object := range objects {
		if err := place(object); err != nil {
			return nil, err
		}
	}
	return ordered, nil
}
