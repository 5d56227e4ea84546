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

// Folder is a private folder of a server's account. There is none.
type Folder struct{ account *Account }

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

// RemoveAll refuses.
func (*Folder) RemoveAll() error { return errors.ErrUnsupported }
