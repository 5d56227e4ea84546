package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/address"
	"github.com/pgagui/pgagui/internal/eventfile"
	"github.com/pgagui/pgagui/internal/refusal"
	"github.com/pgagui/pgagui/jobs"
	"github.com/pgagui/pgagui/sql/schema"
)

// Exit codes are part of the interface. exitCodesText documents them.
const (
	ExitOK          = 0
	ExitProblems    = 1
	ExitUsage       = 2
	ExitInput       = 3
	ExitRefused     = 4
	ExitUnavailable = 5
	ExitWorkLeft    = 6
	ExitInterrupted = 130
)

const exitCodesText = `pgagui exits with one of these codes:

    0   success
    1   verify or doctor found problems
    2   wrong usage: an unknown command, flag or argument, or a deletion that was not confirmed
    3   bad input: a file that cannot be read or written, or that holds an event which cannot be
        used or stored. If the error concerns a line, the message begins with FILE:LINE. pgagui
        import continues with the next thread or file, pgagui unarchive with the next thread, and
        they exit with 3 at the end
    4   refused by the database: an unknown thread or run, an event for a run that has ended, a
        missing privilege, …
    5   no usable database: it is not reachable, it does not have the schema agui, or its schema has
        another version or build than this program. Or the address to listen on is in use
    6   a job left work. Either it stopped at its limit or time budget, or other transactions held
        threads: run it again. Or it failed to process runs, which are now in quarantine (select *
        from agui.quarantine): the job retries them with backoff
  130   interrupted by Ctrl-C or SIGTERM; worker, serve and dev exit with 0 if they stop in order

If a job does nothing because the same job is in progress elsewhere, or because the server is a
standby, it exits with 0. If the lock of the job has been held for a day, or is held by a role that
may not run jobs, it exits with 4.

A command that works on the nodes of a cluster, one after the other, exits with the lowest code of
the nodes at which it failed: with 1 if verify found problems on one node and another one does not
answer.

An error is one line on stderr. What was stored before the error stays stored.`

// ExitCodesTopic returns the help about exit codes.
func ExitCodesTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "exit-codes",
		Short: "The exit codes and their meanings",
		Long:  exitCodesText,
	}
}

var (
	ErrInterrupted = errors.New("interrupted")
	// ErrProblems sets the exit code of verify and doctor, which have already printed their
	// findings.
	ErrProblems = errors.New("problems were found")
	// ErrBadFiles sets the exit code of import and unarchive, which have already printed an error for
	// each file or thread.
	ErrBadFiles = errors.New("not all files were imported")
	// ErrWorkLeft sets the exit code of a job that left work; its summary says so.
	ErrWorkLeft = errors.New("work is left")
)

// UsageError is an error in the command line.
type UsageError struct {
	Problem string
	Command string // the command whose help the message refers to
}

func (e *UsageError) Error() string { return e.Problem }

// WrongUsage returns the UsageError of a command.
func WrongUsage(command *cobra.Command, problem string) error {
	return &UsageError{Problem: problem, Command: command.CommandPath()}
}

// NeedsSubcommand is the RunE of a command that only has subcommands. expected lists them.
func NeedsSubcommand(expected string) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, _ []string) error {
		return WrongUsage(command, "a subcommand is missing (expected "+expected+")")
	}
}

// UnavailableError means that there is no usable database.
type UnavailableError struct {
	Err        error
	IsComplete bool // it says what to do
}

func (e *UnavailableError) Error() string { return e.Err.Error() }
func (e *UnavailableError) Unwrap() error { return e.Err }

// ExitCode returns the exit code for an error.
func ExitCode(err error) int {
	var (
		usage *UsageError
		kind  *refusal.Kind
		left  *jobs.RunsLeftError
		line  *eventfile.Error
		file  *fs.PathError
		nodes *NodesError
	)
	switch {
	case errors.Is(err, ErrInterrupted):
		return ExitInterrupted
	case errors.As(err, &nodes):
		code := ExitWorkLeft
		for _, failed := range nodes.Unwrap() {
			code = min(code, ExitCode(failed))
		}
		return code
	case errors.Is(err, ErrProblems):
		return ExitProblems
	case errors.Is(err, ErrWorkLeft):
		return ExitWorkLeft
	case errors.As(err, &usage):
		return ExitUsage
	case errors.Is(err, ErrBadFiles), errors.As(err, &line), errors.As(err, &file):
		return ExitInput
	case errors.As(err, &left) && !isUnavailable(err):
		return ExitWorkLeft
	case errors.As(err, &kind):
		return kind.Exit
	case isUnavailable(err), IsUnfit(err):
		return ExitUnavailable
	default:
		return cmp.Or(stateOf(err).Exit, ExitRefused)
	}
}

// isUnavailable reports whether there is no usable database (exit code 5): the connection failed or was lost, or the schema is not
// that of this program.
func isUnavailable(err error) bool {
	var (
		unavailable *UnavailableError
		connect     *pgconn.ConnectError
		network     *net.OpError
		file        *fs.PathError
	)
	if errors.As(err, &file) {
		return false // a file that ends too early is no lost connection
	}
	return errors.As(err, &unavailable) || errors.As(err, &connect) || errors.As(err, &network) || errors.Is(err, io.ErrUnexpectedEOF) ||
		stateOf(err).Exit == ExitUnavailable
}

// stateOf returns what the table of errors says of an error that PostgreSQL itself raised in a statement.
func stateOf(err error) refusal.State {
	var (
		server  *pgconn.PgError
		connect *pgconn.ConnectError
	)
	if !errors.As(err, &server) || errors.As(err, &connect) {
		return refusal.State{}
	}
	return refusal.StateOf(server.Code, server.Message)
}

// IsUnfit reports whether this program cannot work with the database or its schema.
func IsUnfit(err error) bool {
	for _, unfit := range []error{
		schema.ErrNotInstalled, schema.ErrOlder, schema.ErrNewer, schema.ErrUnreleased, schema.ErrOtherBuild, schema.ErrChanged,
		schema.ErrInstalledOtherwise, schema.ErrUnsupported, address.ErrNoSession,
	} {
		if errors.Is(err, unfit) {
			return true
		}
	}
	return false
}

// Describe returns an error as one line: what failed, where, and what to do. It returns "" if the
// command has already printed the error.
func Describe(err error) string {
	if line, ok := errors.AsType[*eventfile.Error](err); ok {
		return OneLine(fmt.Sprintf("%s:%d: %s", line.File, line.Line, explain(line.Err)))
	}
	if text := explain(err); text != "" {
		return OneLine("pgagui: " + text)
	}
	return ""
}

// SelectsDatabase ends the text of an error of a connection.
const SelectsDatabase = " (--database-url or $DATABASE_URL selects the database)"

// explain returns "" for an error that is printed.
func explain(err error) string {
	var (
		usage       *UsageError
		refused     *pgagui.Error
		kind        *refusal.Kind
		unavailable *UnavailableError
		nodes       *NodesError
		unanswered  *pgagui.UnansweredError
		server      *pgconn.PgError
		network     *net.OpError
	)
	switch {
	case errors.As(err, &nodes):
		return nodes.text(func(err error) string { return strings.TrimSuffix(explain(err), SelectsDatabase) })
	case errors.Is(err, ErrProblems) || errors.Is(err, ErrWorkLeft) || errors.Is(err, ErrBadFiles):
		return ""
	case errors.As(err, &usage):
		return fmt.Sprintf("%s (see: %s --help)", strings.TrimSpace(usage.Problem), usage.Command)
	case errors.As(err, &refused) && errors.As(err, &kind) && refused.Hint != "" && kind.CLI != "":
		return strings.Replace(err.Error(), refused.Hint, kind.CLI, 1)
	case stateOf(err).CLI != "":
		return err.Error() + ": " + stateOf(err).CLI
	case errors.As(err, &network) && network.Op == "listen":
		return err.Error() // it names the address
	case errors.As(err, &server) && strings.Contains(server.Message, "unsupported startup parameter"):
		return withoutRepeats(err.Error()) + ": the pooler takes no such setting from the address or $PGOPTIONS: set it for the role (alter role … set); --scope sets agui.scope"
	case isUnavailable(err) && !(errors.As(err, &unavailable) && unavailable.IsComplete) && !errors.As(err, &unanswered):
		return withoutRepeats(err.Error()) + SelectsDatabase
	default:
		return err.Error()
	}
}

// withoutRepeats leaves out lines that repeat the end of the line before: an address is tried with TLS and without.
func withoutRepeats(text string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if n := len(lines); n == 0 || strings.TrimSpace(line) == "" || !strings.HasSuffix(lines[n-1], strings.TrimSpace(line)) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// OneLine joins the lines of a text. An indented line continues the sentence before it.
func OneLine(text string) string {
	text = strings.NewReplacer(":\n\t", ": ", "?\n\t", "? ", "\n\t", ", ", "\n\n", "; ", "\n", "; ").Replace(strings.TrimSpace(withoutRepeats(text)))
	return strings.Join(strings.Fields(text), " ")
}
