//go:build !unix

package cluster

import (
	"errors"
	"os/exec"
)

type account struct{}

func serverAccount() (*account, error) {
	return nil, errors.New("a private PostgreSQL server needs Linux, macOS or another Unix: give the URL of a database instead")
}

func detach(*exec.Cmd, *account) {}

func (*account) own(string) error { return nil }

func (*account) canReach(string) bool { return true }

func makeFolder(string, *account) (string, error) { return "", errors.ErrUnsupported }
