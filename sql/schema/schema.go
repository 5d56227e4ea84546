// Package schema installs, upgrades and removes pgagui's database objects.
//
// The migrations are the SQL files of this folder, in the form of golang-migrate (https://github.com/golang-migrate/migrate).
// Nothing in them relies on Go: its command line, or any other tool, can run them too ([Migrations], [UpSQL]). This package runs
// them with the version table agui.schema_migrations, one at a time among all processes, and waits only briefly for table locks,
// so that an upgrade never blocks a server in use.
//
// A migration is applied whole or not at all: PostgreSQL runs a file as one transaction. What is installed is what the migrations
// themselves have recorded (agui_internal.installed), whichever tool ran them: the version, and a fingerprint of their text, which
// tells an install of this program from one of another build that calls itself the same version. They record what the catalog says
// as well, so that changes by hand are noticed.
package schema

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/pgagui/pgagui/internal/migration"
)

//go:embed *.sql
var embedded embed.FS

// Migrations are the files of the migrations, for golang-migrate's package source/iofs and for other tools that read a file system.
// Run them with a version table of their own; see the README.
func Migrations() fs.FS { return embedded }

// Latest is the number of the last migration.
func Latest() uint { return program().latest() }

// UpSQL is the SQL of the migrations after version from in order, for those who install with another tool. Run it in one
// transaction. It is empty when there are none.
func UpSQL(from uint) string {
	var names []string
	for _, m := range program().migrations {
		if m.Version > from {
			names = append(names, m.Up())
		}
	}
	return program().concatenate(names)
}

// DownSQL is the SQL that takes back what UpSQL(from) does; from 0 on it removes all that is stored. Run it in one transaction.
func DownSQL(from uint) string {
	var names []string
	for _, m := range program().migrations {
		if m.Version > from {
			names = append([]string{m.Down()}, names...)
		}
	}
	return program().concatenate(names)
}

// GooseSQL is UpSQL(from) and DownSQL(from) in the form of a migration for goose (https://github.com/pressly/goose).
func GooseSQL(from uint) string {
	if from >= Latest() {
		return ""
	}
	// One statement each way to goose, which else splits at the semicolons within bodies.
	const form = "-- +goose Up\n-- +goose StatementBegin\n%s-- +goose StatementEnd\n\n" +
		"-- +goose Down\n-- +goose StatementBegin\n%s-- +goose StatementEnd\n"
	return fmt.Sprintf(form, UpSQL(from), DownSQL(from))
}

// chain are the migrations of a program in order.
type chain struct {
	files        fs.FS
	migrations   []migration.Migration
	fingerprints []string // of the versions from 1 on
}

// program are the migrations of this program.
var program = sync.OnceValue(func() *chain {
	c, err := newChain(embedded)
	if err != nil {
		panic(err) // the files are part of the program; a test reads all of them
	}
	return c
})

func newChain(files fs.FS) (*chain, error) {
	migrations, err := migration.List(files)
	if err != nil {
		return nil, err
	}
	c := &chain{files: files, migrations: migrations}
	var fingerprint migration.Fingerprint
	for _, m := range migrations {
		up, err := fs.ReadFile(files, m.Up())
		if err != nil {
			return nil, err
		}
		fingerprint.Add(m.Version, up)
		c.fingerprints = append(c.fingerprints, fingerprint.String())
	}
	return c, nil
}

func (c *chain) latest() uint { return uint(len(c.migrations)) }

// fingerprint is what an install of a version records; empty when this program does not have the version.
func (c *chain) fingerprint(version uint) string {
	if version == 0 || version > c.latest() {
		return ""
	}
	return c.fingerprints[version-1]
}

func (c *chain) concatenate(names []string) string {
	var all strings.Builder
	for _, name := range names {
		content, err := fs.ReadFile(c.files, name)
		if err != nil {
			panic(err) // the file is part of the program; a test reads all of them
		}
		fmt.Fprintf(&all, "-- %s\n\n%s\n", name, content)
	}
	return all.String()
}
