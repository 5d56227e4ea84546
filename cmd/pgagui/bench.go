package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui/bench"
	"github.com/pgagui/pgagui/internal/cluster"
)

func (p *program) benchCommand() *cobra.Command {
	var options bench.Options
	var report string
	command := &cobra.Command{
		Use:   "bench [PHASE...]",
		Short: "Measure pgagui beside plain tables and its peers",
		Long: `Measures appends, storage, reads, compaction, restores, patches and runs in progress, ours and theirs in turn, and prints the ratios
beside the targets: the median of the pairs, the smallest and the largest. It measures the phases that are named, or all but those
of scale, which take long: 2,000,000 events in a run, 20,000 runs in a thread, 200,000 threads, each beside half as many, with the memory taken.

It runs on a private PostgreSQL server with the settings that a server has after installation, durable commits included. With
--database-url or DATABASE_URL it uses that server instead, in databases of its own that it drops afterwards.

The conversations are made from the comments of the installed Go source tree, so it needs Go. The peers that run in Node (the official
client, LangGraph's checkpointer) are measured when --peers names the folder bench/peers of the repository, after npm ci in it.`,
		ValidArgs: bench.Phases(),
		RunE: func(command *cobra.Command, phases []string) error {
			options.Phases = append(options.Phases, phases...)
			if options.Repeat < 1 || options.Share <= 0 || options.Share > 1 {
				return &usageError{problem: "--repeat must be 1 or more, --share more than 0 and at most 1", command: command.CommandPath()}
			}
			for _, phase := range options.Phases {
				if !slices.Contains(bench.Phases(), phase) {
					return &usageError{problem: fmt.Sprintf("there is no phase %q", phase), command: command.CommandPath()}
				}
			}
			return p.bench(command.Context(), options, report)
		},
	}
	flags := command.Flags()
	flags.StringSliceVar(&options.Phases, "phase", nil, "the same as naming the phases: "+strings.Join(bench.Phases(), ", "))
	flags.IntVar(&options.Repeat, "repeat", 5, "pairs to measure")
	flags.BoolVar(&options.Quick, "quick", false, "tiny conversations: to see that it works, the figures mean nothing")
	flags.Float64Var(&options.Share, "share", 1, "the phases scale-...: which part of their size to take")
	flags.StringVar(&options.Peers, "peers", "", "folder of the peers that run in Node")
	flags.StringVar(&report, "report", "", "write the report as JSON into this file too")
	return command
}

func (p *program) bench(ctx context.Context, options bench.Options, reportFile string) (err error) {
	options.DatabaseURL = p.databaseURL
	if options.DatabaseURL == "" {
		server, startErr := cluster.Start(ctx, cluster.Options{})
		if startErr != nil {
			return &unavailableError{startErr}
		}
		defer func() { err = errors.Join(err, server.Stop()) }()
		options.DatabaseURL = server.URL("postgres")
	}
	line := p.newProgress()
	options.Progress = func(what string) { line.show(func() string { return what }) }
	report, err := bench.Run(ctx, options)
	line.clear()
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
	if p.json {
		return p.printJSON(report)
	}
	return report.WriteTable(p.out)
}
