package daemon

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
server=$(head -n 1 "$2" 2>/dev/null) && kill -QUIT "$server" 2>/dev/null
for attempt in 1 2 3 4 5 6 7 8 9 10; do
    rm -rf "$1" 2>/dev/null && exit
    sleep 1
done
`

// Watchdog is a process that cleans up after this one.
type Watchdog struct {
	command  *exec.Cmd
	lifeline io.Closer
}

// StartWatchdog watches over a server that writes to the folder alone. The first line of pidFile has its process id as
// soon as it runs, and is gone when the watchdog is dismissed: another process may have that id by then.
func StartWatchdog(folder, pidFile string) (*Watchdog, error) {
	command := exec.Command("/bin/sh", "-c", watchdogScript, "pgagui-watchdog", folder, pidFile)
	command.Dir = "/"
	(*Account)(nil).Detach(command)
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
	if err := w.lifeline.Close(); err != nil {
		return fmt.Errorf("close the watchdog's lifeline: %w", err)
	}
	if err := w.command.Wait(); err != nil {
		return fmt.Errorf("wait for the watchdog: %w", err)
	}
	return nil
}
