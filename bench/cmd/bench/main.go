// Command bench compares pgagui with plain tables and with its peers: appends, storage, reads,
// compaction, restores, patches and runs in progress. It measures the two sides alternately and
// prints their ratios with the targets: the median of the pairs, the smallest and the largest.
//
//	go run ./bench/cmd/bench [flags] [PHASE...]
//
// It runs the named phases, otherwise all except facts, sizing, peers, large and scale-…, which take long. The
// phases scale-… measure 2,000,000 events in a run, 20,000 runs in a thread and 200,000 threads,
// compare each with half the size, and report the memory. The phase large measures a store of
// 100,000,000 events beside one of 1,000,000. It always has a server of its own, which takes 30 GB
// in the folder for temporary files.
//
// It starts a private PostgreSQL server with default settings, so commits are durable. With
// --database-url or $DATABASE_URL it uses that server instead; it creates its own databases there
// and drops them at the end.
//
// It generates the conversations from the comments of the installed Go source tree, so it needs Go.
// The peers that run in Node (the official client, the checkpointer of LangGraph) are measured if
// --peers names the folder bench/peers of the repository. Run npm ci in that folder first.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/pgagui/pgagui/bench"
	"github.com/pgagui/pgagui/devpg/cluster"
)

func main() {
	bench.ServeInstead()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) (err error) {
	var options bench.Options
	flags := pflag.NewFlagSet("bench", pflag.ContinueOnError)
	flags.StringVar(&options.DatabaseURL, "database-url", os.Getenv("DATABASE_URL"), "`address` of a database on the server to measure (default: $DATABASE_URL, otherwise a private server)")
	flags.Lookup("database-url").DefValue = "" // the environment may hold a password, which help must not show
	flags.IntVar(&options.Repeat, "repeat", 5, "`number` of pairs to measure, 1 or more")
	flags.BoolVar(&options.Quick, "quick", false, "use tiny conversations, for tests; the figures mean nothing")
	flags.Float64Var(&options.Share, "share", 1, "with the phases facts and scale-...: `part` of their size to use, above 0 and at most 1")
	flags.IntVar(&options.LargeEvents, "events", 0, "with the phase large: `number` of events in the large store (default 100 million)")
	flags.IntVar(&options.SmallEvents, "small-events", 0, "with the phase large: `number` of events in the small store (default 1 million)")
	flags.DurationVar(&options.Mixed, "mixed", 0, "with the phase large: how `long` to write to the large store at the end (default 1h)")
	flags.IntVar(&options.Tokens, "tokens", 0, "with the phase speed: `number` of tokens of each agent (default 2000)")
	flags.StringVar(&options.Profiles, "profiles", "", "with the phase speed: `folder` for profiles of the server process, of CPU and of allocations")
	flags.StringVar(&options.Peers, "peers", "", "`folder` of the peers that run in Node: bench/peers, after npm ci")
	flags.StringVar(&options.PythonPeers, "python-peers", "", "with the phase peers: `folder` of the peers that run in Python: bench/peers/python, with its venv")
	flags.IntVar(&options.Conversations, "conversations", 0, "with the phase peers: `number` of conversations to weigh; a tenth of them have an image (default 40)")
	report := flags.String("report", "", "also write the report as JSON to this `file`")
	flags.Usage = func() {
		fmt.Fprintf(os.Stderr, `Compares pgagui with plain tables and with its peers, and prints the ratios with the targets.

Without PHASE it runs all phases except facts, sizing, peers, large and scale-..., which take long.

Usage:
  bench [flags] [PHASE...]

Examples:
  bench append storage
  bench --peers bench/peers --report report.json

Phases:
  %s

Flags:
%s`, strings.Join(bench.Phases(), " "), flags.FlagUsagesWrapped(100))
	}
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	options.Phases = flags.Args()
	if options.Repeat < 1 || options.Share <= 0 || options.Share > 1 {
		return errors.New("--repeat must be 1 or more, and --share above 0 and at most 1")
	}
	if options.Tokens < 0 || options.Conversations < 0 {
		return errors.New("--tokens and --conversations must be 1 or more")
	}
	for _, events := range []int{options.LargeEvents, options.SmallEvents} {
		if events != 0 && events < 10_000 {
			return errors.New("--events and --small-events must be 10000 or more")
		}
	}
	for _, phase := range options.Phases {
		if !slices.Contains(bench.Phases(), phase) {
			return fmt.Errorf("there is no phase %q (expected %s)", phase, strings.Join(bench.Phases(), ", "))
		}
	}
	if options.DatabaseURL == "" {
		server, err := cluster.Start(ctx, cluster.Options{})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, server.Stop()) }()
		options.DatabaseURL = server.URL("postgres")
	}
	options.Progress = func(what string) { fmt.Fprintln(os.Stderr, what) }
	return measure(ctx, options, *report)
}

func measure(ctx context.Context, options bench.Options, reportFile string) error {
	report, err := bench.Run(ctx, options)
	if err != nil {
		return err
	}
	if reportFile != "" {
		text, err := json.MarshalIndent(report, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(reportFile, append(text, '\n'), 0o644); err != nil {
			return err
		}
	}
	return report.WriteTable(os.Stdout)
}
