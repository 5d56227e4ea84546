// Package peers runs the peers of the benchmark that need Node, the official AG-UI client and the
// PostgreSQL checkpointer of LangGraph, and those that need Python, stores of conversations. Those of
// a language share one long-lived process, so they stay warm while the benchmark alternates between
// them and pgagui. README.md and python/main.py list the commands.
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

// ErrNotInstalled means that Node or Python, or the packages, are not installed.
var ErrNotInstalled = errors.New("peers are not installed")

// Process is the process of the peers. It executes one command at a time.
type Process struct {
	// Versions are the versions of Node ("node") or Python ("python") and of the packages, by name.
	Versions map[string]string

	command  *exec.Cmd
	commands io.WriteCloser
	answers  *json.Decoder
	stderr   bytes.Buffer // read after the process has ended
}

// Start starts the peers in a folder (bench/peers of this repository, after npm ci). When ctx ends,
// the process is killed. If Node or the packages are missing, Start returns ErrNotInstalled.
func Start(ctx context.Context, dir string) (*Process, error) {
	node, err := exec.LookPath("node")
	if err != nil {
		return nil, fmt.Errorf("%w: node is not in $PATH: install Node.js 20 or newer", ErrNotInstalled)
	}
	if _, err := os.Stat(filepath.Join(dir, "peers.mjs")); err != nil {
		return nil, fmt.Errorf("%s is not the folder of the peers: it has no peers.mjs", dir)
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil {
		return nil, fmt.Errorf("%w: run npm ci in %s", ErrNotInstalled, dir)
	}
	return startProcess(ctx, dir, node, "--expose-gc", "peers.mjs")
}

// StartPython starts the peers in a folder (bench/peers/python of this repository) with its own venv, as Start does.
func StartPython(ctx context.Context, dir string) (*Process, error) {
	python, err := filepath.Abs(filepath.Join(dir, "venv", "bin", "python"))
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(python); err != nil {
		return nil, fmt.Errorf("%w: %s has no venv: run make bench-peers-python", ErrNotInstalled, dir)
	}
	return startProcess(ctx, dir, python, "-B", "main.py")
}

func startProcess(ctx context.Context, dir, program string, arguments ...string) (p *Process, err error) {
	p = &Process{command: exec.CommandContext(ctx, program, arguments...)}
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
			err = ended // the reason why no answer came
		}
		return nil, err
	}
	return p, nil
}

// Do sends a command, which must encode as {"do":…}, and decodes its answer into answer, unless
// answer is nil. If ctx ends before the answer arrives, the process is killed.
func (p *Process) Do(ctx context.Context, command, answer any) error {
	stop := context.AfterFunc(ctx, func() { p.command.Process.Kill() })
	defer stop()
	sent, err := json.Marshal(command)
	if err != nil {
		return fmt.Errorf("peers: %w", err)
	}
	var name struct{ Do string } // errors name only this: the rest may contain a password
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

// Close ends the process. If the process has failed before, it returns the reason.
func (p *Process) Close() error {
	p.commands.Close()
	if err := p.command.Wait(); err != nil {
		return fmt.Errorf("peers: %w: %s", err, strings.TrimSpace(p.stderr.String()))
	}
	return nil
}
