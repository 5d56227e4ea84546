// Sqlgen writes the migration of the functions from their sources, one SQL object a file in sql/api, sql/internal and
// sql/privileges:
//
//	go run ./internal/sqlgen           write sql/schema/000002_functions.up.sql and .down.sql
//	go run ./internal/sqlgen -check    fail when they are not what it would write
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// target is the migration that is generated, without .up.sql or .down.sql, below the folder sql.
const target = "schema/000002_functions"

const regenerate = "run: go run ./internal/sqlgen"

func main() {
	check := flag.Bool("check", false, "write nothing; fail when a file is not up to date")
	folder := flag.String("sql", "sql", "folder with the sources and the migrations")
	flag.Parse()
	if err := run(*folder, *check); err != nil {
		fmt.Fprintln(os.Stderr, "sqlgen:", err)
		os.Exit(1)
	}
}

func run(folder string, check bool) error {
	up, down, err := generate(os.DirFS(folder))
	if err != nil {
		return err
	}
	for suffix, content := range map[string][]byte{".up.sql": up, ".down.sql": down} {
		path := filepath.Join(folder, filepath.FromSlash(target+suffix))
		if !check {
			if err := os.WriteFile(path, content, 0o644); err != nil {
				return err
			}
			continue
		}
		current, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("%w; %s", err, regenerate)
		}
		if !bytes.Equal(current, content) {
			return fmt.Errorf("%s is not up to date with its sources; %s", path, regenerate)
		}
	}
	return nil
}
