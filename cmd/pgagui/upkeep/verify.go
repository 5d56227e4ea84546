package upkeep

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/jobs"
)

func (p *program) verifyCommand() *cobra.Command {
	options := jobs.VerifyOptions{}
	var sample, since, heads string
	var printHeads bool
	command := &cobra.Command{
		Use:   "verify [THREAD…]",
		Short: "Check the log, the tree and the snapshots, like git fsck",
		Long: `Checks threads: that no seq is missing, that batches, runs and the tree are consistent, that each
run begins and ends as its log says, and that every snapshot equals a fold of the raw log. Without
arguments it checks the threads of all scopes, or with --scope those of one scope. Threads named as
arguments belong to one scope. Without arguments, --sample and --since it also finds rows that
belong to no thread. Other clients may write at the same time.

Each problem is a line on stdout. If a problem remains, the exit code is 1. A line that begins with
"note" is no damage: the agent or its writer broke the protocol, for example with events after the
end of a run, and the log keeps these events unchanged.

With --repair it replaces wrong snapshots, and a wrong entry of the thread in lists, by correct ones
from the log. It never changes the log. If the log of a thread is damaged, it only reports this and
keeps the snapshots of the thread, because they may hold what the log has lost.

With --chain it recomputes the hashes of chained logs (agui.enable_chain) from the events. That
finds every event that was changed, removed or moved. It does not find a log whose end was cut off,
or a log that was replaced together with its hashes. To find these as well, keep the output of
--print-heads at a place where a person who can change the database cannot write, and pass it with
--heads.

--print-heads checks nothing: it prints the head of each thread whose log is chained, one JSON
object a line: the seq of the last event and the hash of the last link.`,
		Example: `  pgagui verify --sample 5% --since 7d
  pgagui verify --print-heads > heads-of-monday.ndjson
  pgagui verify --chain --heads heads-of-monday.ndjson
  pgagui verify trip-to-lisbon --repair`,
		RunE: func(command *cobra.Command, threads []string) error {
			options.Threads = threads
			if cli.ScopeIsGiven(command) {
				options.Scope = &p.Scope
			}
			if printHeads {
				err := cli.GoesWith(command, "a check, not with --print-heads", false, "sample", "since", "workers", "in-sql", "chain", "heads", "repair")
				if err == nil && len(threads) > 0 {
					err = cli.WrongUsage(command, fmt.Sprintf("--print-heads prints all heads: expected no thread, got %s", cli.CountText(len(threads), "thread")))
				}
				if err != nil {
					return err
				}
				return p.heads(command.Context(), options.Scope)
			}
			if err := chooseThreads(&options, sample, since, time.Now()); err != nil {
				return cli.WrongUsage(command, err.Error())
			}
			if heads != "" {
				if !options.Chain {
					return cli.WrongUsage(command, "--heads needs --chain")
				}
				var err error
				if options.Heads, err = p.readHeads(heads); err != nil {
					return err
				}
			}
			return p.EachPoolOf(command.Context(), options.Workers, threads, func(ctx context.Context, pool *pgxpool.Pool, threads []string) error {
				options := options
				options.Threads = threads
				return p.verify(ctx, pool, options)
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&sample, "sample", "", "check only a random sample of the threads: a `number` such as 100, or a share such as 5%")
	flags.StringVar(&since, "since", "", "check only threads with events or snapshots since this `time`: "+cli.TimeFormats)
	flags.IntVar(&options.Workers, "workers", min(4, runtime.NumCPU()), "`number` of threads to check in parallel, each on its own connection")
	flags.BoolVar(&options.InSQL, "in-sql", false, "fold with the reducer in SQL instead of the one in Go, which is many times slower")
	flags.BoolVar(&options.Chain, "chain", false, "check the hashes of chained logs")
	flags.StringVar(&heads, "heads", "", `with --chain: compare with the heads in this `+"`file`"+`; "-" means stdin`)
	flags.BoolVar(&printHeads, "print-heads", false, "print the head hashes of chained logs, to keep outside the database")
	flags.BoolVar(&options.Repair, "repair", false, "replace wrong snapshots by correct ones from the log")
	return command
}

// chooseThreads sets the options from the flags that select threads, and checks their combination.
func chooseThreads(options *jobs.VerifyOptions, sample, since string, now time.Time) error {
	if options.Workers < 1 {
		return errors.New("--workers must be 1 or more")
	}
	if len(options.Threads) > 0 && (sample != "" || since != "") {
		return errors.New("--sample and --since select threads: do not name threads as well")
	}
	if share, isShare := strings.CutSuffix(sample, "%"); isShare {
		percent, err := strconv.ParseFloat(share, 64)
		if err != nil || !(percent > 0 && percent <= 100) {
			return fmt.Errorf("--sample %s: not a share (expected more than 0%% and at most 100%%)", sample)
		}
		options.SampleShare = percent / 100
	} else if sample != "" {
		threads, err := strconv.ParseInt(sample, 10, 32)
		if err != nil || threads < 1 {
			return fmt.Errorf("--sample %s: not a sample (expected a number of threads, 1 or more, or a share such as 5%%)", sample)
		}
		options.SampleThreads = int(threads)
	}
	var err error
	options.Since, err = cli.PointInTime("--since", since, now)
	return err
}

type verified struct {
	jobs.Verified
	Reports []jobs.VerifiedThread `json:"reports"`
}

func (p *program) verify(ctx context.Context, pool *pgxpool.Pool, options jobs.VerifyOptions) (err error) {
	line := p.NewProgress()
	defer line.Clear()
	result := verified{Reports: []jobs.VerifiedThread{}}
	threads, problems := 0, 0
	var printing error
	options.Report = func(thread jobs.VerifiedThread) {
		threads++
		problems += len(thread.Problems)
		if p.JSON {
			result.Reports = append(result.Reports, thread)
		} else if len(thread.Problems)+len(thread.Repaired)+len(thread.Notes) > 0 {
			line.Clear()
			printing = errors.Join(printing, p.printVerified(thread, options.Scope == nil))
		}
		line.Show(func() string {
			return fmt.Sprintf("%s, %s", cli.CountText(threads, "thread"), cli.CountText(problems, "problem"))
		})
	}
	var failure error
	result.Verified, failure = jobs.Verify(ctx, pool, options)
	line.Clear()
	switch {
	case printing != nil:
		err = printing
	case p.JSON:
		err = p.PrintJSON(result)
	case failure != nil && result.Threads == 0:
		// The error is enough.
	case result.Problems == 0:
		_, err = fmt.Fprintln(p.Out, summary(result.Verified))
	default:
		_, err = fmt.Fprintln(p.Messages, summary(result.Verified))
	}
	switch {
	case failure != nil:
		return failure
	case err == nil && result.Problems > 0:
		return cli.ErrProblems
	case err == nil && result.Threads == 0 && options.Scope != nil:
		return p.HintAtOtherScopes(ctx, pool, "were not checked (use another --scope, or none to check all)")
	}
	return err
}

// printVerified writes a line per problem and per note of a thread.
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
		if err := p.PrintProblem(where, problem.Problem); err != nil {
			return err
		}
	}
	for _, problem := range thread.Problems {
		if err := p.PrintProblem(where, problem.Problem); err != nil {
			return err
		}
	}
	for _, note := range thread.Notes {
		if err := p.PrintProblem("note: "+where, note); err != nil {
			return err
		}
	}
	return nil
}

func summary(done jobs.Verified) string {
	found := "no problem"
	if done.Problems > 0 {
		found = cli.CountText(done.Problems, "problem")
	}
	if done.Repaired > 0 {
		found += fmt.Sprintf(", %s repaired", humanize.Comma(int64(done.Repaired)))
	}
	if done.Notes > 0 {
		found += ", " + cli.CountText(done.Notes, "note")
	}
	return fmt.Sprintf("%s, %s, %s: %s, in %s", cli.CountText(done.Threads, "thread"), cli.CountText(done.Events, "event"),
		cli.CountText(done.Snapshots, "snapshot"), found, cli.DurationText(done.Duration))
}
