// Package install has the commands about the installation: the schema in the database, its health, and the version of the program.
package install

import (
	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
)

// program is the program with the commands of this package.
type program struct{ *cli.Program }

// Commands returns the commands.
func Commands(of *cli.Program) []*cobra.Command {
	p := &program{of}
	migrate, doctor := p.migrateCommand(), p.doctorCommand()
	cli.OfAllScopes(append(migrate.Commands(), doctor)...)
	return append(append(cli.GettingStarted.With(migrate), cli.Maintenance.With(doctor)...), p.versionCommand())
}
