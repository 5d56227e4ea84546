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

func chainOf(functions, schema fs.FS, isUnreleased bool) ([]Migration, error) {
	parser := parser{}
	target, err := readSources(parser, functions)
	if err != nil {
		return nil, err
	}
	migrations, err := read(schema)
	if err != nil {
		return nil, err
	}

	serves, err := readServes(schema, uint(len(migrations)+1))
	if err != nil {
		return nil, err
	}
	current, before := newState(), record{}
	var fingerprint fingerprint
	for i := range migrations {
		m := &migrations[i]
		if err := current.apply(parser, m.Up); err != nil {
			return nil, fmt.Errorf("%s: %w", m.UpFile(), err)
		}
		fingerprint.add(m.Version, Body(m.Up))
		m.Fingerprint = fingerprint.String()
		after := newRecord(*m, current, serves)
		if !m.isReleased() {
			m.Up = wrap(m.Up, after.installed())
			if before.version == 0 { // the schema goes in the end
				m.Down = wrap(keepData, before.restored(after), m.Down)
			} else {
				m.Down = wrap(m.Down, before.restored(after))
			}
		}
		before = after
	}

	target = target.withTablesOf(current)
	up, err := difference(current, target)
	if err != nil || up == "" {
		return migrations, err
	}
	down, err := difference(target, current)
	if err != nil {
		return nil, err
	}
	version := uint(len(migrations) + 1)
	next := Migration{Version: version, Name: fmt.Sprintf("%06d%s", version, suffix)}
	fingerprint.add(version, join(header, up, target.grant()))
	if isUnreleased {
		fingerprint.add(version, "unreleased") // the release of the same text leaves no build behind
	}
	next.Fingerprint = fingerprint.String()
	after := newRecord(next, target, serves)
	if isUnreleased {
		if after.build, err = newBuild(before, target); err != nil {
			return nil, err
		}
	}
	guard := ""
	if current.grant() == "" { // without the functions the tables are of no use
		guard = keepData
	}
	// The privileges come after the record, which says what they are about.
	next.Up = wrap(header, up, after.installed(), target.grant())
	next.Down = wrap(header, guard, down, before.restored(after), current.grant())
	return append(migrations, next), nil
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
