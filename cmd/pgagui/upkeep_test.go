package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/jobs"
)

func importThreads(t *testing.T, commands commandLine, threads int) {
	t.Helper()
	var lines []string
	for i := range threads {
		lines = append(lines, answer(fmt.Sprint("t", i), "r", 3)...)
	}
	commands.must("import", writeFile(t, "threads.ndjson", lines...))
}

// gate makes compaction wait in the middle of each thread until the test calls open.
func gate(t *testing.T, pool *pgxpool.Pool) (isReached func() bool, open func()) {
	t.Helper()
	// Jobs have a lock_timeout; the trigger must wait longer.
	if _, err := pool.Exec(t.Context(), `
		create function public.wait() returns trigger language plpgsql set lock_timeout = 0 as 'begin perform pg_advisory_xact_lock(1); return new; end';
		create trigger wait before insert on agui.snapshot for each row execute function public.wait()`); err != nil {
		t.Fatal(err)
	}
	tx, err := pool.Begin(t.Context())
	if err == nil {
		_, err = tx.Exec(t.Context(), `select pg_advisory_xact_lock(1)`)
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

func waitFor(t *testing.T, condition func() bool) {
	t.Helper()
	for !condition() {
		select {
		case <-t.Context().Done():
			t.Fatal("the test ended first")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// skippedBusy is the output of a job that is in progress elsewhere.
var skippedBusy = "nothing done: " + string(jobs.SkippedBusy) + "\n"

func TestCompactEndsWithWorkLeft(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	importThreads(t, commands, 3)
	result := commands.run("compact", "--max-time", "1ns", "--json")
	var done compactResult
	if err := json.Unmarshal([]byte(result.out), &done); err != nil {
		t.Fatal(err)
	}
	if result.code != exitWorkLeft || result.messages != "" || done.Stopped != jobs.StoppedByTime || done.Left != 3 {
		t.Errorf("without time: exit code %d, %s%s", result.code, result.out, result.messages)
	}
	if done := parse[compactResult](commands, "compact", "--older-than", "1h", "--max-time", "1ns"); done.Left != 0 || done.Stopped != "" {
		t.Errorf("nothing is due: %+v", done)
	}
	if done := parse[compactResult](commands, "compact", "--limit", "3"); done.Runs != 3 || done.Left != 0 || done.Stopped != "" {
		t.Errorf("the limit is what there is: %+v", done)
	}
	for _, wrong := range []string{"--limit=-1", "--max-time=-1s", "--older-than=x", "--every=0", "--grace=-1s"} {
		commands.mustFail(exitUsage, "compact", wrong)
	}
}

func TestRepackAndEraseEndWithWorkLeft(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	importThreads(t, commands, 3)
	for _, arguments := range []string{
		"repack --older-than 0s --limit 1", "erase --older-than 1us --limit 1 --yes --json",
	} {
		if result := commands.run(strings.Fields(arguments)...); result.code != exitWorkLeft || result.out == "" {
			t.Errorf("pgagui %s: exit code %d, %s%s", arguments, result.code, result.out, result.messages)
		}
	}
	commands.must("repack", "--older-than", "0s")
	busy := jobs.Job{Name: "repack", Work: func(context.Context) (any, error) {
		if out := commands.must("repack"); out != skippedBusy {
			t.Errorf("a second start: %s", out)
		}
		return nil, nil
	}}
	if _, err := busy.Run(t.Context(), testdb.Connect(t, commands.databaseURL), nil); err != nil {
		t.Error(err)
	}
}

// setLease sets the lease of the database. With "0" every run in progress is stale.
func setLease(t *testing.T, commands commandLine, lease string) {
	t.Helper()
	pool := testdb.Connect(t, commands.databaseURL)
	if _, err := pool.Exec(t.Context(), `select agui.set_setting('lease', $1)`, lease); err != nil {
		t.Fatal(err)
	}
}

// leaveRun appends a run that ends in the middle of a message. (An import would close it.)
func leaveRun(t *testing.T, commands commandLine, threadID, runID string) {
	t.Helper()
	events := []json.RawMessage{json.RawMessage(started(threadID, runID)), json.RawMessage(textBegins)}
	if _, err := pgagui.New(testdb.Connect(t, commands.databaseURL), nil).Append(t.Context(), pgagui.RunRef{ThreadID: threadID, RunID: runID}, events, pgagui.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestReapClosesWhatIsStale(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	for i := range 4 {
		leaveRun(t, commands, fmt.Sprint("t", i), "r")
	}
	if text := commands.must("reap"); !strings.HasPrefix(text, "0 runs closed, in ") {
		t.Errorf("runs that are alive: %q", text)
	}
	setLease(t, commands, "0")
	busy := jobs.Job{Name: "reap", Work: func(context.Context) (any, error) {
		if out := commands.must("reap"); out != skippedBusy {
			t.Errorf("a second start: %s", out)
		}
		return nil, nil
	}}
	if _, err := busy.Run(t.Context(), testdb.Connect(t, commands.databaseURL), nil); err != nil {
		t.Error(err)
	}
	if result := commands.run("reap", "--limit", "1"); result.code != exitWorkLeft || result.messages != "" || !strings.HasPrefix(result.out, "1 run closed, in ") {
		t.Errorf("--limit 1: exit code %d, %s%s", result.code, result.out, result.messages)
	}
	if result := commands.run("reap", "--max-time", "1ns", "--json"); result.code != exitWorkLeft || !strings.Contains(result.out, `"runs":0,"stopped":"time"`) {
		t.Errorf("--max-time 1ns: exit code %d, %s%s", result.code, result.out, result.messages)
	}
	if done := parse[reapResult](commands, "reap", "--limit", "3"); done.Runs != 3 || done.Stopped != "" || done.Skipped != "" {
		t.Errorf("the limit is what there is: %+v", done)
	}
	commands.must("verify")
	for _, wrong := range []string{"--limit=-1", "--max-time=-1s", "extra"} {
		commands.mustFail(exitUsage, "reap", wrong)
	}
}

func TestCompactIsInterruptedBetweenThreads(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	importThreads(t, commands, 3)
	isReached, open := gate(t, testdb.Connect(t, commands.databaseURL))
	ctx, interrupt := context.WithCancel(t.Context())
	var out, messages bytes.Buffer
	ended := make(chan int)
	go func() {
		ended <- run(ctx, []string{"compact", "--workers", "1", "--database-url", commands.databaseURL}, strings.NewReader(""), &out, &messages)
	}()
	waitFor(t, isReached)
	if out := commands.must("compact"); out != skippedBusy {
		t.Errorf("a second start: %s", out)
	}
	if done := parse[compactResult](commands, "compact"); done.Skipped != jobs.SkippedBusy || done.Runs != 0 {
		t.Errorf("a second start: %+v", done)
	}
	interrupt()
	open()
	if code := <-ended; code != exitInterrupted || !strings.HasPrefix(out.String(), "1 run of 1 thread") ||
		!strings.HasSuffix(out.String(), "; 2 runs left (stopped: interrupted)\n") {
		t.Errorf("exit code %d, %s%s", code, out.String(), messages.String())
	}
}

// process is a process of pgagui.
type process struct {
	*exec.Cmd
	lines  *bufio.Scanner
	log    string   // its log so far
	passed []string // lines of it that no wait was for
}

func (c commandLine) start(arguments ...string) *process {
	c.t.Helper()
	return startProcess(c.t, c.program(os.Args[0], arguments...))
}

func startProcess(t *testing.T, command *exec.Cmd) *process {
	t.Helper()
	messages, err := command.StderrPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return &process{Cmd: command, lines: bufio.NewScanner(messages)}
}

// waitForLine reads the log of the process up to a line that contains all texts, unless one that was
// passed over has them: lines of goroutines have no order.
func (p *process) waitForLine(t *testing.T, texts ...string) {
	t.Helper()
	hasAll := func(line string) bool {
		return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) })
	}
	if i := slices.IndexFunc(p.passed, hasAll); i >= 0 {
		p.passed = slices.Delete(p.passed, i, i+1)
		return
	}
	for p.lines.Scan() {
		line := p.lines.Text()
		p.log += line + "\n"
		if hasAll(line) {
			return
		}
		p.passed = append(p.passed, line)
	}
	t.Fatalf("the log ended without a line with %q:\n%s", texts, p.log)
}

// end waits for the process and returns its exit code.
func (p *process) end(t *testing.T) int {
	t.Helper()
	for p.lines.Scan() {
		p.log += p.lines.Text() + "\n"
	}
	var exit *exec.ExitError
	if err := p.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return p.ProcessState.ExitCode()
}

func (p *process) terminate(t *testing.T) {
	t.Helper()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

func TestWorkerRunsTheJobs(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	importThreads(t, commands, 2)
	setLease(t, commands, "0")
	worker := commands.start("worker", "--reap", "@every 1s", "--compact", "@every 1s", "--repack", "@every 1s", "--verify", "@every 1s", "--erase", "@every 1s", "--erase-after", "1d", "--all-scopes", "--json")
	for _, job := range []string{"compact", "reap", "repack", "verify", "erase"} {
		worker.waitForLine(t, `"msg":"job scheduled"`, `"job":"`+job+`"`)
	}
	worker.waitForLine(t, `"msg":"job done","job":"compact"`, `"runs":2`)
	worker.waitForLine(t, `"msg":"job done","job":"verify"`, `"threads":2`, `"problems":0`)
	leaveRun(t, commands, "left", "r")
	worker.waitForLine(t, `"msg":"job done","job":"reap"`, `"runs":1`)
	waitFor(t, func() bool { return parse[jobs.Stats](commands, "stats").RunsToCompact == 0 })
	worker.terminate(t)
	if code := worker.end(t); code != exitOK {
		t.Errorf("exit code %d:\n%s", code, worker.log)
	}
	if done := parse[compactResult](commands, "compact"); done.Waiting != 0 {
		t.Errorf("afterwards %d runs wait", done.Waiting)
	}
	for _, wrong := range []string{"--compact=nonsense", "--erase=@daily", "--erase-after=1d", "--all-scopes", "--scope=mine", "--workers=0", "--grace=-1s", "extra"} {
		commands.mustFail(exitUsage, "worker", wrong)
	}
}

func TestWorkerFinishesTheThreadAtHandOnSIGTERM(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	importThreads(t, commands, 3)
	isReached, open := gate(t, testdb.Connect(t, commands.databaseURL))
	worker := commands.start("worker", "--compact", "@every 1s", "--repack", "off", "--workers", "1", "--grace", "1h")
	waitFor(t, isReached)
	worker.terminate(t)
	worker.waitForLine(t, "worker stops")
	open()
	worker.waitForLine(t, "job done", "job=compact", "result.runs=1", "result.left=2", "result.stopped=interrupted")
	if code := worker.end(t); code != exitOK {
		t.Errorf("exit code %d:\n%s", code, worker.log)
	}
}

func TestWorkerCancelsWhatTakesLongerThanTheGrace(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	importThreads(t, commands, 1)
	isReached, open := gate(t, testdb.Connect(t, commands.databaseURL))
	defer open()
	worker := commands.start("worker", "--compact", "@every 1s", "--repack", "off", "--grace", "0s")
	waitFor(t, isReached)
	worker.terminate(t)
	worker.waitForLine(t, "job failed", "job=compact", "canceled")
	if code := worker.end(t); code != exitOK {
		t.Errorf("exit code %d:\n%s", code, worker.log)
	}
}

func TestCompactRepacksWhatIsDue(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	importTree(t, commands)
	if text := commands.must("compact"); strings.Contains(text, "joined") {
		t.Errorf("runs that ended just now were repacked: %q", text)
	}
	pool := testdb.Connect(t, commands.databaseURL)
	if _, err := pool.Exec(t.Context(), `update agui.run set ended_at = ended_at - interval '1 hour'`); err != nil {
		t.Fatal(err)
	}
	if result := parse[compactResult](commands, "compact", "--repack=false"); result.Repacked != nil {
		t.Errorf("repacked although it should not: %+v", result)
	}
	if result := parse[compactResult](commands, "compact"); result.Repacked == nil || result.Repacked.Runs != 4 {
		t.Errorf("%+v, want 4 runs repacked", result)
	}
}

func TestCompactSaysWhatIsInQuarantine(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	importThreads(t, commands, 3)
	pool := testdb.Connect(t, commands.databaseURL)
	execute := func(statement string) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	execute(`
		create function refuse() returns trigger language plpgsql as '
			begin
				if new.thread_key::text = (select min(thread_key::text) from agui.thread) then
					raise exception ''not this one'';
				end if;
				return new;
			end';
		create trigger refuse before insert on agui.snapshot for each row execute function refuse()`)

	if failed := commands.run("compact", "--repack=false"); failed.code != exitWorkLeft || !strings.Contains(failed.messages, "not this one") {
		t.Errorf("a run that fails: exit code %d, %s%s", failed.code, failed.out, failed.messages)
	}
	result := commands.run("compact", "--json")
	var done compactResult
	if err := json.Unmarshal([]byte(result.out), &done); err != nil {
		t.Fatal(err)
	}
	if result.code != exitWorkLeft || result.messages != "" || done.Quarantined != 1 || done.Runs != 0 {
		t.Errorf("with a run in quarantine: exit code %d, %s%s", result.code, result.out, result.messages)
	}
	if stats := commands.must("stats"); !strings.Contains(stats, "agui.quarantine") {
		t.Errorf("stats: %s", stats)
	}
	execute(`drop function refuse() cascade`)
	if done := parse[compactResult](commands, "compact", "--retry"); done.Runs != 1 || done.Quarantined != 0 {
		t.Errorf("with --retry: %+v", done)
	}
}

// If a role that may not run jobs holds the lock of a job, the job could never run. So it fails
// instead of skipping.
func TestAJobWhoseLockAStrangerHoldsEndsWithAnError(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	pool := testdb.Connect(t, commands.databaseURL)
	role := "agui_test_" + strings.ToLower(rand.Text())
	if _, err := pool.Exec(t.Context(), `create role `+role+` login password 'x'`); err != nil {
		t.Fatal(err)
	}
	config := pool.Config().ConnConfig.Copy()
	config.User, config.Password = role, "x"
	stranger, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	var ids []int64
	if err := pool.QueryRow(t.Context(), `select array(select agui_internal.job_lock_id(job) from unnest('{compact,reap,repack}'::text[]) as job)`).Scan(&ids); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if _, err := stranger.Exec(t.Context(), `select pg_advisory_lock($1)`, id); err != nil {
			t.Fatal(err)
		}
	}
	for _, command := range []string{"compact", "reap", "repack"} {
		if text := commands.mustFail(exitRefused, command); !strings.Contains(text, role) {
			t.Errorf("pgagui %s: %s", command, text)
		}
	}
	stranger.Close(context.WithoutCancel(t.Context()))
	for {
		if _, err := pool.Exec(t.Context(), `drop role `+role); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	commands.must("compact")
}
