// Package migration makes the migrations of the schemas agui and agui_internal, in the form of golang-migrate.
//
// Tables are changed by migrations written by hand, in sql/schema. The sources of functions, types and views are in sql/functions, one
// object a file. [Assemble] reads from the migrations what they leave in a database. If the sources differ, the difference is one more
// migration, NNNNNN_functions. It is in no file until it is released: the program makes it when it needs it. [Release] makes the files
// that freeze a release; from then on, the next change is the next migration. An empty database needs no functions of earlier releases:
// [Assembly.Install] leaves them out.
//
// Each migration has a record of the install, which leaves the version and the fingerprint of the installed text in the database,
// whichever tool runs it, and sets the search_path, so that no name is looked up along the path of the session.
package migration

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// Migration is a step between two versions.
type Migration struct {
	Version uint
	Name    string // 000001_tables
	Up      string // the SQL that installs or upgrades
	Down    string // the SQL that takes it back
	// Fingerprint is the hash of what the migrations up to this one install: of their SQL, without what Assemble adds to each.
	Fingerprint string
}

const (
	upSuffix   = ".up.sql"
	downSuffix = ".down.sql"
)

// UpFile is the name of the file with Up.
func (m Migration) UpFile() string { return m.Name + upSuffix }

// DownFile is the name of the file with Down.
func (m Migration) DownFile() string { return m.Name + downSuffix }

// read returns the migrations of a folder in order, as they are in the files. They are numbered 1, 2, 3, … without gaps.
func read(folder fs.FS) ([]Migration, error) {
	entries, err := fs.ReadDir(folder, ".")
	if err != nil {
		return nil, err
	}
	var migrations []Migration
	for _, entry := range entries {
		name, isUp := strings.CutSuffix(entry.Name(), upSuffix)
		if !isUp {
			continue
		}
		digits, _, _ := strings.Cut(name, "_")
		version, err := strconv.ParseUint(digits, 10, 31)
		if err != nil {
			return nil, fmt.Errorf("migration %s: its name must begin with its number", entry.Name())
		}
		m := Migration{Version: uint(version), Name: name}
		up, err := fs.ReadFile(folder, m.UpFile())
		if err != nil {
			return nil, err
		}
		down, err := fs.ReadFile(folder, m.DownFile())
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s has no way back: %w", m.UpFile(), err)
		} else if err != nil {
			return nil, err
		}
		m.Up, m.Down = string(up), string(down)
		migrations = append(migrations, m)
	}
	slices.SortFunc(migrations, func(a, b Migration) int { return cmp.Compare(a.Version, b.Version) })
	for i, m := range migrations {
		if m.Version != uint(i+1) {
			return nil, fmt.Errorf("migration %s: its number must be %d, the next after the one before it", m.UpFile(), i+1)
		}
	}
	return migrations, nil
}

// The lines around a record.
const (
	recordBegin = "-- Record of the install, written by pgagui. Do not edit."
	recordEnd   = "-- End of the record."
)

// The text around a migration. It sets the session and not the transaction, because some tools send statement by statement.
const (
	prologue = `-- Names are not resolved in the schemas of the caller's search_path, where others may create
-- objects. The end of the file restores the path.
do $$
begin
    perform pg_catalog.set_config('agui.search_path', pg_catalog.current_setting('search_path'), false);
    perform pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', false);
end
$$;
`
	epilogue = `do $$
begin
    perform pg_catalog.set_config('search_path', pg_catalog.current_setting('agui.search_path'), false);
end
$$;
`
)

// wrap makes a migration of texts.
func wrap(texts ...string) string { return join(prologue, join(texts...), epilogue) + "\n" }

// join puts an empty line between texts.
func join(texts ...string) string {
	var parts []string
	for _, text := range texts {
		if text = strings.TrimSpace(text); text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "\n\n")
}

// Body is the text of a migration without what Assemble adds to it.
func Body(text string) string {
	text = strings.TrimPrefix(strings.TrimSuffix(text, epilogue), prologue)
	before, rest, _ := strings.Cut(text, recordBegin)
	_, after, _ := strings.Cut(rest, recordEnd)
	return join(before, after)
}

// isReleased says that a migration is as databases have it: only those that are released are in files with their record.
func (m Migration) isReleased() bool { return strings.Contains(m.Up, recordBegin) }

// fingerprint is the hash of the bodies of migrations.
type fingerprint struct{ hash hash.Hash }

// add adds the body of the next migration.
func (f *fingerprint) add(version uint, body string) {
	if f.hash == nil {
		f.hash = sha256.New()
	}
	_, _ = io.WriteString(f.hash, fmt.Sprintf("%d\n", version)+strings.ReplaceAll(body, "\r\n", "\n")+"\n")
}

// String is the fingerprint of what was added so far, in hexadecimal digits.
func (f *fingerprint) String() string { return fmt.Sprintf("%x", f.hash.Sum(nil)) }
