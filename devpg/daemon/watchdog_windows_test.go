package daemon

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// This test binary also plays the server, which ends with its standard input or when it is stopped, and the program that stops it.
const (
	playServer = "play-server"
	playStop   = "play-stop"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == playServer {
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	if len(os.Args) > 2 && os.Args[1] == playStop {
		pid, _ := strconv.Atoi(os.Args[2])
		process, err := os.FindProcess(pid)
		if err != nil || process.Kill() != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// The watchdog stops the server that wrote the file with the process id, and nothing if another process has that id.
func TestWatchdogStopsTheServerAlone(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		pid      func(pid int) string
		age      time.Duration // of the file with the process id
		isServer bool
	}{
		"the server":                  {strconv.Itoa, 0, true},
		"a process younger than that": {strconv.Itoa, time.Hour, false},
		"no number":                   {func(int) string { return "x" }, 0, false},
		"no process id":               {func(int) string { return "-1" }, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := makeFolder(t)
			server := exec.Command(os.Args[0], playServer)
			lifeline, err := server.StdinPipe()
			if err == nil {
				err = server.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := folder.Write("server.pid", strings.NewReader(test.pid(server.Process.Pid)+"\nmore\n")); err != nil {
				t.Fatal(err)
			}
			written := time.Now().Add(-test.age)
			if err := os.Chtimes(folder.Path()+`\server.pid`, written, written); err != nil {
				t.Fatal(err)
			}
			watchdog, err := StartWatchdog(folder, "server.pid", os.Args[0], playStop, strconv.Itoa(server.Process.Pid))
			if err != nil {
				t.Fatal(err)
			}
			if err := folder.root.Close(); err != nil { // as the end of this process would
				t.Fatal(err)
			}
			if err := errors.Join(watchdog.lifeline.Close(), watchdog.command.Wait()); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(folder.Path()); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the folder is still there: %v", err)
			}
			if err := lifeline.Close(); err != nil {
				t.Error(err)
			}
			if err := server.Wait(); (err != nil) != test.isServer {
				t.Errorf("stopped by the watchdog: %v, want %t", err, test.isServer)
			}
		})
	}
}
