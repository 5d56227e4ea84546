package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/pgagui/pgagui/devpg/daemon"
)

// OldestMajor is the oldest PostgreSQL that pgagui runs on.
const OldestMajor = 15

// binariesVariable names a folder with server programs to use instead of those found.
const binariesVariable = "PGAGUI_POSTGRES_BIN"

// programs is a folder with the server programs initdb and postgres.
type programs struct {
	folder string
	major  int
}

// NoProgramsError means that this machine has no server programs that fit.
type NoProgramsError struct {
	// Major is the major version that is needed. 0: any from OldestMajor on.
	Major int
	// Found are the versions that do not fit.
	Found []int
}

// Error says which package to install.
func (e *NoProgramsError) Error() string {
	wanted := fmt.Sprintf("PostgreSQL %d or newer", OldestMajor)
	if e.Major != 0 {
		wanted = fmt.Sprintf("PostgreSQL %d", e.Major)
	}
	return fmt.Sprintf("no server programs of %s found: install the package postgresql of your system (apt-get, dnf, apk, brew, winget), "+
		"or set %s to the folder with initdb and postgres", wanted, binariesVariable)
}

// noRuntimeError means that the programs of PostgreSQL are there, and a library of Windows that they need is not.
type noRuntimeError struct{ folder string }

func (e *noRuntimeError) Error() string {
	return fmt.Sprintf("the programs of PostgreSQL in %s do not start, because a library is missing: install the Microsoft Visual C++ Redistributable "+
		"(https://aka.ms/vs/17/release/vc_redist.x64.exe)", e.folder)
}

// isLibraryMissing reports whether a program ended because Windows did not find one of its libraries (STATUS_DLL_NOT_FOUND).
func isLibraryMissing(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && uint32(exit.ExitCode()) == 0xC0000135
}

// findPrograms gives the programs of the wanted major version, or of the newest when that is 0: those of the packages of the
// system, or of a folder that the user names. more are folders to look into besides.
func findPrograms(ctx context.Context, account *daemon.Account, major int, more ...string) (programs, error) {
	if folder := os.Getenv(binariesVariable); folder != "" {
		found, err := inspect(ctx, account, folder)
		if err == nil && found.major < OldestMajor {
			err = fmt.Errorf("it is PostgreSQL %d, at least %d is needed", found.major, OldestMajor)
		}
		if err != nil {
			return programs{}, fmt.Errorf("%s=%s: %w", binariesVariable, folder, err)
		}
		return found, nil
	}

	var newest programs
	var others []int
	var noRuntime *noRuntimeError
	for _, folder := range append(candidateFolders(ctx), more...) {
		found, err := inspect(ctx, account, folder)
		if errors.As(err, &noRuntime) || err != nil {
			continue
		}
		if found.major < OldestMajor || (major != 0 && found.major != major) {
			others = append(others, found.major)
			continue
		}
		if found.major > newest.major {
			newest = found
		}
	}
	if newest.major != 0 {
		return newest, nil
	}
	if noRuntime != nil {
		return programs{}, noRuntime
	}
	return programs{}, &NoProgramsError{major, others}
}

func candidateFolders(ctx context.Context) []string {
	var folders []string
	if path, err := exec.LookPath("postgres"); err == nil {
		folders = append(folders, filepath.Dir(path))
	}
	if output, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
		folders = append(folders, strings.TrimSpace(string(output)))
	}
	for _, pattern := range installFolders {
		matches, _ := filepath.Glob(pattern) // fails only on a malformed pattern
		folders = append(folders, matches...)
	}
	return folders
}

var versionPattern = regexp.MustCompile(`^postgres \(PostgreSQL\) (\d+)`)

// inspect returns the version of the server programs in a folder.
func inspect(ctx context.Context, account *daemon.Account, folder string) (programs, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return programs{}, err
	}
	if _, err := exec.LookPath(filepath.Join(folder, "initdb")); err != nil {
		return programs{}, err
	}
	command := exec.CommandContext(ctx, filepath.Join(folder, "postgres"), "--version")
	command.Dir = "/"
	account.Detach(command) // root must not run a program from an unknown folder
	output, err := command.Output()
	if isLibraryMissing(err) {
		return programs{}, &noRuntimeError{folder}
	}
	if err != nil {
		return programs{}, err
	}
	match := versionPattern.FindSubmatch(output)
	if match == nil {
		return programs{}, fmt.Errorf("postgres --version says %q", output)
	}
	major, err := strconv.Atoi(string(match[1]))
	return programs{folder: folder, major: major}, err
}
