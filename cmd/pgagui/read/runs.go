package read

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
)

// statusNames are the statuses of runs, as flags take them. Those of endedNames are listed by log.
var (
	statusNames = []string{"running", "finished", "interrupted", "cancelled", "failed", "cut_off"}
	endedNames  = statusNames[2:]
)

// readStatus reads a status from a flag.
func readStatus(name string, known []string) (pgagui.Status, error) {
	if !slices.Contains(known, name) {
		last := len(known) - 1
		return "", fmt.Errorf("--status %s: unknown status (expected %s or %s)", name, strings.Join(known[:last], ", "), known[last])
	}
	return pgagui.Status(name), nil
}

// endedRuns are the flags of log that select runs of all threads.
type endedRuns struct {
	status []string
	since  string
	all    bool
}

// complete sets the options from the flags, and checks their combination.
func (f endedRuns) complete(options *pgagui.ListRunsOptions, limited bool, now time.Time) (err error) {
	switch {
	case options.Limit < 1 || options.Limit > 1000:
		return fmt.Errorf("--limit must be from 1 to 1000, not %d", options.Limit)
	case f.all && limited:
		return errors.New("--all and --limit exclude each other")
	case f.all:
		options.Limit = 1000
	}
	for _, name := range f.status {
		status, err := readStatus(name, endedNames)
		if err != nil {
			return err
		}
		options.Status = append(options.Status, status)
	}
	options.Since, err = cli.PointInTime("--since", f.since, now)
	return err
}

// runs prints runs. hasScope: the command line sets it.
func (p *program) runs(ctx context.Context, store *pgagui.Store, tx pgx.Tx, options pgagui.ListRunsOptions, all, hasScope bool) error {
	var runs []pgagui.ListedRun
	for {
		page, err := store.ListRuns(ctx, options)
		if err = p.Partly(err); err != nil {
			return err
		}
		runs = append(runs, page.Runs...)
		if options.Cursor = page.Cursor; !page.HasMore || !all {
			break
		}
	}
	listed := make([]listedRun, len(runs))
	for i, run := range runs {
		answered, err := answerOfAgent(ctx, store, pgagui.RunRef{ThreadID: run.ThreadID, RunID: run.RunID}, run.RunEnd)
		if err != nil {
			return err
		}
		listed[i] = listedRun{run, answered}
	}
	err := p.printRuns(listed)
	if err != nil {
		return err
	}
	if options.Cursor != "" {
		_, err = fmt.Fprintf(p.Messages, "more runs may follow: continue with --cursor %s, or use --all\n", options.Cursor)
	}
	if err == nil && tx != nil && (len(runs) == 0 || !hasScope) {
		err = p.HintAtOtherScopes(ctx, tx, "are not listed")
	}
	return err
}

type listedRun struct {
	pgagui.ListedRun
	AgentError *pgagui.AgentError `json:"agentError,omitempty"`
}

func (p *program) printRuns(runs []listedRun) error {
	return cli.PrintList(p.Program, runs, "", []string{"ENDED", "THREAD", "RUN", "AGENT", "STATUS", "WHY"}, func(run listedRun) []string {
		why := cli.Joined(cli.WhyText(run.Status, run.RunEnd))
		if run.AgentError != nil {
			why += ": " + cli.Shorten(answerText(run.AgentError), 200)
		}
		return []string{cli.TimeText(run.EndedAt), run.ThreadID, run.RunID, cli.OrDash(run.Agent), cli.StatusText(run.Status), why}
	}, 1, 2, 3, 5)
}
