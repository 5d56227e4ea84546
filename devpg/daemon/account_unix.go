//go:build unix

package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// Account is the unprivileged user that runs a server when this process is root, which PostgreSQL and PgBouncer refuse to
// be. A nil Account stands for the current user.
type Account struct {
	uid, gid uint32
}

// ServerAccount returns the account that servers run as.
func ServerAccount() (*Account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		entry, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(entry.Uid, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("user id of %s: %w", name, err)
		}
		gid, err := strconv.ParseUint(entry.Gid, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("group id of %s: %w", name, err)
		}
		return &Account{uid: uint32(uid), gid: uint32(gid)}, nil
	}
	return nil, fmt.Errorf("PostgreSQL and PgBouncer do not run as root, and this system has neither a user postgres nor nobody: run as another user")
}

// Detach makes the command run as the account, in a session of its own: an interrupt from the terminal reaches this
// process alone, which then stops the server in order.
func (a *Account) Detach(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if a != nil {
		command.SysProcAttr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	}
}

// canReach reports whether the account may pass through a folder and all folders above it.
func (a *Account) canReach(folder string) bool {
	if a == nil {
		return true
	}
	info, err := os.Stat(folder)
	if err != nil {
		return false
	}
	if owner := info.Sys().(*syscall.Stat_t).Uid; info.Mode()&0o001 == 0 && (owner != a.uid || info.Mode()&0o100 == 0) {
		return false
	}
	parent := filepath.Dir(folder)
	return parent == folder || a.canReach(parent)
}

// String names the account in messages.
func (a *Account) String() string { return fmt.Sprintf("user id %d", a.user()) }

func (a *Account) user() uint32 {
	if a == nil {
		return uint32(os.Geteuid())
	}
	return a.uid
}

// owns reports whether a file or a folder belongs to the account.
func (a *Account) owns(info fs.FileInfo) bool { return info.Sys().(*syscall.Stat_t).Uid == a.user() }

// give makes a file or a folder belong to the account.
func (a *Account) give(file *os.File) error {
	if a == nil {
		return nil
	}
	return file.Chown(int(a.uid), int(a.gid))
}

// noFollow are flags that open neither the file behind a link nor wait for the other end of a pipe.
const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// own gives a folder to the account, unless somebody has put something else in its place.
func (f *Folder) own(name string) error {
	file, err := f.root.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err == nil && !(*Account)(nil).owns(info) {
		err = fmt.Errorf("%s in %s is not the folder that was made there", name, f.path)
	}
	if err == nil {
		err = f.account.give(file)
	}
	return errors.Join(err, file.Close())
}
