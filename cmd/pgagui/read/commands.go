// Package read has the commands that read the log and the conversations in it.
package read

import (
	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
)

// program is the program with the commands of this package.
type program struct{ *cli.Program }

// Commands returns the commands.
func Commands(of *cli.Program) []*cobra.Command {
	p := &program{of}
	return append(
		cli.Conversations.With(
			p.threadsCommand(), p.showCommand(), p.diffCommand(),
			p.waitingCommand(), p.reportCommand(), p.searchCommand(), p.logCommand(),
		),
		cli.Events.With(p.eventsCommand(), p.feedCommand(), p.archiveCommand())...,
	)
}
