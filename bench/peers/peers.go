// Package peers runs what pgagui is measured against and only Node has: the official AG-UI client, and LangGraph's PostgreSQL checkpointer.
// They live in one process, so that they stay warm while measurements of them and of pgagui take turns. README.md has its commands.
package peers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrNotInstalled says that Node or the npm packages are not there.
var ErrNotInstalled = errors.New("peers are not installed")

// Process is the peers' process. It does one command at a time.
type Process struct {
	// Versions are those of Node ("node") and of the npm packages, by their names.
	Versions map[string]string

	command  *exec.Cmd
	commands io.WriteCloser
	answers  *json.Decoder
	stderr   bytes.Buffer // read once the process has ended
}

// Start starts the peers of a folder (bench/peers of this repository, after npm ci). When ctx ends, so do they.
func Start(ctx context.Context, dir string) (*Process, error) {
	node, err := exec.LookPath("node")
	if err != nil {
		return nil, fmt.Errorf("%w: there is no node in PATH; install Node.js 20 or newer", ErrNotInstalled)
	}
	if _, err := os.Stat(filepath.Join(dir, "peers.mjs")); err != nil {
		return nil, fmt.Errorf("%s is not the folder of the peers: it has no peers.mjs", dir)
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil {
		return nil, fmt.Errorf("%w: run npm ci in %s", ErrNotInstalled, dir)
	}
	p := &Process{command: exec.CommandContext(ctx, node, "--expose-gc", "peers.mjs")}
	p.command.Dir = dir
	p.command.Stderr = &p.stderr
	if p.commands, err = p.command.StdinPipe(); err != nil {
		return nil, err
	}
	answers, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.answers = json.NewDecoder(answers)
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	if err := p.Do(ctx, map[string]string{"do": "versions"}, &p.Versions); err != nil {
		if ended := p.Close(); ended != nil {
			err = ended // it says why there was no answer
		}
		return nil, err
	}
	return p, nil
}

// Do sends a command, a value that encodes as {"do":…}, and decodes the answer to it into answer, unless that is nil. When ctx ends
// before the answer comes, so does the process.
func (p *Process) Do(ctx context.Context, command, answer any) error {
	stop := context.AfterFunc(ctx, func() { p.command.Process.Kill() })
	defer stop()
	sent, err := json.Marshal(command)
	if err != nil {
		return fmt.Errorf("peers: %w", err)
	}
	var name struct{ Do string } // the rest may hold a password
	_ = json.Unmarshal(sent, &name)
	var received json.RawMessage
	if _, err = p.commands.Write(append(sent, '\n')); err == nil {
		err = p.answers.Decode(&received)
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("peers: no answer to %s: %w", name.Do, err)
	}
	var failed struct{ Error string }
	if err := json.Unmarshal(received, &failed); err == nil && failed.Error != "" {
		return fmt.Errorf("peers: %s: %s", name.Do, failed.Error)
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(received, answer); err != nil {
		return fmt.Errorf("peers: the answer to %s: %w", name.Do, err)
	}
	return nil
}

// Close ends the process. Its error says why the process ended before.
func (p *Process) Close() error {
	p.commands.Close()
	if err := p.command.Wait(); err != nil {
		return fmt.Errorf("peers: %w: %s", err, strings.TrimSpace(p.stderr.String()))
	}
	return nil
}
