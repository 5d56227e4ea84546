package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/root"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testfile"
)

const referenceHeader = `# Commands

What ` + "`pgagui help`" + ` says of each command. They connect to the address in ` + "`DATABASE_URL`" + `, or that of ` + "`--database-url`" + `.
Results go to stdout (` + "`--json`" + `: as JSON), everything else to stderr. [server.md](../server.md) is about ` + "`pgagui serve`" + `,
[operations.md](../operations.md) about the jobs. ` + "`pgagui completion`" + ` makes the shell complete commands, threads and runs.

This page is written from the help texts: make golden

## Exit codes

| code | meaning |
|---|---|
| 0 | done |
| 1 | verify or doctor found problems |
| 2 | wrong usage |
| 3 | bad input; the message begins with file:line (` + "`import`" + ` first continues with the next thread or file) |
| 4 | refused by the database: unknown thread or run, a late event, a missing privilege |
| 5 | no database, or none with a schema that this program works with |
| 6 | a job stopped at its limit or time budget with work left: run it again |
| 130 | interrupted |
`

// The reference page has the help of every command.
func TestCommandReference(t *testing.T) {
	t.Parallel()
	commands := root.Command(&cli.Program{})
	byPurpose, _, _ := strings.Cut(commands.UsageString(), "\nAdditional Commands:\n")
	_, byPurpose, _ = strings.Cut(byPurpose, "\nGetting started:\n")
	var page strings.Builder
	fmt.Fprintf(&page, "%s\n## By purpose\n\n```\nGetting started:\n%s```\n", referenceHeader, byPurpose)
	hasGlobal := false
	var write func(*cobra.Command)
	write = func(command *cobra.Command) {
		if command.IsAdditionalHelpTopicCommand() && command.Name() != "exit-codes" { // they are above
			var help strings.Builder
			command.SetOut(&help)
			must.Report(t, command.Help())
			fmt.Fprintf(&page, "\n## pgagui help %s\n\n```\n%s\n```\n", command.Name(), strings.TrimSpace(help.String()))
		}
		if command.IsAdditionalHelpTopicCommand() || !command.IsAvailableCommand() || command.Name() == "completion" {
			return
		}
		command.InitDefaultHelpFlag()
		usage, ofAll, _ := strings.Cut(command.UsageString(), "\nGlobal Flags:\n")
		if !hasGlobal && ofAll != "" {
			fmt.Fprintf(&page, "\n## Flags of all commands\n\n```\n%s```\n", ofAll)
			hasGlobal = true
		}
		fmt.Fprintf(&page, "\n## %s\n\n```\n%s\n\n%s\n```\n", command.CommandPath(), strings.TrimSpace(command.Long), strings.TrimSpace(usage))
		for _, sub := range command.Commands() {
			write(sub)
		}
	}
	for _, command := range commands.Commands() {
		write(command)
	}
	testfile.Golden(t, clitest.Repository("docs/reference/commands.md"), page.String())
}
