package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/jobs"
)

func (p *program) verifyCommand() *cobra.Command {
	options := jobs.VerifyOptions{}
	var sample, since, heads string
	command := &cobra.Command{
		Use:   "verify [THREAD…]",
		Short: "Check log, tree and snapshots, like git fsck",
		Long: `Checks threads: that no seq is missing, that batches, runs and their tree fit together, that runs begin and end as the log says, and
that every snapshot is what folding the raw log gives. Without arguments it checks the threads of all scopes, with --scope those of one;
threads that are named are of one scope. Without arguments, --sample and --since it also finds rows that belong to no thread. Each
problem is a line; if any remains, the exit code is 1. Others may write meanwhile.

Lines that begin with "note" are no damage: they say where an agent or its writer broke the protocol (events behind the end of a run, for
instance), which is kept as it came.

With --repair the snapshots of a thread, and its place in lists, are made again where something is wrong with them. The log is never
touched: what is wrong with it is only named, and then the snapshots of that thread stay as well, for they may hold what the log has lost.

With --chain the hashes of chained logs (agui.enable_chain) are computed anew from what was appended. That finds every event that was changed,
left out or put in another place, but not an end that was cut off, and not a log that somebody wrote anew with its hashes. Heads that were
kept elsewhere find these, too: --heads names a file of them, as "pgagui heads" prints them.`,
		Example: `  pgagui verify --sample 5% --since 7d
  pgagui verify --chain --heads heads-of-monday.ndjson
  pgagui verify trip-to-lisbon --repair`,
		RunE: func(command *cobra.Command, threads []string) error {
			options.Threads = threads
			if scopeIsGiven(command) {
				options.Scope = &p.scope
			}
			if err := chooseThreads(&options, sample, since, time.Now()); err != nil {
				return &usageError{problem: err.Error(), command: command.CommandPath()}
			}
			if heads != "" {
				if !options.Chain {
					return &usageError{problem: "--heads needs --chain", command: command.CommandPath()}
				}
				var err error
				if options.Heads, err = p.readHeads(heads); err != nil {
					return err
				}
			}
			return p.verify(command.Context(), options)
		},
	}
	flags := command.Flags()
	flags.StringVar(&sample, "sample", "", "check only some threads, chosen at random: a number, as in 100, or a share, as in 5%")
	flags.StringVar(&since, "since", "", "check only threads with events or snapshots since then:\nso long ago, as in 24h or 7d, or a time, as in 2006-01-02T15:04:05Z")
	flags.IntVar(&options.Workers, "workers", min(4, runtime.NumCPU()), "threads to check side by side, each on a connection of its own")
	flags.BoolVar(&options.InSQL, "in-sql", false, "fold in the database, not in this program: many times slower, a second opinion")
	flags.BoolVar(&options.Chain, "chain", false, "compute the hashes of chained logs anew")
	flags.StringVar(&heads, "heads", "", `compare chained logs with the heads in this file; "-": stdin`)
	flags.BoolVar(&options.Repair, "repair", false, "make wrong snapshots again from the log")
	return command
}

// chooseThreads reads the flags that say which threads to check, and makes sure that the options go together.
func chooseThreads(options *jobs.VerifyOptions, sample, since string, now time.Time) error {
	if options.Workers < 1 {
		return errors.New("--workers must be 1 or more")
	}
	if len(options.Threads) > 0 && (sample != "" || since != "") {
		return errors.New("--sample and --since choose threads: name none with them")
	}
	if share, isShare := strings.CutSuffix(sample, "%"); isShare {
		percent, err := strconv.ParseFloat(share, 64)
		if err != nil || !(percent > 0 && percent <= 100) {
			return fmt.Errorf("--sample %s: a share is more than 0%% and at most 100%%", sample)
		}
		options.SampleShare = percent / 100
	} else if sample != "" {
		threads, err := strconv.ParseInt(sample, 10, 32)
		if err != nil || threads < 1 {
			return fmt.Errorf("--sample %s: give a number of threads, 1 or more, or a share, for instance 5%%", sample)
		}
		options.SampleThreads = int(threads)
	}
	var err error
	options.Since, err = pointInTime("--since", since, now)
	return err
}

type verified struct {
	jobs.Verified
	Reports []jobs.VerifiedThread `json:"reports"`
}

func (p *program) verify(ctx context.Context, options jobs.VerifyOptions) error {
	pool, err := p.connect(ctx, options.Workers)
	if err != nil {
		return err
	}
	defer pool.Close()

	line := p.newProgress()
	defer line.clear()
	result := verified{Reports: []jobs.VerifiedThread{}}
	threads, problems := 0, 0
	var printing error
	options.Report = func(thread jobs.VerifiedThread) {
		threads++
		problems += len(thread.Problems)
		if p.json {
			result.Reports = append(result.Reports, thread)
		} else if len(thread.Problems)+len(thread.Repaired)+len(thread.Notes) > 0 {
			line.clear()
			printing = errors.Join(printing, p.printVerified(thread, options.Scope == nil))
		}
		line.show(func() string {
			return fmt.Sprintf("%s, %s", countText(threads, "thread"), countText(problems, "problem"))
		})
	}
	var failure error
	result.Verified, failure = jobs.Verify(ctx, pool, options)
	line.clear()
	switch {
	case printing != nil:
		err = printing
	case p.json:
		err = p.printJSON(result)
	case failure != nil && result.Threads == 0:
		// The error says it all.
	case result.Problems == 0:
		_, err = fmt.Fprintln(p.out, summary(result.Verified))
	default:
		_, err = fmt.Fprintln(p.messages, summary(result.Verified))
	}
	switch {
	case failure != nil:
		return failure
	case err == nil && result.Problems > 0:
		return errProblems
	case err == nil && result.Threads == 0 && options.Scope != nil:
		return p.hintAtOtherScopes(ctx, pool, "were not checked: name another --scope, or none to check all")
	}
	return err
}

// printVerified writes a line for each problem of a thread, and for each note.
func (p *program) printVerified(thread jobs.VerifiedThread, withScope bool) error {
	where := "thread " + thread.ThreadID
	switch {
	case thread.ThreadID == "":
		where = "thread key " + thread.ThreadKey
	case withScope && thread.Scope != "":
		where = "scope " + thread.Scope + ", " + where
	}
	for _, problem := range thread.Repaired {
		problem.Problem.Problem = "repaired: " + problem.Problem.Problem
		if err := p.printProblem(where, problem.Problem); err != nil {
			return err
		}
	}
	for _, problem := range thread.Problems {
		if err := p.printProblem(where, problem.Problem); err != nil {
			return err
		}
	}
	for _, note := range thread.Notes {
		if err := p.printProblem("note: "+where, note); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) printProblem(where string, problem pgagui.Problem) error {
	if problem.RunID != "" {
		where += ", run " + problem.RunID
	}
	_, err := fmt.Fprintf(p.out, "%s: %s\n", where, oneLine(problem.Problem))
	return err
}

// summary says how much was checked and what was found.
func summary(done jobs.Verified) string {
	found := "no problem"
	if done.Problems > 0 {
		found = countText(done.Problems, "problem")
	}
	if done.Repaired > 0 {
		found += fmt.Sprintf(", %s repaired", humanize.Comma(int64(done.Repaired)))
	}
	if done.Notes > 0 {
		found += ", " + countText(done.Notes, "note")
	}
	return fmt.Sprintf("%s, %s, %s: %s, in %s", countText(done.Threads, "thread"), countText(done.Events, "event"),
		countText(done.Snapshots, "snapshot"), found, durationText(done.Duration))
}
