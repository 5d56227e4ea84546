//go:build !unix

package daemon

import (
	"errors"
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

// Own does nothing.
func (*Account) Own(string) error { return nil }

// MakeFolder refuses: there is no account to make it for.
func (*Account) MakeFolder(string) (string, error) { return "", errors.ErrUnsupported }
