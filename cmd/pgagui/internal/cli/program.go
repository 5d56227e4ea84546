// Package cli is what the commands share: the connection and the flags of every command, output,
// failures and their exit codes.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/address"
	"github.com/pgagui/pgagui/internal/snapshot"
	"github.com/pgagui/pgagui/sql/schema"
)

// Program is one invocation of pgagui: its input and output, and the flags that all commands share.
type Program struct {
	In       io.Reader
	Out      io.Writer // results
	Messages io.Writer // everything else
	// The terminals behind out and messages, for colors and progress lines; nil if there is none.
	Terminal, MessageTerminal *os.File

	DatabaseURL string
	// Nodes is the file that describes the nodes of a cluster; empty: the command works on one database.
	Nodes string
	// Node is the node to work on: that of --node, or one of those of EachNode. Empty: none.
	Node string
	// Standbys are the addresses of the standbys of Node.
	Standbys []string
	Scope    string
	JSON     bool
	Wide     bool

	command   string
	namesNode bool  // what is printed names the node
	members   int   // nodes of the store of WithStore
	missing   error // of nodes that did not answer
}

// AddFlags adds the flags that all commands share to the root of the commands.
func (p *Program) AddFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.StringVar(&p.DatabaseURL, "database-url", os.Getenv("DATABASE_URL"),
		"`address` of the database: postgres://user@host/name (default: $DATABASE_URL, then $PGHOST, $PGDATABASE, … as in libpq)")
	flags.Lookup("database-url").DefValue = "" // the environment may hold a password, which help must not show
	flags.Var(&AddressFile{Address: &p.DatabaseURL}, "database-url-file",
		"`file` with the address of the database, which may contain a password (see: pgagui help connection)")
	root.MarkFlagsMutuallyExclusive("database-url", "database-url-file")
	flags.StringVar(&p.Nodes, "nodes", os.Getenv("PGAGUI_NODES"), "`file` that describes the nodes of a cluster (see: pgagui cluster; default: $PGAGUI_NODES)")
	flags.Lookup("nodes").DefValue = ""
	flags.StringVar(&p.Node, "node", "", "`name` of the node to work on (default: all nodes of --nodes)")
	flags.StringVar(&p.Scope, "scope", "", "`name` of the tenant or user whose threads to use (see: pgagui help scopes)")
	flags.BoolVar(&p.JSON, "json", false, "print results as JSON")
	flags.BoolVar(&p.Wide, "wide", false, "do not cut the cells of tables to the width of the terminal")
}

// Connect opens a pool with up to this many connections. It fails if the database is not reachable
// or does not have the schema of this program.
func (p *Program) Connect(ctx context.Context, connections int) (*pgxpool.Pool, error) {
	if p.Nodes != "" {
		return nil, p.needsNode()
	}
	pool, err := OpenPool(ctx, p.DatabaseURL, connections)
	if err != nil {
		return nil, err
	}
	if err := CheckSchema(ctx, pool); err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

// CheckSchema fails if the database is not reachable or does not have the schema of this program.
func CheckSchema(ctx context.Context, pool *pgxpool.Pool) error {
	err := schema.Check(ctx, pool)
	var refusal *pgconn.PgError
	if err == nil || IsUnfit(err) || errors.As(err, &refusal) && !isUnavailable(err) {
		return err
	}
	return &UnavailableError{Err: err}
}

// OpenPool opens a pool without a check of the schema.
func OpenPool(ctx context.Context, databaseURL string, connections int) (*pgxpool.Pool, error) {
	if _, err := address.Parse(databaseURL); err != nil {
		return nil, &UnavailableError{Err: err}
	}
	config, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return nil, &UnavailableError{Err: err}
	}
	config.MaxConns = int32(connections)
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "pgagui"
	}
	pool, err := address.NewPool(ctx, config)
	if err != nil {
		return nil, &UnavailableError{Err: err}
	}
	return pool, nil
}

// WithStore calls work with the store of the scope, on a single connection, or on one to each node of
// the cluster. It returns the error of work, and what work has left to Partly.
func (p *Program) WithStore(ctx context.Context, work func(*pgagui.Store) error) error {
	if p.Nodes != "" {
		nodes, err := p.OpenNodes(ctx, 1)
		if err != nil {
			return err
		}
		defer nodes.Close()
		p.members = len(nodes)
		err = work(pgagui.NewCluster(nodes.Members(), p.storeConfig()))
		return errors.Join(err, p.TakeMissing())
	}
	pool, err := p.Connect(ctx, 1)
	if err != nil {
		return err
	}
	defer pool.Close()
	return work(p.Store(pool))
}

// OnStore returns the RunE of a command that is work with the store, as in WithStore.
func (p *Program) OnStore(work func(ctx context.Context, store *pgagui.Store, arguments []string) error) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, arguments []string) error {
		return p.WithStore(command.Context(), func(store *pgagui.Store) error { return work(command.Context(), store, arguments) })
	}
}

// WithSnapshot is WithStore for lists: all pages are as of one point in time, in a transaction. In a
// cluster there is none, and tx is nil.
func (p *Program) WithSnapshot(ctx context.Context, work func(store *pgagui.Store, tx pgx.Tx) error) error {
	if p.Nodes != "" {
		return p.WithStore(ctx, func(store *pgagui.Store) error { return work(store, nil) })
	}
	pool, err := p.Connect(ctx, 1)
	if err != nil {
		return err
	}
	defer pool.Close()
	return snapshot.Read(ctx, pool, func(tx pgx.Tx) error {
		if p.Scope != "" {
			if _, err := tx.Exec(ctx, `select pg_catalog.set_config('agui.scope', $1, true)`, p.Scope); err != nil {
				return err
			}
		}
		return work(p.Store(pool).WithTx(tx), tx)
	})
}

// NodePools are pools to the nodes of a cluster, by their names.
type NodePools map[string]*pgxpool.Pool

// OpenNodes opens a pool with up to this many connections to each node of the cluster. It does not
// connect yet: a node that is away concerns its threads alone.
func (p *Program) OpenNodes(ctx context.Context, connections int) (NodePools, error) {
	described, err := p.Databases()
	if err != nil {
		return nil, err
	}
	pools := NodePools{}
	for _, node := range described {
		if pools[node.Name], err = OpenPool(ctx, node.URL, connections); err != nil {
			delete(pools, node.Name)
			pools.Close()
			return nil, fmt.Errorf("node %q: %w", node.Name, err)
		}
	}
	return pools, nil
}

// Members are the nodes for a Store.
func (n NodePools) Members() []pgagui.Node {
	members := make([]pgagui.Node, 0, len(n))
	for _, name := range slices.Sorted(maps.Keys(n)) {
		members = append(members, pgagui.Node{Name: name, Pool: n[name]})
	}
	return members
}

// Close closes the pools.
func (n NodePools) Close() {
	for _, pool := range n {
		pool.Close()
	}
}

// Store returns the store of the scope.
func (p *Program) Store(pool *pgxpool.Pool) *pgagui.Store {
	return pgagui.New(pool, p.storeConfig())
}

// storeConfig sets agui.scope, which row-level security needs of a role that is mapped as a pool, for each call: a setting of the session
// does not pass a pooler.
func (p *Program) storeConfig() *pgagui.Config {
	return &pgagui.Config{Scope: p.Scope, SetScope: p.Scope != "", Logger: p.Logger()}
}

// ExpectedOf says what values a flag takes. It returns "" for a flag that says so in its errors.
func ExpectedOf(flag *pflag.Flag) string {
	switch flag.Value.Type() {
	case "int", "int32", "int64", "uint", "uint32", "uint64", "float64":
		return "a number"
	case "duration":
		if _, isAge := flag.Value.(*Age); isAge {
			return "a duration such as 30m, 12h or 7d"
		}
		return "a duration such as 50s or 2h"
	case "bool":
		return "true or false"
	}
	return ""
}

// NoArguments requires that there are none. Of a command with subcommands, an argument is the name of one that does not exist.
func NoArguments(command *cobra.Command, arguments []string) error {
	if command.HasSubCommands() {
		return cobra.NoArgs(command, arguments)
	}
	return Arguments(0, 0)(command, arguments)
}

// Arguments requires a number of arguments, which the usage line of the command names.
func Arguments(least, most int) cobra.PositionalArgs {
	return func(command *cobra.Command, arguments []string) error {
		if least <= len(arguments) && len(arguments) <= most {
			return nil
		}
		_, expected, _ := strings.Cut(command.Use, " ")
		return fmt.Errorf("expected %s, got %s", cmp.Or(expected, "no argument"), CountText(len(arguments), "argument"))
	}
}

// GoesWith refuses flags that are set although what they belong to is not.
func GoesWith(command *cobra.Command, owner string, isSet bool, flags ...string) error {
	for _, name := range flags {
		if !isSet && command.Flags().Changed(name) {
			return WrongUsage(command, "--"+name+" goes with "+owner)
		}
	}
	return nil
}

// Several reports whether more than one of the flags is set.
func Several(flags ...bool) bool {
	set := 0
	for _, isSet := range flags {
		if isSet {
			set++
		}
	}
	return set > 1
}

// OneThread requires a single argument, the thread id.
var OneThread = One("thread id")

// One requires a single argument, and says what it is.
func One(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, arguments []string) error {
		if len(arguments) != 1 {
			return fmt.Errorf("expected one %s, got %s", what, CountText(len(arguments), "argument"))
		}
		return nil
	}
}

// HelpWidth is the number of columns that help texts use at most.
const HelpWidth = 100
