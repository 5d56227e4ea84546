package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui/sql/schema"
	"github.com/pgagui/pgagui/sql/sqlc"
)

func (p *program) migrateCommand() *cobra.Command {
	migrate := &cobra.Command{
		Use:   "migrate",
		Short: "Install, upgrade or remove the schema agui",
		Long: `Installs, upgrades or removes the schema agui in the database. Give it the address of the server itself: a pooler in transaction
mode cannot keep the lock that holds off other migrations.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return &usageError{problem: "which one: up, down, status or sql?", command: command.CommandPath()}
		},
	}
	migrate.AddCommand(
		p.migrateUpCommand(),
		p.migrateDownCommand(),
		&cobra.Command{
			Use:   "status",
			Short: "Say which version is installed",
			Args:  cobra.NoArgs,
			RunE:  func(command *cobra.Command, _ []string) error { return p.migrateStatus(command.Context()) },
		},
		p.migrateSQLCommand(),
	)
	return migrate
}

type migrated struct {
	// From and Version are the numbers of the last migration before and now; 0: none.
	From    uint `json:"from"`
	Version uint `json:"version"`
	// RowSecurity says whether row-level security is on now.
	RowSecurity bool `json:"rowSecurity"`
}

func (p *program) migrateUpCommand() *cobra.Command {
	var acceptChanges, rowSecurity, noRowSecurity bool
	command := &cobra.Command{
		Use:   "up",
		Short: "Install the schema, or upgrade it",
		Long: `Installs the schema agui, or upgrades it to the version of this program. Where there is nothing to upgrade, it makes the roles and
privileges that are missing: those of a database that was restored on another server, for instance.

It refuses a schema that another build of pgagui has installed, or a newer one, and one in which objects were changed by hand.

With --rls it turns row-level security on: each role sees and changes the threads of the scope that it is mapped to (agui.map_tenant,
agui.map_pool, agui.map_operator), and a role without a mapping none. --no-rls turns it off. Without either it stays as it is.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if rowSecurity && noRowSecurity {
				return &usageError{problem: "--rls and --no-rls exclude each other", command: command.CommandPath()}
			}
			options := []schema.Option{schema.OnNotice(p.notice)}
			if acceptChanges {
				options = append(options, schema.AcceptChanges())
			}
			if rowSecurity || noRowSecurity {
				options = append(options, schema.RowSecurity(rowSecurity))
			}
			return p.migrateUp(command.Context(), options)
		},
	}
	command.Flags().BoolVar(&rowSecurity, "rls", false, "turn row-level security on, as well")
	command.Flags().BoolVar(&noRowSecurity, "no-rls", false, "turn row-level security off, as well")
	command.Flags().BoolVar(&acceptChanges, "accept-changes", false, "go on where objects were changed by hand, and take them as they are")
	return command
}

func (p *program) migrateUp(ctx context.Context, options []schema.Option) error {
	before, err := schema.Status(ctx, p.databaseURL)
	if err != nil {
		return err
	}
	if err := schema.Up(ctx, p.databaseURL, options...); err != nil {
		return err
	}
	now, err := schema.Status(ctx, p.databaseURL)
	if err != nil {
		return err
	}
	if p.json {
		return p.printJSON(migrated{From: before.Version, Version: now.Version, RowSecurity: now.RowSecurity})
	}
	switch before.Version {
	case before.Latest:
		fmt.Fprintf(p.out, "agui is at version %d already\n", before.Latest)
	case 0:
		fmt.Fprintf(p.out, "installed the schema agui, version %d\n", before.Latest)
	default:
		fmt.Fprintf(p.out, "upgraded the schema agui from version %d to %d\n", before.Version, before.Latest)
	}
	switch {
	case now.RowSecurity:
		fmt.Fprintln(p.out, "row-level security is on")
	case before.RowSecurity:
		fmt.Fprintln(p.out, "row-level security is off")
	}
	return nil
}

// notice shows what the server noted.
func (p *program) notice(text string) { fmt.Fprintln(p.messages, oneLine("pgagui: "+text)) }

func (p *program) migrateDownCommand() *cobra.Command {
	var yes, force bool
	command := &cobra.Command{
		Use:   "down",
		Short: "Remove the schema with everything in it",
		Long: `Removes the schema agui with everything that it stores: all threads of all scopes, their events and their snapshots. There is no way
back but a backup. It asks first; where there is no terminal to ask on, it needs --yes.

It removes what the install has recorded as its own, whichever build of pgagui made it. What others made in the schemas stays. When
something of others depends on what it removes, it removes nothing and says what.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return p.migrateDown(command, yes, force) },
	}
	command.Flags().BoolVar(&yes, "yes", false, "do not ask")
	command.Flags().BoolVar(&force, "force", false,
		"remove it also where another tool has installed it, and where nothing says what belongs to it:\nthen the schemas go with all that is in them")
	return command
}

func (p *program) migrateDown(command *cobra.Command, yes, force bool) error {
	ctx := command.Context()
	before, err := schema.Status(ctx, p.databaseURL)
	if err != nil {
		return err
	}
	notInstalled := errors.Is(before.Problem(), schema.ErrNotInstalled)
	if !notInstalled {
		options := []schema.Option{schema.OnNotice(p.notice)}
		if force {
			options = append(options, schema.Force())
		}
		if err := schema.CheckDown(ctx, p.databaseURL, options...); err != nil {
			return err
		}
		loss, err := p.describeLoss(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintln(p.messages, loss)
		if !yes {
			if err := p.confirm(command); err != nil {
				return err
			}
		}
		if err := schema.Down(ctx, p.databaseURL, options...); err != nil {
			return err
		}
	}
	if p.json {
		return p.printJSON(migrated{From: before.Version})
	}
	if notInstalled {
		_, err = fmt.Fprintln(p.out, "the schema agui is not installed")
	} else {
		_, err = fmt.Fprintln(p.out, "removed the schema agui")
	}
	return err
}

// describeLoss says what "migrate down" would delete, of another build too.
func (p *program) describeLoss(ctx context.Context) (string, error) {
	pool, err := p.openPool(ctx, 1)
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
	everything := fmt.Sprintf("%s on disk", bytesText(bytes))
	var threads, runs int64
	if err := pool.QueryRow(ctx, `select (select pg_catalog.count(*) from agui.thread), (select pg_catalog.count(*) from agui.run)`).Scan(&threads, &runs); err == nil {
		everything = fmt.Sprintf("%s with %s (%s)", countText(threads, "thread"), countText(runs, "run"), everything)
	}
	return fmt.Sprintf("This deletes the schema agui of database %q with everything in it: %s.", database, everything), nil
}

// confirm asks on the terminal.
func (p *program) confirm(command *cobra.Command) error {
	if terminalOf(p.in) == nil {
		return &usageError{problem: "nothing was deleted: give --yes to say that you mean it", command: command.CommandPath()}
	}
	fmt.Fprint(p.messages, "Type yes to go on: ")
	answer, err := bufio.NewReader(p.in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if strings.TrimSpace(answer) != "yes" {
		return &usageError{problem: "nothing was deleted", command: command.CommandPath()}
	}
	return nil
}

type migrationStatus struct {
	Version     uint   `json:"version"`
	Latest      uint   `json:"latest"`
	Fingerprint string `json:"fingerprint"`
	// Expected is the fingerprint of the version in this program.
	Expected  string          `json:"expected"`
	OtherTool bool            `json:"otherTool"`
	Changes   []schema.Change `json:"changes"`
	// RowSecurity says whether row-level security is on.
	RowSecurity bool `json:"rowSecurity"`
	// Problem is empty when the schema is up to date.
	Problem string `json:"problem"`
}

func (p *program) migrateStatus(ctx context.Context) error {
	state, err := schema.Status(ctx, p.databaseURL)
	if err != nil {
		return err
	}
	problem := state.Problem()
	if p.json {
		status := migrationStatus{
			Version: state.Version, Latest: state.Latest, Fingerprint: state.Fingerprint, Expected: state.Expected,
			OtherTool: state.OtherTool, Changes: append([]schema.Change{}, state.Changes...), RowSecurity: state.RowSecurity,
		}
		if problem != nil {
			status.Problem = problem.Error()
		}
		if err := p.printJSON(status); err != nil {
			return err
		}
	} else if _, err := fmt.Fprintln(p.out, describeState(state)); err != nil {
		return err
	}
	if errors.Is(problem, schema.ErrNotInstalled) || errors.Is(problem, schema.ErrOlder) {
		return nil // and "migrate up" will do
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
		return fmt.Sprintf("%s: pgagui migrate sql --from %d prints what leads to %d", version, state.Version, state.Latest)
	case errors.Is(problem, schema.ErrOlder):
		return fmt.Sprintf("%s: pgagui migrate up upgrades to %d", version, state.Latest)
	case errors.Is(problem, schema.ErrNewer):
		return fmt.Sprintf("%s, newer than this program, which has up to %d", version, state.Latest)
	case errors.Is(problem, schema.ErrOtherBuild) && state.Version == 0:
		return "installed, but nothing says by which build of pgagui"
	case errors.Is(problem, schema.ErrOtherBuild):
		return version + " of another build of pgagui"
	case errors.Is(problem, schema.ErrChanged):
		return version + ", changed by hand since it was installed"
	case state.CatalogUnrecorded:
		return version + ", up to date; changes by hand can be told after the next pgagui migrate up"
	}
	return version + ", up to date"
}

func (p *program) migrateSQLCommand() *cobra.Command {
	var (
		from   uint
		down   bool
		format string
	)
	command := &cobra.Command{
		Use:   "sql",
		Short: "Print the SQL that installs the schema, for other migration tools",
		Long: `Prints the SQL that installs the schema agui, for those who install with another tool; with --from what upgrades it from a version.
Run it in one transaction:

    pgagui migrate sql | psql "$DATABASE_URL" --single-transaction --set ON_ERROR_STOP=1

As a migration of a tool of yours, whose version table then says what is installed:

    golang-migrate  pgagui migrate sql --from 2 > migrations/017_pgagui.up.sql
                    pgagui migrate sql --from 2 --down > migrations/017_pgagui.down.sql
    goose           pgagui migrate sql --from 2 --format goose > migrations/00017_pgagui.sql
    Atlas           pgagui migrate sql --from 2 > migrations/20261120100000_pgagui.sql; atlas migrate hash

With --format sqlc it prints the tables, views and functions as sqlc (https://sqlc.dev) reads them, with
the types of columns, arguments and results, to be listed in sqlc.yaml under schema and not to be run.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			text, err := migrationSQL(from, down, format)
			if err != nil {
				return &usageError{problem: err.Error(), command: command.CommandPath()}
			}
			if text == "" {
				fmt.Fprintf(p.messages, "there is nothing after version %d\n", from)
			}
			_, err = io.WriteString(p.out, text)
			return err
		},
	}
	command.Flags().UintVar(&from, "from", 0, "only what comes after this version, which pgagui migrate status tells")
	command.Flags().BoolVar(&down, "down", false, "the SQL that takes that back; from 0 on it removes everything that is stored")
	command.Flags().StringVar(&format, "format", "plain", "plain; goose: up and down in one file with goose's annotations;\nor sqlc: the schema as sqlc reads it")
	return command
}

func migrationSQL(from uint, down bool, format string) (string, error) {
	switch {
	case from > schema.Latest():
		return "", fmt.Errorf("--from %d: this program has versions up to %d", from, schema.Latest())
	case format != "plain" && format != "goose" && format != "sqlc":
		return "", fmt.Errorf("--format %s: want plain, goose or sqlc", format)
	case format == "sqlc" && (down || from > 0):
		return "", errors.New("--format sqlc prints the whole schema: leave --down and --from out")
	case format == "sqlc":
		return sqlc.Schema, nil
	case format == "goose" && down:
		return "", errors.New("--format goose prints up and down in one file: leave --down out")
	case format == "goose":
		return schema.GooseSQL(from), nil
	case down:
		return schema.DownSQL(from), nil
	}
	return schema.UpSQL(from), nil
}
