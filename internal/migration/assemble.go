package migration

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"
)

const (
	header = "-- Made by pgagui from sql/functions."
	suffix = "_functions"
)

// Assembly is what the migrations of a version of pgagui are made of.
type Assembly struct {
	// migrations are those in files, as they are there, and the last one, which has no SQL yet, if changes are not empty.
	migrations []Migration
	records    []record // that they leave in a database
	// files is what the migrations in files leave in a database, target what the sources say, and changes what makes target of files.
	files, target *state
	changes       string

	parser       parser
	isUnreleased bool
	chain        func() ([]Migration, error)
	install      func() (Migration, error)
}

// Assemble reads the migrations in the folder schema, and what the folder functions says beyond them.
func Assemble(functions, schema fs.FS) (*Assembly, error) { return assemble(functions, schema, true) }

// Versions are the migrations without their SQL, which takes most of the time.
func (a *Assembly) Versions() []Migration {
	versions := slices.Clone(a.migrations)
	for i := range versions {
		versions[i].Up, versions[i].Down = "", ""
	}
	return versions
}

// Chain returns the migrations in order: those in files, to which it adds their records unless they are released, and one more for what
// the sources say beyond them. That one is unreleased: another build may have another one of its number. So its record has the sources,
// from which [Assembly.From] goes on.
func (a *Assembly) Chain() ([]Migration, error) { return a.chain() }

// Install returns one migration that makes of an empty database what those of the chain make of it, without the functions of earlier
// releases. So a migration written by hand may use functions only if it creates them. There is no way back.
func (a *Assembly) Install() (Migration, error) { return a.install() }

func assemble(functions, schema fs.FS, isUnreleased bool) (*Assembly, error) {
	parser := parser{}
	a := &Assembly{parser: parser, isUnreleased: isUnreleased}
	a.chain = sync.OnceValues(a.makeChain)
	a.install = sync.OnceValues(func() (Migration, error) { return a.from(nil) })
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

func (a *Assembly) makeChain() ([]Migration, error) {
	migrations, before := slices.Clone(a.migrations), record{}
	for i, after := range a.records {
		m := &migrations[i]
		after.isPassed = i < len(migrations)-1 && !m.isReleased()
		switch {
		case a.changes != "" && i == len(migrations)-1:
			back, err := difference(a.target, a.files)
			if err == nil {
				after.build, err = a.build()
			}
			if err != nil {
				return nil, err
			}
			guard := ""
			if a.files.grant() == "" { // without the functions the tables are of no use
				guard = keepData
			}
			// The privileges come after the record, which says what they are about.
			m.Up = wrap(header, a.changes, after.installed(), a.target.grant())
			m.Down = wrap(header, guard, back, before.restored(after), a.files.grant())
		case m.isReleased():
		case before.version == 0: // the schema goes in the end
			m.Up, m.Down = wrap(m.Up, after.installed()), wrap(keepData, before.restored(after), m.Down)
		default:
			m.Up, m.Down = wrap(m.Up, after.installed()), wrap(m.Down, before.restored(after))
		}
		before = after
	}
	return migrations, nil
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
