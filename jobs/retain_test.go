package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
	"github.com/pgagui/pgagui/jobs"
)

// importOld stores a thread with a run that took place days ago.
func importOld(t *testing.T, pool *pgxpool.Pool, scope, threadID string, days int, end string) {
	t.Helper()
	at := time.Now().AddDate(0, 0, -days).UnixMilli()
	testdb.Exec(t, pool, `select agui.import_events($1, 'r1', $2, scope => $3)`, threadID,
		fmt.Sprintf(`[{"type":"RUN_STARTED","timestamp":%d},{"type":"CUSTOM","name":"n","value":1,"timestamp":%d}%s]`, at, at, end), scope)
}

const finished = `,{"type":"RUN_FINISHED"}`

// threadsNow lists the threads with what retention does to them.
func threadsNow(t *testing.T, pool *pgxpool.Pool) (threads []string) {
	t.Helper()
	threads = testdb.List[string](t, pool, `
		select concat_ws(' ', nullif(scope, ''), thread_id, case when archived then 'archived' end,
			case when exists (select from agui.checkpoint where checkpoint.thread_key = thread.thread_key) then 'with checkpoints' end)
		from agui.thread join agui.thread_activity using (thread_key) order by 1`)
	return threads
}

// Before 2015 there was no agent whose time this could be. So a time that a broken clock stated erases
// nothing: neither one of an import, nor one that an older version stored.
func TestRetentionCountsFromNoTimeBefore2015(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	for thread, at := range map[string]string{
		"seconds": fmt.Sprint(time.Now().Unix() - 60), "clock": "52.5", "milliseconds": "1000000000000", "text": `"1970-01-01T00:00:01Z"`, "stored": "1600000000000",
	} {
		testdb.Exec(t, pool, `select agui.import_events($1, 'r', $2)`, thread,
			fmt.Sprintf(`[{"type":"RUN_STARTED","timestamp":%s},{"type":"RUN_FINISHED","timestamp":%s}]`, at, at))
	}
	testdb.Exec(t, pool, `
		begin;
		set local session_replication_role = replica;
		update agui.batch set recorded_at = '1970-01-20' where thread_key = agui.thread_key('', 'stored');
		update agui.thread set created_at = '1970-01-20' where thread_id = 'stored';
		commit`)
	testdb.Exec(t, pool, `select agui.set_retention('erase', interval '1 day')`)
	if due := testdb.Ask[int](t, pool, `select count(*) from agui_internal.threads_due()`); due != 0 {
		t.Errorf("%d threads are due", due)
	}
	testdb.Exec(t, pool, `call agui.erase_older('1 day')`)
	if threads := threadsNow(t, pool); len(threads) != 5 {
		t.Errorf("left: %v", threads)
	}
}

func TestRetentionDoesWhatTheRulesSay(t *testing.T) {
	t.Parallel()
	for name, apply := range map[string]func(*testing.T, *pgxpool.Pool){
		"in Go": func(t *testing.T, pool *pgxpool.Pool) {
			report := mustRun(t, pool, jobs.Job{Name: "retain", Work: func(ctx context.Context) (any, error) { return jobs.Retain(ctx, pool, jobs.RetainOptions{}) }})
			if done := report.Result.(jobs.Retained); done.Threads != 5 || done.Busy != 0 || done.Stopped != "" {
				t.Errorf("done: %+v", done)
			}
		},
		"in SQL": func(t *testing.T, pool *pgxpool.Pool) { testdb.Exec(t, pool, `call agui.apply_retention()`) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := testdb.Pool(t)
			store := pgagui.New(pool, nil)
			importOld(t, pool, "", "new", 1, finished)
			importOld(t, pool, "", "quiet", 100, finished)
			importOld(t, pool, "", "old", 400, finished)
			importOld(t, pool, "", "old and held", 400, finished)
			importOld(t, pool, "", "old and running", 400, "")
			importOld(t, pool, "", "old with news", 400, finished)
			testdb.Exec(t, pool, `select agui.save_session_state('old with news', 'k', '1')`)
			importOld(t, pool, "for ever", "old", 400, finished)
			importOld(t, pool, "short", "quiet", 100, finished)
			for _, checkpoint := range []string{"quiet", "old and held"} {
				testdb.Exec(t, pool, `select agui.save_checkpoint($1, 'c', '{}')`, checkpoint)
				testdb.Exec(t, pool, `update agui.checkpoint set saved_at = '2000-01-01'`)
			}
			must.Have(store.Maintenance().SetHold(t.Context(), "old and held", "case 4711"))(t)
			all := threadsNow(t, pool)
			apply := func() { t.Helper(); apply(t, pool) }

			if done, err := jobs.Retain(t.Context(), pool, jobs.RetainOptions{}); err != nil || len(done.Rules) != 0 {
				t.Errorf("without rules: %+v, %v", done, err)
			}
			for _, rule := range []jobs.RetentionRule{
				{AllScopes: true, Action: jobs.RetainArchived, OlderThan: "90 days"},
				{AllScopes: true, Action: jobs.RetainWithoutCheckpoints, OlderThan: "90 days"},
				{AllScopes: true, Action: jobs.RetainNothing, OlderThan: "1 year"},
				{Scope: "for ever", Action: jobs.RetainNothing},
				{Scope: "for ever", Action: jobs.RetainArchived},
				{Scope: "short", Action: jobs.RetainNothing, OlderThan: "30 days"},
				{Scope: "other", Action: jobs.RetainNothing, OlderThan: "1 second"},
			} {
				must.Do(t, jobs.SetRetention(t.Context(), pool, rule))
			}
			if rules, err := jobs.RetentionRules(t.Context(), pool); err != nil || len(rules) != 7 || rules[1].OlderThan != "" || rules[0].OlderThan != "90 days" {
				t.Errorf("rules: %+v, %v", rules, err)
			}

			// A plan changes nothing, and says what an application does.
			var plan []string
			done, err := jobs.Retain(t.Context(), pool, jobs.RetainOptions{DryRun: true, Each: func(thread jobs.RetainedThread) {
				plan = append(plan, strings.TrimSpace(fmt.Sprint(thread.Action, " ", thread.Scope, " ", thread.ThreadID, " ", thread.KeptBecause)))
			}})
			slices.Sort(plan)
			if want := []string{
				"archive  old and held", "archive  old and running in progress", "archive  quiet",
				"erase  old", "erase  old and held held", "erase  old and running in progress", "erase short quiet",
				"remove_checkpoints  old and held held", "remove_checkpoints  quiet",
			}; err != nil || !slices.Equal(plan, want) {
				t.Errorf("plan: %q, want %q (%v)", plan, want, err)
			}
			if done.Threads != 5 || !slices.Equal(threadsNow(t, pool), all) {
				t.Errorf("the plan: %+v", done)
			}
			for _, rule := range done.Rules {
				if rule.Action == jobs.RetainNothing && rule.AllScopes && (rule.Threads != 1 || rule.Events != 3 || rule.Held != 1 || rule.InProgress != 1 || rule.OlderThan != "1 year") {
					t.Errorf("the rule: %+v", rule)
				}
			}

			apply()
			if now, want := threadsNow(t, pool), []string{
				"for ever old", "new", "old and held archived with checkpoints", "old and running", "old with news", "quiet archived",
			}; !slices.Equal(now, want) {
				t.Errorf("threads: %q, want %q", now, want)
			}
			if n := count(t, pool, `select count(*) from agui.erasure where events = 3 and runs = 1 and reason in ('retention: no activity for 1 year', 'retention: no activity for 30 days')`); n != 2 {
				t.Errorf("%d erasures", n)
			}
			apply2 := threadsNow(t, pool)
			testdb.Exec(t, pool, `call agui.apply_retention()`)
			if now := threadsNow(t, pool); !slices.Equal(now, apply2) {
				t.Errorf("applied twice: %q", now)
			}

			// Without the hold it goes, and once its writer is gone the other one.
			if wasHeld, err := store.Maintenance().LiftHold(t.Context(), "old and held"); err != nil || !wasHeld {
				t.Error(wasHeld, err)
			}
			testdb.Exec(t, pool, `update agui.run set seen_at = '2000-01-01' where status = 'running'`)
			testdb.UpForEver(t, pool)
			testdb.Exec(t, pool, `call agui.apply_retention()`)
			if now := threadsNow(t, pool); !slices.Equal(now, []string{"for ever old", "new", "old with news", "quiet archived"}) {
				t.Errorf("threads: %q", now)
			}
		})
	}
}

func TestHeldThreadsAreNotErased(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, &pgagui.Config{Scope: "acme"})
	maintenance := store.Maintenance()
	importOld(t, pool, "acme", "t", 400, finished)
	for _, reason := range []string{"first", "case 4711"} { // the second replaces the first
		if held, err := maintenance.SetHold(t.Context(), "t", reason); err != nil || held.Reason != reason || held.HeldBy == "" || time.Since(held.HeldAt) > time.Hour {
			t.Errorf("%+v, %v", held, err)
		}
	}
	holds, err := maintenance.Holds(t.Context())
	if err != nil || len(holds) != 1 || holds[0].ThreadID != "t" || holds[0].Scope != "acme" || holds[0].Reason != "case 4711" {
		t.Errorf("holds: %+v, %v", holds, err)
	}
	_, err = store.Erase(t.Context(), "t", pgagui.EraseOptions{})
	if !errors.Is(err, pgagui.ErrThreadHeld) || !strings.Contains(err.Error(), `thread "t" of scope "acme" is held since `) || !strings.Contains(err.Error(), "case 4711. agui.lift_hold permits") {
		t.Errorf("erase: %v", err)
	}
	for _, dry := range []bool{true, false} {
		if done, err := jobs.Erase(t.Context(), pool, jobs.EraseOptions{AllScopes: true, OlderThan: time.Hour, DryRun: dry}); err != nil || done.Threads != 0 {
			t.Errorf("erase of old threads: %+v, %v", done, err)
		}
	}
	testdb.Exec(t, pool, `call agui.erase_older('1 hour', scope => null)`)
	if n := count(t, pool, `select count(*) from agui.event`); n != 3 {
		t.Errorf("%d events are left", n)
	}
	for call, want := range map[string]error{"": pgagui.ErrInvalidArgument, "reason": pgagui.ErrUnknownThread} {
		if _, err := maintenance.SetHold(t.Context(), "unknown", call); !errors.Is(err, want) {
			t.Errorf("a hold with the reason %q: %v", call, err)
		}
	}
	for _, want := range []bool{true, false} {
		if wasHeld, err := maintenance.LiftHold(t.Context(), "t"); err != nil || wasHeld != want {
			t.Error(wasHeld, err)
		}
	}
	if _, err := store.Erase(t.Context(), "t", pgagui.EraseOptions{}); err != nil {
		t.Error(err)
	}
}

// What comes between a plan and its application counts: events, holds, and transactions that have not ended.
func TestRetentionSeesWhatComesBeforeIt(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]string{
		"events":        `select agui.append('t', 'r2', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]')`,
		"session state": `select agui.save_session_state('t', 'k', '1')`,
		"a hold":        `select agui.set_hold('t', 'a reason')`,
		"another rule":  `select agui.set_retention('erase', null, '')`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := testdb.Pool(t)
			importOld(t, pool, "", "t", 400, finished)
			testdb.Exec(t, pool, `select agui.set_retention('erase', '1 year')`)
			// The transaction has not ended when the job comes to the thread.
			tx := must.Have(pool.Begin(t.Context()))(t)
			defer tx.Rollback(context.Background())
			testdb.Exec(t, tx, between)
			holdsThread := name != "another rule"
			if holdsThread {
				if done, err := jobs.Retain(t.Context(), pool, jobs.RetainOptions{}); err != nil || done.Threads != 0 || done.Busy != 1 {
					t.Errorf("while it is in progress: %+v, %v", done, err)
				}
				testdb.Exec(t, pool, `call agui.apply_retention()`)
			}
			must.Do(t, tx.Commit(t.Context()))
			if n := count(t, pool, `select agui_internal.retain_thread(agui.thread_key('', 't'), 'erase')::int`); n != 0 {
				t.Error("it was erased by a plan that does not hold any more")
			}
			testdb.Exec(t, pool, `call agui.apply_retention()`)
			if n := count(t, pool, `select count(*) from agui.thread`); n != 1 {
				t.Error("the thread is gone")
			}
		})
	}
}

// An erasure that waits for a hold sees it.
func TestAHoldComesBeforeAnErasureThatWaits(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	importOld(t, pool, "", "t", 1, finished)
	tx := must.Have(pool.Begin(t.Context()))(t)
	defer tx.Rollback(context.Background())
	testdb.Exec(t, tx, `select agui.set_hold('t', 'a reason')`)
	ended := make(chan error, 1)
	go func() {
		_, err := store.Erase(context.Background(), "t", pgagui.EraseOptions{})
		ended <- err
	}()
	wait.For(t, "the erasure waits", func() bool {
		return count(t, pool, `select count(*) from pg_locks where not granted and database is not distinct from (select oid from pg_database where datname = current_database())
			or not granted and locktype = 'transactionid'`) > 0
	})
	must.Do(t, tx.Commit(t.Context()))
	if err := <-ended; !errors.Is(err, pgagui.ErrThreadHeld) {
		t.Errorf("the erasure: %v", err)
	}
}

// With row-level security a tenant has the rules and holds of its scope, and the rules for all.
func TestRetentionKeepsTenantsApart(t *testing.T) {
	t.Parallel()
	address := testdb.New(t)
	pool := testdb.Connect(t, address)
	for _, scope := range []string{"a", "b"} {
		importOld(t, pool, scope, "old", 400, finished)
		importOld(t, pool, scope, "held", 400, finished)
		testdb.Exec(t, pool, `select agui.set_hold('held', 'a reason', $1)`, scope)
	}
	role := testdb.Role(t, pool, "tenant", "agui_maintainer")
	testdb.Exec(t, pool, `call agui.enable_row_security()`)
	testdb.Exec(t, pool, `select agui.map_tenant($1, 'a')`, role)
	testdb.Exec(t, pool, `select agui.set_retention('erase', '1 year'), agui.set_retention('erase', '2 years', 'b')`)

	of := must.Have(url.Parse(address))(t)
	query := of.Query()
	query.Set("options", "-crole="+role)
	of.RawQuery = query.Encode()
	tenant := testdb.Connect(t, of.String())
	rules, err := jobs.RetentionRules(t.Context(), tenant)
	if err != nil || len(rules) != 1 || !rules[0].AllScopes {
		t.Errorf("the tenant sees the rules %+v, %v", rules, err)
	}
	if n := count(t, tenant, `select count(*) from agui.held_thread`); n != 1 {
		t.Errorf("the tenant sees %d holds", n)
	}
	for _, refused := range []string{
		`select agui.set_retention('erase', '1 day')`, `select agui.set_retention('erase', '1 day', 'b')`, `select agui.remove_retention('erase')`,
		`select agui.remove_retention('erase', 'b')`, `select agui.set_hold('old', 'x', 'b')`, `select agui.lift_hold('held', 'b')`,
		`select agui_internal.retain_thread(agui.thread_key('b', 'old'), 'erase')`,
	} {
		if _, err := tenant.Exec(t.Context(), refused); !errors.Is(pgagui.ErrorOf(err), pgagui.ErrPermissionDenied) {
			t.Errorf("%s: %v", refused, err)
		}
	}
	if done, err := jobs.Retain(t.Context(), tenant, jobs.RetainOptions{}); err != nil || done.Threads != 1 || len(done.Rules) != 1 {
		t.Errorf("the tenant: %+v, %v", done, err)
	}
	if now := threadsNow(t, pool); !slices.Equal(now, []string{"a held", "b held", "b old"}) {
		t.Errorf("threads: %q", now)
	}
	// Its own rule comes before the one for all.
	testdb.Exec(t, tenant, `select agui.set_retention('erase', null, 'a'), agui.lift_hold('held', 'a')`)
	testdb.Exec(t, tenant, `call agui.apply_retention()`)
	if now := threadsNow(t, pool); !slices.Equal(now, []string{"a held", "b held", "b old"}) {
		t.Errorf("threads: %q", now)
	}
}
