package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// installFolders are where the installer puts the server programs. Not below C:\usr or the like, which any user may create.
var installFolders = []string{filepath.Join(os.Getenv("ProgramFiles"), "PostgreSQL", "*", "bin")}

// serverCommand starts the server by pg_ctl, which drops the rights of an administrator. pg_ctl ends at once. The output ends, and
// with it Wait, when all processes of the server have ended.
func (c *Cluster) serverCommand(ctx context.Context, output *tail, options ...string) *exec.Cmd {
	return c.command(ctx, "pg_ctl", output, "start", "--no-wait", "-D", c.dataPath(), "-o", strings.Join(options, " "))
}

func (c *Cluster) beginShutdown(how shutdown) error {
	output := &tail{}
	err := c.command(context.Background(), "pg_ctl", output, "stop", "--no-wait", "-D", c.dataPath(), "-m", string(how)).Run()
	if _, statErr := fs.Stat(c.folder.FS(), pidFile); err == nil || errors.Is(statErr, fs.ErrNotExist) {
		return nil // it was ending already
	}
	return fmt.Errorf("%w: %s", err, output.reason())
}

// stopCommand is what the watchdog stops the server with.
func (c *Cluster) stopCommand() []string {
	return []string{filepath.Join(c.programs.folder, "pg_ctl"), "stop", "-D", c.dataPath(), "-m", string(immediateShutdown)}
}
