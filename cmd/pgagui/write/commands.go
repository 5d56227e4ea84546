// Package write has the commands that add to a thread: events, session state, and the request to stop.
package write

import (
	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
)

// program is the program with the commands of this package.
type program struct{ *cli.Program }

// Commands returns the commands.
func Commands(of *cli.Program) []*cobra.Command {
	p := &program{of}
	return append(cli.Events.With(p.importCommand(), p.unarchiveCommand()), cli.Conversations.With(p.sessionCommand(), p.stopCommand())...)
}
