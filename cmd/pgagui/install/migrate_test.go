package install

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgagui/pgagui/cluster"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testfile"
	"github.com/pgagui/pgagui/sql/schema"
)

func TestMigrateUpAndDown(t *testing.T) {
	t.Parallel()
	commands := clitest.On(t, testdb.Empty(t))
	if status := clitest.Parse[migrationStatus](commands, "migrate", "status"); status.Version != 0 || status.Latest == 0 || status.Problem == "" {
		t.Errorf("status of an empty database: %+v", status)
	}
	if out := commands.Must("migrate", "up"); !strings.HasPrefix(out, "installed") {
		t.Errorf("up: %s", out)
	}
	if out := commands.Must("migrate", "up"); !strings.Contains(out, "already") {
		t.Errorf("second up: %s", out)
	}
	if out := commands.Must("migrate", "status"); !strings.Contains(out, "up to date") {
		t.Errorf("status: %s", out)
	}
	clitest.ImportTree(t, commands)

	refused := commands.Run("migrate", "down")
	if refused.Code != cli.ExitUsage || !strings.Contains(refused.Messages, "1 thread with 4 runs") || !strings.Contains(refused.Messages, "--yes") {
		t.Errorf("down without --yes: exit code %d, %s", refused.Code, refused.Messages)
	}
	commands.Must("log", "t") // nothing was deleted
	commands.Must("migrate", "down", "--yes")
	if out := commands.Must("migrate", "down", "--yes"); !strings.Contains(out, "not installed") {
		t.Errorf("second down: %s", out)
	}
	if got := clitest.Parse[migrated](commands, "migrate", "up"); got.From != 0 || got.Version == 0 {
		t.Errorf("up after down: %+v", got)
	}
}

func TestMigrateTurnsRowSecurityOnAndOff(t *testing.T) {
	t.Parallel()
	commands := clitest.On(t, testdb.Empty(t))
	for _, step := range []struct {
		flags []string
		says  string
		want  bool
	}{
		{[]string{"--rls"}, "row-level security is on", true},
		{nil, "row-level security is on", true},
		{[]string{"--no-rls"}, "row-level security is off", false},
		{nil, "", false},
	} {
		if out := commands.Must(append([]string{"migrate", "up"}, step.flags...)...); !strings.Contains(out, step.says) || strings.Contains(out, "row-level") != (step.says != "") {
			t.Errorf("up %s says %q, want %q", step.flags, out, step.says)
		}
		if out := commands.Must("migrate", "status"); !strings.Contains(out, "up to date") || strings.Contains(out, "with row-level security") != step.want {
			t.Errorf("after up %s the status is %q", step.flags, out)
		}
		if status := clitest.Parse[migrationStatus](commands, "migrate", "status"); status.RowSecurity != step.want {
			t.Errorf("after up %s the status is %+v", step.flags, status)
		}
		if got := clitest.Parse[migrated](commands, append([]string{"migrate", "up"}, step.flags...)...); got.RowSecurity != step.want {
			t.Errorf("up %s says %+v", step.flags, got)
		}
	}
	if both := commands.Run("migrate", "up", "--rls", "--no-rls"); both.Code != cli.ExitUsage {
		t.Errorf("up --rls --no-rls: exit code %d", both.Code)
	}
}

func TestMigrateSQLInstallsTheSchema(t *testing.T) {
	t.Parallel()
	commands := clitest.On(t, testdb.Empty(t))
	pool := testdb.Connect(t, commands.DatabaseURL)
	for _, arguments := range [][]string{{"migrate", "sql"}, {"migrate", "sql", "--down"}, {"migrate", "sql"}} {
		if _, err := pool.Exec(t.Context(), commands.Must(arguments...)); err != nil {
			t.Fatalf("%s: %v", arguments, err)
		}
	}
	clitest.ImportTree(t, commands)
}

func TestMigrateSQLPrintsWhatOtherToolsNeed(t *testing.T) {
	t.Parallel()
	commands := clitest.On(t, "postgres://nobody@127.0.0.1:1/nothing") // it needs no database
	if all := commands.Must("migrate", "sql"); strings.Count(all, "function agui.append(") != 1 {
		t.Error("it does not create agui.append once")
	}
	after := commands.Must("migrate", "sql", "--from", "1")
	if out := commands.Must("migrate", "sql", "--from", "1", "--down"); !strings.Contains(out, "drop function agui.append(") || strings.Contains(out, "agui.run, agui.thread;") {
		t.Error("--from 1 --down does not go back to version 1")
	}
	if out := commands.Must("migrate", "sql", "--format", "goose"); strings.Count(out, "-- +goose ") != 6 {
		t.Error("--format goose has not two statements with their annotations")
	}
	folder := filepath.Join(t.TempDir(), "new")
	for range 2 { // it replaces what it has written before
		commands.Must("migrate", "sql", "--folder", folder)
		var written strings.Builder
		for version := range schema.Latest() {
			files, err := filepath.Glob(filepath.Join(folder, fmt.Sprintf("%06d_*.up.sql", version+1)))
			if err != nil || len(files) != 1 {
				t.Fatalf("version %d: %v, %v", version+1, files, err)
			}
			if text := testfile.Read(t, files[0]); version > 0 {
				fmt.Fprintf(&written, "-- %s\n\n%s\n", filepath.Base(files[0]), text)
			}
		}
		if written.String() != after {
			t.Error("--folder does not write what --from 1 prints, behind the first")
		}
	}
	latest := fmt.Sprint(schema.Latest())
	if got := commands.Run("migrate", "sql", "--from", latest); got.Code != cli.ExitOK || got.Out != "" || !strings.Contains(got.Messages, "nothing after version "+latest) {
		t.Errorf("--from %s: %+v", latest, got)
	}
	for _, wrong := range [][]string{{"--from", "99"}, {"--from", "-1"}, {"--format", "flyway"}, {"--format", "goose", "--down"}, {"--folder", "x", "--down"}} {
		commands.MustFail(cli.ExitUsage, append([]string{"migrate", "sql"}, wrong...)...)
	}
}

// The schema has the version of this program, but was installed from other migrations.
func TestAnotherBuildIsRefused(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	clitest.ImportTree(t, commands)
	testdb.Exec(t, testdb.Connect(t, commands.DatabaseURL), `do $$ declare definition text; begin
		for definition in select pg_get_functiondef(oid) from pg_proc where proname in ('installed', 'unreleased_build') loop
			execute regexp_replace(definition, '[0-9a-f]{64}', repeat('0', 64));
		end loop; end $$`)
	for _, arguments := range []string{"migrate up", "migrate status", "log t", "import nothing.ndjson", "stats", "verify", "job compact", "worker", "threads"} {
		if message := commands.MustFail(cli.ExitUnavailable, strings.Fields(arguments)...); !strings.Contains(message, "another build") ||
			!strings.Contains(message, "000000000000") || !strings.Contains(message, "migrate down") {
			t.Errorf("%s: %s", arguments, message)
		}
	}
	status := commands.Run("migrate", "status", "--json")
	if !strings.Contains(status.Out, `"problem":"the schema agui was installed by another build`) && !strings.Contains(status.Out, `"problem": "the schema agui was installed by another build`) {
		t.Errorf("status: %s", status.Out)
	}
	if refused := commands.Run("migrate", "down"); refused.Code != cli.ExitUsage || !strings.Contains(refused.Messages, "1 thread with 4 runs") {
		t.Errorf("down without --yes: %+v", refused)
	}
	commands.Must("migrate", "down", "--yes")
	commands.Must("migrate", "up")
}

func TestChangesByHandAreRefusedUntilTheyAreAccepted(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	testdb.Exec(t, testdb.Connect(t, commands.DatabaseURL), `drop procedure agui.reap; create table agui.mine ()`)
	for _, command := range []string{"up", "status"} {
		if message := commands.MustFail(cli.ExitUnavailable, "migrate", command); !strings.Contains(message, "procedure agui.reap") ||
			!strings.Contains(message, "--accept-changes") {
			t.Errorf("%s: %s", command, message)
		}
	}
	commands.Must("migrate", "up", "--accept-changes")
	commands.Must("migrate", "status")
	if got := commands.Run("migrate", "down", "--yes"); got.Code != cli.ExitOK || !strings.Contains(got.Messages, "kept what others made") ||
		!strings.Contains(got.Messages, "table agui.mine") {
		t.Errorf("down: %+v", got)
	}
}

func TestInstalledByAnotherTool(t *testing.T) {
	t.Parallel()
	commands := clitest.On(t, testdb.Empty(t))
	testdb.Exec(t, testdb.Connect(t, commands.DatabaseURL), schema.InstallSQL())
	clitest.ImportTree(t, commands)
	if out := commands.Must("migrate", "status"); !strings.Contains(out, "installed by another tool, up to date") {
		t.Errorf("status: %s", out)
	}
	commands.Must("migrate", "up")
	if message := commands.MustFail(cli.ExitUnavailable, "migrate", "down", "--yes"); !strings.Contains(message, "migrate sql --down") {
		t.Errorf("down: %s", message)
	}
	commands.Must("migrate", "down", "--yes", "--force")
}

// as returns the command line of a new user with these roles.
func as(t *testing.T, commands clitest.CommandLine, roles ...string) (user string, line clitest.CommandLine) {
	t.Helper()
	pool := testdb.Connect(t, commands.DatabaseURL)
	address := must.Have(url.Parse(commands.DatabaseURL))(t)
	user = "user_of_" + strings.ReplaceAll(strings.TrimPrefix(address.Path, "/"), "pgagui_", "")
	user = user[:min(len(user), 50)] + fmt.Sprint("_", len(roles))
	testdb.Exec(t, pool, `create role `+user+` login password 'secret'`)
	t.Cleanup(func() {
		connection, err := pgx.Connect(context.Background(), commands.DatabaseURL)
		if err != nil {
			t.Error(err)
			return
		}
		defer connection.Close(context.Background())
		if _, err := connection.Exec(context.Background(), `drop role `+user); err != nil {
			t.Error(err)
		}
	})
	for _, role := range roles {
		testdb.Exec(t, pool, `grant `+role+` to `+user)
	}
	address.User = url.UserPassword(user, "secret")
	return user, clitest.On(t, address.String())
}

func TestPermissionErrorsNameTheRoleToGrant(t *testing.T) {
	t.Parallel()
	owner := clitest.NewCommandLine(t)
	clitest.ImportTree(t, owner)
	file := clitest.WriteFile(t, "more.ndjson", clitest.Answer("more", "r", 1)...)

	nobody, asNobody := as(t, owner)
	reader, asReader := as(t, owner, "agui_reader")
	writer, asWriter := as(t, owner, "agui_reader", "agui_writer")
	for _, test := range []struct {
		as        clitest.CommandLine
		arguments string
		advice    string
	}{
		{asNobody, "log t", "grant agui_reader to " + nobody},
		{asNobody, "threads", "grant agui_reader to " + nobody},
		{asNobody, "migrate status", "grant agui_reader to " + nobody},
		{asNobody, "import " + file, "grant agui_writer to " + nobody},
		{asNobody, "verify --repair", "grant agui_maintainer to " + nobody},
		{asNobody, "erase t --yes", "grant agui_maintainer to " + nobody},
		{asReader, "import " + file, "grant agui_writer to " + reader},
		{asReader, "job compact", "grant agui_worker to " + reader},
		{asReader, "stop t", "grant agui_writer to " + reader},
		{asReader, "session rm t k", "grant agui_writer to " + reader},
		{asReader, "search --enable english", "grant agui_maintainer to " + reader},
		{asReader, "feed --consumer c", "grant agui_writer to " + reader},
		{asWriter, "erase t --yes", "grant agui_maintainer to " + writer},
	} {
		if message := test.as.MustFail(cli.ExitRefused, strings.Fields(test.arguments)...); !strings.Contains(message, test.advice) {
			t.Errorf("%s: %s, which does not say %q", test.arguments, message, test.advice)
		}
	}
	// Each node of a cluster has roles of its own.
	nodes := clitest.OnNodes(t, cluster.Node{Name: "a", URL: asReader.DatabaseURL}, cluster.Node{Name: "b", URL: asNobody.DatabaseURL})
	message := nodes.MustFail(cli.ExitRefused, "job", "compact")
	if _, ofB, isBoth := strings.Cut(message, `; node "b": `); !isBoth || !strings.Contains(message, "grant agui_worker to "+reader) || !strings.Contains(ofB, "grant agui_worker to "+nobody) {
		t.Errorf("compact on nodes: %s", message)
	}
	if got := asReader.Run("migrate", "down", "--yes"); got.Code != cli.ExitRefused || !strings.Contains(got.Messages, "the owner of the schema agui, not as "+reader) {
		t.Errorf("migrate down: %+v", got)
	}
	asReader.Must("migrate", "status")
	asReader.Must("migrate", "up") // nothing to do

	testdb.Exec(t, testdb.Connect(t, owner.DatabaseURL), `revoke all on agui.run from agui_reader, agui_writer`)
	if message := asReader.MustFail(cli.ExitRefused, "log", "t"); !strings.Contains(message, "migrate up") || strings.Contains(message, "grant ") {
		t.Errorf("where a privilege is missing: %s", message)
	}
	owner.Must("migrate", "up")
	asReader.Must("log", "t")

	empty := clitest.On(t, testdb.Empty(t))
	stranger, asStranger := as(t, empty)
	if message := asStranger.MustFail(cli.ExitRefused, "migrate", "up"); !strings.Contains(message, "grant create on database ") || !strings.Contains(message, " to "+stranger) {
		t.Errorf("install: %s", message)
	}
}
