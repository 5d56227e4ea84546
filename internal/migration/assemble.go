package migration

import (
	"fmt"
	"io/fs"
)

const (
	header = "-- Made by pgagui from sql/functions."
	suffix = "_functions"
)

// Assemble returns the migrations of a version of pgagui in order: those in the folder schema, to which it adds their records unless they are
// released, and one more for what the folder functions says beyond them.
func Assemble(functions, schema fs.FS) ([]Migration, error) {
	target, err := readSources(functions)
	if err != nil {
		return nil, err
	}
	migrations, err := read(schema)
	if err != nil {
		return nil, err
	}

	current, before := newState(), record{}
	var fingerprint fingerprint
	for i := range migrations {
		m := &migrations[i]
		if err := current.apply(m.Up); err != nil {
			return nil, fmt.Errorf("%s: %w", m.UpFile(), err)
		}
		fingerprint.add(m.Version, Body(m.Up))
		m.Fingerprint = fingerprint.String()
		after := newRecord(*m, current)
		if !m.isReleased() {
			m.Up = wrap(m.Up, after.installed())
			if before.version == 0 { // the schema goes in the end
				m.Down = wrap(before.restored(), m.Down)
			} else {
				m.Down = wrap(m.Down, before.restored())
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
	next.Fingerprint = fingerprint.String()
	// The privileges come after the record, which says what they are about.
	next.Up = wrap(header, up, newRecord(next, target).installed(), target.grant())
	next.Down = wrap(header, down, before.restored(), current.grant())
	return append(migrations, next), nil
}

// grant is the SQL that creates missing roles and gives privileges, if the state has the procedure for it.
func (s *state) grant() string {
	const procedure = "agui.grant_access"
	if s.find("routine "+procedure) == nil {
		return ""
	}
	return "call " + procedure + "();"
}
