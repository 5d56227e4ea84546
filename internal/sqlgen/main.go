// Sqlgen writes the migrations of the schemas agui and agui_internal from their sources, one SQL object a file in sql/api,
// sql/internal and sql/privileges, and from the queries of the Go side, sql/queries, those that sqlc reads, in which every name has its schema:
//
//	go run ./internal/sqlgen           write the next migration, sql/schema/NNNNNN_functions, the records in all that are not released, and db/queries
//	go run ./internal/sqlgen -check    fail when they are not what it would write
//	go run ./internal/sqlgen -release  freeze the migrations as they are: sql/schema/released.sum has their hashes from now on
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pgagui/pgagui/internal/qualify"
	"github.com/pgagui/pgagui/internal/sqlgen/generator"
)

func main() {
	check := flag.Bool("check", false, "write nothing; fail when a file is not up to date")
	release := flag.Bool("release", false, "freeze the migrations as they are")
	folder := flag.String("sql", "sql", "folder with the sources and the migrations")
	flag.Parse()
	do := write
	switch {
	case *check:
		do = compare
	case *release:
		do = freeze
	}
	if err := do(*folder); err != nil {
		fmt.Fprintln(os.Stderr, "sqlgen:", err)
		os.Exit(1)
	}
}

// generate makes the files by their paths; those with nil are not to be there.
func generate(folder string) (map[string][]byte, error) {
	migrations, err := generator.Generate(os.DirFS(folder))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for name, content := range migrations {
		files[filepath.Join(folder, "schema", name)] = content
	}
	target := filepath.Join(folder, "..", "db", "queries")
	written, err := filepath.Glob(filepath.Join(target, "*.sql"))
	if err != nil {
		return nil, err
	}
	for _, path := range written {
		files[path] = nil
	}
	sources, err := filepath.Glob(filepath.Join(folder, "queries", "*.sql"))
	if err != nil {
		return nil, err
	}
	for _, source := range sources {
		text, err := os.ReadFile(source)
		if err != nil {
			return nil, err
		}
		qualified, err := qualify.SQL(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", source, err)
		}
		files[filepath.Join(target, filepath.Base(source))] = []byte(qualified)
	}
	return files, nil
}

func write(folder string) error {
	files, err := generate(folder)
	if err != nil {
		return err
	}
	for path, content := range files {
		if content != nil {
			err = os.WriteFile(path, content, 0o644)
		} else if err = os.Remove(path); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func compare(folder string) error {
	files, err := generate(folder)
	if err != nil {
		return err
	}
	for path, content := range files {
		current, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if !bytes.Equal(current, content) {
			return fmt.Errorf("%s is not up to date with its sources; run: go run ./internal/sqlgen", path)
		}
	}
	return nil
}

func freeze(folder string) error {
	list, err := generator.Release(os.DirFS(folder))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "schema", generator.ReleasedFile), list, 0o644)
}
