// Sqlgen writes, from the queries of the Go side, sql/queries, those that sqlc reads, in which every name has its schema:
//
//	go run ./internal/sqlgen           write bin/queries
//	go run ./internal/sqlgen -check    fail when a released migration was changed
//	go run ./internal/sqlgen -release  freeze the migrations as they are: write them to sql/schema, and their hashes to released.sum;
//	                                   write what programs of the version send to sql/schema/testdata
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/pgagui/pgagui/internal/migration"
	"github.com/pgagui/pgagui/internal/qualify"
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

func check(folder string) error {
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
