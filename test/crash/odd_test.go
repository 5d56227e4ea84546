package crash

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/pgagui/pgagui/internal/wait"
)

// This file has the threads that no writer and no follower looks at: damaged ones, and ones with errors that come while jobs are at their runs.

// isDamaged tells, in SQL, a thread that the test has damaged.
const isDamaged = `starts_with(thread.thread_id, 'damaged')`

// oddThread begins a thread with a run of some batches that has ended, and returns the seq of its end.
func (r *round) oddThread(name string) (thread string, seq int64) {
	r.t.Helper()
	thread = fmt.Sprint(name, " ", r.counts["threads of the test"])
	r.counts["threads of the test"]++
	events := []string{`{"type":"RUN_STARTED"}`}
	for n := range 5 + r.random.IntN(40) {
		events = append(events, fmt.Sprintf(`{"type":"TEXT_MESSAGE_CHUNK","messageId":"m%d","delta":"some words "}`, n/10))
	}
	events = append(events, `{"type":"RUN_FINISHED"}`)
	for len(events) > 0 {
		n := min(len(events), 1+r.random.IntN(5))
		seq = r.appendOdd(thread, "r", events[:n], seq, "")
		events = events[n:]
	}
	return thread, seq
}

// appendOdd appends events behind a seq, once.
func (r *round) appendOdd(thread, run string, events []string, after int64, more string) (seq int64) {
	r.t.Helper()
	r.query(fmt.Sprintf(`select agui.append('%s', '%s', '[%s]', %d%s)`, thread, run, strings.Join(events, ","), after, more), &seq)
	return seq
}

// damageThread makes a thread with a run that has ended, its child and a run without an end, and damages what the log has of one.
func (r *round) damageThread() {
	r.t.Helper()
	thread, _ := r.oddThread("damaged")
	r.appendOdd(thread, "child", []string{`{"type":"RUN_STARTED"}`, `{"type":"RUN_FINISHED"}`}, 0, `, parallel => true`)
	seq := r.appendOdd(thread, "open", []string{`{"type":"RUN_STARTED"}`}, 0, `, parallel => true`)
	for range 30 {
		seq = r.appendOdd(thread, "open", []string{`{"type":"STEP_STARTED","stepName":"s"}`}, seq, "")
	}
	batches := fmt.Sprintf(`thread_key = agui.thread_key('', '%s') and run_no in (1, 3)`, thread)
	damages := []string{
		`delete from agui.batch where ` + batches + ` and first_seq = (select max(first_seq) from agui.batch where ` + batches + `)`,
		`delete from agui.batch where ` + batches + ` and run_no = 1`,
		`delete from agui.batch where ` + batches + ` and first_seq % 3 = 0`,
		`update agui.batch set events = '{"at":"_END"}' where ` + batches + ` and first_seq % 3 = 0`,
		`update agui.batch set events = '[{"type":"RUN_ERROR"}]' where ` + batches + ` and first_seq % 3 = 0`,
		`update agui.batch set n = n + 1 where ` + batches,
	}
	damage := damages[r.random.IntN(len(damages))]
	r.answered(func(ctx context.Context) error {
		return pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `select agui_internal.allow_log_change(true)`); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, damage)
			return err
		})
	})
}

// appendLateError appends RUN_ERROR behind RUN_FINISHED when jobs may be at the run.
func (r *round) appendLateError() {
	r.t.Helper()
	for range 10 {
		thread, seq := r.oddThread("late")
		r.pauseUpTo(lateTime)
		r.appendOdd(thread, "r", []string{`{"type":"RUN_ERROR","message":"late"}`}, seq, "")
	}
}

// checkJobs checks that all is done in the end but what belongs to damaged threads, and that these are all that is wrong.
func (r *round) checkJobs() {
	r.t.Helper()
	r.execute(`select agui.retry()`) // of runs at which jobs were killed
	var errs []error
	wait.For(r.t, "compaction and repacking are done", func() bool {
		errs = doJobs(r.t.Context(), r.pool)
		var left int
		r.query(`
			select count(*) from agui.run join agui.thread using (thread_key)
			where (log_bytes is null or repacked_at is null) and status <> 'running' and not `+isDamaged, &left)
		return left == 0
	})
	for _, err := range errs {
		if strings.Contains(err.Error(), "panic") {
			r.t.Error(err)
		}
	}
	var innocent []string
	r.query(`
		select array(
			select format('%s, run %s: %s', thread.thread_id, quarantine.run_id, quarantine.error)
			from agui.quarantine join agui.thread using (thread_key)
			where not `+isDamaged+`
		)`, &innocent)
	for _, run := range innocent {
		r.t.Errorf("in quarantine: thread %s", run)
	}
	var quarantined int
	r.query(`select count(*) from agui.quarantine`, &quarantined)
	r.counts["runs in quarantine"] = quarantined
}

// eraseOddThreads checks the threads of the test that are sound, and removes all of them.
func (r *round) eraseOddThreads() {
	r.t.Helper()
	var odd []string
	r.query(`select array(select thread_id from agui.thread where `+isDamaged+` or starts_with(thread_id, 'late'))`, &odd)
	for _, thread := range odd {
		if strings.HasPrefix(thread, "late") {
			r.verify(thread)
		}
		r.execute(fmt.Sprintf(`select agui.erase('%s')`, thread))
	}
}
