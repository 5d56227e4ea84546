package testneeds

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// StartNode starts Node.js with arguments. It skips the test if Node.js is not installed, or if folder has no node_modules: the
// message says that install makes them. The caller closes in and waits for command.
func StartNode(t testing.TB, folder, install string, arguments ...string) (command *exec.Cmd, in io.WriteCloser, out io.Reader) {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		Skip(t, Node, "Node is not installed")
	}
	if _, err := os.Stat(filepath.Join(folder, "node_modules")); err != nil {
		Skip(t, Node, "the clients are not installed: %s", install)
	}
	command = exec.Command("node", arguments...)
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err = command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	return command, in, out
}
