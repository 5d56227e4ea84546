package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

func makeFolder(t *testing.T) *Folder {
	t.Helper()
	account, err := ServerAccount()
	if err != nil {
		t.Fatal(err)
	}
	folder, err := account.MakeFolder("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := folder.Release(); err != nil {
			t.Error(err)
		}
	})
	return folder
}

func TestLockNamesItsHolder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := TakeLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := TakeLock(path); err == nil || !strings.Contains(err.Error(), "process "+strconv.Itoa(os.Getpid())+" holds the lock "+path) {
		t.Errorf("a second time: %v", err)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	unlock, err = TakeLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
}

func TestKeptFolderStays(t *testing.T) {
	t.Parallel()
	account, err := ServerAccount()
	if err != nil {
		t.Fatal(err)
	}
	temporary := "/tmp" // may be entered by the account
	if runtime.GOOS == "windows" {
		temporary = ""
	}
	parent, err := os.MkdirTemp(temporary, "pgagui-kept-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(parent)
	if err := os.Chmod(parent, 0o711); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(parent, "folder")
	for _, isThere := range []bool{false, true} {
		folder, err := account.KeepFolder(path)
		if err != nil {
			t.Fatal(err)
		}
		if file, err := folder.Open("file", os.O_RDONLY); (err == nil) != isThere {
			t.Errorf("the file: %v", err)
		} else if err == nil {
			file.Close()
		}
		watchdog, err := StartWatchdog(folder, "server.pid")
		if err == nil {
			err = errors.Join(folder.Write("file", strings.NewReader("x")), folder.Release(), watchdog.Dismiss())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if os.Geteuid() == 0 { // never on Windows
		if err := os.Chown(path, 0, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := account.KeepFolder(path); err == nil {
			t.Error("a folder of another account was opened")
		}
	}
}
