// Package upkeep has the commands that keep a store in good order: the maintenance jobs, checks, and erasure.
package upkeep

import (
	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
)

// program is the program with the commands of this package.
type program struct{ *cli.Program }

// Commands returns the commands.
func Commands(of *cli.Program) []*cobra.Command {
	p := &program{of}
	jobs := cli.OfAllScopes(p.jobCommand(), p.statsCommand())
	return cli.Maintenance.With(append(jobs, p.workerCommand(), p.verifyCommand(), p.retentionCommand(), p.webhookCommand(), p.eraseCommand(), p.clusterCommand())...)
}
