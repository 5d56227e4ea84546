// Package demo has the command that demonstrates pgagui.
package demo

import (
	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
)

// program is the program with the commands of this package.
type program struct{ *cli.Program }

// Commands returns the commands.
func Commands(of *cli.Program) []*cobra.Command {
	p := &program{of}
	return cli.GettingStarted.With(cli.OnOneDatabase(p.demoCommand())...)
}
