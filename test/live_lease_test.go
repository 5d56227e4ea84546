package test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/devpg/cluster"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testfile"
	"github.com/pgagui/pgagui/internal/wait"
	"github.com/pgagui/pgagui/jobs"
	"github.com/pgagui/pgagui/sql/schema"
)

// next begins the next run of a thread, and returns the error in the words of the database; nil: it has begun.
func next(pool *pgxpool.Pool, thread string) *pgconn.PgError {
	_, err := pool.Exec(context.Background(), `select agui.append($1, 'next', '[{"type":"RUN_STARTED"}]')`, thread)
	var refused *pgconn.PgError
	if err != nil && !errors.As(err, &refused) {
		refused = &pgconn.PgError{Message: err.Error()}
	}
	return refused
}

func startCluster(t *testing.T, settings map[string]string) (*cluster.Cluster, *pgxpool.Pool) {
	t.Helper()
	server := testdb.Server(t, settings)
	must.Do(t, schema.Up(t.Context(), server.URL("postgres")))
	return server, testdb.Connect(t, server.URL("postgres"))
}

// leaveRuns begins two runs, one with heartbeats and one without.
func leaveRuns(t *testing.T, pool *pgxpool.Pool, lease time.Duration) {
	t.Helper()
	testdb.Exec(t, pool, `select agui.set_setting('lease', $1)`, lease.String())
	beginRuns(t, pool, "bare", "recorded")
	testdb.Exec(t, pool, `select agui.keep_alive('{recorded}', '{r}')`)
}

// hasWholeLease checks that neither the next run nor agui.reap cuts the runs off, and that both do after a lease. It reports whether the
// first calls came within the lease; if not, they show nothing.
func hasWholeLease(t *testing.T, pool *pgxpool.Pool, order ...string) (cameInTime bool) {
	t.Helper()
	var refused *pgconn.PgError
	for _, way := range order {
		if way == "reap" {
			testdb.Exec(t, pool, `call agui.reap()`)
		} else {
			refused = next(pool, "bare")
		}
	}
	cutOff := testdb.Ask[int](t, pool, `select count(*)::int from agui.run where status <> 'running'`)
	if !testdb.Ask[bool](t, pool, `select clock_timestamp() < agui_internal.reachable_since() + agui_internal.lease()`) {
		return false
	}
	if refused == nil || refused.Code != "UI006" {
		t.Errorf("the next run after an outage: %v", refused)
	}
	if cutOff > 0 {
		t.Errorf("%d runs were cut off at once after the outage", cutOff)
	}
	testdb.Exec(t, pool, `select agui.set_setting('lease', '1 millisecond')`)
	testdb.Exec(t, pool, `call agui.reap()`)
	if n := testdb.Ask[int](t, pool, `select count(*)::int from agui.run where cut_off_reason is not null`); n != 2 {
		t.Errorf("after a lease %d runs are cut off", n)
	}
	if refused := next(pool, "recorded"); refused != nil {
		t.Errorf("the next run after that: %v", refused)
	}
	return true
}

// withALease calls a check with a short lease, and then with longer ones until the server is quick enough for it.
func withALease(t *testing.T, check func(lease time.Duration) (cameInTime bool)) {
	t.Helper()
	for lease := 2 * time.Second; !check(lease); lease *= 3 {
		if lease > wait.Patience {
			t.Fatalf("the server did not answer within a lease of %s", lease)
		}
	}
}

// passLease waits until a lease is over: the server has no other clock than the real one.
func passLease(lease time.Duration) { time.Sleep(lease + 100*time.Millisecond) }

func TestRunsHaveTheirWholeLeaseAfterTheServerWasDown(t *testing.T) {
	t.Parallel()
	withALease(t, func(lease time.Duration) bool {
		server, pool := startCluster(t, map[string]string{})
		leaveRuns(t, pool, lease)
		must.Do(t, server.Kill())
		passLease(lease)
		must.Do(t, server.Restart(t.Context()))
		pool.Reset()
		return hasWholeLease(t, pool, "append", "reap")
	})
}

// The server's start time does not tell that it recovered from a crash of one of its processes.
func TestRunsHaveTheirWholeLeaseAfterACrashOfAProcess(t *testing.T) {
	t.Parallel()
	withALease(t, func(lease time.Duration) bool {
		_, pool := startCluster(t, map[string]string{"restart_after_crash": "on"})
		leaveRuns(t, pool, lease)
		passLease(lease)
		testdb.KillBackend(t, pool, testdb.Ask[int](t, pool, `select pg_backend_pid()`))
		return hasWholeLease(t, pool, "append", "reap")
	})
}

func TestRunsHaveTheirWholeLeaseAfterAPromotion(t *testing.T) {
	t.Parallel()
	for _, first := range [][]string{{"append", "reap"}, {"reap", "append"}} {
		t.Run(strings.Join(first, " then "), func(t *testing.T) {
			t.Parallel()
			withALease(t, func(lease time.Duration) bool {
				server, pool := startCluster(t, map[string]string{})
				leaveRuns(t, pool, lease)
				// A server that starts as a standby of none: what it promotes is a log of its own, as that of any standby.
				data := testdb.Ask[string](t, pool, `select current_setting('data_directory')`)
				must.Do(t, server.Kill())
				must.Do(t, os.WriteFile(filepath.Join(data, "standby.signal"), nil, 0o644))
				must.Do(t, server.Restart(t.Context()))
				passLease(lease) // a standby takes no writes
				must.Do(t, server.Promote(t.Context()))
				pool.Reset()
				return hasWholeLease(t, pool, first...)
			})
		})
	}
}

// If the server was up but no writer reached it for long enough, the first call that reaches it restarts all leases.
func TestRunsHaveTheirWholeLeaseAfterATimeWithoutCalls(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		away, call string
		isKept     bool
	}{
		{"16 seconds", `select agui.keep_alive('{}', '{}')`, true},
		{"14 seconds", `select agui.keep_alive('{}', '{}')`, false},
		{"101 seconds", `call agui.reap()`, true},
		{"99 seconds", `call agui.reap()`, false},
	} {
		t.Run(test.call+" after "+test.away, func(t *testing.T) {
			t.Parallel()
			pool := testdb.Pool(t)
			testdb.Exec(t, pool, `select agui.set_setting('heartbeat_lease', '30 s'), agui.set_setting('lease', '5 minutes')`)
			beginRuns(t, pool, "recorded", "bare")
			testdb.Exec(t, pool, `select agui.keep_alive('{recorded}', '{r}')`)
			testdb.UpForEver(t, pool)
			testdb.Exec(t, pool, `alter table agui.batch disable trigger all`)
			testdb.Exec(t, pool, `update agui.run set seen_at = now() - interval '1 hour' where has_heartbeat`)
			testdb.Exec(t, pool, `update agui.batch set recorded_at = now() - interval '2 hours'`)
			testdb.Exec(t, pool, `update agui_internal.uptime set checked_at = now() - $1::interval`, test.away)
			testdb.Exec(t, pool, test.call)
			testdb.Exec(t, pool, `call agui.reap()`)
			running := testdb.Ask[int](t, pool, `select count(*)::int from agui.run where status = 'running'`)
			if want := map[bool]int{true: 2, false: 0}[test.isKept]; running != want {
				t.Errorf("%d runs are in progress, want %d", running, want)
			}
		})
	}
}

func TestARunWithHeartbeatsHasTheShortLease(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	beginRuns(t, pool, "bare", "detached", "recorded", "taken over")
	testdb.Exec(t, pool, `select agui.keep_alive('{detached,recorded,taken over}', '{r,r,r}')`)
	testdb.Exec(t, pool, `select agui.keep_alive('{detached}', '{r}', detach => true)`)
	testdb.UpForEver(t, pool)
	age := func(seconds int) {
		testdb.Exec(t, pool, `alter table agui.batch disable trigger all`)
		testdb.Exec(t, pool, `update agui.run set seen_at = seen_at - make_interval(secs => $1)`, seconds)
		testdb.Exec(t, pool, `update agui.batch set recorded_at = recorded_at - make_interval(secs => $1)`, seconds)
	}
	stale := func() string {
		return testdb.Ask[string](t, pool, `
			select coalesce(string_agg(thread_id, ', ' order by thread_id), '')
			from agui.thread where (agui.status(thread_id)).is_stale`)
	}
	age(29)
	if got := stale(); got != "" {
		t.Errorf("within the short lease these are stale: %s", got)
	}
	age(2)
	testdb.Exec(t, pool, `select agui.append('taken over', 'r', '[{"type":"CUSTOM"}]')`) // by a writer without heartbeats
	if got := stale(); got != "recorded" {
		t.Errorf("after the short lease these are stale: %s", got)
	}
	if n := testdb.Ask[int](t, pool, `select stale_runs::int from agui.lag()`); n != 1 {
		t.Errorf("agui.lag counts %d stale runs", n)
	}
	age(31)
	if got := stale(); got != "recorded" {
		t.Errorf("a little later these are stale: %s", got)
	}
	testdb.Exec(t, pool, `call agui.reap()`)
	if got := testdb.Ask[string](t, pool, `select string_agg(cut_off_reason, ', ') from agui.run`); got != "no sign of life for 00:00:30" {
		t.Errorf("cut off: %s", got)
	}
	age(300)
	if got := stale(); got != "bare, detached, taken over" {
		t.Errorf("after the long lease these are stale: %s", got)
	}
}

func TestRunInProgressSaysWhenItEndsAndWhatToCall(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	beginRuns(t, pool, "t")
	testdb.Exec(t, pool, `select agui.keep_alive('{t}', '{r}')`)
	refused := next(pool, "t")
	if refused == nil || refused.Code != "UI006" {
		t.Fatalf("got %v", refused)
	}
	for _, want := range []string{"Its last sign of life was 00:00:00", "its lease ends in 00:00:2", ", at 20"} {
		if !strings.Contains(refused.Detail, want) {
			t.Errorf("the detail %q lacks %q", refused.Detail, want)
		}
	}
	for _, call := range []string{"agui.request_stop", "agui.abandon", "parallel => true"} {
		if !strings.Contains(refused.Hint, call) {
			t.Errorf("the hint %q does not name %s", refused.Hint, call)
		}
	}
}

// An append costs what it did: it looks at no setting and writes to no row but those of its thread.
func TestAppendsDoNotTouchLeases(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	testdb.Exec(t, pool, `select agui.keep_alive('{}', '{}')`)
	tx := begin(t, pool, pgx.ReadCommitted)
	touched := func() int {
		return testdb.Ask[int](t, tx, `
			select sum(seq_scan + coalesce(idx_scan, 0) + n_tup_ins + n_tup_upd)::int
			from pg_stat_xact_user_tables
			where schemaname = 'agui_internal' and relname in ('setting', 'uptime')`)
	}
	before := touched()
	for _, events := range []string{`{"type":"RUN_STARTED"}`, `{"type":"CUSTOM"}`, `{"type":"CUSTOM"},{"type":"CUSTOM"}`, `{"type":"RUN_FINISHED"}`} {
		testdb.Exec(t, tx, `select agui.append('one', 'r', $1)`, "["+events+"]")
		testdb.Exec(t, tx, `select agui.append_many('{many}', '{r}', array[$1::json])`, "["+events+"]")
	}
	if n := touched() - before; n != 0 {
		t.Errorf("appends have touched the tables of leases %d times", n)
	}
}

func TestUptimeIsWrittenRarely(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	testdb.Exec(t, pool, `select agui.keep_alive('{}', '{}')`)
	written := testdb.Ask[string](t, pool, `select xmin::text from agui_internal.uptime`)
	for range 20 {
		testdb.Exec(t, pool, `select agui.keep_alive('{}', '{}')`)
		testdb.Exec(t, pool, `call agui.reap()`)
	}
	if got := testdb.Ask[string](t, pool, `select xmin::text from agui_internal.uptime`); got != written {
		t.Error("it is written again within 10 seconds")
	}
	testdb.Exec(t, pool, `update agui_internal.uptime set checked_at = now() - interval '10 seconds'`)
	testdb.Exec(t, pool, `select agui.keep_alive('{}', '{}')`)
	if !testdb.Ask[bool](t, pool, `select checked_at > now() - interval '5 seconds' and up_since = '-infinity' from agui_internal.uptime`) {
		t.Error("it is not written after 10 seconds, or up_since has moved")
	}
	// If another transaction writes to the row of the uptime, a heartbeat does not wait for it.
	testdb.Exec(t, pool, `update agui_internal.uptime set checked_at = now() - interval '10 seconds'`)
	other := begin(t, pool, pgx.ReadCommitted)
	testdb.Exec(t, other, `update agui_internal.uptime set checked_at = now()`)
	tx := begin(t, pool, pgx.ReadCommitted)
	testdb.Exec(t, tx, `set local lock_timeout = '5s'`)
	testdb.Exec(t, tx, `select agui.keep_alive('{}', '{}')`)
}

func TestSettings(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	for _, test := range []struct{ name, value, want string }{
		{"lease", "10 minutes", "600"},
		{"lease", "90", "90"},
		{"lease", "1.5 s", "1.5"},
		{"heartbeat_lease", "2 hours", "7200"},
		{"lease", "-1", `setting "lease": -1 is out of range; it must be between 0 and 31536000 seconds`},
		{"lease", "2 years", `setting "lease": 2 years is out of range; it must be between 0 and 31536000 seconds`},
		{"lease", "long", `setting "lease": "long" is not a value in seconds`},
		{"lease", "", `setting "lease": "" is not a value in seconds`},
		{"leese", "1", `unknown setting "leese"`},
	} {
		_, err := pool.Exec(t.Context(), `select agui.set_setting($1, $2)`, test.name, test.value)
		var got string
		if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
			if got = refused.Message; refused.Code != "22023" {
				t.Errorf("%s = %q: SQLSTATE %s", test.name, test.value, refused.Code)
			}
		} else {
			got = testdb.Ask[string](t, pool, `select trim_scale(value)::text from agui.setting where name = $1`, test.name)
		}
		if got != test.want {
			t.Errorf("%s = %q: %s, want %s", test.name, test.value, got, test.want)
		}
	}
	if got := testdb.Ask[string](t, pool, `select agui_internal.lease() || ', ' || agui_internal.heartbeat_lease()`); got != "00:00:01.5, 00:00:01.5" {
		t.Errorf("leases %s: heartbeat_lease is never longer than lease", got)
	}
	testdb.Exec(t, pool, `select agui.set_setting(name, null) from agui.setting`)
	if n := testdb.Ask[int](t, pool, `select count(*)::int from agui.setting where value <> default_value`); n != 0 {
		t.Errorf("%d settings do not have their default", n)
	}
	// After a restore of the schema alone they are missing; and an upgrade keeps what was set.
	testdb.Exec(t, pool, `select agui.set_setting('lease', '1 hour')`)
	testdb.Exec(t, pool, `delete from agui_internal.setting where name = 'heartbeat_lease'`)
	testdb.Exec(t, pool, `update agui_internal.setting set description = 'old'`)
	testdb.Exec(t, pool, `call agui.grant_access()`)
	if got := testdb.Ask[string](t, pool, `select string_agg(name || ' ' || trim_scale(value), ', ' order by name) from agui.setting where description <> 'old' and unit = 'seconds'`); got != "call_delay 10, heartbeat_lease 30, lease 3600" {
		t.Errorf("after a repair: %s", got)
	}
}

// A restore of the schema alone has no rows of settings: the defaults hold.
func TestSettingsWithoutTheirRows(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	const held = `select concat(agui_internal.lease(), ' ', agui_internal.heartbeat_lease(), ' ', agui_internal.limits_of_folds(agui_internal.rules()))`
	want := testdb.Ask[string](t, pool, held)
	testdb.Exec(t, pool, `delete from agui_internal.setting`)
	if got := testdb.Ask[string](t, pool, held); got != want {
		t.Errorf("without rows %s, with them %s", got, want)
	}
	mustAppend(t, store, "t", "r", rawEvents(`{"type":"RUN_STARTED"}`, `{"type":"STATE_SNAPSHOT","snapshot":{}}`,
		`{"type":"STATE_DELTA","delta":[{"op":"add","path":"/a","value":1}]}`, `{"type":"RUN_FINISHED"}`))
	mustAppend(t, store, "t", "s", rawEvents(`{"type":"RUN_STARTED"}`, `{"type":"STATE_DELTA","delta":[{"op":"add","path":"/b","value":2}]}`))
	testdb.Exec(t, pool, `select agui.keep_alive('{t}', '{s}')`)
	compacted, err := jobs.Compact(t.Context(), pool, jobs.CompactOptions{RunningEvery: 1})
	if err != nil || compacted.Runs != 1 {
		t.Errorf("compacted %+v, error %v", compacted, err)
	}
	if _, err := jobs.Reap(t.Context(), pool, jobs.ReapOptions{}); err != nil {
		t.Error(err)
	}
	if restored, err := store.Restore(t.Context(), "t", pgagui.At{}); err != nil || canonical(restored.State) != `{"a":"1","b":"2"}` {
		t.Errorf("restored %s, error %v", restored.State, err)
	}
	if problems := described(verifyThreads(t, pool, jobs.VerifyOptions{})[keyOf(t, pool, "t")].Problems); len(problems) > 0 {
		t.Error(problems)
	}
	var refused *pgconn.PgError
	if _, err := pool.Exec(t.Context(), `select agui.set_setting('lease', '1 hour')`); !errors.As(err, &refused) || !strings.Contains(refused.Hint, "pgagui migrate up") {
		t.Errorf("set_setting: %v, want advice", err)
	}
}

// docs/reference/settings.md has each setting of the schema, with its default and its range.
func TestTheDocsListAllSettings(t *testing.T) {
	t.Parallel()
	var page strings.Builder
	page.WriteString("# Settings of a database\n\nThe rows of the view `agui.setting`. [settings.md](../settings.md) says how to change them, and what leases and limits mean.\n\n" +
		"This page is written from the schema: make golden\n\n" +
		"| setting | default | range | meaning |\n|---|---|---|---|\n")
	for _, row := range testdb.List[string](t, testdb.Pool(t), `
		select format('| `+"`%s`"+` | %s | %s to %s | %s |', name, shown[1], shown[2], shown[3], description)
		from agui_internal.known_settings() with ordinality as setting (name, default_value, unit, min_value, max_value, description, place), lateral (
			select array_agg(case
				when n = 0 or unit = 'count' then to_char(n, 'FM999,999,999,999,999')
				when unit = 'bytes' then pg_size_pretty(n)
				when n % 86400 = 0 then n / 86400 || ' days'
				when n % 60 = 0 then n / 60 || ' minutes'
				else n || ' seconds' end order by nth) as shown
			from unnest(array[default_value, min_value, max_value]::bigint[]) with ordinality as number (n, nth)
		) as numbers
		order by place`) {
		page.WriteString(row + "\n")
	}
	testfile.Golden(t, "../docs/reference/settings.md", page.String())
}
