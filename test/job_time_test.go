package test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgagui/pgagui/internal/testdb"
)

// Under a statement_timeout a call of a job ends by itself: what it has done is whole, and the next call continues.
func TestCallsOfJobsEndBeforeStatementTimeout(t *testing.T) {
	t.Parallel()
	const (
		started = `{"type":"RUN_STARTED"}`
		text    = `{"type":"TEXT_MESSAGE_START","messageId":"m"},{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"x"}`
		ended   = `{"type":"TEXT_MESSAGE_END","messageId":"m"},{"type":"RUN_FINISHED"}`
		// Each in a batch of its own, so that there is something to repack.
		whole  = `select agui.append(t, 'r', '[` + started + `]') + agui.append(t, 'r', '[` + text + `,` + ended + `]')`
		open   = `select agui.append(t, 'r', '[` + started + `,` + text + `]')`
		inputs = `select agui.append(t, 'r', '[` + started + `,` + text + `,` + ended + `]', input => ('{"messages":[{"id":"u","role":"user","content":"' || repeat('x', 9000) || '"}]}')::json)`
	)
	for call, job := range map[string]struct {
		fill string // makes a thread t; empty: one thread of many runs is made
		slow string // what takes a tenth of a second in each step
		left string
	}{
		`agui.compact()`:                        {fill: whole, slow: "update on agui.run for each row", left: `agui.run where log_bytes is null`},
		`agui.compact(older_than => '0') -- in`: {fill: inputs, slow: "update on agui.run_input for each row", left: `agui.run_input where split_at is null`},
		`agui.repack(older_than => '0')`:        {fill: whole, slow: "update on agui.run for each row", left: `agui.run where repacked_at is null`},
		`agui.compact_running(1)`:               {fill: open, slow: "insert on agui.snapshot for each row", left: `agui.run where not exists (select from agui.snapshot where snapshot.thread_key = run.thread_key)`},
		`agui.reap()`:                           {fill: open, slow: "update on agui.run for each row", left: `agui.run where status = 'running'`},
		`agui.erase_older('0')`:                 {fill: whole, slow: "delete on agui.thread for each row", left: `agui.thread`},
		`agui.apply_retention()`:                {fill: whole, slow: "delete on agui.thread for each row", left: `agui.thread`},
		`agui_internal.split_inputs()`:          {fill: inputs, slow: "update on agui.run_input for each row", left: `agui.run_input where split_at is null`},
		`agui.project()`: {slow: "insert on agui.projected_run for each statement", left: `agui.run where not exists (
			select from agui.projected_run as known where known.thread_key = run.thread_key and known.run_no = run.run_no)`},
	} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			pool := testdb.Pool(t)
			if job.fill == "" {
				insertRuns(t, pool, "many", 5000) // 200 a step
			} else {
				testdb.Exec(t, pool, job.fill+` from (select 't' || n from generate_series(1, 30) as n) as thread (t)`)
			}
			testdb.Exec(t, pool, `
				create function slow() returns trigger language plpgsql as 'begin perform pg_sleep(0.1); return coalesce(new, old); end';
				create trigger slow before `+job.slow+` execute function slow();
				select agui.set_retention('erase', '1 microsecond')`, pgx.QueryExecModeSimpleProtocol)
			if call == `agui.reap()` {
				testdb.Exec(t, pool, `select agui.set_setting('lease', '0 seconds')`)
			}
			connection := testdb.Acquire(t, pool)
			testdb.Exec(t, connection, `set statement_timeout = '3s'`)
			count := `select count(*) from ` + job.left
			left := testdb.Ask[int](t, pool, count)
			for calls := 1; left > 0; calls++ {
				before := left
				testdb.Exec(t, connection, `call `+call)
				left = testdb.Ask[int](t, pool, count)
				if left == before {
					t.Fatalf("call %d did nothing, and %d are left", calls, left)
				}
				if calls == 1 && left == 0 {
					t.Error("the work was done in one call: this test shows nothing")
				}
				if notes := testdb.Ask[int](t, pool, `select count(*) from agui_internal.job_note`); notes > 0 {
					t.Errorf("after call %d, %d runs are noted as begun", calls, notes)
				}
				if problems := testdb.List[string](t, pool, `
					select thread.thread_id || ': ' || problem.problem from agui.thread as thread cross join lateral agui.verify(thread.thread_id) as problem
					where problem.severity <> 'note' and thread.thread_id <> 'many'`); len(problems) > 0 {
					t.Errorf("after call %d: %q", calls, problems)
				}
			}
		})
	}
}
