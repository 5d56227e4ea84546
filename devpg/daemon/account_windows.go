package daemon

import (
	"io/fs"
	"os"
	"os/exec"
	"syscall"
)

// Account is the user that runs a server: on Windows always the current one, so a nil Account. pg_ctl and initdb drop the rights of
// an administrator, which PostgreSQL refuses.
type Account struct{}

// ServerAccount returns the account that servers run as.
func ServerAccount() (*Account, error) { return nil, nil }

// Detach gives the command a console of its own, which is not shown: Ctrl-C and the end of the window reach this process alone,
// which then stops the server in order.
func (*Account) Detach(command *exec.Cmd) {
	const createNoWindow = 0x08000000
	command.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP | createNoWindow}
}

// String names the account in messages.
func (*Account) String() string { return "the current user" }

// What follows is for the user's own files. Their access list is that of the folder that they are made in: file modes mean nothing
// on Windows.

func (*Account) canReach(string) bool { return true }

func (*Account) owns(fs.FileInfo) bool { return true }

func (*Account) give(*os.File) error { return nil }

func (*Folder) own(string) error { return nil }

const noFollow = 0
