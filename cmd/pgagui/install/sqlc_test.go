package install

import (
	"testing"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/sql/sqlc"
)

func TestMigrateSQLPrintsTheSchemaForSQLC(t *testing.T) {
	t.Parallel()
	commands := clitest.On(t, "") // it needs no database
	if out := commands.Must("migrate", "sql", "--format", "sqlc"); out != sqlc.Schema {
		t.Error("it is something else than sqlc.Schema")
	}
	commands.MustFail(cli.ExitUsage, "migrate", "sql", "--format", "sqlc", "--down")
	commands.MustFail(cli.ExitUsage, "migrate", "sql", "--format", "other")
}
