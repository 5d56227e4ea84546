package clitest

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/internal/wait"
)

// Gate makes compaction wait in the middle of each thread until the test calls open.
func Gate(t *testing.T, pool *pgxpool.Pool) (isReached func() bool, open func()) {
	t.Helper()
	// Jobs have a lock_timeout; the trigger must wait longer.
	if _, err := pool.Exec(t.Context(), `
		create function public.wait() returns trigger language plpgsql set lock_timeout = 0 as 'begin perform pg_advisory_xact_lock(1); return new; end';
		create trigger wait before insert on agui.snapshot for each row execute function public.wait()`); err != nil {
		t.Fatal(err)
	}
	tx, err := pool.Begin(t.Context())
	if err == nil {
		_, err = tx.Exec(t.Context(), `select pg_catalog.pg_advisory_xact_lock(1)`)
	}
	if err != nil {
		t.Fatal(err)
	}
	open = func() {
		if err := tx.Rollback(context.Background()); err != nil {
			t.Error(err)
		}
	}
	return func() bool {
		var waits bool
		if err := tx.QueryRow(t.Context(), `
			select exists (select from pg_locks where locktype = 'advisory' and not granted and objid = 1
				and database = (select oid from pg_database where datname = current_database()))`).Scan(&waits); err != nil {
			t.Fatal(err)
		}
		return waits
	}, open
}

// WaitFor waits until a condition holds.
func WaitFor(t *testing.T, condition func() bool) {
	t.Helper()
	if !wait.Until(condition) {
		t.Fatalf("waited %s in vain", wait.Patience)
	}
}

// Running is a process of pgagui.
type Running struct {
	*exec.Cmd
	lines  *bufio.Scanner
	Log    string   // its log so far
	passed []string // lines of it that no wait was for
}

// Start starts a process of pgagui.
func (c CommandLine) Start(arguments ...string) *Running {
	c.T.Helper()
	return StartProcess(c.T, c.Program(os.Args[0], arguments...))
}

// StartProcess starts a command that is pgagui.
func StartProcess(t *testing.T, command *exec.Cmd) *Running {
	t.Helper()
	messages, err := command.StderrPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return &Running{Cmd: command, lines: bufio.NewScanner(messages)}
}

// WaitForLine reads the log of the process up to a line that contains all texts, unless one that was
// passed over has them: lines of goroutines have no order.
func (p *Running) WaitForLine(t *testing.T, texts ...string) {
	t.Helper()
	hasAll := func(line string) bool {
		return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) })
	}
	if i := slices.IndexFunc(p.passed, hasAll); i >= 0 {
		p.passed = slices.Delete(p.passed, i, i+1)
		return
	}
	defer p.killLater().Stop()
	for p.lines.Scan() {
		line := p.lines.Text()
		p.Log += line + "\n"
		if hasAll(line) {
			return
		}
		p.passed = append(p.passed, line)
	}
	t.Fatalf("the log ended, or %s passed, without a line with %q:\n%s", wait.Patience, texts, p.Log)
}

// killLater ends a process that does not do what a test waits for.
func (p *Running) killLater() *time.Timer {
	return time.AfterFunc(wait.Patience, func() { _ = p.Process.Kill() })
}

// End waits for the process and returns its exit code.
func (p *Running) End(t *testing.T) int {
	t.Helper()
	defer p.killLater().Stop()
	for p.lines.Scan() {
		p.Log += p.lines.Text() + "\n"
	}
	var exit *exec.ExitError
	if err := p.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return p.ProcessState.ExitCode()
}

// Terminate sends SIGTERM.
func (p *Running) Terminate(t *testing.T) {
	t.Helper()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}
