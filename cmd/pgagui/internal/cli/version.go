package cli

import "runtime/debug"

// version is set at build time by a release. Otherwise the build information has the version.
var version string

// Version returns the version of the program.
func Version() string {
	if version != "" {
		return version
	}
	if build, ok := debug.ReadBuildInfo(); ok && build.Main.Version != "" {
		return build.Main.Version
	}
	return "(devel)"
}
