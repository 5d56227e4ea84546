//go:build unix

package cluster

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// installFolders are where packages put the server programs, which often are not on the PATH.
var installFolders = []string{
	"/usr/lib/postgresql/*/bin", // Debian, Ubuntu, Gentoo
	"/usr/lib/postgresql*/bin",  // SUSE
	"/usr/pgsql-*/bin",          // Red Hat and others, from postgresql.org
	"/usr/libexec/postgresql*",  // Alpine
	"/usr/local/pgsql/bin",      // built from source
	"/usr/local/opt/postgresql*/bin",
	"/opt/homebrew/opt/postgresql*/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
}

// serverCommand runs the server, until it ends.
func (c *Cluster) serverCommand(ctx context.Context, output *tail, options ...string) *exec.Cmd {
	command := c.command(ctx, "postgres", output, append([]string{"-D", c.dataPath()}, options...)...)
	command.WaitDelay = stopTimeout // processes of the server that survive it must not keep Wait from returning
	return command
}

func (c *Cluster) beginShutdown(how shutdown) error {
	signal := map[shutdown]os.Signal{fastShutdown: syscall.SIGINT, immediateShutdown: syscall.SIGQUIT}[how]
	if err := c.server.command.Process.Signal(signal); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// stopCommand is for systems without signals.
func (c *Cluster) stopCommand() []string { return nil }
