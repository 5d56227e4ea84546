package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/address"
	"github.com/pgagui/pgagui/internal/printable"
	"github.com/pgagui/pgagui/sql/schema"
)

// program is one invocation of pgagui: where it reads and writes, and the settings that all commands share.
type program struct {
	in       io.Reader
	out      io.Writer // results
	messages io.Writer // everything else
	// The terminals behind out and messages, for what colors or moves; nil: there is none.
	terminal, messageTerminal *os.File

	databaseURL string
	scope       string
	json        bool
}

// run executes a command line and returns the exit code.
func run(ctx context.Context, arguments []string, in io.Reader, out, messages io.Writer) int {
	// What others wrote does not act on a terminal. Results that go elsewhere stay as they are, byte for byte; messages do not, for
	// they are read on a terminal in the end.
	p := &program{in: in, out: out, messages: printable.NewWriter(messages), terminal: terminalOf(out), messageTerminal: terminalOf(messages)}
	if p.terminal != nil {
		p.out = printable.NewWriter(p.terminal)
	}
	root := p.rootCommand()
	root.SetArgs(arguments)
	root.SetIn(in)
	root.SetOut(p.out)
	root.SetErr(p.messages)

	// Whatever fails before a command begins its work is wrong usage.
	begun := false
	root.PersistentPreRun = func(*cobra.Command, []string) { begun = true }
	command, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	if !begun {
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
		Long: `pgagui keeps AG-UI event streams in PostgreSQL: an append-only log of what agents streamed to their UIs, the git-like tree
of runs in it, and snapshots that give a conversation back at once.

"pgagui demo" shows all of it in some seconds and needs no database.

Results go to stdout, everything else to stderr. On a terminal, characters that act on it are shown as escapes such as \u001b.`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	flags := root.PersistentFlags()
	flags.StringVar(&p.databaseURL, "database-url", os.Getenv("DATABASE_URL"),
		"address of the database, postgres://user@host/name;\nwithout it $DATABASE_URL, then libpq's $PGHOST, $PGDATABASE, …")
	flags.Lookup("database-url").DefValue = "" // the environment may hold a password, which help must not show
	flags.Var(&addressFile{address: &p.databaseURL}, "database-url-file", "file that holds the address, which may have a password in it then\n(see: pgagui help connection)")
	root.MarkFlagsMutuallyExclusive("database-url", "database-url-file")
	flags.StringVar(&p.scope, "scope", "", "the tenant or user whose threads to work on (see: pgagui help scopes)")
	flags.BoolVar(&p.json, "json", false, "print results as JSON")

	root.AddGroup(
		&cobra.Group{ID: "start", Title: "To begin with:"},
		&cobra.Group{ID: "log", Title: "The log:"},
		&cobra.Group{ID: "read", Title: "Conversations:"},
		&cobra.Group{ID: "keep", Title: "Upkeep:"},
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
	add("start", p.demoCommand(), migrate)
	add("log", p.importCommand(), p.exportCommand(), p.followCommand(), p.historyCommand())
	add("read", p.threadsCommand(), p.logCommand(), p.branchesCommand(), p.showCommand(), p.restoreCommand(), p.diffCommand(), p.sessionCommand(), p.statusCommand(), p.stopCommand())
	add("keep", compact, p.workerCommand(), reap, repack, p.verifyCommand(), p.headsCommand(), p.eraseCommand(), p.allowCommand(), stats, doctor)
	root.AddCommand(p.versionCommand(), connectionTopic(), exitCodesTopic(), scopesTopic())
	p.offerIDs(root)
	return root
}

// connect opens a pool of up to so many connections and makes sure that the database answers and has this program's schema.
func (p *program) connect(ctx context.Context, connections int) (*pgxpool.Pool, error) {
	pool, err := p.openPool(ctx, connections)
	if err != nil {
		return nil, err
	}
	if err := schema.Check(ctx, pool); err != nil {
		pool.Close()
		var refusal *pgconn.PgError
		if isUnfit(err) || errors.As(err, &refusal) && !isUnavailable(err) {
			return nil, err
		}
		return nil, &unavailableError{err}
	}
	return pool, nil
}

// openPool opens a pool, whatever the database holds.
func (p *program) openPool(ctx context.Context, connections int) (*pgxpool.Pool, error) {
	if _, err := address.Parse(p.databaseURL); err != nil {
		return nil, &unavailableError{err}
	}
	config, err := pgxpool.ParseConfig(p.databaseURL)
	if err != nil {
		return nil, &unavailableError{err}
	}
	config.MaxConns = int32(connections)
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "pgagui"
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, &unavailableError{err}
	}
	return pool, nil
}

// withStore calls the function with the store of the scope, on a single connection.
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

// oneThread requires a single argument, the thread.
func oneThread(_ *cobra.Command, arguments []string) error {
	if len(arguments) != 1 {
		return fmt.Errorf("name one thread, not %d", len(arguments))
	}
	return nil
}
