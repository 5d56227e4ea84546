package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set at build time by a release. Otherwise the build information has the version.
var version string

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
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			result := versionResult{Version: versionText(), Go: runtime.Version()}
			if p.json {
				return p.printJSON(result)
			}
			_, err := fmt.Fprintf(p.out, "pgagui %s (%s)\n", result.Version, result.Go)
			return err
		},
	}
}

func versionText() string {
	if version != "" {
		return version
	}
	if build, ok := debug.ReadBuildInfo(); ok && build.Main.Version != "" {
		return build.Main.Version
	}
	return "(devel)"
}
