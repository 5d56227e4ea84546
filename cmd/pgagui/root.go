package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/address"
	"github.com/pgagui/pgagui/internal/printable"
	"github.com/pgagui/pgagui/sql/schema"
)

// program is one invocation of pgagui: its input and output, and the flags that all commands share.
type program struct {
	in       io.Reader
	out      io.Writer // results
	messages io.Writer // everything else
	// The terminals behind out and messages, for colors and progress lines; nil if there is none.
	terminal, messageTerminal *os.File

	databaseURL string
	scope       string
	json        bool
}

// run executes a command line and returns the exit code.
func run(ctx context.Context, arguments []string, in io.Reader, out, messages io.Writer) int {
	// Text from threads must not control a terminal. Results that go to a file or a pipe stay
	// unchanged, byte for byte. Messages are always escaped, because people read them on a
	// terminal.
	p := &program{in: in, out: out, messages: printable.NewWriter(messages), terminal: terminalOf(out), messageTerminal: terminalOf(messages)}
	if p.terminal != nil {
		p.out = printable.NewWriter(p.terminal)
	}
	root := p.rootCommand()
	root.SetArgs(arguments)
	root.SetIn(in)
	root.SetOut(p.out)
	root.SetErr(p.messages)

	// An error before the command starts is a usage error.
	hasStarted := false
	root.PersistentPreRun = func(*cobra.Command, []string) { hasStarted = true }
	command, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	if !hasStarted {
		err = &usageError{problem: err.Error(), command: command.CommandPath()}
	}
	if ctx.Err() != nil {
		err = errInterrupted
	}
	err = p.adviseOnPermission(command, err)
	if text := describe(err); text != "" {
		fmt.Fprintln(p.messages, text)
	}
	return exitCode(err)
}

func (p *program) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "pgagui",
		Short: "An append-only PostgreSQL store for AG-UI event streams",
		Long: `pgagui stores AG-UI event streams in PostgreSQL: an append-only log of the events that agents
stream to their UIs, the git-like tree of runs in it, and snapshots from which a conversation is
restored quickly.

"pgagui demo" shows all of this in a few seconds. It needs no database.

Results go to stdout, messages to stderr. On a terminal, control characters are shown as escapes
such as \u001b. "pgagui help exit-codes" explains the exit codes.`,
		Example: `  pgagui demo
  export DATABASE_URL=postgres://agui@localhost/agui
  pgagui migrate up
  pgagui import chat.ndjson
  pgagui threads`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", fmt.Sprintf(".FlagUsagesWrapped %d", helpWidth)))
	flags := root.PersistentFlags()
	flags.StringVar(&p.databaseURL, "database-url", os.Getenv("DATABASE_URL"),
		"`address` of the database: postgres://user@host/name (default: $DATABASE_URL, then $PGHOST, $PGDATABASE, … as in libpq)")
	flags.Lookup("database-url").DefValue = "" // the environment may hold a password, which help must not show
	flags.Var(&addressFile{address: &p.databaseURL}, "database-url-file",
		"`file` with the address of the database, which may contain a password (see: pgagui help connection)")
	root.MarkFlagsMutuallyExclusive("database-url", "database-url-file")
	flags.StringVar(&p.scope, "scope", "", "`name` of the tenant or user whose threads to use (see: pgagui help scopes)")
	flags.BoolVar(&p.json, "json", false, "print results as JSON")

	root.AddGroup(
		&cobra.Group{ID: "start", Title: "Getting started:"},
		&cobra.Group{ID: "serve", Title: "Server:"},
		&cobra.Group{ID: "log", Title: "Events:"},
		&cobra.Group{ID: "read", Title: "Conversations:"},
		&cobra.Group{ID: "keep", Title: "Maintenance:"},
	)
	add := func(group string, commands ...*cobra.Command) {
		for _, command := range commands {
			command.GroupID = group
			root.AddCommand(command)
		}
	}
	migrate, compact, reap, repack, stats, doctor := p.migrateCommand(), p.compactCommand(), p.reapCommand(), p.repackCommand(), p.statsCommand(),
		p.doctorCommand()
	for _, command := range append(migrate.Commands(), compact, reap, repack, stats, doctor) {
		command.PreRunE = refuseScope
	}
	add("start", p.demoCommand(), p.devCommand(), migrate)
	add("serve", p.serveCommand(), p.tokenCommand())
	add("log", p.importCommand(), p.exportCommand(), p.followCommand(), p.historyCommand())
	add("read", p.threadsCommand(), p.logCommand(), p.branchesCommand(), p.showCommand(), p.restoreCommand(), p.diffCommand(), p.sessionCommand(), p.statusCommand(), p.stopCommand())
	add("keep", compact, p.workerCommand(), reap, repack, p.verifyCommand(), p.headsCommand(), p.eraseCommand(), p.allowCommand(), stats, doctor)
	root.AddCommand(p.versionCommand(), connectionTopic(), exitCodesTopic(), scopesTopic())
	p.completeIDs(root)
	return root
}

// helpWidth is the number of columns that help texts use at most.
const helpWidth = 100

// connect opens a pool with up to this many connections. It fails if the database is not reachable
// or does not have the schema of this program.
func (p *program) connect(ctx context.Context, connections int) (*pgxpool.Pool, error) {
	pool, err := openPool(ctx, p.databaseURL, connections)
	if err != nil {
		return nil, err
	}
	if err := checkSchema(ctx, pool); err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

// checkSchema fails if the database is not reachable or does not have the schema of this program.
func checkSchema(ctx context.Context, pool *pgxpool.Pool) error {
	err := schema.Check(ctx, pool)
	var refusal *pgconn.PgError
	if err == nil || isUnfit(err) || errors.As(err, &refusal) && !isUnavailable(err) {
		return err
	}
	return &unavailableError{err: err}
}

// openPool opens a pool without a check of the schema.
func openPool(ctx context.Context, databaseURL string, connections int) (*pgxpool.Pool, error) {
	if _, err := address.Parse(databaseURL); err != nil {
		return nil, &unavailableError{err: err}
	}
	config, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return nil, &unavailableError{err: err}
	}
	config.MaxConns = int32(connections)
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "pgagui"
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, &unavailableError{err: err}
	}
	return pool, nil
}

// withStore calls work with the store of the scope, on a single connection.
func (p *program) withStore(ctx context.Context, work func(*pgagui.Store) error) error {
	pool, err := p.connect(ctx, 1)
	if err != nil {
		return err
	}
	defer pool.Close()
	return work(p.store(pool))
}

func (p *program) store(pool *pgxpool.Pool) *pgagui.Store {
	return pgagui.New(pool, &pgagui.Config{Scope: p.scope})
}

// oneThread requires a single argument, the thread id.
func oneThread(_ *cobra.Command, arguments []string) error {
	if len(arguments) != 1 {
		return fmt.Errorf("expected one thread id, got %s", countText(len(arguments), "argument"))
	}
	return nil
}
