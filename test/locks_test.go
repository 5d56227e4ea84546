package test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
	"github.com/pgagui/pgagui/jobs"
)

// lockAs holds an advisory lock in an open transaction, as a role that can do no more than connect, or with the rights of another one. It returns
// how errors name the holder.
func lockAs(t *testing.T, pool *pgxpool.Pool, lock, memberOf string) (holder string, release func()) {
	t.Helper()
	role := "agui_test_" + strings.ToLower(rand.Text())
	execute := func(connection interface {
		Exec(context.Context, string, ...any) (pgconn.CommandTag, error)
	}, statement string) {
		t.Helper()
		if _, err := connection.Exec(context.WithoutCancel(t.Context()), statement, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	id := testdb.Ask[int64](t, pool, `select `+lock)
	execute(pool, `create role `+role+` login password 'x'`)
	if memberOf != "" {
		execute(pool, `grant `+memberOf+` to `+role)
	}
	config := pool.Config().ConnConfig.Copy()
	config.User, config.Password = role, "x"
	connection := must.Have(pgx.ConnectConfig(t.Context(), config))(t)
	execute(connection, fmt.Sprintf(`begin; select pg_advisory_xact_lock(%d)`, id))
	return fmt.Sprintf(`process %d of role "%s"`, connection.PgConn().PID(), role), func() {
		connection.Close(context.WithoutCancel(t.Context()))
		wait.Until(func() bool { // its session may still be ending
			_, err := pool.Exec(context.WithoutCancel(t.Context()), `drop role `+role)
			return err == nil
		})
	}
}

// Any role that can connect may take the lock of a thread. Nobody waits for it without an end, and errors say whom to ask.
func TestWhoWaitsForALockIsToldWhoHasIt(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	begin := `[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]`
	testdb.Exec(t, pool, `select agui.append('t', 'r', $1), agui.save_session('{"threadId":"t","state":{"k":1}}')`, begin)
	connection := testdb.Acquire(t, pool)
	attempt := func(statement, holder string) {
		t.Helper()
		_, err := connection.Exec(t.Context(), statement, pgx.QueryExecModeSimpleProtocol)
		if refusal, ok := errors.AsType[*pgconn.PgError](err); !ok || refusal.Code != "55P03" || !strings.Contains(refusal.Message, holder) {
			t.Errorf("%s: %v, want 55P03 that names %s", statement, err, holder)
		}
	}
	testdb.Exec(t, connection, `set lock_timeout = '150ms'`)

	holder, release := lockAs(t, pool, `agui_internal.thread_lock_id(agui.thread_key('', 't'))`, "")
	for _, statement := range []string{
		`select agui.append('t', 's', '` + begin + `')`,
		`select agui.append_many('{t}', '{s}', array['` + begin + `']::json[])`,
		`select agui.import_events('t', 's', '` + begin + `')`,
		`select agui.erase('t')`,
		`begin isolation level repeatable read; select agui.append('t', 's', '` + begin + `')`, `rollback; select agui.append('t', 's', '` + begin + `')`,
	} {
		attempt(statement, holder)
	}
	// Without a lock_timeout of the caller's, it is that of the function: 5 seconds, of which the rest of the test has 300 ms.
	const most = "most_ms    constant int := 5000"
	definition := testdb.Ask[string](t, pool, `select pg_get_functiondef('agui_internal.wait_for_lock'::regproc)`)
	if !strings.Contains(definition, most) {
		t.Fatalf("agui_internal.wait_for_lock does not have %q", most)
	}
	testdb.Exec(t, pool, strings.Replace(definition, most, "most_ms constant int := 300", 1))
	testdb.Exec(t, connection, `set lock_timeout = 0`)
	attempt(`select agui.append('t', 's', '`+begin+`')`, holder+" has held the lock for at least 300 ms")
	attempt(`begin; set local lock_timeout = '1h'; select agui.append('t', 's', '`+begin+`')`, holder+" has held the lock for at least 300 ms")
	testdb.Exec(t, pool, definition)
	go func() {
		wait.Until(func() bool {
			var waits bool
			err := pool.QueryRow(t.Context(), `select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')`).Scan(&waits)
			return err != nil || waits
		})
		release()
	}()
	if _, err := connection.Exec(t.Context(), `rollback; begin; set local lock_timeout = '20s'; select agui.append('t', 's', '`+begin+`')`, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Error(err)
	}
	var timeout string
	if err := connection.QueryRow(t.Context(), `show lock_timeout`).Scan(&timeout); err != nil || timeout != "20s" {
		t.Errorf("lock_timeout is %s afterwards (%v)", timeout, err)
	}
	testdb.Exec(t, connection, `rollback; set lock_timeout = '150ms'`)

	holder, release = lockAs(t, pool, `agui_internal.session_lock_id(agui.thread_key('', 't'))`, "")
	defer release()
	attempt(`select agui.save_session('{"threadId":"t","state":{"k":2}}')`, holder)
}

// A job that finds its lock taken leaves it at that while another one is at work. A role that may do no job has no work.
func TestAJobWhoseLockAStrangerHoldsFails(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	testdb.UpForEver(t, pool)
	for _, statement := range []string{
		`select agui.append('t', 'r', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]')`,
		`select agui.append('t', 's', '[{"type":"RUN_STARTED"},{"type":"CUSTOM"}]')`,
		`select agui.set_setting('lease', '0')`,
	} {
		testdb.Exec(t, pool, statement)
	}
	for job, call := range map[string]string{
		"compact_running": `call agui.compact_running(1)`, "compact": `call agui.compact()`, "repack": `call agui.repack(older_than => '0')`,
		"erase": `call agui.erase_older('1 day')`, "reap": `call agui.reap()`,
	} {
		holder, release := lockAs(t, pool, `agui_internal.job_lock_id('`+job+`')`, "agui_writer")
		_, err := pool.Exec(t.Context(), call)
		if refusal, ok := errors.AsType[*pgconn.PgError](err); !ok || refusal.Code != "55P03" || !strings.Contains(refusal.Message, holder) {
			t.Errorf("%s: %v, want 55P03 that names %s", call, err, holder)
		}
		work := jobs.Job{Name: job, Work: func(context.Context) (any, error) { return nil, errors.New("is done") }}
		if _, err := work.Run(t.Context(), pool, nil); err == nil || !strings.Contains(err.Error(), holder) {
			t.Errorf("job %s: %v, want an error that names %s", job, err, holder)
		}
		release()

		_, release = lockAs(t, pool, `agui_internal.job_lock_id('`+job+`')`, "agui_worker")
		if _, err := pool.Exec(t.Context(), call); err != nil {
			t.Errorf("%s while another one is at work: %v", call, err)
		}
		if report, err := work.Run(t.Context(), pool, nil); err != nil || report.Skipped != jobs.SkippedBusy {
			t.Errorf("job %s while another one is at work: %+v, %v", job, report, err)
		}
		release()
	}
	if notes := testdb.Ask[int](t, pool, `select count(*) from agui_internal.job_note`); notes > 0 {
		t.Errorf("%d notes of runs that no job began", notes)
	}
}
