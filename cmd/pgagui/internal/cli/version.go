package cli

import (
	"regexp"
	"runtime/debug"
)

// version is set when a release or the Makefile builds the program. Otherwise the build information has it.
var version string

// next is what a build calls itself that is of no release.
const next = "0.2.0-dev"

// isOfCommit matches a version that Go makes of a commit: https://go.dev/ref/mod#pseudo-versions
var isOfCommit = regexp.MustCompile(`[-.]\d{14}-[0-9a-f]{12}(\+|$)`)

// Version returns the version of the program: 0.1.0, or 0.2.0-dev.893 between releases.
func Version() string {
	if version != "" {
		return version
	}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return next
	}
	if released := build.Main.Version; released != "" && released != "(devel)" && !isOfCommit.MatchString(released) {
		return released
	}
	revision, dirty := "", ""
	for _, setting := range build.Settings {
		switch {
		case setting.Key == "vcs.revision":
			revision = "+" + setting.Value[:min(12, len(setting.Value))]
		case setting.Key == "vcs.modified" && setting.Value == "true":
			dirty = ".dirty"
		}
	}
	return next + revision + dirty
}
