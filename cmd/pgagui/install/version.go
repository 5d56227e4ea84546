package install

import (
	"runtime"

	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
)

type versionResult struct {
	Version string `json:"version"`
	Go      string `json:"go"`
}

func (p *program) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of pgagui and of Go",
		Long: `Prints the version of pgagui and the version of Go that built it. With --json it prints
{version, go}. "pgagui migrate status" prints the version of the schema in a database.`,
		Example: `  pgagui version
  pgagui version --json`,
		Args: cli.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			result := versionResult{Version: cli.Version(), Go: runtime.Version()}
			return p.PrintResult(result, "pgagui %s (%s)\n", result.Version, result.Go)
		},
	}
}
