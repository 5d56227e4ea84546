package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/sql/schema"
)

func TestMigrateUpAndDown(t *testing.T) {
	t.Parallel()
	commands := commandLine{t, testdb.Empty(t)}
	if status := parse[migrationStatus](commands, "migrate", "status"); status.Version != 0 || status.Latest == 0 || status.Problem == "" {
		t.Errorf("status of an empty database: %+v", status)
	}
	if out := commands.must("migrate", "up"); !strings.HasPrefix(out, "installed") {
		t.Errorf("up: %s", out)
	}
	if out := commands.must("migrate", "up"); !strings.Contains(out, "already") {
		t.Errorf("second up: %s", out)
	}
	if out := commands.must("migrate", "status"); !strings.Contains(out, "up to date") {
		t.Errorf("status: %s", out)
	}
	importTree(t, commands)

	refused := commands.run("migrate", "down")
	if refused.code != exitUsage || !strings.Contains(refused.messages, "1 thread with 4 runs") || !strings.Contains(refused.messages, "--yes") {
		t.Errorf("down without --yes: exit code %d, %s", refused.code, refused.messages)
	}
	commands.must("log", "t") // nothing was deleted
	commands.must("migrate", "down", "--yes")
	if out := commands.must("migrate", "down", "--yes"); !strings.Contains(out, "not installed") {
		t.Errorf("second down: %s", out)
	}
	if got := parse[migrated](commands, "migrate", "up"); got.From != 0 || got.Version == 0 {
		t.Errorf("up after down: %+v", got)
	}
}

func TestMigrateTurnsRowSecurityOnAndOff(t *testing.T) {
	t.Parallel()
	commands := commandLine{t, testdb.Empty(t)}
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
		if out := commands.must(append([]string{"migrate", "up"}, step.flags...)...); !strings.Contains(out, step.says) || strings.Contains(out, "row-level") != (step.says != "") {
			t.Errorf("up %s says %q, want %q", step.flags, out, step.says)
		}
		if out := commands.must("migrate", "status"); !strings.Contains(out, "up to date") || strings.Contains(out, "with row-level security") != step.want {
			t.Errorf("after up %s the status is %q", step.flags, out)
		}
		if status := parse[migrationStatus](commands, "migrate", "status"); status.RowSecurity != step.want {
			t.Errorf("after up %s the status is %+v", step.flags, status)
		}
		if got := parse[migrated](commands, append([]string{"migrate", "up"}, step.flags...)...); got.RowSecurity != step.want {
			t.Errorf("up %s says %+v", step.flags, got)
		}
	}
	if both := commands.run("migrate", "up", "--rls", "--no-rls"); both.code != exitUsage {
		t.Errorf("up --rls --no-rls: exit code %d", both.code)
	}
}

func TestMigrateSQLInstallsTheSchema(t *testing.T) {
	t.Parallel()
	commands := commandLine{t, testdb.Empty(t)}
	pool := testdb.Connect(t, commands.databaseURL)
	for _, arguments := range [][]string{{"migrate", "sql"}, {"migrate", "sql", "--down"}, {"migrate", "sql"}} {
		if _, err := pool.Exec(t.Context(), commands.must(arguments...)); err != nil {
			t.Fatalf("%s: %v", arguments, err)
		}
	}
	importTree(t, commands)
}

func TestMigrateSQLPrintsWhatOtherToolsNeed(t *testing.T) {
	t.Parallel()
	commands := commandLine{t, "postgres://nobody@127.0.0.1:1/nothing"} // it needs no database
	all := commands.must("migrate", "sql")
	if after := commands.must("migrate", "sql", "--from", "1"); !strings.HasSuffix(all, after) || len(after) == len(all) || after == "" {
		t.Error("--from 1 is not the end of all")
	}
	if out := commands.must("migrate", "sql", "--from", "1", "--down"); !strings.Contains(out, "drop function agui.append(") || strings.Contains(out, "drop table") {
		t.Error("--from 1 --down does not go back to version 1")
	}
	if out := commands.must("migrate", "sql", "--format", "goose"); strings.Count(out, "-- +goose ") != 6 {
		t.Error("--format goose has not two statements with their annotations")
	}
	latest := fmt.Sprint(schema.Latest())
	if got := commands.run("migrate", "sql", "--from", latest); got.code != exitOK || got.out != "" || !strings.Contains(got.messages, "nothing after version "+latest) {
		t.Errorf("--from %s: %+v", latest, got)
	}
	for _, wrong := range [][]string{{"--from", "99"}, {"--from", "-1"}, {"--format", "flyway"}, {"--format", "goose", "--down"}} {
		commands.mustFail(exitUsage, append([]string{"migrate", "sql"}, wrong...)...)
	}
}

func mustExec(t *testing.T, pool *pgxpool.Pool, sql string) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// The schema has the version of this program, but was installed from other migrations.
func TestAnotherBuildIsRefused(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	importTree(t, commands)
	mustExec(t, testdb.Connect(t, commands.databaseURL), `do $$ begin
		execute regexp_replace(pg_get_functiondef('agui_internal.installed()'::regprocedure), '[0-9a-f]{64}', repeat('0', 64)); end $$`)
	for _, arguments := range []string{"migrate up", "migrate status", "log t", "import nothing.ndjson", "stats", "verify", "compact", "worker", "threads"} {
		if message := commands.mustFail(exitUnavailable, strings.Fields(arguments)...); !strings.Contains(message, "another build") ||
			!strings.Contains(message, "000000000000") || !strings.Contains(message, "migrate down") {
			t.Errorf("%s: %s", arguments, message)
		}
	}
	status := commands.run("migrate", "status", "--json")
	if !strings.Contains(status.out, `"problem":"the schema agui was installed by another build`) && !strings.Contains(status.out, `"problem": "the schema agui was installed by another build`) {
		t.Errorf("status: %s", status.out)
	}
	if refused := commands.run("migrate", "down"); refused.code != exitUsage || !strings.Contains(refused.messages, "1 thread with 4 runs") {
		t.Errorf("down without --yes: %+v", refused)
	}
	commands.must("migrate", "down", "--yes")
	commands.must("migrate", "up")
}

func TestChangesByHandAreRefusedUntilTheyAreAccepted(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	mustExec(t, testdb.Connect(t, commands.databaseURL), `drop procedure agui.reap; create table agui.mine ()`)
	for _, command := range []string{"up", "status"} {
		if message := commands.mustFail(exitUnavailable, "migrate", command); !strings.Contains(message, "procedure agui.reap") ||
			!strings.Contains(message, "--accept-changes") {
			t.Errorf("%s: %s", command, message)
		}
	}
	commands.must("migrate", "up", "--accept-changes")
	commands.must("migrate", "status")
	if got := commands.run("migrate", "down", "--yes"); got.code != exitOK || !strings.Contains(got.messages, "kept what others made") ||
		!strings.Contains(got.messages, "table agui.mine") {
		t.Errorf("down: %+v", got)
	}
}

func TestInstalledByAnotherTool(t *testing.T) {
	t.Parallel()
	commands := commandLine{t, testdb.Empty(t)}
	mustExec(t, testdb.Connect(t, commands.databaseURL), schema.UpSQL(0))
	importTree(t, commands)
	if out := commands.must("migrate", "status"); !strings.Contains(out, "installed by another tool, up to date") {
		t.Errorf("status: %s", out)
	}
	commands.must("migrate", "up")
	if message := commands.mustFail(exitUnavailable, "migrate", "down", "--yes"); !strings.Contains(message, "migrate sql --down") {
		t.Errorf("down: %s", message)
	}
	commands.must("migrate", "down", "--yes", "--force")
}

// as returns the command line of a new user with these roles.
func as(t *testing.T, commands commandLine, roles ...string) (user string, line commandLine) {
	t.Helper()
	pool := testdb.Connect(t, commands.databaseURL)
	address, err := url.Parse(commands.databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	user = "user_of_" + strings.ReplaceAll(strings.TrimPrefix(address.Path, "/"), "pgagui_", "")
	user = user[:min(len(user), 50)] + fmt.Sprint("_", len(roles))
	mustExec(t, pool, `create role `+user+` login password 'secret'`)
	t.Cleanup(func() {
		connection, err := pgx.Connect(context.Background(), commands.databaseURL)
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
		mustExec(t, pool, `grant `+role+` to `+user)
	}
	address.User = url.UserPassword(user, "secret")
	return user, commandLine{t, address.String()}
}

func TestPermissionErrorsNameTheRoleToGrant(t *testing.T) {
	t.Parallel()
	owner := newCommandLine(t)
	importTree(t, owner)
	file := writeFile(t, "more.ndjson", answer("more", "r", 1)...)

	nobody, asNobody := as(t, owner)
	reader, asReader := as(t, owner, "agui_reader")
	writer, asWriter := as(t, owner, "agui_reader", "agui_writer")
	for _, test := range []struct {
		as        commandLine
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
		{asReader, "compact", "grant agui_worker to " + reader},
		{asReader, "stop t", "grant agui_writer to " + reader},
		{asReader, "session rm t k", "grant agui_writer to " + reader},
		{asWriter, "erase t --yes", "grant agui_maintainer to " + writer},
	} {
		if message := test.as.mustFail(exitRefused, strings.Fields(test.arguments)...); !strings.Contains(message, test.advice) {
			t.Errorf("%s: %s, which does not say %q", test.arguments, message, test.advice)
		}
	}
	if got := asReader.run("migrate", "down", "--yes"); got.code != exitRefused || !strings.Contains(got.messages, "the owner of the schema agui, not as "+reader) {
		t.Errorf("migrate down: %+v", got)
	}
	asReader.must("migrate", "status")
	asReader.must("migrate", "up") // nothing to do

	mustExec(t, testdb.Connect(t, owner.databaseURL), `revoke all on agui.run from agui_reader, agui_writer`)
	if message := asReader.mustFail(exitRefused, "log", "t"); !strings.Contains(message, "migrate up") || strings.Contains(message, "grant ") {
		t.Errorf("where a privilege is missing: %s", message)
	}
	owner.must("migrate", "up")
	asReader.must("log", "t")

	empty := commandLine{t, testdb.Empty(t)}
	stranger, asStranger := as(t, empty)
	if message := asStranger.mustFail(exitRefused, "migrate", "up"); !strings.Contains(message, "grant create on database ") || !strings.Contains(message, " to "+stranger) {
		t.Errorf("install: %s", message)
	}
}
