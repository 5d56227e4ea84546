// Package schema installs, upgrades and removes pgagui's database objects.
//
// The migrations are in the form of golang-migrate (https://github.com/golang-migrate/migrate): the SQL files of this folder, and one
// more that is made of the sources in sql/functions when it is needed, until a release freezes it as a file.
// Nothing in them relies on Go: the command line of golang-migrate, or any other tool, can run them too ([Migrations], [UpSQL]). This
// package runs them with the version table agui.schema_migrations, one at a time among all processes, and waits only briefly for table
// locks, so that an upgrade never blocks a server in use.
//
// A migration is applied whole or not at all: PostgreSQL runs it as one transaction. What is installed is what the migrations
// themselves have recorded (agui_internal.installed), whichever tool ran them: the version, and a fingerprint of their text, which
// tells an install of this program from one of another build that calls itself the same version. They record what the catalog says
// as well, so that changes by hand are noticed.
package schema

import (
	"archive/zip"
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/pgagui/pgagui/internal/migration"
	"github.com/pgagui/pgagui/sql/functions"
)

//go:embed *.sql serves
var embedded embed.FS

// Migrations are the files of the migrations, for golang-migrate's package source/iofs and for other tools that read a file system.
// Run them with a version table of their own; see docs/install.md.
func Migrations() fs.FS { return program().files() }

// Latest is the number of the last migration.
func Latest() uint { return versions().latest() }

// InstallSQL is the SQL that makes of an empty database what UpSQL(0) makes of it, without the functions of earlier releases.
// Run it in one transaction. Upgrades of the database are UpSQL(Latest()) of later programs, as with UpSQL(0).
func InstallSQL() string { return sqlOf(installation()) }

// UpSQL is the SQL of the migrations after version from in order, for those who install with another tool. Run it in one
// transaction. It is empty when there are none.
func UpSQL(from uint) string { return sqlOf(program().after(from)) }

func sqlOf(migrations chain) string {
	var text strings.Builder
	for _, m := range migrations {
		fmt.Fprintf(&text, "-- %s\n\n%s\n", m.UpFile(), m.Up)
	}
	return text.String()
}

// DownSQL is the SQL that takes back what UpSQL(from) does; from 0 on it removes all that is stored. Run it in one transaction.
func DownSQL(from uint) string {
	var text strings.Builder
	for _, m := range slices.Backward(program().after(from)) {
		fmt.Fprintf(&text, "-- %s\n\n%s\n", m.DownFile(), m.Down)
	}
	return text.String()
}

// JSON is InstallSQL and the migrations for a program of another language: an object with install, its SQL, and migrations in order, each
// with version, name, fingerprint and up, its SQL. Run each SQL in a transaction.
func JSON() ([]byte, error) {
	type one struct {
		Version     uint   `json:"version"`
		Name        string `json:"name"`
		Fingerprint string `json:"fingerprint"`
		Up          string `json:"up"`
	}
	var all struct {
		Install    string `json:"install"`
		Migrations []one  `json:"migrations"`
	}
	all.Install = InstallSQL()
	for _, m := range program() {
		all.Migrations = append(all.Migrations, one{m.Version, m.Name, m.Fingerprint, m.Up})
	}
	return json.Marshal(all)
}

// GooseSQL is UpSQL(from), or InstallSQL() if from is 0, and DownSQL(from) in the form of a migration for goose (https://github.com/pressly/goose).
func GooseSQL(from uint) string {
	if from >= Latest() {
		return ""
	}
	// One statement each way to goose, which else splits at the semicolons within bodies.
	const form = "-- +goose Up\n-- +goose StatementBegin\n%s-- +goose StatementEnd\n\n" +
		"-- +goose Down\n-- +goose StatementBegin\n%s-- +goose StatementEnd\n"
	up := UpSQL(from)
	if from == 0 {
		up = InstallSQL()
	}
	return fmt.Sprintf(form, up, DownSQL(from))
}

// chain are the migrations of a program in order.
type chain []migration.Migration

// sources are what migrations are made of, when they are needed.
type sources func() (*migration.Assembly, error)

// chain returns the migrations for a database of a version. An empty one needs only one.
func (s sources) chain(version uint) (chain, error) {
	assembly, err := s()
	if err != nil {
		return nil, err
	}
	if version == 0 {
		install, err := assembly.Install()
		return chain{install}, err
	}
	return assembly.Chain()
}

var (
	// ofProgram are the sources of this program.
	ofProgram = sources(sync.OnceValues(func() (*migration.Assembly, error) { return migration.Assemble(functions.Files, embedded) }))
	// versions are its migrations without their SQL, for those who only compare: each command of the shell does. It keeps no sources.
	versions = sync.OnceValue(func() chain { return must(migration.Assemble(functions.Files, embedded)).Versions() })
)

// program are the migrations of this program.
func program() chain { return must(must(ofProgram()).Chain()) }

// installation is the one of an empty database.
func installation() chain { return must(ofProgram.chain(0)) }

// must panics at an error: the sources are part of the program, and a test reads all of them.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func (c chain) latest() uint { return uint(len(c)) }

// after are the migrations after a version.
func (c chain) after(version uint) chain { return c[min(version, c.latest()):] }

// fingerprint is what an install of a version records; empty when this program does not have the version.
func (c chain) fingerprint(version uint) string {
	if version == 0 || version > c.latest() {
		return ""
	}
	return c[version-1].Fingerprint
}

// files are the migrations as files.
func (c chain) files() fs.FS {
	texts := map[string]string{}
	for _, m := range c {
		texts[m.UpFile()], texts[m.DownFile()] = m.Up, m.Down
	}
	return inMemory(texts)
}

// inMemory are texts as files, by name. An archive in memory is a file system.
func inMemory(texts map[string]string) fs.FS {
	var archive bytes.Buffer
	writer := zip.NewWriter(&archive)
	for name, text := range texts {
		file, err := writer.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err == nil {
			_, err = io.WriteString(file, text)
		}
		if err != nil {
			panic(err) // a buffer takes what it gets
		}
	}
	if err := writer.Close(); err != nil {
		panic(err)
	}
	files, err := zip.NewReader(bytes.NewReader(archive.Bytes()), int64(archive.Len()))
	if err != nil {
		panic(err)
	}
	return files
}
