package main

import (
	"fmt"

	"github.com/pgagui/pgagui/jobs"
)

// jobEnd is what became of a job, as far as all commands that do one tell it in the same way.
type jobEnd struct {
	report  jobs.Report
	failure error
	// result is what --json prints.
	result any
	// print prints what was done otherwise; runs is how many.
	print func() error
	runs  int
	// stopped says what ended the job with work left.
	stopped jobs.StopReason
	// left says that runs or threads were left, in quarantine or because others hold them.
	left bool
}

// finishJob prints what a job did and returns what its command ends with.
func (p *program) finishJob(end jobEnd) error {
	var err error
	// Also after a failure: what was committed is done.
	switch {
	case p.json:
		err = p.printJSON(end.result)
	case end.report.Skipped != "":
		_, err = fmt.Fprintf(p.out, "nothing done: %s\n", end.report.Skipped)
	case end.failure == nil || end.runs > 0:
		err = end.print()
	}
	switch {
	case end.failure != nil:
		return end.failure
	case err != nil:
		return err
	case end.stopped == jobs.StoppedOnCall:
		return errInterrupted
	case end.stopped != "" || end.left:
		return errWorkLeft
	}
	return nil
}
