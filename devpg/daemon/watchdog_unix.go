//go:build unix

package daemon

import "os/exec"

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

func watchdogCommand(folder, pidFile, fate string, _ []string) (*exec.Cmd, error) {
	command := exec.Command("/bin/sh", "-c", watchdogScript, watchdogName, folder, pidFile, fate)
	command.Dir = "/"
	return command, nil
}
