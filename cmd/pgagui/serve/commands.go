// Package serve has the commands that serve over HTTP: serve and dev for agents, token for their clients, explore for a
// browser.
package serve

import (
	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
)

// program is the program with the commands of this package.
type program struct{ *cli.Program }

// Commands returns the commands, and a topic of the help.
func Commands(of *cli.Program) []*cobra.Command {
	p := &program{of}
	commands := cli.Server.With(p.serveCommand(), p.tokenCommand())
	commands = append(commands, cli.GettingStarted.With(cli.OnOneDatabase(p.devCommand())...)...)
	commands = append(commands, cli.Conversations.With(p.exploreCommand())...)
	return append(commands, settingsTopic())
}
