// Sqlgen writes, from the queries of the Go side, sql/queries, those that sqlc reads, in which every name has its schema; and, from the
// comments above the functions, who may call them:
//
//	go run ./internal/sqlgen           write bin/queries and sql/functions/core/privileges.sql
//	go run ./internal/sqlgen -check    fail when a released migration was changed, or the privileges are not written
//	go run ./internal/sqlgen -release  freeze the migrations as they are: write them to sql/schema, and their hashes to released.sum;
//	                                   write what programs of the version send to sql/schema/testdata
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pgagui/pgagui/internal/migration"
	"github.com/pgagui/pgagui/internal/qualify"
	"github.com/pgagui/pgagui/sql/functions"
)

func main() {
	checks := flag.Bool("check", false, "write nothing; fail when a released migration was changed")
	release := flag.Bool("release", false, "freeze the migrations as they are")
	folder := flag.String("sql", "sql", "folder with the sources and the migrations")
	flag.Parse()
	do := generate
	switch {
	case *checks:
		do = check
	case *release:
		do = freeze
	}
	if err := do(*folder); err != nil {
		fmt.Fprintln(os.Stderr, "sqlgen:", err)
		os.Exit(1)
	}
}

// generate writes the files of bin/queries.
func generate(folder string) error {
	target := filepath.Join(folder, "..", "bin", "queries")
	if err := os.RemoveAll(target); err != nil {
		return err
	}
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	sources, err := filepath.Glob(filepath.Join(folder, "queries", "*.sql"))
	if err != nil {
		return err
	}
	files := map[string][]byte{}
	for _, source := range sources {
		text, err := os.ReadFile(source)
		if err != nil {
			return err
		}
		qualified, err := qualify.SQL(string(text))
		if err != nil {
			return fmt.Errorf("%s: %w", source, err)
		}
		files[filepath.Join(target, filepath.Base(source))] = []byte(qualified)
	}
	_, privileges, err := writtenPrivileges(folder)
	if err != nil {
		return err
	}
	files[filepath.Join(folder, privilegesFile)] = privileges
	return write(files)
}

func write(files map[string][]byte) error {
	for path, content := range files {
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

const privilegesFile = "functions/core/privileges.sql"

var listedRoutines = regexp.MustCompile(`(?s)(\n    listed \(grantee, routines\) as \(values\n).*?(    \),\n)`)

// writtenPrivileges returns the file with agui_internal.expected_privileges as it is, and with what the functions say above them.
func writtenPrivileges(folder string) (is, made []byte, err error) {
	objects, err := functions.Objects(os.DirFS(filepath.Join(folder, "functions")))
	if err != nil {
		return nil, nil, err
	}
	byRole := map[string][]string{}
	for _, object := range objects {
		if object.Facts["role"] == "" {
			continue
		}
		for role := range strings.SplitSeq(object.Facts["role"], ", ") {
			grantee, isKnown := grantees[role]
			if !isKnown {
				return nil, nil, fmt.Errorf("%s: there is no role %q", object.Name, role)
			}
			byRole[grantee] = append(byRole[grantee], "'"+object.Name+"'")
		}
	}
	var rows []string
	for _, grantee := range slices.Sorted(maps.Keys(byRole)) {
		var lines []string
		for names := range slices.Chunk(slices.Sorted(slices.Values(byRole[grantee])), 4) {
			lines = append(lines, "            "+strings.Join(names, ", "))
		}
		rows = append(rows, fmt.Sprintf("        ('%s', array[\n%s\n        ])", grantee, strings.Join(lines, ",\n")))
	}
	is, err = os.ReadFile(filepath.Join(folder, privilegesFile))
	return is, listedRoutines.ReplaceAll(is, []byte("${1}"+strings.Join(rows, ",\n")+"\n${2}")), err
}

// grantees are those of the words of a comment: "-- role: reader, monitor". Without one a function that cannot write is for readers.
var grantees = map[string]string{
	"reader": "agui_reader", "writer": "agui_writer", "worker": "agui_worker", "maintainer": "agui_maintainer", "recorder": "agui_recorder",
	"monitor": "pg_monitor", "none": "none",
}

func check(folder string) error {
	if is, made, err := writtenPrivileges(folder); err != nil || !bytes.Equal(is, made) {
		return errors.Join(err, errors.New(privilegesFile+" is not what the functions say above them (run: make generate)"))
	}
	return migration.CheckReleased(os.DirFS(filepath.Join(folder, "schema")))
}

func freeze(folder string) error {
	schema := filepath.Join(folder, "schema")
	frozen, err := migration.Release(os.DirFS(filepath.Join(folder, "functions")), os.DirFS(schema))
	if err != nil {
		return err
	}
	files := map[string][]byte{}
	version := ""
	for name, content := range frozen {
		files[filepath.Join(schema, name)] = content
		if number, _, isMigration := strings.Cut(name, "_"); isMigration {
			version = max(version, number)
		}
	}
	sent, err := statements(filepath.Join(folder, "..", "db"))
	if err != nil {
		return err
	}
	files[filepath.Join(schema, "testdata", "sent_"+version+".sql")] = sent
	return write(files)
}

// statements are those that a program sends through its accessors, each with the line that names it.
func statements(db string) ([]byte, error) {
	sources, err := filepath.Glob(filepath.Join(db, "*.sql.go"))
	if err != nil {
		return nil, err
	}
	var all bytes.Buffer
	for _, source := range sources {
		text, err := os.ReadFile(source)
		if err != nil {
			return nil, err
		}
		for _, match := range query.FindAllSubmatch(text, -1) {
			fmt.Fprintf(&all, "%s;\n\n", bytes.TrimSpace(match[1]))
		}
	}
	return all.Bytes(), nil
}

// query finds the statements in what sqlc has written.
var query = regexp.MustCompile("(?s)\nconst \\w+ = `(-- name: .*?)`")
