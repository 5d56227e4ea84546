// Package serve has the commands that serve agents over HTTP: serve, dev, and token for their clients.
package serve

import (
	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
)

// program is the program with the commands of this package.
type program struct{ *cli.Program }

// Commands returns the commands.
func Commands(of *cli.Program) []*cobra.Command {
	p := &program{of}
	return append(cli.Server.With(p.serveCommand(), p.tokenCommand()), cli.GettingStarted.With(p.devCommand())...)
}
