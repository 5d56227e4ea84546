package migration

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

const (
	header = "-- Made by pgagui from sql/functions."
	suffix = "_functions"
)

// Assemble returns the migrations of a version of pgagui in order: those in the folder schema, to which it adds their records unless they are
// released, and one more for what the folder functions says beyond them. That one is unreleased: another build may have another one of its
// number. So its record has the sources, from which [FromUnreleased] goes on.
func Assemble(functions, schema fs.FS) ([]Migration, error) { return chainOf(functions, schema, true) }

// Versions returns what [Assemble] returns without the SQL, in a third of the time.
func Versions(functions, schema fs.FS) ([]Migration, error) {
	a, err := newAssembly(functions, schema, true)
	if err != nil {
		return nil, err
	}
	for i := range a.migrations {
		a.migrations[i].Up, a.migrations[i].Down = "", ""
	}
	return a.migrations, nil
}

func chainOf(functions, schema fs.FS, isUnreleased bool) ([]Migration, error) {
	a, err := newAssembly(functions, schema, isUnreleased)
	if err == nil {
		err = a.addRecords(isUnreleased)
	}
	return a.migrations, err
}

// assembly is what the migrations are made of.
type assembly struct {
	// migrations are those in files, as they are there, and the last one, which has no SQL yet, if changes are not empty.
	migrations []Migration
	records    []record // that they leave in a database
	// files is what the migrations in files leave in a database, target what the sources say, and changes what makes target of files.
	files, target *state
	changes       string
}

func newAssembly(functions, schema fs.FS, isUnreleased bool) (assembly, error) {
	var a assembly
	parser := parser{}
	sources, err := readSources(parser, functions)
	if err == nil {
		a.migrations, err = read(schema)
	}
	if err != nil {
		return a, err
	}
	version := uint(len(a.migrations) + 1)
	serves, err := readServes(schema, version)
	if err != nil {
		return a, err
	}

	a.files = newState()
	var fingerprint fingerprint
	for i := range a.migrations {
		m := &a.migrations[i]
		if err := a.files.apply(parser, m.Up); err != nil {
			return a, fmt.Errorf("%s: %w", m.UpFile(), err)
		}
		fingerprint.add(m.Version, Body(m.Up))
		m.Fingerprint = fingerprint.String()
		a.records = append(a.records, newRecord(*m, a.files, serves))
	}

	a.target = sources.withTablesOf(a.files)
	a.changes, err = difference(a.files, a.target)
	if err != nil || a.changes == "" {
		return a, err
	}
	last := Migration{Version: version, Name: fmt.Sprintf("%06d%s", version, suffix)}
	fingerprint.add(version, join(header, a.changes, a.target.grant()))
	if isUnreleased {
		fingerprint.add(version, "unreleased") // the release of the same text leaves no build behind
	}
	last.Fingerprint = fingerprint.String()
	a.migrations = append(a.migrations, last)
	a.records = append(a.records, newRecord(last, a.target, serves))
	return a, nil
}

// addRecords makes the SQL of the last migration, and adds to the others their records unless they are released.
func (a *assembly) addRecords(isUnreleased bool) error {
	before := record{}
	for i := range a.migrations {
		m, after := &a.migrations[i], &a.records[i]
		after.isPassed = i < len(a.migrations)-1 && !m.isReleased()
		switch {
		case a.changes != "" && i == len(a.migrations)-1:
			back, err := difference(a.target, a.files)
			if err == nil && isUnreleased {
				after.build, err = newBuild(before, a.target)
			}
			if err != nil {
				return err
			}
			guard := ""
			if a.files.grant() == "" { // without the functions the tables are of no use
				guard = keepData
			}
			// The privileges come after the record, which says what they are about.
			m.Up = wrap(header, a.changes, after.installed(), a.target.grant())
			m.Down = wrap(header, guard, back, before.restored(*after), a.files.grant())
		case m.isReleased():
		case before.version == 0: // the schema goes in the end
			m.Up, m.Down = wrap(m.Up, after.installed()), wrap(keepData, before.restored(*after), m.Down)
		default:
			m.Up, m.Down = wrap(m.Up, after.installed()), wrap(m.Down, before.restored(*after))
		}
		before = *after
	}
	return nil
}

// keepData refuses the way back while something is stored.
const keepData = `do $$
begin
    if coalesce(current_setting('agui.allow_removal', true), '') <> 'on' and exists (select from agui.thread) then
        raise exception using
            errcode = 'object_not_in_prerequisite_state',
            message = 'the schema agui holds conversations, which would be deleted: to allow that, set agui.allow_removal = on',
            hint = 'Export what you want to keep. The setting is one of the session: in a connection string, options=-cagui.allow_removal=on.';
    end if;
end
$$;`

// servesFile is the file in the folder schema with the oldest version whose programs work with the schema as it is.
const servesFile = "serves"

// readServes reads the file; without one the schema serves programs of the last version alone.
func readServes(schema fs.FS, last uint) (uint, error) {
	content, err := fs.ReadFile(schema, servesFile)
	if errors.Is(err, fs.ErrNotExist) {
		return last, nil
	} else if err != nil {
		return 0, err
	}
	serves, err := strconv.ParseUint(strings.TrimSpace(string(content)), 10, 31)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", servesFile, err)
	}
	return uint(serves), nil
}

// grant is the SQL that creates missing roles and gives privileges, if the state has the procedure for it.
func (s *state) grant() string {
	const procedure = "agui.grant_access"
	if s.find("routine "+procedure) == nil {
		return ""
	}
	return "call " + procedure + "();"
}
