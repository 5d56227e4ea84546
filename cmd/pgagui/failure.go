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

// Exit codes are part of the interface. exitCodesText documents them.
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

const exitCodesText = `pgagui exits with one of these codes:

    0   success
    1   verify or doctor found problems
    2   wrong usage: an unknown command, flag or argument, or a deletion that was not confirmed
    3   bad input: a file that cannot be read or written, or that holds an event which cannot be
        used or stored. If the error concerns a line, the message begins with FILE:LINE. pgagui
        import continues with the next file and exits with 3 at the end
    4   refused by the database: an unknown thread or run, an event for a run that has ended, a
        missing privilege, …
    5   no usable database: it is not reachable, it does not have the schema agui, or its schema has
        another version or build than this program
    6   a job left work. Either it stopped at its limit or time budget, or other transactions held
        threads: run it again. Or it failed to process runs, which are now in quarantine (select *
        from agui.quarantine): the job retries them with backoff
  130   interrupted by Ctrl-C or SIGTERM; worker, serve and dev exit with 0 if they stop in order

If a job does nothing because the same job is in progress elsewhere, or because the server is a
standby, it exits with 0. If the lock of the job has been held for a day, or is held by a role that
may not run jobs, it exits with 4.

An error is one line on stderr. What was stored before the error stays stored.`

func exitCodesTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "exit-codes",
		Short: "The exit codes and their meanings",
		Long:  exitCodesText,
	}
}

var (
	errInterrupted = errors.New("interrupted")
	// errProblems sets the exit code of verify and doctor, which have already printed their
	// findings.
	errProblems = errors.New("problems were found")
	// errBadFiles sets the exit code of import, which has already printed an error for each file.
	errBadFiles = errors.New("not all files were imported")
	// errWorkLeft sets the exit code of a job that left work; its summary says so.
	errWorkLeft = errors.New("work is left")
)

// usageError is an error in the command line.
type usageError struct {
	problem string
	command string // the command whose help the message refers to
}

func (e *usageError) Error() string { return e.problem }

// unavailableError means that there is no usable database.
type unavailableError struct {
	err        error
	isComplete bool // it says what to do
}

func (e *unavailableError) Error() string { return e.err.Error() }
func (e *unavailableError) Unwrap() error { return e.err }

// exitCode returns the exit code for an error.
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

// isUnavailable reports whether the connection to the database failed or was lost.
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

// hasNoSchema reports whether a statement failed because an object of the schema agui does not
// exist.
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

// isUnfit reports whether this program cannot work with the database or its schema.
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

// describe returns an error as one line: what failed, where, and what to do. It returns "" if the
// command has already printed the error.
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
		usage       *usageError
		refusal     *pgagui.Error
		unavailable *unavailableError
	)
	switch {
	case errors.As(err, &usage):
		return fmt.Sprintf("%s (see: %s --help)", strings.TrimSpace(usage.problem), usage.command)
	case errors.As(err, &refusal) && refusal.Hint != "":
		return strings.Replace(err.Error(), "Is it in another scope?", "Is it in another scope (--scope NAME)?", 1)
	case hasNoSchema(err):
		return "the schema agui does not match this program (see: pgagui migrate status): " + err.Error()
	case isUnavailable(err) && !(errors.As(err, &unavailable) && unavailable.isComplete):
		return err.Error() + " (--database-url or $DATABASE_URL selects the database)"
	default:
		return err.Error()
	}
}

// oneLine joins the lines of a text. An indented line continues the sentence before it.
func oneLine(text string) string {
	text = strings.NewReplacer(":\n\t", ": ", "?\n\t", "? ", "\n\t", ", ", "\n\n", "; ", "\n", "; ").Replace(strings.TrimSpace(text))
	return strings.Join(strings.Fields(text), " ")
}
