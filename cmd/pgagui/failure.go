package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/eventfile"
	"github.com/pgagui/pgagui/jobs"
	"github.com/pgagui/pgagui/sql/schema"
)

// Exit codes are part of the interface; exitCodesText documents them.
const (
	exitOK          = 0
	exitProblems    = 1
	exitUsage       = 2
	exitInput       = 3
	exitRefused     = 4
	exitUnavailable = 5
	exitWorkLeft    = 6
	exitInterrupted = 130
)

const exitCodesText = `pgagui ends with one of these codes:

    0   done
    1   verify or doctor found problems
    2   wrong usage: an unknown command, flag or argument, or no confirmation of what deletes data
    3   bad input: a file that cannot be read (or written), or an event in it that cannot be used or stored; then the message begins with
        file:line. pgagui import goes on with the next file first
    4   refused by the database: an unknown thread or run, an event of a run that has ended, a missing privilege, …
    5   no database to work on: not reachable, without the schema agui, or with another version or build of it than this program's
    6   a job left work: it stopped at its limit or time budget, or other transactions held threads (run it again); or it failed at
        runs that are now in quarantine (select * from agui.quarantine), where they are tried less and less often
  130   interrupted (Ctrl-C, SIGTERM); a worker that is told to stop so ends with 0

A job that does nothing because another is at work, or because the server is a standby, ends with 0. It ends with 4 if the lock of the job is held by a
role that may do no job, or for a day.

An error is one line on stderr. What was stored before it stays.`

func exitCodesTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "exit-codes",
		Short: "What the exit codes mean",
		Long:  exitCodesText,
	}
}

var (
	errInterrupted = errors.New("interrupted")
	// errProblems is the failure of verify and doctor, which have printed their findings already.
	errProblems = errors.New("problems were found")
	// errBadFiles is the failure of import, which has said what is wrong with each file.
	errBadFiles = errors.New("not all files were imported")
	// errWorkLeft is how a job ends that stopped early, which its summary says.
	errWorkLeft = errors.New("work is left")
)

// usageError is a command line that makes no sense.
type usageError struct {
	problem string
	command string // its help says how it is done
}

func (e *usageError) Error() string { return e.problem }

// unavailableError means that there is no database to work on.
type unavailableError struct{ err error }

func (e *unavailableError) Error() string { return e.err.Error() }
func (e *unavailableError) Unwrap() error { return e.err }

// exitCode is the exit code that an error stands for.
func exitCode(err error) int {
	var (
		usage   *usageError
		refusal *pgagui.Error
		left    *jobs.RunsLeftError
		line    *eventfile.Error
		file    *fs.PathError
	)
	switch {
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case errors.Is(err, errProblems):
		return exitProblems
	case errors.Is(err, errWorkLeft):
		return exitWorkLeft
	case errors.As(err, &usage):
		return exitUsage
	case errors.Is(err, errBadFiles), errors.As(err, &line), errors.As(err, &file):
		return exitInput
	case errors.As(err, &left) && !isUnavailable(err):
		return exitWorkLeft
	case errors.As(err, &refusal):
		return exitRefused
	case isUnavailable(err), hasNoSchema(err), isUnfit(err):
		return exitUnavailable
	default:
		return exitRefused
	}
}

// isUnavailable reports whether there was no connection to the database, or it was lost.
func isUnavailable(err error) bool {
	var (
		unavailable *unavailableError
		connect     *pgconn.ConnectError
		network     *net.OpError
		server      *pgconn.PgError
	)
	return errors.As(err, &unavailable) || errors.As(err, &connect) || errors.As(err, &network) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.As(err, &server) && (strings.HasPrefix(server.Code, "57P") || strings.HasPrefix(server.Code, "08")) // ended by the server
}

// hasNoSchema reports whether a statement failed because what it names of the schema agui does not exist.
func hasNoSchema(err error) bool {
	var server *pgconn.PgError
	if !errors.As(err, &server) {
		return false
	}
	switch server.Code {
	case "3F000", "42P01", "42883", "42704", "42703": // no such schema, table, function, type, column
		return true
	}
	return false
}

// isUnfit reports whether the schema in the database, or the database, is not what this program works with.
func isUnfit(err error) bool {
	for _, unfit := range []error{
		schema.ErrNotInstalled, schema.ErrOlder, schema.ErrNewer, schema.ErrOtherBuild, schema.ErrChanged, schema.ErrInstalledOtherwise,
		schema.ErrUnsupported,
	} {
		if errors.Is(err, unfit) {
			return true
		}
	}
	return false
}

// describe makes one line of an error: what went wrong, where, and what to do. It is empty when all has been said already.
func describe(err error) string {
	var line *eventfile.Error
	if errors.As(err, &line) {
		return oneLine(fmt.Sprintf("%s:%d: %s", line.File, line.Line, explain(line.Err)))
	}
	if errors.Is(err, errProblems) || errors.Is(err, errWorkLeft) || errors.Is(err, errBadFiles) {
		return ""
	}
	return oneLine("pgagui: " + explain(err))
}

func explain(err error) string {
	var (
		usage   *usageError
		refusal *pgagui.Error
	)
	switch {
	case errors.As(err, &usage):
		return fmt.Sprintf("%s (see: %s --help)", strings.TrimSpace(usage.problem), usage.command)
	case errors.As(err, &refusal) && refusal.Hint != "":
		return strings.Replace(err.Error(), "Is it in another scope?", "Is it in another scope (--scope NAME)?", 1)
	case hasNoSchema(err):
		return "the schema agui is not that of this program: see pgagui migrate status (" + err.Error() + ")"
	case isUnavailable(err):
		return err.Error() + " (--database-url or DATABASE_URL says which database to use)"
	default:
		return err.Error()
	}
}

// oneLine joins the lines of a text; indented ones go on with the sentence.
func oneLine(text string) string {
	text = strings.NewReplacer(":\n\t", ": ", "?\n\t", "? ", "\n\t", ", ", "\n\n", "; ", "\n", "; ").Replace(strings.TrimSpace(text))
	return strings.Join(strings.Fields(text), " ")
}
