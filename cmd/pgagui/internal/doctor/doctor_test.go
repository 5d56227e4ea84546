package doctor_test

import (
	"bytes"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/cluster"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/doctor"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testneeds"
	"github.com/pgagui/pgagui/sql/schema"
)

// healthy is a server whose roles and settings are no other test's.
func healthy(t *testing.T) (url string, pool *pgxpool.Pool) {
	t.Helper()
	url = testdb.Server(t, map[string]string{"fsync": "on"}).URL("postgres")
	must.Do(t, schema.Up(t.Context(), url))
	pool = testdb.Connect(t, url)
	testdb.Exec(t, pool, `create role application login; grant agui_writer to application`)
	return url, pool
}

// examine gives the findings that are not OK.
func examine(t *testing.T, url string) []doctor.Finding {
	t.Helper()
	findings := must.Have(doctor.Examine(t.Context(), url))(t)
	return slices.DeleteFunc(findings, func(f doctor.Finding) bool { return f.Severity == doctor.OK })
}

// A front of a cluster is examined as one.
func TestAFrontThatTheNodesRefuse(t *testing.T) {
	t.Parallel()
	address := testdb.New(t)
	opened := must.Have(cluster.Open(t.Context(), []cluster.Node{{Name: "a", URL: address}}))(t)
	defer opened.Close()
	must.Do(t, opened.Init(t.Context()))
	frontAddress := testdb.Empty(t)
	front := testdb.Connect(t, frontAddress)
	if !testdb.Ask[bool](t, front, `select exists (select from pg_available_extensions where name = 'plproxy')`) {
		testneeds.Skip(t, testneeds.PLProxy, "the server has no PL/Proxy")
	}
	makeFront := func() {
		t.Helper()
		var text bytes.Buffer
		must.Do(t, opened.Front(t.Context(), &text))
		testdb.Exec(t, front, text.String(), pgx.QueryExecModeSimpleProtocol)
	}
	makeFront()
	if found := examine(t, frontAddress); len(found) > 0 {
		t.Errorf("a front: %+v", found)
	}
	testdb.Exec(t, testdb.Connect(t, address), `call agui.enable_row_security()`)
	found := examine(t, frontAddress)
	if len(found) != 1 || found[0].Severity != doctor.Error || !strings.Contains(found[0].Problem, "before row-level security") || !strings.Contains(found[0].Advice, "pgagui cluster front") {
		t.Errorf("a front that was made before row-level security is on: %+v", found)
	}
	makeFront()
	if found := examine(t, frontAddress); len(found) > 0 {
		t.Errorf("a front that was made again: %+v", found)
	}
}

// Each fault is found, its advice is a statement that mends it, and nothing is found then.
func TestAdviceMends(t *testing.T) {
	t.Parallel()
	url, pool := healthy(t)
	if found := examine(t, url); len(found) > 0 {
		t.Fatalf("a healthy database: %+v", found)
	}
	for _, fault := range []struct {
		check    string
		severity doctor.Severity
		says     string
		cause    string
		mend     string // empty: the advice, a statement
	}{
		{
			check: "schema", severity: doctor.Error, says: "function agui.thread_key(text,text) (changed)",
			cause: `alter function agui.thread_key(text, text) cost 7`, mend: `alter function agui.thread_key(text, text) cost 100`,
		},
		{check: "roles", severity: doctor.Warning, says: "agui_reader can log in", cause: `alter role agui_reader login`, mend: `alter role agui_reader nologin`},
		{
			check: "privileges", severity: doctor.Error, says: "grant execute on routine agui.restore",
			cause: `revoke all on function agui.restore from agui_reader`, mend: `call agui.grant_access()`,
		},
		{
			check: "privileges", severity: doctor.Error, says: "revoke delete on table agui.batch",
			cause: `grant delete on agui.batch to agui_writer`, mend: `call agui.grant_access()`,
		},
		{
			check: "missing settings", severity: doctor.Warning, says: "lease",
			cause: `delete from agui_internal.setting where name = 'lease'`, mend: `call agui.grant_access()`,
		},
		{check: "memberships", severity: doctor.Note, says: "no role that logs in", cause: `revoke agui_writer from application`, mend: `grant agui_writer to application`},
		{
			check: "settings", severity: doctor.Note, says: "synchronous_commit is off",
			cause: `alter database postgres set synchronous_commit = off`, mend: `alter database postgres reset synchronous_commit`,
		},
		{
			check: "settings", severity: doctor.Warning, says: "default_transaction_isolation is serializable",
			cause: `alter database postgres set default_transaction_isolation = 'serializable'`, mend: `alter database postgres reset default_transaction_isolation`,
		},
		{
			check: "timeouts", severity: doctor.Warning, says: "statement_timeout of role nightly is 00:00:02: its jobs in SQL stop after 00:00:01.6",
			cause: `create role nightly login; grant agui_worker to nightly; alter database postgres set statement_timeout = 2000`,
		},
		{
			check: "timeouts", severity: doctor.Note, says: "statement_timeout of role nightly is 00:00:30",
			cause: `alter role nightly in database postgres set statement_timeout = '30s'`, mend: `drop role nightly; alter database postgres reset all`,
		},
		{
			check: "timeouts", severity: doctor.Warning, says: "lock_timeout of role application is 00:00:00.01: its appends wait no longer",
			cause: `alter role application set lock_timeout = '10ms'`,
		},
		{
			check: "indexes", severity: doctor.Error, says: "agui.run_to_repack is invalid",
			cause: `update pg_index set indisvalid = false where indexrelid = 'agui.run_to_repack'::regclass`,
		},
		{
			check: "jobs", severity: doctor.Warning, says: "1 runs wait to be compacted",
			cause: `
				select agui.append('t', 'r', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]');
				alter table agui.run disable trigger user;
				update agui.run set ended_at = now() - interval '2 hours';
				alter table agui.run enable trigger user`,
			mend: `call agui.compact()`,
		},
		{
			check: "events", severity: doctor.Warning, says: `no client shows event 2 (TEXT_MESSAGE_START) of run r of thread python: it has "message_id", not "messageId"`,
			cause: `select agui.append('python', 'r', '[{"type":"RUN_STARTED"},{"type":"TEXT_MESSAGE_START","message_id":"m"},{"type":"RUN_FINISHED"}]')`,
			mend:  `select agui.erase('python')`,
		},
		{
			check: "rules", severity: doctor.Note, says: "1 threads may have snapshots, and statuses of runs, by the rules before",
			cause: `insert into agui_internal.older_rules (thread_key) values ('00000000-0000-0000-0000-000000000000')`,
			mend:  `call agui.project()`,
		},
		{
			check: "quarantine", severity: doctor.Warning, says: "compact fails at run r of thread t, 1 attempts so far: out of luck",
			cause: `
				select agui_internal.note_attempt('compact', thread_key, array[run_no]) from agui.run where run_id = 'r';
				select agui_internal.note_failure('compact', thread_key, 'UI023', 'out of luck', array[run_no]) from agui.run where run_id = 'r'`,
			mend: `select agui.retry()`,
		},
		{
			check: "quarantine", severity: doctor.Warning, says: "compact was killed or interrupted at run r of thread t, 2 attempts so far",
			cause: `
				select agui_internal.note_attempt('compact', thread_key, array[run_no]) from agui.run where run_id = 'r';
				select agui_internal.note_attempt('compact', thread_key, array[run_no]) from agui.run where run_id = 'r'`,
			mend: `select agui.retry()`,
		},
		{
			check: "indexes", severity: doctor.Warning, says: "agui.run_in_progress takes",
			cause: `
				alter table agui.run disable trigger user;
				insert into agui.thread (thread_key, scope, thread_id) values (agui.thread_key('bloat', ''), '', 'bloat');
				insert into agui.run (thread_key, run_no, run_id, status, first_seq, last_seq, started_at)
				select agui.thread_key('bloat', ''), n, n::text, 'running', n, n, now() from generate_series(1, 45000) as n;
				update agui.run set status = 'finished', ended_at = now(), log_bytes = 1, repacked_at = now();
				alter table agui.run enable trigger user;
				analyze agui.run`,
		},
		{
			check: "vacuum", severity: doctor.Warning, says: "autovacuum is off for the table agui.message_version",
			cause: `alter table agui.message_version set (autovacuum_enabled = false)`,
		},
		{
			check: "consumers", severity: doctor.Warning, says: "the consumer 'copy' of scope '' is 1 changed runs behind",
			cause: `select agui.move_consumer('copy', null, ''); update agui.consumer set moved_at = now() - interval '2 days'`,
			mend:  `select agui.remove_consumer('copy', '')`,
		},
		{
			check: "consumers", severity: doctor.Warning, says: "the consumer 'copy' of all scopes has a place in another history",
			cause: `
				insert into agui.consumer (scope, is_all, consumer, position)
				values ('', true, 'copy', '1/1 changed 5 00000000-0000-0000-0000-000000000000 0')`,
			mend: `select agui.remove_consumer('copy')`,
		},
		{
			check: "webhooks", severity: doctor.Warning, says: "webhook hook sends nothing: this database is a copy",
			cause: `select agui.add_webhook('hook', 'https://example.com'); update agui.webhook set sends_from = '1/1'`, mend: `select agui.take_over_webhooks('hook')`,
		},
		{
			check: "webhooks", severity: doctor.Warning, says: "webhook hook has 1 requests that failed for good, and 0 that are repeated",
			cause: `
				insert into agui_internal.webhook_request (webhook, event_id, thread_key, kind, ended_at, body, outcome)
				values ('hook', 'evt', agui.thread_key('', 't'), 'run.failed', now(), '{}', '500')`,
			mend: `select agui.drop_webhook_failures('hook')`,
		},
		{
			check: "webhooks", severity: doctor.Warning, says: "webhook hook has 1 requests that failed and are repeated",
			cause: `
				insert into agui_internal.webhook_request (webhook, event_id, thread_key, kind, ended_at, body, outcome, next_at)
				values ('hook', 'evt2', agui.thread_key('', 't'), 'run.failed', now(), '{}', '500', now())`,
			mend: `select agui.drop_webhook_failures('hook')`,
		},
		{
			check: "webhooks", severity: doctor.Warning, says: "webhook hook is disabled: 410 Gone",
			cause: `update agui.webhook set enabled = false, disabled_because = '410 Gone'`, mend: `select agui.remove_webhook('hook')`,
		},
		{
			check: "cluster", severity: doctor.Warning, says: "a move to node z was interrupted 01:00:00 ago: 1 threads",
			cause: `call agui.join_cluster('a'); insert into agui_internal.moved_thread select thread_key, 'z', now() - interval '1 hour' from agui.thread limit 1`,
			mend:  `delete from agui_internal.moved_thread`,
		},
		{
			check: "cluster", severity: doctor.Error, says: "this database is node a of a cluster, but does not check",
			cause: `create or replace function agui_internal.this_node() returns text language sql stable parallel safe return null::text`,
			mend:  `call agui.leave_cluster()`,
		},
		// From here on with row-level security.
		{
			check: "tenants", severity: doctor.Note, says: "role application has no scope",
			cause: `call agui.enable_row_security()`, mend: `select agui.map_tenant('application', 'acme')`,
		},
		{
			check: "tenants", severity: doctor.Error, says: "row-level security is on, but not for agui.batch",
			cause: `alter table agui.batch disable row level security`, mend: `call agui.grant_access()`,
		},
		{
			check: "tenants", severity: doctor.Warning, says: "role gone is mapped, but does not exist",
			cause: `create role gone; select agui.map_pool('gone'); drop role gone`,
		},
		{
			check: "tenants", severity: doctor.Warning, says: "role application is mapped as tenant, but row-level security does not apply to it",
			cause: `alter role application bypassrls`, mend: `alter role application nobypassrls`,
		},
		{
			check: "tenants", severity: doctor.Warning, says: "the policy loose lets roles see more of agui.run",
			cause: `create policy loose on agui.run using (true)`, mend: `drop policy loose on agui.run`,
		},
		{
			check: "tenants", severity: doctor.Error, says: "row-level security is off for changes, but on for",
			cause: `create or replace function agui_internal.has_row_security() returns boolean language sql stable parallel safe return false`,
			mend:  `call agui.disable_row_security()`,
		},
	} {
		t.Run(fault.says, func(t *testing.T) {
			testdb.Exec(t, pool, fault.cause)
			found := slices.DeleteFunc(examine(t, url), func(f doctor.Finding) bool {
				return f.Check == "schema" && fault.check == "indexes" // an index that is invalid is one that has changed, too
			})
			if len(found) != 1 || found[0].Check != fault.check || found[0].Severity != fault.severity ||
				!strings.Contains(found[0].Problem, fault.says) || found[0].Advice == "" {
				t.Errorf("found %+v", found)
			}
			if fault.mend == "" && len(found) == 1 {
				fault.mend = found[0].Advice
			}
			testdb.Exec(t, pool, fault.mend)
			if found := examine(t, url); len(found) > 0 {
				t.Errorf("after %s: found %+v", fault.mend, found)
			}
		})
	}
}

// The owner may lack the right to create roles: then who can help is named.
func TestAnInstallWithoutTheRightToCreateRoles(t *testing.T) {
	t.Parallel()
	server := testdb.Server(t, nil)
	admin := testdb.Connect(t, server.URL("postgres"))
	for _, statement := range []string{`create role plain login password 'secret'`, `create database plain owner plain`} {
		testdb.Exec(t, admin, statement)
	}
	address := must.Have(url.Parse(server.URL("plain")))(t)
	address.User = url.UserPassword("plain", "secret")
	plain := address.String()
	must.Do(t, schema.Up(t.Context(), plain))
	missing := func() (advice []string) {
		for _, finding := range examine(t, plain) {
			if finding.Check == "roles" {
				advice = append(advice, finding.Advice)
			}
		}
		return advice
	}
	if advice := missing(); len(advice) != 6 || !strings.Contains(advice[0], "let a superuser run call agui.grant_access()") {
		t.Errorf("the doctor advises %q", advice)
	}
	testdb.Exec(t, testdb.Connect(t, server.URL("plain")), `call agui.grant_access()`)
	if advice := missing(); len(advice) > 0 {
		t.Errorf("then it advises %q", advice)
	}
}

func TestWithoutTheSchema(t *testing.T) {
	t.Parallel()
	if _, err := doctor.Examine(t.Context(), testdb.Empty(t)); !errors.Is(err, schema.ErrNotInstalled) {
		t.Errorf("got %v", err)
	}
}
