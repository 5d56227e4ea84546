// Package migration reads a folder of migrations in the form of golang-migrate: 000001_name.up.sql and 000001_name.down.sql.
//
// Internal/sqlgen adds to each migration: a record of the install, between [RecordBegin] and [RecordEnd], which leaves the version and the fingerprint of
// the installed text in the database, whichever tool runs the file; [Prologue] and [Epilogue], between which no name is looked up along the path of the
// session.
package migration

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"hash"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// Migration is a pair of files.
type Migration struct {
	Version uint
	Name    string // without .up.sql and .down.sql: 000001_tables
}

// Up is the name of the file that installs or upgrades.
func (m Migration) Up() string { return m.Name + ".up.sql" }

// Down is the name of the file that takes it back.
func (m Migration) Down() string { return m.Name + ".down.sql" }

// List returns the migrations of a folder in order, without those to skip. They are numbered 1, 2, 3, … without gaps.
func List(files fs.FS, skip ...string) ([]Migration, error) {
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return nil, err
	}
	var migrations []Migration
	for _, entry := range entries {
		name, isUp := strings.CutSuffix(entry.Name(), ".up.sql")
		if !isUp || slices.Contains(skip, name) {
			continue
		}
		digits, _, _ := strings.Cut(name, "_")
		version, err := strconv.ParseUint(digits, 10, 31)
		if err != nil {
			return nil, fmt.Errorf("migration %s: its name must begin with its number", entry.Name())
		}
		migrations = append(migrations, Migration{Version: uint(version), Name: name})
	}
	slices.SortFunc(migrations, func(a, b Migration) int { return cmp.Compare(a.Version, b.Version) })
	for i, m := range migrations {
		if m.Version != uint(i+1) {
			return nil, fmt.Errorf("migration %s: its number must be %d, the next after the one before it", m.Up(), i+1)
		}
	}
	return migrations, nil
}

// The lines around a record.
const (
	RecordBegin = "-- Record of the install, written by internal/sqlgen. Do not edit."
	RecordEnd   = "-- End of the record."
)

// The text around a migration. It sets the session and not the transaction, because some tools send statement by statement.
const (
	Prologue = `-- Names are not resolved in the schemas of the caller's search_path, where others may create
-- objects. The end of the file restores the path.
do $$
begin
    perform pg_catalog.set_config('agui.search_path', pg_catalog.current_setting('search_path'), false);
    perform pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', false);
end
$$;
`
	Epilogue = `do $$
begin
    perform pg_catalog.set_config('search_path', pg_catalog.current_setting('agui.search_path'), false);
end
$$;
`
)

// Body is the text of a migration without what internal/sqlgen adds.
func Body(text []byte) []byte {
	text = bytes.TrimPrefix(bytes.TrimSuffix(text, []byte(Epilogue)), []byte(Prologue))
	before, rest, found := bytes.Cut(text, []byte(RecordBegin))
	if !found {
		return text
	}
	_, after, _ := bytes.Cut(rest, []byte(RecordEnd))
	return bytes.Join([][]byte{bytes.TrimRight(before, "\n"), bytes.TrimLeft(after, "\n")}, []byte("\n\n"))
}

// Fingerprint is the hash of what migrations up to some version install: of the text of their up files, without what internal/sqlgen adds.
type Fingerprint struct{ hash hash.Hash }

// Add adds the next migration.
func (f *Fingerprint) Add(version uint, up []byte) {
	if f.hash == nil {
		f.hash = sha256.New()
	}
	text := Body(bytes.ReplaceAll(up, []byte("\r\n"), []byte("\n")))
	fmt.Fprintf(f.hash, "%d\n%s\n", version, bytes.TrimSpace(text))
}

// String is the fingerprint of what was added so far, in hexadecimal digits.
func (f *Fingerprint) String() string { return fmt.Sprintf("%x", f.hash.Sum(nil)) }
