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

// parsed is a statement, and the object that it creates, if it creates one of a kind that is tracked.
type parsed struct {
	statement
	created *object
}

// parser remembers what it has parsed: a release and the sources share most texts.
type parser map[string][]parsed

func (p parser) parse(text string) ([]parsed, error) {
	text = strings.TrimRight(text, whiteSpace)
	if all, ok := p[text]; ok {
		return all, nil
	}
	var all []parsed
	for _, statement := range splitStatements(text) {
		created, err := createdBy(statement)
		if err != nil {
			return nil, fmt.Errorf("%d: %w", statement.line, err)
		}
		all = append(all, parsed{statement, created})
	}
	p[text] = all
	return all, nil
}

// object is a new copy of the created one, without attributes.
func (p parsed) object(path string) *object {
	object := *p.created
	object.path = path
	return &object
}

// readSources reads what the sources describe, in the order of their paths.
func readSources(parser parser, functions fs.FS) (*state, error) {
	state := newState()
	err := fs.WalkDir(functions, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(file) != ".sql" {
			return err
		}
		content, err := fs.ReadFile(functions, file)
		if err != nil {
			return err
		}
		statements, err := parser.parse(withoutHead(string(content)))
		if err != nil {
			return fmt.Errorf("sql/functions/%s:%w", file, err)
		}
		for _, statement := range statements {
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

// withoutHead removes the comment that a source begins with, which is about the file and not about its first object, but keeps its lines.
func withoutHead(text string) string {
	head, rest, _ := strings.Cut(text, "\n\n")
	for line := range strings.Lines(head) {
		if !strings.HasPrefix(line, "--") {
			return text
		}
	}
	return strings.Repeat("\n", strings.Count(head, "\n")+2) + rest
}

func (s *state) addStatement(file string, statement parsed) error {
	if created := statement.created; created != nil && created.kind != "table" && created.kind != "index" {
		if other := s.find(created.key()); other != nil {
			// Calls of overloaded functions become ambiguous when an argument with a default is added, and \df lists them twice.
			return fmt.Errorf("%s is created in sql/functions/%s too: give it another name", created.name, other.path)
		}
		object := statement.object(file)
		if groupOf(object.kind) == "routine" {
			object.attributes = []attribute{isClosed(object.name)}
		}
		s.add(object)
		return nil
	}
	if keys, set := attributeOf(statement.statement); len(keys) > 0 {
		if object := s.find(keys...); object != nil && object.path == file {
			object.setAttribute(set)
			return nil
		}
		return fmt.Errorf("%q is about nothing that this file has created before", beginning(statement.statement))
	}
	return fmt.Errorf("cannot tell how to take back %q: name objects as agui.name or agui_internal.name, or put the statement into a migration",
		beginning(statement.statement))
}

func beginning(statement statement) string {
	words := strings.Fields(statement.String())
	return strings.Join(words[:min(5, len(words))], " ") + " …"
}

// apply changes the state as an up migration changes a database. It follows the objects that have a name in a schema of pgagui; what
// else the migration does is its own.
func (s *state) apply(parser parser, up string) error {
	for _, section := range sections(Body(up)) {
		statements, err := parser.parse(section.text)
		if err != nil {
			return fmt.Errorf("the part %s:%w", section.path, err)
		}
		for _, statement := range statements {
			s.applyStatement(section.path, statement)
		}
	}
	return nil
}

func (s *state) applyStatement(path string, statement parsed) {
	if statement.created != nil {
		created := statement.object(path)
		if previous := s.find(created.key()); previous != nil {
			created.attributes = previous.attributes // they stay when an object is replaced
			*previous = *created
			return
		}
		s.add(created)
		return
	}
	if keys, set := attributeOf(statement.statement); len(keys) > 0 {
		if object := s.find(keys...); object != nil {
			object.setAttribute(set)
		}
		return
	}
	for _, key := range droppedBy(statement.statement) {
		s.remove(key)
	}
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
		goes := o.key() == key || isTable && (o.kind == "trigger" || o.kind == "index") && slices.Contains(o.needs, table)
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
		for _, name := range next.needs {
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
