// Command guard compares the CPU that two checkouts of pgagui spend, so that a change does not make the product slower unnoticed.
//
//	go run ./bench/cmd/guard [flags] BEFORE AFTER [ROW...]
//
// BEFORE and AFTER are folders of the repository. It builds the command pgagui of both and starts a private PostgreSQL server.
// The two sides take turns, each on a fresh copy of its own database, and every pair gives a ratio: AFTER by BEFORE. The
// table has the median of the CPU time, and of the ratios with the smallest and the largest; it marks what is more than 5 % worse. CPU
// time counts, because other work on the machine changes it less than the time. It needs Linux, and Go for the conversations (bench/corpus).
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/pflag"

	"github.com/pgagui/pgagui/bench"
	"github.com/pgagui/pgagui/bench/corpus"
	"github.com/pgagui/pgagui/devpg/cluster"
	"github.com/pgagui/pgagui/internal/memory"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "guard:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string, output io.Writer) (err error) {
	flags := pflag.NewFlagSet("guard", pflag.ContinueOnError)
	rounds := flags.Int("rounds", 7, "`number` of pairs to measure, 1 or more")
	flags.Usage = func() {
		fmt.Fprintf(os.Stderr, `Compares the CPU that two checkouts of pgagui spend: the server's, and that of the command pgagui.

Usage:
  guard [flags] BEFORE AFTER [ROW...]

Rows (all, unless some are named by their beginning):
  %s

Flags:
%s`, strings.Join(rowNames(), "\n  "), flags.FlagUsages())
	}
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if flags.NArg() < 2 || *rounds < 1 {
		return errors.New("give two checkouts, BEFORE and AFTER; --rounds must be 1 or more")
	}
	chosen := slices.DeleteFunc(slices.Clone(rows), func(row row) bool {
		return flags.NArg() > 2 && !slices.ContainsFunc(flags.Args()[2:], func(name string) bool { return strings.HasPrefix(row.name, name) })
	})
	if len(chosen) == 0 {
		return errors.New("no row has such a name (guard --help lists them)")
	}

	text, err := corpus.Open(ctx)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "pgagui-guard-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	server, err := cluster.Start(ctx, cluster.Options{Settings: map[string]string{"autovacuum": "off", "fsync": "off"}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	connection, err := pgx.Connect(ctx, server.URL("postgres"))
	if err != nil {
		return err
	}
	guard := guard{server: server, connection: connection, corpus: text}
	defer func() { err = errors.Join(err, connection.Close(context.WithoutCancel(ctx))) }()
	if guard.postmaster, err = memory.Parent(int(connection.PgConn().PID())); err != nil {
		return err
	}
	for i, checkout := range flags.Args()[:2] {
		if guard.sides[i], err = guard.build(ctx, []string{"before", "after"}[i], checkout, folder); err != nil {
			return err
		}
	}
	return guard.measure(ctx, chosen, *rounds, output)
}

// guard compares two sides on a server.
type guard struct {
	server     *cluster.Cluster
	connection *pgx.Conn
	corpus     *corpus.Corpus
	postmaster int // the parent of the server's processes
	sides      [2]*side
}

// side is one of the checkouts.
type side struct {
	name    string // of its database, too
	program string
}

// cpu is what a measurement took. Of the process: of the command pgagui; 0 if the row has none.
type cpu struct{ server, process time.Duration }

func (g *guard) build(ctx context.Context, name, checkout, folder string) (*side, error) {
	s := &side{name: name, program: filepath.Join(folder, name)}
	build := exec.CommandContext(ctx, "go", "build", "-o", s.program, "./cmd/pgagui")
	build.Dir = checkout
	if output, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building %s: %w\n%s", checkout, err, output)
	}
	if _, err := g.connection.Exec(ctx, "create database "+name+" encoding 'UTF8' template template0"); err != nil {
		return nil, err
	}
	_, err := s.command(ctx, g.server.URL(name), "migrate", "up")
	return s, err
}

// command runs the command pgagui and returns its CPU time.
func (s *side) command(ctx context.Context, address string, arguments ...string) (time.Duration, error) {
	command := exec.CommandContext(ctx, s.program, arguments...)
	command.Env = append(os.Environ(), "DATABASE_URL="+address)
	if output, err := command.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("pgagui %s: %w\n%s", strings.Join(arguments, " "), err, output)
	}
	return command.ProcessState.UserTime() + command.ProcessState.SystemTime(), nil
}

// measure prints a line for each row and the server, and for the command if the row has one.
func (g *guard) measure(ctx context.Context, rows []row, rounds int, output io.Writer) error {
	table := tabwriter.NewWriter(output, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CPU\tof\tbefore\tafter\tratio\tsmallest … largest")
	loaded := ""
	for _, row := range rows {
		if row.corpus != loaded {
			if err := g.load(ctx, row.corpus); err != nil {
				return err
			}
			loaded = row.corpus
		}
		var taken [2][]cpu
		for round := range rounds + 1 {
			for i := range g.sides {
				i := (i + round) % 2 // who begins changes
				used, err := g.once(ctx, g.sides[i], row)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", row.name, g.sides[i].name, err)
				}
				if round > 0 { // the first does not count
					taken[i] = append(taken[i], used)
				}
			}
		}
		row.print(table, "server", taken, func(c cpu) time.Duration { return c.server })
		row.print(table, "process", taken, func(c cpu) time.Duration { return c.process })
		fmt.Fprintln(os.Stderr, row.name)
	}
	return table.Flush()
}

func (r row) print(table *tabwriter.Writer, of string, taken [2][]cpu, part func(cpu) time.Duration) {
	var each [2][]float64
	var ratios []float64
	for round := range taken[0] {
		for i := range each {
			each[i] = append(each[i], float64(part(taken[i][round]).Nanoseconds())/1000/float64(r.units))
		}
		ratios = append(ratios, each[1][round]/each[0][round])
	}
	before, after, ratio := bench.SpreadOf(each[0]), bench.SpreadOf(each[1]), bench.SpreadOf(ratios)
	if before.Median == 0 {
		return
	}
	mark := ""
	if ratio.Median > 1.05 {
		mark = "  worse"
	}
	fmt.Fprintf(table, "%s\t%s\t%.1f µs\t%.1f µs\t%.3f\t%.3f … %.3f%s\n",
		r.name, of, before.Median, after.Median, ratio.Median, ratio.Min, ratio.Max, mark)
}

// load fills both sides' databases with a corpus; each measurement gets a copy.
func (g *guard) load(ctx context.Context, name string) error {
	for _, side := range g.sides {
		if _, err := g.connection.Exec(ctx, "drop database if exists "+side.name+"_loaded"); err != nil {
			return err
		}
		if _, err := g.connection.Exec(ctx, "create database "+side.name+"_loaded template "+side.name); err != nil {
			return err
		}
		connection, err := pgx.Connect(ctx, g.server.URL(side.name+"_loaded"))
		if err != nil {
			return err
		}
		err = corpora[name](ctx, g.corpus, connection)
		if err == nil {
			_, err = connection.Exec(ctx, "vacuum analyze")
		}
		if err := errors.Join(err, connection.Close(ctx)); err != nil {
			return err
		}
	}
	_, err := g.connection.Exec(ctx, "checkpoint")
	return err
}

// once measures a row on a copy of a side's database.
func (g *guard) once(ctx context.Context, side *side, row row) (used cpu, err error) {
	if _, err := g.connection.Exec(ctx, "create database measured template "+side.name+"_loaded"); err != nil {
		return used, err
	}
	defer func() {
		_, dropErr := g.connection.Exec(context.WithoutCancel(ctx), "drop database measured")
		err = errors.Join(err, dropErr)
	}()
	m := &measurement{side: side, address: g.server.URL("measured"), corpus: g.corpus}
	if row.isCold {
		return g.cold(ctx, m, row)
	}
	return warm(ctx, m, row)
}

// warm measures the session of a row.
func warm(ctx context.Context, m *measurement, row row) (used cpu, err error) {
	if m.connection, err = pgx.Connect(ctx, m.address); err != nil {
		return used, err
	}
	defer func() { err = errors.Join(err, m.connection.Close(context.WithoutCancel(ctx))) }()
	// Functions are planned and the catalog is read before the measurement.
	for _, statement := range []string{"select agui.append('warm', 'up', '[{\"type\":\"RUN_STARTED\"}]')", "call agui.compact(max_runs => 0)"} {
		if _, err := m.connection.Exec(ctx, statement); err != nil {
			return used, err
		}
	}
	session := int(m.connection.PgConn().PID())
	before := memory.Scheduled(session)
	err = row.run(ctx, m)
	return cpu{server: memory.Scheduled(session) - before}, err
}

// cold measures all sessions that a row begins and ends, and its commands.
func (g *guard) cold(ctx context.Context, m *measurement, row row) (cpu, error) {
	before, children := memory.OfChildren(g.postmaster), memory.Children(g.postmaster)
	err := row.run(ctx, m)
	// The postmaster counts sessions when they have ended.
	for err == nil && memory.Children(g.postmaster) != children {
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	return cpu{memory.OfChildren(g.postmaster) - before, m.process}, err
}
