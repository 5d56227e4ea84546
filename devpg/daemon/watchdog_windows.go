package daemon

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The watchdog is this program, started under another name: Windows has no shell to rely on.
func init() {
	if len(os.Args) >= 4 && os.Args[0] == watchdogName {
		watch(os.Args[1], os.Args[2], os.Args[3], os.Args[4:])
		os.Exit(0)
	}
}

func watchdogCommand(folder, pidFile, fate string, stop []string) (*exec.Cmd, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := exec.Command(program)
	command.Args = append([]string{watchdogName, folder, pidFile, fate}, stop...)
	command.Dir = filepath.VolumeName(folder) + `\` // Windows removes no folder that a process is in
	return command, nil
}

// watch waits until standard input ends, which happens when the process that holds the other end closes it or dies in whatever
// way. Then it ends the server, if one is left, and removes the folder unless that is kept. It retries this for a while: a server
// that is starting has no process id yet, and dying processes still have files open.
func watch(folder, pidFile, fate string, stop []string) {
	message, _ := io.ReadAll(os.Stdin)
	isDone := string(message) == dismissal
	for range 10 {
		if len(stop) > 0 && isServer(pidFile) {
			isDone = command(stop).Run() == nil
		}
		if fate == kept && isDone {
			return
		}
		if fate != kept && os.RemoveAll(folder) == nil {
			return
		}
		time.Sleep(time.Second)
	}
}

func command(arguments []string) *exec.Cmd {
	command := exec.Command(arguments[0], arguments[1:]...)
	(*Account)(nil).Detach(command)
	return command
}

// isServer reports whether the process is there that wrote the file with its id. The file may be old, and another process have
// that id: such a process is younger than the file.
func isServer(pidFile string) bool {
	file, err := os.Open(pidFile)
	if err != nil {
		return false
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return false
	}
	line, _ := bufio.NewReader(io.LimitReader(file, 20)).ReadString('\n')
	pid, err := strconv.ParseUint(strings.TrimSpace(line), 10, 32)
	if err != nil {
		return false
	}
	const queryLimitedInformation = 0x1000
	process, err := syscall.OpenProcess(queryLimitedInformation, false, uint32(pid))
	if err != nil {
		return false
	}
	defer syscall.CloseHandle(process)
	var started, ended, kernel, user syscall.Filetime
	if err := syscall.GetProcessTimes(process, &started, &ended, &kernel, &user); err != nil {
		return false
	}
	return !time.Unix(0, started.Nanoseconds()).After(info.ModTime())
}
