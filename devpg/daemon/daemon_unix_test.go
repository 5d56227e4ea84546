//go:build unix

package daemon

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// What the account of the server plants in its folder leads root to no file outside of it.
func TestFilesInTheFolderOfAnAccountAreNotFollowedElsewhere(t *testing.T) {
	t.Parallel()
	folder := makeFolder(t)
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte("untouched"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := folder.Mkdir("data"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"password", "data/postgresql.conf", "data/link"} {
		if err := os.Symlink(victim, filepath.Join(folder.Path(), name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Dir(victim), filepath.Join(folder.Path(), "elsewhere")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(folder.Path(), "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}

	if err := folder.Write("password", strings.NewReader("secret")); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"data/postgresql.conf", "data/link", "elsewhere/victim", "../x", "pipe", "data"} {
		for _, flag := range []int{os.O_RDONLY, os.O_APPEND | os.O_WRONLY} {
			if file, err := folder.Open(name, flag); err == nil {
				t.Errorf("%s was opened (%d)", name, flag)
				_ = file.Close()
			}
		}
	}
	if err := folder.Write("elsewhere/victim", strings.NewReader("secret")); err == nil {
		t.Error("a file was written behind a link to another folder")
	}
	if content, err := os.ReadFile(victim); err != nil || string(content) != "untouched" {
		t.Errorf("the file outside is %q, %v", content, err)
	}
	if info, err := os.Stat(victim); err != nil || info.Sys().(*syscall.Stat_t).Uid != uint32(os.Geteuid()) {
		t.Errorf("the file outside has another owner: %v, %v", info, err)
	}

	// A hard link to a file of this process's own account, as a system that does not protect them would allow.
	if os.Geteuid() == 0 {
		if err := os.Link(victim, filepath.Join(folder.Path(), "hard")); err != nil && !errors.Is(err, syscall.EXDEV) {
			t.Fatal(err)
		}
		if file, err := folder.Open("hard", os.O_RDONLY); err == nil {
			t.Error("a file of another account was opened")
			_ = file.Close()
		}
	}
	file, err := folder.Open("password", os.O_RDONLY)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if content, err := io.ReadAll(file); err != nil || string(content) != "secret" {
		t.Errorf("read %q, %v", content, err)
	}
}

// The watchdog of one server ends no other process, whatever the file with the process id says.
func TestWatchdogEndsTheServerAlone(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		arguments func(folder *Folder) []string
		pid       func(pid int) string
		isServer  bool
	}{
		"the server":            {func(folder *Folder) []string { return []string{filepath.Join(folder.Path(), "data")} }, strconv.Itoa, true},
		"another process":       {func(*Folder) []string { return []string{"/somewhere"} }, strconv.Itoa, false},
		"all of the account":    {func(*Folder) []string { return nil }, func(int) string { return "-1" }, false},
		"the group":             {func(*Folder) []string { return nil }, func(pid int) string { return "-" + strconv.Itoa(pid) }, false},
		"no number":             {func(*Folder) []string { return nil }, func(int) string { return "../self" }, false},
		"with more behind that": {func(*Folder) []string { return nil }, func(pid int) string { return strconv.Itoa(pid) + " 1" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := makeFolder(t)
			process := exec.Command("/bin/sh", append([]string{"-c", "while :; do sleep 0.1; done", "sh"}, test.arguments(folder)...)...)
			process.Dir = "/"
			folder.account.Detach(process)
			if err := process.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() {
				_ = process.Wait()
				close(ended)
			}()
			defer func() {
				_ = process.Process.Kill()
				<-ended
			}()
			if err := folder.Write("server.pid", strings.NewReader(test.pid(process.Process.Pid)+"\nmore\n")); err != nil {
				t.Fatal(err)
			}
			watchdog, err := StartWatchdog(folder, "server.pid")
			if err != nil {
				t.Fatal(err)
			}
			if err := watchdog.Dismiss(); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(folder.Path()); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the folder is still there: %v", err)
			}
			patience := 300 * time.Millisecond
			if test.isServer {
				patience = 10 * time.Second
			}
			hasEnded := false
			select {
			case <-ended:
				hasEnded = true
			case <-time.After(patience):
			}
			if hasEnded != test.isServer {
				t.Errorf("ended: %t", hasEnded)
			}
		})
	}
}

// A child has the files of its parent until it executes its own program.
func TestUnlockedWhileAProcessStarts(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	var starts sync.WaitGroup
	defer starts.Wait()
	done := make(chan struct{})
	defer close(done)
	starts.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if err := exec.Command("true").Run(); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 3000 {
		unlock, err := TakeLock(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := unlock(); err != nil {
			t.Fatal(err)
		}
	}
}
