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
		&cobra.Command{
			Use:   "up",
			Short: "Install the schema, or upgrade it",
			Args:  cobra.NoArgs,
			RunE:  func(command *cobra.Command, _ []string) error { return p.migrateUp(command.Context()) },
		},
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
}

func (p *program) migrateUp(ctx context.Context) error {
	before, err := schema.Status(ctx, p.databaseURL)
	if err != nil {
		return err
	}
	if err := schema.Up(ctx, p.databaseURL); err != nil {
		return err
	}
	if p.json {
		return p.printJSON(migrated{From: before.Version, Version: before.Latest})
	}
	switch before.Version {
	case before.Latest:
		fmt.Fprintf(p.out, "agui is at version %d already\n", before.Latest)
	case 0:
		fmt.Fprintf(p.out, "installed the schema agui, version %d\n", before.Latest)
	default:
		fmt.Fprintf(p.out, "upgraded the schema agui from version %d to %d\n", before.Version, before.Latest)
	}
	return nil
}

func (p *program) migrateDownCommand() *cobra.Command {
	var yes bool
	command := &cobra.Command{
		Use:   "down",
		Short: "Remove the schema with everything in it",
		Long: `Removes the schema agui with everything that it stores: all threads of all scopes, their events and their snapshots. There is no way
back but a backup. It asks first; where there is no terminal to ask on, it needs --yes.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return p.migrateDown(command, yes) },
	}
	command.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return command
}

func (p *program) migrateDown(command *cobra.Command, yes bool) error {
	ctx := command.Context()
	before, err := schema.Status(ctx, p.databaseURL)
	if err != nil {
		return err
	}
	if before.Version > 0 {
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
		if err := schema.Down(ctx, p.databaseURL); err != nil {
			return err
		}
	}
	if p.json {
		return p.printJSON(migrated{From: before.Version})
	}
	if before.Version == 0 {
		_, err = fmt.Fprintln(p.out, "the schema agui is not installed")
	} else {
		_, err = fmt.Fprintln(p.out, "removed the schema agui")
	}
	return err
}

// describeLoss says what "migrate down" would delete.
func (p *program) describeLoss(ctx context.Context) (string, error) {
	pool, err := p.connect(ctx, 1)
	if err != nil {
		return "", err
	}
	defer pool.Close()
	var database string
	var threads, runs, bytes int64
	err = pool.QueryRow(ctx, `
		select
		    current_database(),
		    (select count(*) from agui.thread),
		    (select count(*) from agui.run),
		    (select sum(pg_total_relation_size(oid))::bigint from pg_class where relnamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace) and relkind = 'r')`).
		Scan(&database, &threads, &runs, &bytes)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("This deletes the schema agui of database %q with everything in it: %s with %s (%s on disk).",
		database, countText(threads, "thread"), countText(runs, "run"), bytesText(bytes)), nil
}

// confirm asks on the terminal.
func (p *program) confirm(command *cobra.Command) error {
	if !isTerminal(p.in) {
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
	Version uint `json:"version"`
	Latest  uint `json:"latest"`
	Dirty   bool `json:"dirty"`
}

func (p *program) migrateStatus(ctx context.Context) error {
	state, err := schema.Status(ctx, p.databaseURL)
	if err != nil {
		return err
	}
	if p.json {
		return p.printJSON(migrationStatus(state))
	}
	switch {
	case state.Dirty:
		_, err = fmt.Fprintf(p.out, "the migration to version %d was interrupted: pgagui migrate up says what to do\n", state.Version)
	case state.Version == 0:
		_, err = fmt.Fprintf(p.out, "not installed: pgagui migrate up installs version %d\n", state.Latest)
	case state.Version < state.Latest:
		_, err = fmt.Fprintf(p.out, "version %d: pgagui migrate up upgrades to %d\n", state.Version, state.Latest)
	case state.Version > state.Latest:
		_, err = fmt.Fprintf(p.out, "version %d, newer than this program, which has up to %d\n", state.Version, state.Latest)
	default:
		_, err = fmt.Fprintf(p.out, "version %d, up to date\n", state.Version)
	}
	return err
}

func (p *program) migrateSQLCommand() *cobra.Command {
	var down bool
	var format string
	command := &cobra.Command{
		Use:   "sql",
		Short: "Print the SQL that installs the schema, for other migration tools",
		Long: `Prints the SQL that installs the schema agui, for those who install with another tool. Run it in one transaction:

    pgagui migrate sql | psql --single-transaction --set ON_ERROR_STOP=1

With --format sqlc it prints the tables, views and functions as sqlc (https://sqlc.dev) reads them, with the types of columns, arguments and results: list that file in
sqlc.yaml under schema.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			text := schema.UpSQL()
			switch {
			case format == "sqlc" && !down:
				text = sqlc.Schema
			case format != "plain":
				return &usageError{problem: "--format must be plain, or sqlc, which goes without --down", command: command.CommandPath()}
			case down:
				text = schema.DownSQL()
			}
			_, err := io.WriteString(p.out, text)
			return err
		},
	}
	command.Flags().BoolVar(&down, "down", false, "the SQL that removes it, with everything in it")
	command.Flags().StringVar(&format, "format", "plain", "plain, or sqlc: the schema as sqlc reads it, not to be run")
	return command
}
