package migration

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

// ErrOtherTables means that the tables of two builds do not come from the same migrations.
var ErrOtherTables = errors.New("its tables are of other migrations")

// Build is what the record of an unreleased migration says besides: what a migration to another build needs to know.
type Build struct {
	// Base is the version before it, whose migrations are in files, and BaseFingerprint that of Base; it is empty if Base is 0.
	Base            uint
	BaseFingerprint string
	// Sources are the functions, types and views as SQL, compressed.
	Sources string
}

const buildFunction = "agui_internal.unreleased_build"

// BuildQuery reads a Build, member by member, where the record of the install lists BuildObject.
const (
	BuildQuery  = "select base, base_fingerprint, sources from " + buildFunction + "()"
	BuildObject = "routine " + buildFunction
)

// HasTablesOf reports whether a chain begins with the migrations in files that the build has.
func (b *Build) HasTablesOf(chain []Migration) bool {
	if b.Base == 0 || b.Base > uint(len(chain)) {
		return b.Base == 0
	}
	return chain[b.Base-1].Fingerprint == b.BaseFingerprint
}

// newBuild describes the build that leaves a database with the state, after the migrations in files left it with the record.
func newBuild(base record, s *state) (*Build, error) {
	sources, err := difference(newState().withTablesOf(s), s)
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	writer, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err == nil {
		_, err = io.WriteString(writer, sources)
	}
	if err == nil {
		err = writer.Close()
	}
	return &Build{Base: base.version, BaseFingerprint: base.fingerprint, Sources: base64.StdEncoding.EncodeToString(packed.Bytes())}, err
}

func (b *Build) text() (string, error) {
	reader, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(b.Sources)))
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(reader)
	return string(text), err
}

// recorded is the SQL that leaves the build in the database.
func (b *Build) recorded() string {
	return fmt.Sprintf(`
create or replace function %[1]s(out base int, out base_fingerprint text, out sources text)
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as 'select %[2]d, ''%[3]s'', ''%[4]s''';

comment on function %[1]s() is
    'The version is not released yet: the released version before it, the fingerprint of that, and the sources of functions, types and views '
    '(gzip, base64). Another build upgrades from them.';

revoke execute on function %[1]s() from public;
`, buildFunction, b.Base, b.BaseFingerprint, b.Sources)
}

// FromUnreleased returns the migration from another build, which has the same tables or older ones, to the last version that the folders
// describe. There is no way back. The error is ErrOtherTables if the migrations in files up to the base of the build are others.
func FromUnreleased(functions, schema fs.FS, from Build) (Migration, error) {
	chain, err := Assemble(functions, schema)
	if err != nil {
		return Migration{}, err
	}
	files, err := read(schema)
	if err != nil {
		return Migration{}, err
	}
	if !from.HasTablesOf(chain) || from.Base > uint(len(files)) {
		return Migration{}, ErrOtherTables
	}

	parser, before := parser{}, newState()
	for _, m := range files[:from.Base] {
		if err := before.apply(parser, m.Up); err != nil {
			return Migration{}, err
		}
	}
	before = newState().withTablesOf(before)
	sources, err := from.text()
	if err == nil {
		err = before.apply(parser, sources)
	}
	if err != nil {
		return Migration{}, fmt.Errorf("read the sources of the other build: %w", err)
	}

	var byHand []string
	for _, m := range files[from.Base:] {
		if strings.HasSuffix(m.Name, suffix) {
			continue // the build has functions of its own, which the difference makes those of this one
		}
		byHand = append(byHand, Body(m.Up))
		if err := before.apply(parser, m.Up); err != nil {
			return Migration{}, fmt.Errorf("%s: %w", m.UpFile(), err)
		}
	}
	target, err := readSources(parser, functions)
	if err != nil {
		return Migration{}, err
	}
	target = target.withTablesOf(before)
	up, err := difference(before, target)
	if err != nil {
		return Migration{}, err
	}

	serves, err := readServes(schema, uint(len(chain)))
	if err != nil {
		return Migration{}, err
	}
	last := chain[len(chain)-1]
	record, withdrawn := newRecord(last, target, serves), ""
	if len(chain) == len(files) {
		withdrawn = "drop function " + buildFunction + "();"
	} else if record.build, err = newBuild(baseOf(chain), target); err != nil {
		return Migration{}, err
	}
	last.Up = wrap(join(byHand...), withdrawn, header, up, record.installed(), target.grant())
	last.Down = ""
	return last, nil
}

// baseOf is what the record of the migration before the last one of a chain says.
func baseOf(chain []Migration) record {
	if len(chain) == 1 {
		return record{}
	}
	base := chain[len(chain)-2]
	return record{version: base.Version, fingerprint: base.Fingerprint}
}
