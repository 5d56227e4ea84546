package generator

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/pgagui/pgagui/internal/migration"
)

// state is what a database holds, as the sources or a chain of migrations describe it.
type state struct {
	objects    []*object // in the order in which they were created
	privileges []section // the files of sql/privileges
}

// section is a part of a generated migration: what comes from one source.
type section struct {
	path string
	text string
}

const (
	privilegesFolder = "privileges"
	pathMarker       = "-- sql/"
)

// sourceFolders are read in this order, and the files of each in the order of their paths.
var sourceFolders = []string{"api", "internal", privilegesFolder}

// readSources reads what the sources describe.
func readSources(sql fs.FS) (*state, error) {
	state := &state{}
	for _, folder := range sourceFolders {
		err := fs.WalkDir(sql, folder, func(file string, entry fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) || err == nil && (entry.IsDir() || path.Ext(file) != ".sql") {
				return nil
			}
			if err != nil {
				return err
			}
			content, err := fs.ReadFile(sql, file)
			if err != nil {
				return err
			}
			return state.addSource(file, string(content))
		})
		if err != nil {
			return nil, err
		}
	}
	if len(state.objects) == 0 {
		return nil, fmt.Errorf("no SQL files in %v", sourceFolders)
	}
	var err error
	state.objects, err = inOrderOfNeed(state.objects)
	return state, err
}

func (s *state) addSource(file, content string) error {
	if strings.HasPrefix(file, privilegesFolder+"/") {
		s.privileges = append(s.privileges, section{file, strings.TrimSpace(content)})
		return nil
	}
	for _, statement := range splitStatements(content) {
		if err := s.addStatement(file, statement); err != nil {
			return fmt.Errorf("sql/%s:%d: %w", file, statement.line, err)
		}
	}
	return nil
}

func (s *state) addStatement(file string, statement statement) error {
	created, err := createdBy(statement)
	if err != nil {
		return err
	}
	if created != nil && created.kind != "table" && created.kind != "index" {
		if other := s.find(created.key()); other != nil {
			// Calls of overloaded functions become ambiguous when an argument with a default is added, and \df lists them twice.
			return fmt.Errorf("%s is created in sql/%s too: give it another name", created.name, other.path)
		}
		created.path = file
		s.objects = append(s.objects, created)
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
func (s *state) apply(up []byte) error {
	privileges := map[string]string{}
	for _, section := range sections(string(migration.Body(up))) {
		if strings.HasPrefix(section.path, privilegesFolder+"/") {
			privileges[section.path] = section.text
			continue
		}
		for _, statement := range splitStatements(section.text) {
			if err := s.applyStatement(section.path, statement); err != nil {
				return fmt.Errorf("line %d of the part %s: %w", statement.line, section.path, err)
			}
		}
	}
	if len(privileges) > 0 {
		s.privileges = nil
		for path, text := range privileges {
			s.privileges = append(s.privileges, section{path, text})
		}
		slices.SortFunc(s.privileges, func(a, b section) int { return strings.Compare(a.path, b.path) })
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
		s.objects = append(s.objects, created)
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
	for _, object := range s.objects {
		if slices.Contains(keys, object.key()) {
			return object
		}
	}
	return nil
}

// remove takes an object away, and what goes with a table.
func (s *state) remove(key string) {
	table, isTable := strings.CutPrefix(key, "table ")
	s.objects = slices.DeleteFunc(s.objects, func(o *object) bool {
		return o.key() == key || isTable && (o.kind == "trigger" || o.kind == "index") && slices.Contains(o.create.mentions(), table)
	})
}

// copy is a state that later changes of this one do not reach.
func (s *state) copy() *state {
	copied := &state{privileges: slices.Clone(s.privileges)}
	for _, object := range s.objects {
		duplicate := *object
		duplicate.attributes = slices.Clone(object.attributes)
		copied.objects = append(copied.objects, &duplicate)
	}
	return copied
}

// withTablesOf adds the tables and indexes of another state, which no source describes.
func (s *state) withTablesOf(other *state) *state {
	joined := s.copy()
	for _, object := range other.objects {
		if object.kind == "table" || object.kind == "index" {
			joined.objects = append(joined.objects, object)
		}
	}
	return joined
}

// sections splits a generated migration at the lines that say where its parts come from.
func sections(text string) []section {
	var all []section
	path, rest := "", text
	for {
		before, after, found := strings.Cut("\n"+rest, "\n"+pathMarker)
		all = append(all, section{path, strings.TrimSpace(before)})
		if !found {
			return all
		}
		path, rest, _ = strings.Cut(after, "\n")
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
			return fmt.Errorf("sql/%s and sql/%s need each other to be created first", next.path, open[len(open)-1].path)
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
