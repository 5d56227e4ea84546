// Package root is the program pgagui: all its commands, and how a command line is executed.
package root

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pgagui/pgagui/cmd/pgagui/demo"
	"github.com/pgagui/pgagui/cmd/pgagui/install"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/read"
	"github.com/pgagui/pgagui/cmd/pgagui/serve"
	"github.com/pgagui/pgagui/cmd/pgagui/upkeep"
	"github.com/pgagui/pgagui/cmd/pgagui/write"
	"github.com/pgagui/pgagui/internal/printable"
)

// groups returns the commands of each folder.
var groups = []func(*cli.Program) []*cobra.Command{
	demo.Commands, install.Commands, read.Commands, serve.Commands, upkeep.Commands, write.Commands,
}

// Main executes the command line of the process and ends the process.
func Main() {
	if os.Getenv("GOGC") == "" {
		// An import allocates much and retains little. With the default of 100 the garbage
		// collector would take most of the time.
		debug.SetGCPercent(400)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal starts an orderly shutdown; the second one ends the process at once.
	context.AfterFunc(ctx, stop)
	os.Exit(Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// program is the program with the methods of this package.
type program struct{ *cli.Program }

// Run executes a command line and returns the exit code.
func Run(ctx context.Context, arguments []string, in io.Reader, out, messages io.Writer) int {
	// Text from threads must not control a terminal. Results that go to a file or a pipe stay
	// unchanged, byte for byte. Messages are always escaped, because people read them on a
	// terminal.
	p := &program{&cli.Program{
		In: in, Out: out, Messages: printable.NewWriter(messages), Terminal: cli.TerminalOf(out), MessageTerminal: cli.TerminalOf(messages),
	}}
	if p.Terminal != nil {
		p.Out = printable.NewWriter(p.Terminal)
	}
	root := Command(p.Program)
	hints := io.Discard // cron would mail them
	if p.MessageTerminal != nil {
		hints = p.Messages
	}
	root.SetArgs(withNewName(root, arguments, hints))
	root.SetIn(in)
	root.SetOut(p.Out)
	root.SetErr(p.Messages)

	// An error before the command starts is a usage error.
	hasStarted := false
	root.PersistentPreRunE = func(command *cobra.Command, _ []string) error {
		hasStarted = true
		return p.ChooseDatabase(command)
	}
	command, err := root.ExecuteContextC(ctx)
	if err == nil {
		return cli.ExitOK
	}
	if !hasStarted {
		err = cli.WrongUsage(command, err.Error())
	}
	if ctx.Err() != nil {
		err = cli.ErrInterrupted
	}
	err = p.adviseOnPermission(command, err)
	text := cli.Describe(err)
	if p.Nodes != "" {
		text = strings.TrimSuffix(text, cli.SelectsDatabase) // the description of the nodes has the addresses
	}
	if text != "" {
		fmt.Fprintln(p.Messages, text)
	}
	return cli.ExitCode(err)
}

// Command returns the command pgagui, which has all others.
func Command(p *cli.Program) *cobra.Command {
	root := &cobra.Command{
		Use:   "pgagui",
		Short: "An append-only PostgreSQL store for AG-UI event streams",
		Long: `pgagui stores AG-UI event streams in PostgreSQL: an append-only log of the events that agents
stream to their UIs, the git-like tree of runs in it, and snapshots from which a conversation is
restored quickly.

"pgagui demo" shows all of this in a few seconds. It needs no database.

Results go to stdout, messages to stderr. On a terminal, control characters are shown as escapes
such as \u001b. "pgagui help exit-codes" explains the exit codes.`,
		Example: `  pgagui demo
  export DATABASE_URL=postgres://agui@localhost/agui
  pgagui migrate up
  pgagui import chat.ndjson
  pgagui threads`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", fmt.Sprintf(".FlagUsagesWrapped %d", cli.HelpWidth)))
	root.Version = cli.Version()
	root.Flags().Bool("version", false, "print the version of pgagui")
	root.SetVersionTemplate("pgagui {{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	p.AddFlags(root)
	cli.AddHelpGroups(root)
	for _, commands := range groups {
		root.AddCommand(commands(p)...)
	}
	addOldNames(root)
	root.AddCommand(cli.ConnectionTopic(), cli.ExitCodesTopic(), cli.ScopesTopic())
	(&program{p}).completeIDs(root)
	root.InitDefaultHelpCmd()
	help, _, _ := root.Find([]string{"help"})
	help.PreRunE = refuseUnknownTopic
	help.Example = `  pgagui help append
  pgagui help exit-codes`
	return root
}

// refuseUnknownTopic ends "pgagui help" with an error, where cobra prints the help of the whole program and succeeds.
func refuseUnknownTopic(help *cobra.Command, topic []string) error {
	if _, unknown, err := help.Root().Find(topic); err != nil || len(unknown) > 0 {
		return cli.WrongUsage(help.Root(), fmt.Sprintf("there is no command or help topic %q", strings.Join(topic, " ")))
	}
	return nil
}

// flagError says of a flag whose value cannot be read what it takes.
func flagError(_ *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	expected := cli.ExpectedOf(invalid.GetFlag())
	if expected == "" {
		return err
	}
	return fmt.Errorf("--%s %s: expected %s", invalid.GetFlag().Name, invalid.GetValue(), expected)
}
