package cluster

import (
	"fmt"
	"io"
	"os/exec"
)

// watchdogScript waits until its standard input ends, which happens when the process that holds the other end closes it
// or dies in whatever way. Then it ends the server, if one is left, and removes the folder. Deletion is tried again while
// dying processes still write to it.
const watchdogScript = `
cat >/dev/null
server=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null) && kill -QUIT "$server" 2>/dev/null
for attempt in 1 2 3 4 5 6 7 8 9 10; do
    rm -rf "$1" 2>/dev/null && exit
    sleep 1
done
`

// watchdog is a process that cleans up after this one.
type watchdog struct {
	command  *exec.Cmd
	lifeline io.Closer
}

func startWatchdog(folder string) (*watchdog, error) {
	command := exec.Command("/bin/sh", "-c", watchdogScript, "pgagui-watchdog", folder)
	command.Dir = "/"
	detach(command, nil)
	lifeline, err := command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("make the watchdog's lifeline: %w", err)
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start the watchdog: %w", err)
	}
	return &watchdog{command: command, lifeline: lifeline}, nil
}

// dismiss ends the watchdog once there is nothing left to watch. A second call does nothing.
func (w *watchdog) dismiss() error {
	if w.command.ProcessState != nil {
		return nil
	}
	if err := w.lifeline.Close(); err != nil {
		return fmt.Errorf("close the watchdog's lifeline: %w", err)
	}
	if err := w.command.Wait(); err != nil {
		return fmt.Errorf("wait for the watchdog: %w", err)
	}
	return nil
}
