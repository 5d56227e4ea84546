package upkeep

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/devpg/cluster"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testneeds"
	"github.com/pgagui/pgagui/sql/schema"
)

// pgCronServer is a server with the schema agui in the database of pg_cron, which may connect
// without a password.
type pgCronServer struct {
	*cluster.Cluster
	url  string
	pool *pgxpool.Pool
}

// startPgCron starts a server with pg_cron, or returns nil if pg_cron is not installed.
func startPgCron(t *testing.T, settings map[string]string) *pgCronServer {
	t.Helper()
	all := map[string]string{"cron.database_name": "postgres", "cron.host": "127.0.0.1", "max_connections": "200"}
	maps.Copy(all, settings)
	started := testdb.Server(t, all)
	server := &pgCronServer{Cluster: started, url: started.URL("postgres")}
	server.pool = testdb.Connect(t, server.url)
	isInstalled := testdb.Ask[bool](t, server.pool,
		`select exists (select from pg_available_extensions where name = 'pg_cron')`)
	if !isInstalled {
		return nil
	}
	must.Do(t, schema.Up(t.Context(), server.url))
	server.execute(t, `alter system set shared_preload_libraries = 'pg_cron'`)
	server.execute(t, `do $$ begin
		execute format('copy (select %L) to %L', 'host all postgres 127.0.0.1/32 trust', current_setting('hba_file'));
	end $$`)
	server.restart(t)
	return server
}

func (s *pgCronServer) execute(t *testing.T, statement string) {
	t.Helper()
	testdb.Exec(t, s.pool, statement)
}

func (s *pgCronServer) restart(t *testing.T) {
	t.Helper()
	must.Do(t, s.Restart(t.Context()))
	s.pool.Reset()
}

// deploy/pg_cron.sql does all maintenance, with both ways in which pg_cron runs commands.
func TestPgCron(t *testing.T) {
	t.Parallel()
	for how, backgroundWorkers := range map[string]string{"through connections": "off", "in background workers": "on"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			server := startPgCron(t, map[string]string{"cron.use_background_workers": backgroundWorkers, "agui.repack_after": "0"})
			if server == nil {
				testneeds.Skip(t, testneeds.PgCron, "pg_cron is not installed (postgresql-NN-cron)")
			}
			commands := clitest.On(t, server.url)
			clitest.ImportThreads(t, commands, 20)
			clitest.LeaveRun(t, commands, "left", "r")
			clitest.SetLease(t, commands, "0")
			recipe := clitest.ReadDeploy(t, "pg_cron.sql")
			server.execute(t, recipe)
			server.execute(t, recipe) // a second time changes nothing
			// Due at once, instead of at the next full minute.
			server.execute(t, `update cron.job set schedule = '@reboot'`)
			server.restart(t)

			var jobs, ended, failed, waiting int
			clitest.WaitFor(t, func() bool {
				err := server.pool.QueryRow(t.Context(), `
					select
						(select count(*) from cron.job),
						(select count(distinct jobid) from cron.job_run_details where status in ('succeeded', 'failed')),
						(select count(*) from cron.job_run_details where status = 'failed'),
						(select count(*) from agui.run where cut_off_reason is null and (log_bytes is null or repacked_at is null))`).Scan(&jobs, &ended, &failed, &waiting)
				must.Do(t, err)
				return ended == jobs
			})
			if jobs != 4 || failed > 0 || waiting > 0 {
				t.Errorf("%d jobs, %d failed, %d runs were not compacted and repacked", jobs, failed, waiting)
				rows, _ := server.pool.Query(t.Context(), `select command || ': ' || coalesce(return_message, '') from cron.job_run_details`)
				for rows.Next() {
					var line string
					if rows.Scan(&line) == nil {
						t.Log(line)
					}
				}
			}
			if found := clitest.Parse[verified](commands, "verify"); found.Threads != 21 {
				t.Errorf("verify: %+v", found)
			}
			if status := clitest.Parse[pgagui.RunStatus](commands, "show", "--status", "left"); status.CutOffReason == "" {
				t.Errorf("the run that was left: %+v", status)
			}
		})
	}
}

var sideBySide = flag.Duration("side-by-side", 3*time.Second, "duration of the test that runs all jobs in parallel")

// All maintenance jobs run in parallel on one database while writers append. Afterwards verify
// finds no problem.
func TestUpkeepSideBySide(t *testing.T) {
	t.Parallel()
	var (
		url  string
		pool *pgxpool.Pool
	)
	server := startPgCron(t, map[string]string{"agui.repack_after": "0"})
	if server != nil {
		url, pool = server.url, server.pool
		server.execute(t, clitest.ReadDeploy(t, "pg_cron.sql"))
		server.execute(t, `
			update cron.job set schedule = '1 seconds'
			where (select string_to_array(split_part(extversion, '-', 1), '.')::int[] >= '{1,5}' from pg_extension where extname = 'pg_cron')`)
	} else {
		url = testdb.New(t)
		pool = testdb.Connect(t, url)
	}
	commands := clitest.On(t, url)
	clitest.SetLease(t, commands, "1 second")
	pool.Reset()
	worker := commands.Start("worker", "--compact", "@every 1s", "--reap", "@every 1s", "--repack", "@every 1s", "--every", "20")
	worker.WaitForLine(t, "job done")

	ctx, cancel := context.WithTimeout(t.Context(), *sideBySide)
	defer cancel()
	var group errgroup.Group
	begin := func(step func(n int) error) {
		group.Go(func() error {
			for n := 0; ctx.Err() == nil; n++ {
				if err := step(n); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for i := range 4 {
		writer := writer{store: pgagui.New(pool, nil), name: fmt.Sprint("writer-", i), random: rand.New(rand.NewPCG(1, uint64(i)))}
		begin(func(n int) error { return writer.run(t.Context(), n) })
	}
	for _, arguments := range [][]string{{"job", "compact", "--running", "--every", "20"}, {"job", "reap"}, {"verify"}} {
		begin(func(int) error {
			// The job leaves a thread that another job holds.
			if result := commands.Run(arguments...); result.Code != cli.ExitOK && !(result.Code == cli.ExitWorkLeft && strings.Contains(result.Out, "held by other")) {
				return fmt.Errorf("pgagui %s: exit code %d: %s%s", arguments, result.Code, result.Out, result.Messages)
			}
			return nil
		})
	}
	for _, statement := range []string{`call agui.compact(5)`, `call agui.compact_running(20)`, `call agui.reap(5)`, `call agui.repack(5, older_than => '0')`} {
		begin(func(int) error {
			if _, err := pool.Exec(t.Context(), statement); err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
			return nil
		})
	}
	must.Report(t, group.Wait())
	worker.Terminate(t)
	if code := worker.End(t); code != cli.ExitOK || strings.Contains(worker.Log, "job failed") {
		t.Errorf("the worker ended with exit code %d:\n%s", code, worker.Log)
	}

	var started, failed int
	if server != nil {
		if err := pool.QueryRow(t.Context(),
			`select count(*), count(*) filter (where status = 'failed') from cron.job_run_details`).Scan(&started, &failed); err != nil || failed > 0 {
			t.Errorf("%d of %d jobs of pg_cron failed, error %v", failed, started, err)
		}
	}
	clitest.SetLease(t, commands, "0")
	commands.Must("job", "reap")
	commands.Must("job", "compact")
	found := clitest.Parse[verified](commands, "verify")
	if found.Threads < 4 {
		t.Errorf("verify: %+v", found)
	}
	var runs, running, cutOff, batches int
	if err := pool.QueryRow(t.Context(), `
		select
			count(*), count(*) filter (where status = 'running'), count(*) filter (where cut_off_reason is not null),
			(select count(*) from agui.batch)
		from agui.run`).Scan(&runs, &running, &cutOff, &batches); err != nil {
		t.Fatal(err)
	}
	if running > 0 {
		t.Errorf("%d runs are in progress, although their writers are gone", running)
	}
	t.Logf("%d runs, %d of them cut off, %d batches; pg_cron started %d jobs", runs, cutOff, batches, started)
}

// writer appends runs, in small batches, to its own threads. Most runs follow the head, some begin
// a branch. In other threads it leaves runs without an end.
type writer struct {
	store  *pgagui.Store
	name   string
	random *rand.Rand
}

func (w writer) run(ctx context.Context, n int) error {
	const runsOfThread = 50
	thread := fmt.Sprint(w.name, "-", n/runsOfThread)
	n %= runsOfThread
	id := fmt.Sprint("r", n)
	if w.random.IntN(8) == 0 {
		left := fmt.Sprint(thread, "-left-", n)
		if _, err := w.store.Append(ctx, pgagui.RunRef{ThreadID: left, RunID: id}, []json.RawMessage{json.RawMessage(clitest.Started(left, id)), json.RawMessage(clitest.TextBegins)}, pgagui.AppendOptions{}); err != nil {
			return err
		}
	}
	opening := map[string]string{"type": "RUN_STARTED", "runId": id}
	if n > 0 && w.random.IntN(4) == 0 {
		opening["parentRunId"] = fmt.Sprint("r", w.random.IntN(n))
	}
	first, err := json.Marshal(opening)
	if err != nil {
		return err
	}
	events := []json.RawMessage{first}
	for i := range 10 + w.random.IntN(60) {
		events = append(events, json.RawMessage(fmt.Sprintf(`{"type":"TEXT_MESSAGE_CHUNK","messageId":"m%d","delta":"word %d "}`, n, i)))
	}
	events = append(events, json.RawMessage(fmt.Sprintf(`{"type":"STATE_SNAPSHOT","snapshot":{"run":%d}}`, n)), json.RawMessage(`{"type":"RUN_FINISHED"}`))
	for len(events) > 0 {
		some := min(len(events), 1+w.random.IntN(8))
		_, err := w.store.Append(ctx, pgagui.RunRef{ThreadID: thread, RunID: id}, events[:some], pgagui.AppendOptions{})
		if errors.Is(err, pgagui.ErrRunCutOff) {
			return nil // the machine was too slow for a sign of life within the lease
		}
		if err != nil {
			return err
		}
		events = events[some:]
	}
	return nil
}
