package migration

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
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

// build describes the build of the sources; nil: they are released.
func (a *Assembly) build() (*Build, error) {
	if a.changes == "" || !a.isUnreleased {
		return nil, nil
	}
	sources, err := difference(newState().withTablesOf(a.target), a.target)
	if err != nil {
		return nil, err
	}
	base := record{}
	if files := len(a.inFiles()); files > 0 {
		base = a.records[files-1]
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

// From returns the migration from another build, which has the same tables or older ones, to the last version. There is no way back. The
// error is ErrOtherTables if the migrations in files up to the base of the build are others.
func (a *Assembly) From(build Build) (Migration, error) {
	if !build.HasTablesOf(a.migrations) || build.Base > uint(len(a.inFiles())) {
		return Migration{}, ErrOtherTables
	}
	return a.from(&build)
}

// from is the migration from a build, nil: from an empty database, to the last version.
func (a *Assembly) from(build *Build) (Migration, error) {
	parser, before, toDo, withdrawn := maps.Clone(a.parser), newState(), a.inFiles(), "" // others may read the parser
	if build != nil {
		for _, m := range toDo[:build.Base] {
			if err := before.apply(parser, m.Up); err != nil {
				return Migration{}, err
			}
		}
		before, toDo = newState().withTablesOf(before), toDo[build.Base:]
		sources, err := build.text()
		if err == nil {
			err = before.apply(parser, sources)
		}
		if err != nil {
			return Migration{}, fmt.Errorf("read the sources of the other build: %w", err)
		}
	}

	var byHand []string
	for _, m := range toDo {
		if strings.HasSuffix(m.Name, suffix) {
			continue // the difference is to the last functions
		}
		byHand = append(byHand, Body(m.Up))
		if err := before.apply(parser, m.Up); err != nil {
			return Migration{}, fmt.Errorf("%s: %w", m.UpFile(), err)
		}
	}
	up, err := difference(before, a.target)
	if err != nil {
		return Migration{}, err
	}

	last, record := a.migrations[len(a.migrations)-1], a.records[len(a.records)-1]
	if record.build, err = a.build(); err != nil {
		return Migration{}, err
	}
	record.isFirst = build == nil
	if record.isFirst {
		last.Name = fmt.Sprintf("%06d_install", last.Version)
	} else if record.build == nil {
		withdrawn = "drop function " + buildFunction + "();"
	}
	last.Up = wrap(join(byHand...), withdrawn, header, up, record.installed(), a.target.grant())
	last.Down = ""
	return last, nil
}

// inFiles are the migrations in files.
func (a *Assembly) inFiles() []Migration {
	if a.changes == "" {
		return a.migrations
	}
	return a.migrations[:len(a.migrations)-1]
}
