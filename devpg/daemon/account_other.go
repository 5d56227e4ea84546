//go:build !unix

package daemon

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
)

// Account is the user that runs a server.
type Account struct{}

// ServerAccount refuses: private servers need Unix.
func ServerAccount() (*Account, error) {
	return nil, errors.New("a private PostgreSQL server needs Linux, macOS or another Unix: give the URL of a database instead")
}

// Detach does nothing.
func (*Account) Detach(*exec.Cmd) {}

// MakeFolder refuses: there is no account to make it for.
func (*Account) MakeFolder(string) (*Folder, error) { return nil, errors.ErrUnsupported }

// KeepFolder refuses: there is no account to open it for.
func (*Account) KeepFolder(string) (*Folder, error) { return nil, errors.ErrUnsupported }

// Folder is a private folder of a server's account. There is none.
type Folder struct {
	account *Account
	isKept  bool
}

// Path is empty.
func (*Folder) Path() string { return "" }

// FS is empty.
func (*Folder) FS() fs.FS { return nil }

// Write refuses.
func (*Folder) Write(string, io.Reader) error { return errors.ErrUnsupported }

// Mkdir refuses.
func (*Folder) Mkdir(string) error { return errors.ErrUnsupported }

// Open refuses.
func (*Folder) Open(string, int) (*os.File, error) { return nil, errors.ErrUnsupported }

// Remove refuses.
func (*Folder) Remove(string) error { return errors.ErrUnsupported }

// Rename refuses.
func (*Folder) Rename(string, string) error { return errors.ErrUnsupported }

// RemoveTree refuses.
func (*Folder) RemoveTree(string) error { return errors.ErrUnsupported }

// Release refuses.
func (*Folder) Release() error { return errors.ErrUnsupported }

// TakeLock does nothing: there is no private server that two processes could share.
func TakeLock(string) (func() error, error) { return func() error { return nil }, nil }
