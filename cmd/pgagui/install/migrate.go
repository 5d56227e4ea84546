package install

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/sql/schema"
	"github.com/pgagui/pgagui/sql/sqlc"
)

func (p *program) migrateCommand() *cobra.Command {
	migrate := &cobra.Command{
		Use:   "migrate",
		Short: "Install, upgrade or remove the schema agui",
		Long: `Installs, upgrades or removes the schema agui in the database. Use the address of the server itself:
a pooler in transaction mode cannot hold the lock against concurrent migrations.`,
		Example: `  pgagui migrate up
  pgagui migrate status`,
		Args: cli.NoArguments,
		RunE: cli.NeedsSubcommand("up, down, status or sql"),
	}
	migrate.AddCommand(cli.OnOneDatabase(p.migrateUpCommand(), p.migrateDownCommand())...)
	migrate.AddCommand(
		&cobra.Command{
			Use:   "status",
			Short: "Show the installed version and changes by hand",
			Long: `Shows the version of the schema in the database, and whether it was changed by hand. If the schema
is newer than this program, of another build, or changed by hand, the exit code is 5.`,
			Example: `  pgagui migrate status --json`,
			Args:    cli.NoArguments,
			RunE:    func(command *cobra.Command, _ []string) error { return p.EachNode(command.Context(), p.migrateStatus) },
		},
		p.migrateSQLCommand(),
	)
	return migrate
}

type migrated struct {
	// From and Version are the versions before and after the command; 0 means not installed.
	From    uint `json:"from"`
	Version uint `json:"version"`
	// RowSecurity is true if row-level security is on after the command.
	RowSecurity bool `json:"rowSecurity"`
}

func (p *program) migrateUpCommand() *cobra.Command {
	var acceptChanges, rowSecurity, noRowSecurity bool
	command := &cobra.Command{
		Use:   "up",
		Short: "Install the schema, or upgrade it",
		Long: `Installs the schema agui, or upgrades it to the version of this program. If it is already at that
version, the command creates roles and privileges that are missing, for example in a database that
was restored on another server.

It refuses a newer schema, one that another build of pgagui made with other tables, and one whose
objects were changed by hand.

--rls turns row-level security on: each role can access only the threads of the scope that it is
mapped to (agui.map_tenant, agui.map_pool, agui.map_operator), and a role without a mapping none.
--no-rls turns it off. Without these flags it stays as it is.`,
		Example: `  pgagui migrate up --database-url postgres://agui@localhost/agui
  pgagui migrate up --rls`,
		Args: cli.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if rowSecurity && noRowSecurity {
				return cli.WrongUsage(command, "--rls and --no-rls exclude each other")
			}
			options := []schema.Option{schema.OnNotice(p.Notice)}
			if acceptChanges {
				options = append(options, schema.AcceptChanges())
			}
			if rowSecurity || noRowSecurity {
				options = append(options, schema.RowSecurity(rowSecurity))
			}
			return p.migrateUp(command.Context(), options)
		},
	}
	command.Flags().BoolVar(&rowSecurity, "rls", false, "also turn row-level security on")
	command.Flags().BoolVar(&noRowSecurity, "no-rls", false, "also turn row-level security off")
	command.Flags().BoolVar(&acceptChanges, "accept-changes", false, "continue if objects were changed by hand, and accept the changes")
	return command
}

func (p *program) migrateUp(ctx context.Context, options []schema.Option) error {
	before, err := schema.Status(ctx, p.DatabaseURL)
	if err != nil {
		return err
	}
	if err := schema.Up(ctx, p.DatabaseURL, options...); err != nil {
		return err
	}
	now, err := schema.Status(ctx, p.DatabaseURL)
	if err != nil {
		return err
	}
	if p.JSON {
		return p.PrintJSON(migrated{From: before.Version, Version: now.Version, RowSecurity: now.RowSecurity})
	}
	switch {
	case errors.Is(before.Problem(), schema.ErrUnreleased):
		fmt.Fprintf(p.Out, "upgraded the schema agui from another unreleased build to version %d of this program\n", before.Latest)
	case before.Version > before.Latest:
		fmt.Fprintf(p.Out, "agui is at version %d, which serves this program of version %d too\n", before.Version, before.Latest)
	case before.Version == before.Latest:
		fmt.Fprintf(p.Out, "agui is at version %d already\n", before.Latest)
	case before.Version == 0:
		fmt.Fprintf(p.Out, "installed the schema agui, version %d\n", before.Latest)
	default:
		fmt.Fprintf(p.Out, "upgraded the schema agui from version %d to %d\n", before.Version, before.Latest)
	}
	switch {
	case now.RowSecurity:
		fmt.Fprintln(p.Out, "row-level security is on")
	case before.RowSecurity:
		fmt.Fprintln(p.Out, "row-level security is off")
	}
	return nil
}

func (p *program) migrateDownCommand() *cobra.Command {
	var yes, force bool
	command := &cobra.Command{
		Use:   "down",
		Short: "Remove the schema and all data in it",
		Long: `Removes the schema agui and all data in it: all threads of all scopes, their events and snapshots.
Only a backup can restore them. The command asks for confirmation; without a terminal it needs
--yes.

It removes the objects that the installation recorded, of any build of pgagui. Objects that others
created in the schemas stay. If other objects depend on those to remove, it removes nothing and
names them.`,
		Example: `  pgagui migrate down --yes`,
		Args:    cli.NoArguments,
		RunE:    func(command *cobra.Command, _ []string) error { return p.migrateDown(command, yes, force) },
	}
	command.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	command.Flags().BoolVar(&force, "force", false,
		"remove the schema even if another tool installed it; if no record of its objects exists, remove the schemas with all objects in them")
	return command
}

func (p *program) migrateDown(command *cobra.Command, yes, force bool) error {
	ctx := command.Context()
	before, err := schema.Status(ctx, p.DatabaseURL)
	if err != nil {
		return err
	}
	notInstalled := errors.Is(before.Problem(), schema.ErrNotInstalled)
	if !notInstalled {
		options := []schema.Option{schema.OnNotice(p.Notice)}
		if force {
			options = append(options, schema.Force())
		}
		if err := schema.CheckDown(ctx, p.DatabaseURL, options...); err != nil {
			return err
		}
		loss, err := p.describeLoss(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintln(p.Messages, loss)
		if !yes {
			if err := p.Confirm(command, "nothing was deleted"); err != nil {
				return err
			}
		}
		if err := schema.Down(ctx, p.DatabaseURL, append(options, schema.DeleteData())...); err != nil {
			return err
		}
	}
	if p.JSON {
		return p.PrintJSON(migrated{From: before.Version})
	}
	if notInstalled {
		_, err = fmt.Fprintln(p.Out, "the schema agui is not installed")
	} else {
		_, err = fmt.Fprintln(p.Out, "removed the schema agui")
	}
	return err
}

// describeLoss describes the data that "migrate down" would delete. It also works with other
// builds.
func (p *program) describeLoss(ctx context.Context) (string, error) {
	pool, err := cli.OpenPool(ctx, p.DatabaseURL, 1)
	if err != nil {
		return "", err
	}
	defer pool.Close()
	var database string
	var bytes int64
	err = pool.QueryRow(ctx, `
		select
		    pg_catalog.current_database(),
		    coalesce(pg_catalog.sum(pg_catalog.pg_total_relation_size(class.oid)), 0)::bigint
		from pg_catalog.pg_class as class
		join pg_catalog.pg_namespace as namespace
		    on namespace.oid operator(pg_catalog.=) class.relnamespace
		where namespace.nspname operator(pg_catalog.=) any ('{agui,agui_internal}') and class.relkind operator(pg_catalog.=) 'r'`).Scan(&database, &bytes)
	if err != nil {
		return "", err
	}
	everything := fmt.Sprintf("%s on disk", cli.BytesText(bytes))
	var threads, runs int64
	if err := pool.QueryRow(ctx, `select (select pg_catalog.count(*) from agui.thread), (select pg_catalog.count(*) from agui.run)`).Scan(&threads, &runs); err == nil {
		everything = fmt.Sprintf("%s with %s (%s)", cli.CountText(threads, "thread"), cli.CountText(runs, "run"), everything)
	}
	return fmt.Sprintf("This deletes the schema agui of the database %q and all data in it: %s.", database, everything), nil
}

type migrationStatus struct {
	Version     uint   `json:"version"`
	Latest      uint   `json:"latest"`
	Fingerprint string `json:"fingerprint"`
	// Expected is the fingerprint of the installed version as this program has it.
	Expected  string          `json:"expected"`
	OtherTool bool            `json:"otherTool"`
	Changes   []schema.Change `json:"changes"`
	// RowSecurity is true if row-level security is on.
	RowSecurity bool `json:"rowSecurity"`
	// Problem is empty when the schema is up to date.
	Problem string `json:"problem"`
}

func (p *program) migrateStatus(ctx context.Context) error {
	state, err := schema.Status(ctx, p.DatabaseURL)
	if err != nil {
		return err
	}
	problem := state.Problem()
	if p.JSON {
		status := migrationStatus{
			Version: state.Version, Latest: state.Latest, Fingerprint: state.Fingerprint, Expected: state.Expected,
			OtherTool: state.OtherTool, Changes: append([]schema.Change{}, state.Changes...), RowSecurity: state.RowSecurity,
		}
		if problem != nil {
			status.Problem = problem.Error()
		}
		if err := p.PrintJSON(status); err != nil {
			return err
		}
	} else if _, err := fmt.Fprintln(p.Out, describeState(state)); err != nil {
		return err
	}
	if errors.Is(problem, schema.ErrNotInstalled) || errors.Is(problem, schema.ErrOlder) || errors.Is(problem, schema.ErrUnreleased) {
		return nil // "migrate up" resolves it
	}
	return problem
}

func describeState(state schema.State) string {
	problem := state.Problem()
	version := fmt.Sprintf("version %d", state.Version)
	if state.OtherTool {
		version += ", installed by another tool"
	}
	if state.RowSecurity {
		version += ", with row-level security"
	}
	switch {
	case errors.Is(problem, schema.ErrNotInstalled):
		return fmt.Sprintf("not installed: pgagui migrate up installs version %d", state.Latest)
	case errors.Is(problem, schema.ErrOlder) && state.OtherTool:
		return fmt.Sprintf("%s: pgagui migrate sql --from %d prints the upgrade to %d", version, state.Version, state.Latest)
	case errors.Is(problem, schema.ErrOlder):
		return fmt.Sprintf("%s: pgagui migrate up upgrades to %d", version, state.Latest)
	case errors.Is(problem, schema.ErrUnreleased):
		return fmt.Sprintf("%s of another unreleased build: pgagui migrate up upgrades to %d of this program", version, state.Latest)
	case errors.Is(problem, schema.ErrNewer):
		return fmt.Sprintf("%s, newer than this program, which has versions up to %d", version, state.Latest)
	case errors.Is(problem, schema.ErrOtherBuild) && state.Version == 0:
		return "installed, but the build of pgagui that installed it is unknown"
	case errors.Is(problem, schema.ErrOtherBuild):
		return version + " of another build of pgagui"
	case state.Version > state.Latest:
		return fmt.Sprintf("%s, newer than this program of version %d, and serves it", version, state.Latest)
	case errors.Is(problem, schema.ErrChanged):
		return version + ", changed by hand since it was installed"
	case state.CatalogUnrecorded:
		return version + ", up to date; changes by hand can be detected after the next pgagui migrate up"
	}
	return version + ", up to date"
}

func (p *program) migrateSQLCommand() *cobra.Command {
	var (
		from   uint
		down   bool
		format string
		folder string
	)
	command := &cobra.Command{
		Use:   "sql",
		Short: "Print the SQL that installs the schema, for other migration tools",
		Long: `Prints the SQL that installs the schema agui, for use with another migration tool. Run it in one
transaction. These tools then record the installed version in their own tables. A first install:

    golang-migrate  pgagui migrate sql > migrations/017_pgagui.up.sql
                    pgagui migrate sql --down > migrations/017_pgagui.down.sql
    goose           pgagui migrate sql --format goose > migrations/00017_pgagui.sql
    Atlas           pgagui migrate sql > migrations/20261120100000_pgagui.sql
                    atlas migrate hash

An upgrade is a second migration: add --from with the version that the first one installed
("pgagui migrate status" prints it). If this program has nothing newer, it prints nothing, and says
so on stderr.

With --folder it writes all migrations, up and down, as files for golang-migrate, which then runs
them beside a chain of yours, with the version table of pgagui.

With --folder and --format extension it writes the files of an extension, for "create extension
pgagui".

With --format json it prints one object with that SQL and all migrations, for programs that install
the schema themselves, as the Python package does.

With --format sqlc it prints the tables, views and functions, with the types of columns, arguments
and results, for sqlc (https://sqlc.dev). List that file in sqlc.yaml under schema; do not run it.`,
		Example: `  pgagui migrate sql | psql "$DATABASE_URL" --single-transaction --set ON_ERROR_STOP=1
  pgagui migrate sql --from 2 > migrations/021_pgagui.up.sql
  pgagui migrate sql --folder pgagui-migrations
  pgagui migrate sql --format sqlc > agui.sql`,
		Args: cli.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if folder != "" {
				if down || from > 0 || format != "plain" && format != "extension" {
					return cli.WrongUsage(command, "--folder excludes --from, --down and other formats than extension: it writes all migrations")
				}
				if format == "extension" {
					return writeFiles(folder, schema.Extension())
				}
				return writeFiles(folder, schema.Migrations())
			}
			text, err := migrationSQL(from, down, format)
			if err != nil {
				return cli.WrongUsage(command, err.Error())
			}
			if text == "" {
				fmt.Fprintf(p.Messages, "nothing to print: there is nothing after version %d\n", from)
			}
			_, err = io.WriteString(p.Out, text)
			return err
		},
	}
	command.Flags().UintVar(&from, "from", 0, "print only the migrations after this `version` (see: pgagui migrate status)")
	command.Flags().BoolVar(&down, "down", false, "print the SQL that reverts them; without --from this removes all data")
	command.Flags().StringVar(&format, "format", "plain", "plain, goose (up and down in one file, with goose's annotations), json (for programs), sqlc (the schema for sqlc), or extension (with --folder)")
	command.Flags().StringVar(&folder, "folder", "", "write the migrations as files for golang-migrate, or those of an extension, to this `folder`")
	return command
}

// writeFiles writes files to a folder, which it creates if needed. It replaces files of the same names.
func writeFiles(folder string, files fs.FS) error {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		text, err := fs.ReadFile(files, entry.Name())
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, entry.Name()), text, 0o666); err != nil {
			return err
		}
	}
	return nil
}

func migrationSQL(from uint, down bool, format string) (string, error) {
	switch {
	case from > schema.Latest():
		return "", fmt.Errorf("--from %d: this program has versions up to %d", from, schema.Latest())
	case format == "extension":
		return "", errors.New("--format extension needs --folder: an extension has several files")
	case format != "plain" && format != "goose" && format != "json" && format != "sqlc":
		return "", fmt.Errorf("--format %s: unknown format (expected plain, goose, json, sqlc or extension)", format)
	case (format == "json" || format == "sqlc") && (down || from > 0):
		return "", fmt.Errorf("--format %s excludes --down and --from: it prints the whole schema", format)
	case format == "json":
		text, err := schema.JSON()
		return string(text), err
	case format == "sqlc":
		return sqlc.Schema, nil
	case format == "goose" && down:
		return "", errors.New("--format goose excludes --down: it prints up and down in one file")
	case format == "goose":
		return schema.GooseSQL(from), nil
	case down:
		return schema.DownSQL(from), nil
	case from == 0:
		return schema.InstallSQL(), nil
	}
	return schema.UpSQL(from), nil
}
