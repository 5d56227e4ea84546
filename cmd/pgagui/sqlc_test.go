package main

import (
	"testing"

	"github.com/pgagui/pgagui/sql/sqlc"
)

func TestMigrateSQLPrintsTheSchemaForSQLC(t *testing.T) {
	t.Parallel()
	commands := commandLine{t: t} // it needs no database
	if out := commands.must("migrate", "sql", "--format", "sqlc"); out != sqlc.Schema {
		t.Error("it is something else than sqlc.Schema")
	}
	commands.mustFail(exitUsage, "migrate", "sql", "--format", "sqlc", "--down")
	commands.mustFail(exitUsage, "migrate", "sql", "--format", "other")
}
