//go:build unix

package daemon

import (
	"fmt"
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
