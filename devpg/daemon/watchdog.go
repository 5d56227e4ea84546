package daemon

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
)

// Watchdog is a process that cleans up after this one.
type Watchdog struct {
	command  *exec.Cmd
	lifeline io.WriteCloser
}

const (
	watchdogName = "pgagui-watchdog"
	// kept is the fate of a folder that the watchdog does not remove.
	kept = "kept"
	// dismissal is what the watchdog reads if it is dismissed. If this process dies, it reads nothing.
	dismissal = "dismissed\n"
)

// StartWatchdog watches over a server that writes to the folder alone, with the rights of its account. The first line of pidFile,
// in the folder, has its process id as soon as it runs. On Unix, the command line of the server names a file in the folder, and
// SIGQUIT ends it. On Windows, which has no signals, the command stop does.
func StartWatchdog(folder *Folder, pidFile string, stop ...string) (*Watchdog, error) {
	fate := "removed"
	if folder.isKept {
		fate = kept
	}
	command, err := watchdogCommand(folder.Path(), filepath.Join(folder.Path(), pidFile), fate, stop)
	if err != nil {
		return nil, fmt.Errorf("find the program of the watchdog: %w", err)
	}
	folder.account.Detach(command)
	lifeline, err := command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("make the watchdog's lifeline: %w", err)
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start the watchdog: %w", err)
	}
	return &Watchdog{command: command, lifeline: lifeline}, nil
}

// Dismiss ends the watchdog once there is nothing left to watch. A second call does nothing.
func (w *Watchdog) Dismiss() error {
	if w.command.ProcessState != nil {
		return nil
	}
	_, err := io.WriteString(w.lifeline, dismissal)
	if err := errors.Join(err, w.lifeline.Close()); err != nil {
		return fmt.Errorf("close the watchdog's lifeline: %w", err)
	}
	if err := w.command.Wait(); err != nil {
		return fmt.Errorf("wait for the watchdog: %w", err)
	}
	return nil
}
