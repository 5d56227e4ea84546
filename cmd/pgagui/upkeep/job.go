package upkeep

import (
	"fmt"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/jobs"
)

// jobEnd is the result of a job, in the form that all commands which run one report it.
type jobEnd struct {
	report  jobs.Report
	failure error
	// result is printed with --json.
	result any
	// print prints the summary without --json.
	print func() error
	// runs is the number of runs processed.
	runs int
	// stopped is the reason why the job stopped with work left, if it did.
	stopped jobs.StopReason
	// left is true if runs are in quarantine or other transactions held threads.
	left bool
}

// finishJob prints the result of a job and returns the error of its command.
func (p *program) finishJob(end jobEnd) error {
	var err error
	// Print the result after a failure, too: it says what was committed.
	switch {
	case p.JSON:
		err = p.PrintJSON(end.result)
	case end.report.Skipped != "":
		_, err = fmt.Fprintf(p.Out, "nothing done: %s\n", end.report.Skipped)
	case end.failure == nil || end.runs > 0:
		err = end.print()
	}
	switch {
	case end.failure != nil:
		return end.failure
	case err != nil:
		return err
	case end.stopped == jobs.StoppedOnCall:
		return cli.ErrInterrupted
	case end.stopped != "" || end.left:
		return cli.ErrWorkLeft
	}
	return nil
}
