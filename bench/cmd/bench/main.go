// Command bench measures pgagui beside plain tables and its peers: appends, storage, reads, compaction, restores, patches and runs in progress,
// ours and theirs in turn. It prints the ratios beside the targets: the median of the pairs, the smallest and the largest.
//
//	go run ./bench/cmd/bench [flags] [PHASE...]
//
// It measures the phases that are named, or all but those of scale, which take long: 2,000,000 events in a run, 20,000 runs in a thread, 200,000
// threads, each beside half as many, with the memory taken.
//
// It runs on a private PostgreSQL server with the settings that a server has after installation, durable commits included. With
// --database-url or DATABASE_URL it uses that server instead, in databases of its own that it drops afterwards.
//
// The conversations are made from the comments of the installed Go source tree, so it needs Go. The peers that run in Node (the official
// client, LangGraph's checkpointer) are measured when --peers names the folder bench/peers of the repository, after npm ci in it.
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
	"github.com/pgagui/pgagui/internal/cluster"
)

func main() {
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
	flags.StringVar(&options.DatabaseURL, "database-url", os.Getenv("DATABASE_URL"), "server to measure on, instead of a private one")
	flags.Lookup("database-url").DefValue = "" // the environment may hold a password, which help must not show
	flags.IntVar(&options.Repeat, "repeat", 5, "pairs to measure")
	flags.BoolVar(&options.Quick, "quick", false, "tiny conversations: to see that it works, the figures mean nothing")
	flags.Float64Var(&options.Share, "share", 1, "the phases scale-...: which part of their size to take")
	flags.StringVar(&options.Peers, "peers", "", "folder of the peers that run in Node")
	report := flags.String("report", "", "write the report as JSON into this file too")
	flags.Usage = func() {
		fmt.Fprintf(os.Stderr, "usage: bench [flags] [PHASE...]\n\nThe phases: %s.\n\n%s", strings.Join(bench.Phases(), ", "), flags.FlagUsages())
	}
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	options.Phases = flags.Args()
	if options.Repeat < 1 || options.Share <= 0 || options.Share > 1 {
		return errors.New("--repeat must be 1 or more, --share more than 0 and at most 1")
	}
	for _, phase := range options.Phases {
		if !slices.Contains(bench.Phases(), phase) {
			return fmt.Errorf("there is no phase %q: the phases are %s", phase, strings.Join(bench.Phases(), ", "))
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
