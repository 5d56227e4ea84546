package upkeep

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/jobs"
)

// skippedBusy is the output of a job that is in progress elsewhere.
var skippedBusy = "nothing done: " + string(jobs.SkippedBusy) + "\n"

func TestCompactEndsWithWorkLeft(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	clitest.ImportThreads(t, commands, 3)
	result := commands.Run("job", "compact", "--max-time", "1ns", "--json")
	var done compactResult
	must.Do(t, json.Unmarshal([]byte(result.Out), &done))
	if result.Code != cli.ExitWorkLeft || result.Messages != "" || done.Stopped != jobs.StoppedByTime || done.Left != 3 {
		t.Errorf("without time: exit code %d, %s%s", result.Code, result.Out, result.Messages)
	}
	if done := clitest.Parse[compactResult](commands, "job", "compact", "--older-than", "1h", "--max-time", "1ns"); done.Left != 0 || done.Stopped != "" {
		t.Errorf("nothing is due: %+v", done)
	}
	if first := commands.Run("job", "compact", "--limit", "1"); first.Code != cli.ExitWorkLeft || first.Messages != "" || !strings.HasSuffix(first.Out, "; 2 runs left (stopped: limit)\n") {
		t.Errorf("--limit 1: exit code %d, %s%s", first.Code, first.Out, first.Messages)
	}
	if done := clitest.Parse[compactResult](commands, "job", "compact", "--limit", "2", "--workers", "2"); done.Runs != 2 || done.Threads != 2 || done.Left != 0 || done.Stopped != "" {
		t.Errorf("the limit is what there is: %+v", done)
	}
	if out := commands.Must("job", "compact"); !strings.HasPrefix(out, "0 runs of 0 threads, ") {
		t.Errorf("nothing to do: %s", out)
	}
	for _, wrong := range []string{"--workers=0", "--limit=-1", "--max-time=-1s", "--older-than=x", "--every=0", "--grace=-1s"} {
		commands.MustFail(cli.ExitUsage, "job", "compact", wrong)
	}
}

func TestRepackAndEraseEndWithWorkLeft(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	clitest.ImportThreads(t, commands, 3)
	if text := commands.Must("job", "repack"); !strings.HasPrefix(text, "0 runs: 0 batches joined") {
		t.Errorf("runs that ended just now: %q", text)
	}
	for _, arguments := range []string{
		"job repack --older-than 0s --limit 1", "erase --older-than 1us --limit 1 --yes --json",
	} {
		if result := commands.Run(strings.Fields(arguments)...); result.Code != cli.ExitWorkLeft || result.Out == "" {
			t.Errorf("pgagui %s: exit code %d, %s%s", arguments, result.Code, result.Out, result.Messages)
		}
	}
	if text := commands.Must("job", "repack", "--older-than", "0s"); !strings.HasPrefix(text, "1 run: ") {
		t.Errorf("the rest: %q", text)
	}
	commands.Must("verify")
	busy := jobs.Job{Name: "repack", Work: func(context.Context) (any, error) {
		if out := commands.Must("job", "repack"); out != skippedBusy {
			t.Errorf("a second start: %s", out)
		}
		return nil, nil
	}}
	if _, err := busy.Run(t.Context(), testdb.Connect(t, commands.DatabaseURL), nil); err != nil {
		t.Error(err)
	}
}

func TestReapClosesWhatIsStale(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	for i := range 4 {
		clitest.LeaveRun(t, commands, fmt.Sprint("t", i), "r")
	}
	if text := commands.Must("job", "reap"); !strings.HasPrefix(text, "0 runs closed, in ") {
		t.Errorf("runs that are alive: %q", text)
	}
	clitest.SetLease(t, commands, "0")
	busy := jobs.Job{Name: "reap", Work: func(context.Context) (any, error) {
		if out := commands.Must("job", "reap"); out != skippedBusy {
			t.Errorf("a second start: %s", out)
		}
		return nil, nil
	}}
	if _, err := busy.Run(t.Context(), testdb.Connect(t, commands.DatabaseURL), nil); err != nil {
		t.Error(err)
	}
	if result := commands.Run("job", "reap", "--limit", "1"); result.Code != cli.ExitWorkLeft || result.Messages != "" || !strings.HasPrefix(result.Out, "1 run closed, in ") {
		t.Errorf("--limit 1: exit code %d, %s%s", result.Code, result.Out, result.Messages)
	}
	if result := commands.Run("job", "reap", "--max-time", "1ns", "--json"); result.Code != cli.ExitWorkLeft || !strings.Contains(result.Out, `"runs":0,"stopped":"time"`) {
		t.Errorf("--max-time 1ns: exit code %d, %s%s", result.Code, result.Out, result.Messages)
	}
	if done := clitest.Parse[reapResult](commands, "job", "reap", "--limit", "3"); done.Runs != 3 || done.Stopped != "" || done.Skipped != "" {
		t.Errorf("the limit is what there is: %+v", done)
	}
	commands.Must("verify")
	for _, wrong := range []string{"--limit=-1", "--max-time=-1s", "extra"} {
		commands.MustFail(cli.ExitUsage, "job", "reap", wrong)
	}
}

func TestCompactIsInterruptedBetweenThreads(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	clitest.ImportThreads(t, commands, 3)
	isReached, open := clitest.Gate(t, testdb.Connect(t, commands.DatabaseURL))
	ctx, interrupt := context.WithCancel(t.Context())
	var out, messages bytes.Buffer
	ended := make(chan int)
	go func() {
		ended <- clitest.Run(ctx, []string{"compact", "--workers", "1", "--database-url", commands.DatabaseURL}, strings.NewReader(""), &out, &messages)
	}()
	clitest.WaitFor(t, isReached)
	if out := commands.Must("job", "compact"); out != skippedBusy {
		t.Errorf("a second start: %s", out)
	}
	if done := clitest.Parse[compactResult](commands, "job", "compact"); done.Skipped != jobs.SkippedBusy || done.Runs != 0 {
		t.Errorf("a second start: %+v", done)
	}
	interrupt()
	open()
	if code := <-ended; code != cli.ExitInterrupted || !strings.HasPrefix(out.String(), "1 run of 1 thread") ||
		!strings.HasSuffix(out.String(), "; 2 runs left (stopped: interrupted)\n") {
		t.Errorf("exit code %d, %s%s", code, out.String(), messages.String())
	}
}

func TestWorkerRunsTheJobs(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	clitest.ImportThreads(t, commands, 2)
	clitest.SetLease(t, commands, "0")
	worker := commands.Start("worker", "--reap", "@every 1s", "--compact", "@every 1s", "--repack", "@every 1s", "--verify", "@every 1s", "--erase", "@every 1s", "--erase-after", "1d", "--all-scopes", "--json")
	for _, job := range []string{"compact", "reap", "repack", "verify", "erase"} {
		worker.WaitForLine(t, `"msg":"job scheduled"`, `"job":"`+job+`"`)
	}
	worker.WaitForLine(t, `"msg":"job done","job":"compact"`, `"runs":2`)
	worker.WaitForLine(t, `"msg":"job done","job":"verify"`, `"threads":2`, `"problems":0`)
	clitest.LeaveRun(t, commands, "left", "r")
	worker.WaitForLine(t, `"msg":"job done","job":"reap"`, `"runs":1`)
	clitest.WaitFor(t, func() bool { return clitest.Parse[jobs.Stats](commands, "stats").RunsToCompact == 0 })
	worker.Terminate(t)
	if code := worker.End(t); code != cli.ExitOK {
		t.Errorf("exit code %d:\n%s", code, worker.Log)
	}
	if done := clitest.Parse[compactResult](commands, "job", "compact"); done.Waiting != 0 {
		t.Errorf("afterwards %d runs wait", done.Waiting)
	}
	for _, wrong := range []string{"--compact=nonsense", "--erase=@daily", "--erase-after=1d", "--all-scopes", "--scope=mine", "--workers=0", "--grace=-1s", "extra"} {
		commands.MustFail(cli.ExitUsage, "worker", wrong)
	}
}

func TestWorkerFinishesTheThreadAtHandOnSIGTERM(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	clitest.ImportThreads(t, commands, 3)
	isReached, open := clitest.Gate(t, testdb.Connect(t, commands.DatabaseURL))
	worker := commands.Start("worker", "--compact", "@every 1s", "--repack", "off", "--workers", "1", "--grace", "1h")
	clitest.WaitFor(t, isReached)
	worker.Terminate(t)
	worker.WaitForLine(t, "worker stops")
	open()
	worker.WaitForLine(t, "job done", "job=compact", "result.runs=1", "result.left=2", "result.stopped=interrupted")
	if code := worker.End(t); code != cli.ExitOK {
		t.Errorf("exit code %d:\n%s", code, worker.Log)
	}
}

func TestWorkerCancelsWhatTakesLongerThanTheGrace(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	clitest.ImportThreads(t, commands, 1)
	isReached, open := clitest.Gate(t, testdb.Connect(t, commands.DatabaseURL))
	defer open()
	worker := commands.Start("worker", "--compact", "@every 1s", "--repack", "off", "--grace", "0s")
	clitest.WaitFor(t, isReached)
	worker.Terminate(t)
	worker.WaitForLine(t, "job failed", "job=compact", "canceled")
	if code := worker.End(t); code != cli.ExitOK {
		t.Errorf("exit code %d:\n%s", code, worker.Log)
	}
}

func TestCompactRepacksWhatIsDue(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	clitest.ImportTree(t, commands) // a batch for each run, which is all that repacking could give
	pool := testdb.Connect(t, commands.DatabaseURL)
	for _, run := range []string{"a", "b"} {
		for _, events := range []string{`[{"type":"RUN_STARTED"}]`, `[{"type":"RUN_FINISHED"}]`} {
			testdb.Exec(t, pool, `select agui.append('in two batches', $1, $2::json)`, run, events)
		}
	}
	if text := commands.Must("job", "compact"); strings.Contains(text, "joined") {
		t.Errorf("runs that ended just now were repacked: %q", text)
	}
	testdb.Exec(t, pool, `update agui.run set ended_at = ended_at - interval '1 hour'`)
	if result := clitest.Parse[compactResult](commands, "job", "compact", "--repack=false"); result.Repacked != nil {
		t.Errorf("repacked although it should not: %+v", result)
	}
	if result := clitest.Parse[compactResult](commands, "job", "compact"); result.Repacked == nil || result.Repacked.Runs != 2 {
		t.Errorf("%+v, want 2 runs repacked", result)
	}
}

func TestCompactSaysWhatIsInQuarantine(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	clitest.ImportThreads(t, commands, 3)
	pool := testdb.Connect(t, commands.DatabaseURL)
	execute := func(statement string) {
		t.Helper()
		testdb.Exec(t, pool, statement)
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

	if failed := commands.Run("job", "compact", "--repack=false"); failed.Code != cli.ExitWorkLeft || !strings.Contains(failed.Messages, "not this one") {
		t.Errorf("a run that fails: exit code %d, %s%s", failed.Code, failed.Out, failed.Messages)
	}
	result := commands.Run("job", "compact", "--json")
	var done compactResult
	must.Do(t, json.Unmarshal([]byte(result.Out), &done))
	if result.Code != cli.ExitWorkLeft || result.Messages != "" || done.Quarantined != 1 || done.Runs != 0 {
		t.Errorf("with a run in quarantine: exit code %d, %s%s", result.Code, result.Out, result.Messages)
	}
	if stats := commands.Must("stats"); !strings.Contains(stats, "agui.quarantine") {
		t.Errorf("stats: %s", stats)
	}
	execute(`drop function refuse() cascade`)
	if done := clitest.Parse[compactResult](commands, "job", "compact", "--retry"); done.Runs != 1 || done.Quarantined != 0 {
		t.Errorf("with --retry: %+v", done)
	}
}

// If a role that may not run jobs holds the lock of a job, the job could never run. So it fails
// instead of skipping.
func TestAJobWhoseLockAStrangerHoldsEndsWithAnError(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	pool := testdb.Connect(t, commands.DatabaseURL)
	role := "agui_test_" + strings.ToLower(rand.Text())
	testdb.Exec(t, pool, `create role `+role+` login password 'x'`)
	config := pool.Config().ConnConfig.Copy()
	config.User, config.Password = role, "x"
	stranger := must.Have(pgx.ConnectConfig(t.Context(), config))(t)
	ids := testdb.Ask[[]int64](t, pool, `select array(select agui_internal.job_lock_id(job) from unnest('{compact,reap,repack}'::text[]) as job)`)
	for _, id := range ids {
		testdb.Exec(t, stranger, `select pg_advisory_lock($1)`, id)
	}
	for _, command := range []string{"compact", "reap", "repack"} {
		if text := commands.MustFail(cli.ExitRefused, "job", command); !strings.Contains(text, role) {
			t.Errorf("pgagui job %s: %s", command, text)
		}
	}
	stranger.Close(context.WithoutCancel(t.Context()))
	clitest.WaitFor(t, func() bool {
		_, err := pool.Exec(t.Context(), `drop role `+role)
		return err == nil
	})
	commands.Must("job", "compact")
}
