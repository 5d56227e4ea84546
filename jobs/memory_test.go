package jobs_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/memory"
	"github.com/pgagui/pgagui/internal/testdb"
)

// appendLarge appends a run of small batches and then makes large ones of those between its first and its last event: to append them would take
// long. array is a SQL expression for the JSON array of events.
func appendLarge(t *testing.T, pool *pgxpool.Pool, threadID, runID, parentID string, batches int, array string) {
	t.Helper()
	body := make([]string, batches)
	for i := range body {
		body[i] = `{"type":"CUSTOM"}`
	}
	appendInBatches(t, pgagui.New(pool, nil), threadID, runID, parentID, 1, body...)
	damage(t, pool, fmt.Sprintf(`
		update agui.batch
		set events = (%[1]s)::json, text_bytes = octet_length(%[1]s)
		from agui.run
		where run.thread_key = agui.thread_key('', '%[2]s') and run.run_id = '%[3]s'
			and batch.thread_key = run.thread_key and batch.run_no = run.run_no
			and batch.events::text = '[{"type":"CUSTOM"}]'`, array, threadID, runID))
}

// text is a SQL expression for so many megabytes of hexadecimal digits.
func text(megabytes int) string {
	return fmt.Sprintf(`repeat((select string_agg(md5(i::text), '') from generate_series(1, 32768) as i), %d)`, megabytes)
}

// Threads whose batches are a large part of the memory that a process may have, more of them than it has workers.
var largeThreads = map[string]func(*testing.T, *pgxpool.Pool){
	"states": func(t *testing.T, pool *pgxpool.Pool) {
		for i := range 4 {
			appendLarge(t, pool, fmt.Sprint("t", i), "r", "", 4, `'[{"type":"STATE_SNAPSHOT","snapshot":{"a":"' || `+text(12)+` || '"}}]'`)
		}
	},
	"messages": func(t *testing.T, pool *pgxpool.Pool) {
		for i := range 4 {
			appendLarge(t, pool, fmt.Sprint("t", i), "r", "", 1, `'[{"type":"TEXT_MESSAGE_START","messageId":"m"},'
				|| '{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"' || `+text(12)+` || '"},{"type":"TEXT_MESSAGE_END","messageId":"m"}]'`)
		}
	},
	"events without a meaning": func(t *testing.T, pool *pgxpool.Pool) {
		for i := range 4 {
			appendLarge(t, pool, fmt.Sprint("t", i), "r", "", 8, `'[{"type":"RAW","event":"' || `+text(12)+` || '"}]'`)
		}
	},
	"small events": func(t *testing.T, pool *pgxpool.Pool) {
		for i := range 4 {
			appendLarge(t, pool, fmt.Sprint("t", i), "r", "", 3, `'[{"type":"TEXT_MESSAGE_START","messageId":"m"}'
				|| repeat(',{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"some words "}', 150000) || ']'`)
		}
	},
	"runs that end in a page": func(t *testing.T, pool *pgxpool.Pool) {
		for i := range 2 {
			for run := range 30 {
				appendLarge(t, pool, fmt.Sprint("t", i), fmt.Sprint("r", run), "", 1, `'[{"type":"STATE_SNAPSHOT","snapshot":{"a":"' || `+text(2)+` || '"}}]'`)
			}
		}
	},
	// All of them have ended before the first one is continued from, so all of their folds are needed.
	"branches": func(t *testing.T, pool *pgxpool.Pool) {
		store := pgagui.New(pool, nil)
		for run := range 24 {
			appendLarge(t, pool, "t", fmt.Sprint("root", run), "", 1, `'[{"type":"STATE_SNAPSHOT","snapshot":{"a":"' || `+text(4)+` || '"}}]'`)
		}
		for run := range 24 {
			appendRun(t, store, "t", fmt.Sprint("child", run), fmt.Sprint("root", run), message("m", 3)...)
		}
	},
}

// A job stays within the memory that its process has, whatever it reads and however many workers it has.
func TestJobsStayWithinTheirMemory(t *testing.T) {
	t.Parallel()
	if memory.Peak(os.Getpid()) == 0 {
		t.Skip("this system does not tell how much memory a process took")
	}
	const limit, most = 100, 128 // MB: GOMEMLIMIT, and what the process may take in all
	for name, plant := range largeThreads {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := testdb.New(t)
			pool := testdb.Connect(t, url)
			plant(t, pool)
			for _, job := range []string{"compact-with-four", "verify-with-four", "repack"} {
				if peak := peakOfJob(t, url, job, limit); peak > most {
					t.Errorf("%s took %d MB, want %d at most", job, peak, most)
				} else {
					t.Logf("%s took %d MB", job, peak)
				}
			}
			if n := waitingRuns(t, pool); n > 0 {
				t.Errorf("%d runs wait", n)
			}
		})
	}
}

// peakOfJob is how many megabytes a process took that did a job with a memory limit.
func peakOfJob(t *testing.T, url, job string, limit int) (megabytes int) {
	t.Helper()
	process := exec.Command(os.Args[0])
	process.Env = append(os.Environ(), jobToDo+"="+job, jobDatabase+"="+url, fmt.Sprintf("GOMEMLIMIT=%dMiB", limit))
	process.Stderr = os.Stderr
	output, err := process.Output()
	if err != nil {
		t.Fatalf("%s: %v", job, err)
	}
	_, peak, _ := strings.Cut(string(output), "peak ")
	if _, err := fmt.Sscan(peak, &megabytes); err != nil {
		t.Fatalf("%s: %v in %q", job, err, output)
	}
	return megabytes >> 20
}

// What a session of the server takes for a job is bounded by the largest batch, however many of them there are.
func TestJobsInSQLHoldOneLargeBatch(t *testing.T) {
	t.Parallel()
	const batch, batches, most = 4, 20, 60 // MB
	for name, array := range map[string]string{
		"states":                   `'[{"type":"STATE_SNAPSHOT","snapshot":{"a":"' || ` + text(batch) + ` || '"}}]'`,
		"events without a meaning": `'[{"type":"RAW","event":"' || ` + text(batch) + ` || '"}]'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := testdb.New(t)
			pool := testdb.Connect(t, url)
			appendLarge(t, pool, "t", "r", "", batches, array)
			for _, statement := range []string{
				`call agui.compact()`, `call agui.repack(older_than => '0')`, `select agui.verify('t')`, `select agui.rebuild_snapshots('t')`,
			} {
				connection, err := pgx.Connect(t.Context(), url)
				if err != nil {
					t.Fatal(err)
				}
				stop := memory.WatchSessions(func() []int { return []int{int(connection.PgConn().PID())} })
				if _, err := connection.Exec(t.Context(), statement); err != nil {
					t.Errorf("%s: %v", statement, err)
				}
				peak := stop() >> 20
				if peak > most {
					t.Errorf("%s took %d MB, want %d at most", statement, peak, most)
				}
				t.Logf("%s took %d MB", statement, peak)
				if err := connection.Close(context.Background()); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
