package daemon

import (
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
)

// watchdogScript waits until its standard input ends, which happens when the process that holds the other end closes it
// or dies in whatever way. Then it ends the server, if one is left, and removes the folder unless that is kept. It retries
// the removal while dying processes still write to the folder.
//
// The file with the server's process id may be old, and another process have that id. The server is the one whose command
// line names the folder, which no other has.
const watchdogScript = `
cat >/dev/null
server=$(head -n 1 "$2" 2>/dev/null)
case $server in
'' | *[!0-9]*) ;;
*)
    if [ -r "/proc/$server/cmdline" ]; then
        command=$(tr '\0' ' ' <"/proc/$server/cmdline")
    else
        command=$(ps -o args= -p "$server" 2>/dev/null)
    fi
    case $command in *"$1/"*) kill -QUIT "$server" 2>/dev/null ;; esac
    ;;
esac
[ "$3" = kept ] && exit
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

// StartWatchdog watches over a server that writes to the folder alone, with the rights of its account. The command line of
// the server names a file in the folder; the first line of pidFile, in the folder, has its process id as soon as it runs.
func StartWatchdog(folder *Folder, pidFile string) (*Watchdog, error) {
	fate := "removed"
	if folder.isKept {
		fate = "kept"
	}
	command := exec.Command("/bin/sh", "-c", watchdogScript, "pgagui-watchdog", folder.Path(), filepath.Join(folder.Path(), pidFile), fate)
	command.Dir = "/"
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
	if err := w.lifeline.Close(); err != nil {
		return fmt.Errorf("close the watchdog's lifeline: %w", err)
	}
	if err := w.command.Wait(); err != nil {
		return fmt.Errorf("wait for the watchdog: %w", err)
	}
	return nil
}
