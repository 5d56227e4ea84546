package test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
)

// newRole makes a role that may do everything that can be granted, for one test: roles belong to the whole server.
func newRole(t *testing.T, pool *pgxpool.Pool, name string) string {
	t.Helper()
	return testdb.Role(t, pool, name, "agui_writer, agui_worker, agui_maintainer")
}

// asRole returns a pool whose connections are those of a role, as if it had logged in.
func asRole(t *testing.T, databaseURL, role string, settings ...string) *pgxpool.Pool {
	t.Helper()
	pool := testdb.ConnectWith(t, databaseURL, func(config *pgxpool.Config) {
		config.MaxConns = 4
		config.AfterConnect = func(ctx context.Context, connection *pgx.Conn) error {
			_, err := connection.Exec(ctx, strings.Join(append(settings, `set session authorization `+role), "; "))
			return err
		}
	})
	return pool
}

// tenancy is a database with row-level security, in which the scopes a and b have threads of the same ids.
type tenancy struct {
	owner              *pgxpool.Pool
	url                string
	a, b               string // the roles that are mapped to these scopes
	pool, operator     string
	unmapped           string
	asA, asB, asPool   *pgxpool.Pool
	asOperator, asNone *pgxpool.Pool
}

func newTenancy(t *testing.T) *tenancy {
	t.Helper()
	return newTenancyIn(t, testdb.New(t))
}

// newTenancyIn is newTenancy in a database that has the schema and nothing else.
func newTenancyIn(t *testing.T, url string) *tenancy {
	t.Helper()
	owner := testdb.Connect(t, url)
	tenants := &tenancy{
		owner: owner, url: url, a: newRole(t, owner, "a"), b: newRole(t, owner, "b"), pool: newRole(t, owner, "pool"),
		operator: newRole(t, owner, "operator"), unmapped: newRole(t, owner, "unmapped"),
	}
	for _, scope := range []string{"a", "b"} {
		testdb.Exec(t, owner, strings.ReplaceAll(`
			select agui.enable_chain('SCOPE');
			select agui.append('t', 'r1', '[{"type":"RUN_STARTED","input":{"messages":[{"id":"u","role":"user","content":"secret of SCOPE"}]}},
				{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"secret of SCOPE"},{"type":"RUN_FINISHED"}]', scope => 'SCOPE');
			select agui.append('t', 'r2', '[{"type":"RUN_STARTED"}]', input => ('{"state":{"secret":"' || repeat('secret of SCOPE', 1000) || '"}}')::json, scope => 'SCOPE');
			select agui.append('other', 'r', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]', scope => 'SCOPE');
			select agui.append('asks', 'r', '[{"type":"RUN_STARTED"},{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"secret of SCOPE"},
				{"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[{"id":"i","message":"secret of SCOPE"}]},
				"usage":[{"model":"secret of SCOPE","inputTokens":1}]}]', scope => 'SCOPE');
			select agui.append('gone', 'r', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]', scope => 'SCOPE'), agui.erase('gone', 'secret of SCOPE', 'SCOPE');
			select agui.save_session_state('t', 'k', '"secret of SCOPE"', 'r1', scope => 'SCOPE');
			select agui.save_checkpoint('t', 'c', '"secret of SCOPE"', scope => 'SCOPE');
			select agui.put_checkpoint('t', 'g', '{"channel_versions":{"list":1}}', '{"secret":"SCOPE"}', channels => '{list}', versions => '{1}', types => '{json}',
				channel_values => json_build_array(json_build_array(repeat('secret of SCOPE', 30))), scope => 'SCOPE');
			select agui.put_checkpoint_writes('t', 'g', 'task', '{list}', '{json}', '["secret of SCOPE"]', scope => 'SCOPE');
			select agui.set_hold('t', 'secret of SCOPE', 'SCOPE'), agui.set_retention('archive', '10 years', 'SCOPE');
			select agui.set_thread('t', title => 'secret of SCOPE', scope => 'SCOPE')`, "SCOPE", scope))
	}
	testdb.Exec(t, owner, `call agui.compact()`)
	testdb.Exec(t, owner, `select agui.enable_search('simple')`)
	testdb.Exec(t, owner, `call agui.project()`)
	testdb.Exec(t, owner, `
		insert into agui_internal.job_note (job, thread_key, run_no, attempts, error)
		select 'repack', thread_key, run_no, 2, 'secret of ' || scope from agui.run join agui.thread using (thread_key) where run_id = 'r1'`)
	testdb.Exec(t, owner, `
		insert into agui_internal.node (name) values ('n');
		insert into agui_internal.bucket (bucket, node, epoch) values (1, 'n', 1);
		insert into agui_internal.moved_thread (thread_key, node) select agui.thread_key(scope, 'elsewhere'), 'n' from unnest('{a,b}'::text[]) as scope`)
	testdb.Exec(t, owner, fmt.Sprintf(`
		select agui.map_tenant('%s', 'a'), agui.map_tenant('%s', 'b'), agui.map_pool('%s'), agui.map_operator('%s')`,
		tenants.a, tenants.b, tenants.pool, tenants.operator))
	testdb.Exec(t, owner, `call agui.enable_row_security()`)
	tenants.asA, tenants.asB = asRole(t, url, tenants.a), asRole(t, url, tenants.b)
	tenants.asPool, tenants.asOperator, tenants.asNone = asRole(t, url, tenants.pool), asRole(t, url, tenants.operator), asRole(t, url, tenants.unmapped)
	return tenants
}

// relations are the tables and views of both schemas that agui_reader or agui_maintainer may read.
func relations(t *testing.T, pool *pgxpool.Pool) []string {
	t.Helper()
	found := testdb.List[string](t, pool, `
		select oid::regclass::text from pg_class
		where relnamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace) and relkind in ('r', 'v', 'm', 'p')
			and (has_table_privilege('agui_reader', oid, 'select') or has_table_privilege('agui_maintainer', oid, 'select'))
		order by 1`)
	if len(found) < 20 {
		t.Fatalf("only %d relations were found", len(found))
	}
	return found
}

// What a role can read of tables and views is what its scope has, whatever there is beside it.
func TestTenantsSeeTheirRowsAlone(t *testing.T) {
	t.Parallel()
	tenants := newTenancy(t)
	seen := func(pool *pgxpool.Pool, relation string) string {
		t.Helper()
		return strings.Join(testdb.List[string](t, pool, `select row::text from `+relation+` as row order by 1`), "\n")
	}
	// The same for all scopes.
	shared := []string{"agui.setting", "agui_internal.setting", "agui_internal.installed_object", "agui_internal.search", "agui_internal.usage_mapping", "agui_internal.uptime", "agui_internal.node", "agui_internal.bucket"}
	own := []string{"agui.tenant", "agui_internal.caller", "agui_internal.erased_caller"}
	for _, relation := range relations(t, tenants.owner) {
		all := seen(tenants.owner, relation)
		switch {
		case slices.Contains(shared, relation), slices.Contains(own, relation):
			continue
		}
		ofA, ofB := seen(tenants.asA, relation), seen(tenants.asB, relation)
		if ofA == "" || ofB == "" || strings.Count(ofA, "\n")+strings.Count(ofB, "\n")+2 != strings.Count(all, "\n")+1 {
			t.Errorf("%s: a sees\n%s\nb sees\n%s\nthere is\n%s", relation, ofA, ofB, all)
		}
		if strings.Contains(ofA, "secret of b") || strings.Contains(ofB, "secret of a") {
			t.Errorf("%s: a sees\n%s\nb sees\n%s", relation, ofA, ofB)
		}
		if ofOperator := seen(tenants.asOperator, relation); ofOperator != all {
			t.Errorf("%s: an operator sees\n%s\nthere is\n%s", relation, ofOperator, all)
		}
		for name, pool := range map[string]*pgxpool.Pool{"a role without a mapping": tenants.asNone, "a pool without a scope": tenants.asPool} {
			if got := seen(pool, relation); got != "" {
				t.Errorf("%s: %s sees\n%s", relation, name, got)
			}
		}
	}

	// Counts are of the scope; for pg_monitor and operators of all.
	for _, call := range []string{`agui.stats()`, `agui.lag()`, `agui.stats(exact => true)`, `agui.lag(exact => true)`} {
		columns := `select (to_jsonb(row) - 'compaction_lag' - 'repack_lag' - 'oldest_sign_of_life' - 'is_exact')::text from ` + call + ` as row`
		ofA := testdb.List[string](t, tenants.asA, columns)[0]
		var alone, all map[string]*float64
		must.Do(t, json.Unmarshal([]byte(ofA), &alone))
		must.Do(t, json.Unmarshal([]byte(testdb.List[string](t, tenants.owner, columns)[0]), &all))
		for column, value := range all {
			switch {
			case strings.HasSuffix(column, "_disk_bytes"):
				if alone[column] != nil {
					t.Errorf("%s, %s: a tenant gets %v", call, column, *alone[column])
				}
			case column == "compacted_log_bytes":
			case alone[column] == nil || *alone[column]*2 != *value:
				t.Errorf("%s, %s: a tenant sees %v of %v", call, column, alone[column], *value)
			}
		}
		testdb.Exec(t, tenants.owner, `grant pg_monitor to `+tenants.unmapped)
		for name, pool := range map[string]*pgxpool.Pool{"an operator": tenants.asOperator, "a member of pg_monitor": tenants.asNone} {
			if got, want := testdb.List[string](t, pool, columns)[0], testdb.List[string](t, tenants.owner, columns)[0]; got != want {
				t.Errorf("%s: %s sees %s, want %s", call, name, got, want)
			}
		}
		testdb.Exec(t, tenants.owner, `revoke pg_monitor from `+tenants.unmapped)
		if got := testdb.List[string](t, tenants.asNone, `select (to_jsonb(row) - 'is_exact')::text from `+call+` as row`)[0]; strings.Trim(regexp.MustCompile(`"[a-z_]+": |[{},]`).ReplaceAllString(got, ""), "0nul ") != "" {
			t.Errorf("%s: a role without a mapping sees %s", call, got)
		}
	}

	for role, want := range map[*pgxpool.Pool]string{
		tenants.asA: tenants.a + ",a,tenant", tenants.asPool: tenants.pool + ",,pool", tenants.asOperator: "4", tenants.owner: "4", tenants.asNone: "",
	} {
		got := testdb.List[string](t, role, `select concat_ws(',', role_name, coalesce(scope, ''), kind) from agui.tenant`)
		if want == "4" && len(got) != 4 || want != "4" && strings.Join(got, ";") != want {
			t.Errorf("agui.tenant shows %s, want %s", got, want)
		}
	}
}

// Every table with keys of threads has the policy, and every view applies the policies of who asks, or is known to look for itself.
func TestEveryTableAndViewIsCovered(t *testing.T) {
	t.Parallel()
	tenants := newTenancy(t)
	for _, problem := range testdb.List[string](t, tenants.owner, `
		select relation.oid::regclass || ' has no policy'
		from pg_class as relation
		join pg_attribute as attribute on attribute.attrelid = relation.oid and attribute.attname in ('thread_key', 'erased_key', 'is_all')
		where relation.relnamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace) and relation.relkind = 'r'
			and not (relation.relrowsecurity and exists (select from pg_policy where polrelid = relation.oid and polname = 'agui_scope'))
		union all
		select relation.oid::regclass || ' has neither keys of threads nor is it known'
		from pg_class as relation
		where relation.relnamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace) and relation.relkind = 'r'
			and not exists (select from pg_attribute where attrelid = relation.oid and attname in ('thread_key', 'erased_key', 'is_all'))
			and relation.relname not in ('schema_migrations', 'setting', 'search', 'usage_mapping', 'uptime', 'installed_object', 'erasure_salt', 'tenant', 'webhook', 'webhook_position', 'node', 'bucket', 'pinned_scope')
		union all
		select relation.oid::regclass || ' reads with the rights of the owner'
		from pg_class as relation
		where relation.relnamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace) and relation.relkind in ('v', 'm')
			and coalesce(array_to_string(relation.reloptions, ','), '') !~ 'security_invoker=true'
			and relation.relname not in ('setting', 'tenant', 'caller', 'erased_caller')`) {
		t.Error(problem)
	}
}

// A policy is one condition of an index, which is evaluated once a statement, for a role of a scope and for a pool.
func TestPoliciesAreIndexConditions(t *testing.T) {
	t.Parallel()
	tenants := newTenancy(t)
	// As PostgreSQL 15 to 18 write the two ends.
	const low, high = `(\$0|\(InitPlan 1\)\.col1)`, `(\$1|\(InitPlan 2\)\.col1)`
	oneCondition := regexp.MustCompile(`Index Scan using \w+ on \w+\n\s+Index Cond: \(\((thread|erased)_key >= ` + low + `\) AND \((thread|erased)_key <= ` + high + `\)\)$`)
	initPlans := regexp.MustCompile(`\n\s+InitPlan `)
	for name, caller := range map[string]*pgxpool.Pool{"a role of a scope": tenants.asA, "a pool": tenants.asPool} {
		explain := func(query string) string {
			return strings.Join(inTransaction(t, caller,
				`set local enable_seqscan = off; set local enable_bitmapscan = off; set local agui.scope = 'a'`, `explain (costs off) `+query), "\n")
		}
		seen := 0
		for _, table := range relations(t, tenants.owner) {
			// Their keys begin otherwise, and they have few rows.
			if table == "agui_internal.job_note" || table == "agui_internal.chained_scope" || table == "agui.retention" {
				continue
			}
			isProtected := testdb.Ask[bool](t, tenants.owner, `select relrowsecurity from pg_class where oid = $1::regclass`, table)
			if !isProtected {
				continue
			}
			seen++
			plan := explain(`select * from ` + table)
			if scan := initPlans.Split(plan, 2)[0]; !oneCondition.MatchString(scan) || strings.Count(plan, "  InitPlan ") != 2 {
				t.Errorf("%s: the plan of %s is\n%s", name, table, plan)
			}
			if table == "agui.erasure" { // nobody but the owner has a key of it
				continue
			}
			if plan := explain(`select * from ` + table + ` where thread_key = agui.thread_key('a', 't')`); !regexp.MustCompile(`Index Cond: \([^\n]*thread_key = '`).MatchString(plan) {
				t.Errorf("%s: the plan of a thread in %s is\n%s", name, table, plan)
			}
		}
		if seen < 11 {
			t.Errorf("only %d tables were seen", seen)
		}
		// Through views: of each table that they read, by its key.
		for _, query := range []string{`agui.event`, `agui.event where thread_key = agui.thread_key('a', 't')`} {
			plan := explain(`select * from ` + query)
			if regexp.MustCompile(`Filter: [^\n]*thread_key [<>]=`).MatchString(plan) || strings.Count(plan, "Index Cond: ") < 3 || strings.Contains(plan, "Seq Scan on batch") {
				t.Errorf("%s: the plan of %s is\n%s", name, query, plan)
			}
		}
	}
}

// inTransaction returns what a query answers after other statements of its transaction.
func inTransaction(t *testing.T, pool *pgxpool.Pool, before, query string) (lines []string) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), before); err != nil {
			return err
		}
		rows, err := tx.Query(t.Context(), query)
		if err != nil {
			return err
		}
		lines, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	if err != nil {
		t.Fatalf("%v: %s", err, query)
	}
	return lines
}

// A pool has the scope that it names, for the transaction in which it does.
func TestAPoolHasTheScopeThatItNames(t *testing.T) {
	t.Parallel()
	tenants := newTenancy(t)
	const secret = `select coalesce(string_agg(agui.restore('t', 'r1', scope => scope)::text, ''), '') from agui.thread where thread_id = 't'`
	const settings = `select agui.get_thread('t', 'a')`
	for _, scope := range []string{"a", "b"} {
		got := inTransaction(t, tenants.asPool, fmt.Sprintf(`select set_config('agui.scope', '%s', true)`, scope), secret)
		if !strings.Contains(got[0], "secret of "+scope) || strings.Count(got[0], "threadId") != 1 {
			t.Errorf("a pool with the scope %s reads %s", scope, got)
		}
		// After the transaction the setting reads ''.
		if got := testdb.List[string](t, tenants.asPool, secret); got[0] != "" {
			t.Errorf("after the transaction it reads %s", got)
		}
	}
	for _, scope := range []string{"", "c", "A", "a "} {
		err := pgx.BeginFunc(t.Context(), tenants.asPool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), `select set_config('agui.scope', $1, true)`, scope); err != nil {
				return err
			}
			_, err := tx.Exec(t.Context(), settings)
			return err
		})
		if testdb.State(err) != "UI001" {
			t.Errorf("with the scope %q: %v", scope, err)
		}
	}
	// It takes no part of what it is not set to.
	err := pgx.BeginFunc(t.Context(), tenants.asPool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `select set_config('agui.scope', 'a', true), agui.append('t', 'r2', '[{"type":"CUSTOM"}]', scope => 'b')`)
		return err
	})
	if testdb.State(err) != "42501" {
		t.Errorf("a pool with the scope a appends to b: %v", err)
	}
	// Nor does a mapped role care what it is set to.
	err = pgx.BeginFunc(t.Context(), tenants.asA, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `select set_config('agui.scope', 'b', true), agui.append('t', 'r2', '[{"type":"CUSTOM"}]', scope => 'b')`)
		return err
	})
	if testdb.State(err) != "42501" {
		t.Errorf("a role of scope a that sets agui.scope appends to b: %v", err)
	}
}

// SET ROLE decides, then the role that is logged in; membership does not, nor do settings.
func TestTheCallerIsTheRoleThatIsSet(t *testing.T) {
	t.Parallel()
	tenants := newTenancy(t)
	web := newRole(t, tenants.owner, "web")
	testdb.Exec(t, tenants.owner, fmt.Sprintf(`grant %s, %s to %s`, tenants.a, tenants.b, web))
	asWeb := asRole(t, tenants.url, web)
	const threads = `select scope from agui.thread where thread_id = 't' union all select (agui.append('t', 'r2', '[{"type":"CUSTOM"}]', scope => 'a') > 0)::text`
	for before, want := range map[string]string{
		`set local role ` + tenants.a: "a,true",
		`set local role ` + tenants.b: "42501",
		`select 1`:                    "42501",
		`set local row_security = off; set local role ` + tenants.a: "42501", // PostgreSQL's own refusal
	} {
		var got []string
		err := pgx.BeginFunc(t.Context(), asWeb, func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), before); err != nil {
				return err
			}
			rows, err := tx.Query(t.Context(), threads)
			if err != nil {
				return err
			}
			got, err = pgx.CollectRows(rows, pgx.RowTo[string])
			return err
		})
		if answer := strings.Join(got, ",") + testdb.State(err); answer != want {
			t.Errorf("%s: %s (%v), want %s", before, answer, err, want)
		}
	}
}

// A change of another scope is refused in the same words whether the thread exists or not, before anything is looked up: what others hold of it
// is not waited for.
func TestForeignChangesAreRefused(t *testing.T) {
	t.Parallel()
	tenants := newTenancy(t)
	holder := testdb.Begin(t, tenants.owner)
	defer holder.Rollback(context.Background())
	testdb.Exec(t, holder, `
		select pg_advisory_xact_lock(agui_internal.thread_lock_id(thread_key)) from agui.thread;
		select from agui.thread for update;
		select from agui.run for update;
		select from agui.session_key for update`, pgx.QueryExecModeSimpleProtocol)

	rows, err := tenants.owner.Query(t.Context(), `
		select proc.oid::regprocedure::text, proc.proname, proc.pronamespace::regnamespace::text, proc.proargnames[: proc.pronargs],
			array(select format_type(type, null) from unnest(proc.proargtypes::oid[]) with ordinality as argument (type, place) order by place)
		from pg_proc as proc
		where proc.pronamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace) and proc.prosecdef and proc.provolatile = 'v'
			and exists (select from aclexplode(proc.proacl) as granted where granted.grantee <> proc.proowner)`)
	must.Do(t, err)
	type function struct {
		Signature, Name, Schema string
		Arguments, Types        []string
	}
	functions := must.Have(pgx.CollectRows(rows, pgx.RowToStructByPos[function]))(t)
	if len(functions) < 30 {
		t.Fatalf("only %d functions were found", len(functions))
	}
	connection := testdb.Acquire(t, tenants.asB)
	testdb.Exec(t, connection, `set lock_timeout = '10s'`)
	for _, f := range functions {
		if strings.Contains(f.Name, "webhook") || slices.Contains(functionsOfMoves, f.Name) { // for operators
			continue
		}
		switch f.Name {
		case "note_uptime", "forget_claims", "forget_ended_runs", "find_ends", "choose_thread_to_compact", "note_interruption", "apply_rules", "project_step", "settle_calls", "rebuild_facts", "enable_search", "disable_search", "map_usage", "unmap_usage", "set_setting": // they name no scope
			continue
		}
		answers := map[string]bool{}
		for _, thread := range []string{"t", "unknown", "gone"} {
			var given []string
			for i, argument := range f.Arguments {
				given = append(given, foreignArgument(argument, f.Types[i], thread))
			}
			call := fmt.Sprintf(`%s.%s(%s)`, f.Schema, f.Name, strings.Join(given, ", "))
			answer, err := firstAnswer(t.Context(), connection.Conn(), call)
			if f.Name == "append_many" && err == nil {
				answers[answer] = true
				if want := fmt.Sprintf(`(1,,42501,"role ""%s"" may not change threads of scope ""a""",,"The role has another scope (pgagui: --scope NAME).",)`, tenants.b); answer != want {
					t.Errorf("%s: %s, want %s", call, answer, want)
				}
				continue
			}
			var refused *pgconn.PgError
			if !errors.As(err, &refused) {
				t.Errorf("%s is not refused: %s, %v", call, answer, err)
				continue
			}
			key := regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`).ReplaceAllString(refused.Message, "KEY")
			answers[strings.Join([]string{refused.Code, key, refused.Detail, refused.Hint}, "|")] = true
			if refused.Code != "42501" || !strings.HasPrefix(refused.Message, `role "`+tenants.b+`" may not change `) || refused.Hint != "The role has another scope (pgagui: --scope NAME)." {
				t.Errorf("%s: %v", call, refused)
			}
		}
		if len(answers) != 1 {
			t.Errorf("%s says different things of threads that exist and that do not: %v", f.Signature, answers)
		}
	}
}

// foreignArgument is a value for an argument of a function, which is called for a thread of the scope a.
func foreignArgument(name, kind, thread string) string {
	key := fmt.Sprintf(`agui.thread_key('a', '%s')`, thread)
	switch name {
	case "thread_id":
		return "'" + thread + "'"
	case "thread_ids":
		return "'{" + thread + "}'"
	case "scope":
		return "'a'"
	case "scopes":
		return "'{a}'"
	case "thread_key", "near":
		return key
	case "run_id", "run_a", "run_b":
		return "'r2'"
	case "run_ids":
		return "'{r2}'"
	case "events":
		if kind == "json[]" {
			return `array['[{"type":"CUSTOM"}]'::json]`
		}
		return `'[{"type":"CUSTOM"}]'`
	case "session":
		return fmt.Sprintf(`'{"threadId":"%s","state":{"k":1}}'`, thread)
	case "sessions":
		return fmt.Sprintf(`'[{"threadId":"%s","state":{"k":1}}]'`, thread)
	case "key":
		return "'k'"
	case "checkpoint_id":
		return "'c'"
	case "document":
		return "'1'"
	case "run_no":
		return "1"
	case "strict", "wait", "durable", "overwrite":
		return "true"
	}
	return "null::" + kind
}

func firstAnswer(ctx context.Context, connection *pgx.Conn, call string) (answer string, err error) {
	rows, err := connection.Query(ctx, `select coalesce(answer::text, '') from `+call+` as answer`)
	if err != nil {
		return "", err
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return strings.Join(lines, "\n"), err
}

// append_many asks for each scope, and answers a call to another one alone.
func TestAForeignCallAmongManyIsAnsweredAlone(t *testing.T) {
	t.Parallel()
	tenants := newTenancy(t)
	got := testdb.List[string](t, tenants.asB, `
		select format('%s %s %s', call_no, last_seq, error_code)
		from agui.append_many('{t,t,new,t}', '{r2,r2,r,r1}',
			array['[{"type":"CUSTOM"}]','[{"type":"CUSTOM"}]','[{"type":"RUN_STARTED"}]','[{"type":"CUSTOM"}]']::json[], scopes => '{b,a,b,b}')
		order by call_no`)
	want := []string{"1 5 ", "2  42501", "3 1 ", "4  UI005"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if n := testdb.List[string](t, tenants.owner, `select count(*)::text from agui.event where scope = 'a' and thread_id = 't'`)[0]; n != "4" {
		t.Errorf("the thread of scope a has %s events", n)
	}
}

// While row-level security is off nothing of this holds; it goes on and off for sessions that have planned their statements, and comes back with all tables.
func TestRowSecurityGoesOnAndOff(t *testing.T) {
	t.Parallel()
	tenants := newTenancy(t)
	connection := testdb.Acquire(t, tenants.asB)
	try := func() string {
		t.Helper()
		threads := testdb.Ask[int](t, connection, `select count(*) from agui.thread where scope = 'a'`)
		_, restored := firstAnswer(t.Context(), connection.Conn(), `agui.restore('t', scope => 'a')`)
		_, appended := firstAnswer(t.Context(), connection.Conn(), `agui.append('t', 'r2', '[{"type":"CUSTOM"}]', scope => 'a')`)
		return fmt.Sprintf("%d %s %s", threads, testdb.State(restored), testdb.State(appended))
	}
	for range 8 { // often enough for plans that are kept
		if got := try(); got != "0 UI001 42501" {
			t.Fatalf("on: %s", got)
		}
	}
	testdb.Exec(t, tenants.owner, `call agui.disable_row_security()`)
	for range 8 {
		if got := try(); got != "3  " {
			t.Fatalf("off: %s", got)
		}
	}
	if left := testdb.List[string](t, tenants.owner, `select polrelid::regclass::text from pg_policy union all select oid::regclass::text from pg_class where relrowsecurity`); len(left) > 0 {
		t.Errorf("off: %s", left)
	}
	testdb.Exec(t, tenants.owner, `call agui.enable_row_security()`)
	if got := try(); got != "0 UI001 42501" {
		t.Errorf("on once more: %s", got)
	}
	// grant_access restores what was dropped or turned off by hand.
	testdb.Exec(t, tenants.owner, `alter table agui.batch disable row level security; drop policy agui_scope on agui.run`)
	testdb.Exec(t, tenants.owner, `call agui.grant_access()`)
	if got := testdb.List[string](t, tenants.asB, `select count(*)::text from agui.event where scope = 'a'`)[0]; got != "0" {
		t.Errorf("after grant_access b sees %s events of a", got)
	}
}

// The policy of others on a table stays, on and off.
func TestPoliciesOfOthersStay(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	testdb.Exec(t, pool, `alter table agui.thread enable row level security; create policy mine on agui.thread using (true)`)
	testdb.Exec(t, pool, `call agui.grant_access()`)
	if got := testdb.List[string](t, pool, `select polname::text from pg_policy`); !slices.Equal(got, []string{"mine"}) {
		t.Errorf("grant_access made policies: %s", got)
	}
	testdb.Exec(t, pool, `call agui.enable_row_security()`)
	testdb.Exec(t, pool, `call agui.disable_row_security()`)
	if got := testdb.List[string](t, pool, `select polname::text from pg_policy union all select relname::text from pg_class where relrowsecurity`); !slices.Equal(got, []string{"mine", "thread"}) {
		t.Errorf("of the policy of others is left: %s", got)
	}
}

func TestMappings(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	role := newRole(t, pool, `mapped`)
	mapped := func() string {
		return strings.Join(testdb.List[string](t, pool, `select concat_ws(' ', kind, scope) from agui.tenant`), ", ")
	}
	for _, step := range []struct{ statement, want string }{
		{`select agui.map_tenant('` + role + `', 'x')`, "tenant x"},
		{`select agui.map_tenant('` + role + `', '')`, "tenant "},
		{`select agui.map_operator('` + role + `')`, "operator"},
		{`select agui.map_pool('` + role + `')`, "pool"},
		{`select agui.unmap_role('` + role + `')`, ""},
		{`select agui.unmap_role('` + role + `')`, ""},
	} {
		testdb.Exec(t, pool, step.statement)
		if got := mapped(); got != step.want {
			t.Errorf("%s: %q, want %q", step.statement, got, step.want)
		}
	}
	for statement, state := range map[string]string{
		`select agui.map_tenant('` + role + `', null)`: "22023",
		`select agui.map_tenant('nobody at all', 'x')`: "42704",
		`select agui.map_pool('nobody at all')`:        "42704",
		`select agui.map_operator('nobody at all')`:    "42704",
	} {
		if _, err := pool.Exec(t.Context(), statement); testdb.State(err) != state {
			t.Errorf("%s: %v, want %s", statement, err, state)
		}
	}
	// They are the owner's.
	for _, call := range []string{
		`select agui.map_tenant('x', 'x')`, `select agui.map_pool('x')`, `select agui.map_operator('x')`, `select agui.unmap_role('x')`,
		`call agui.enable_row_security()`, `call agui.disable_row_security()`, `select * from agui_internal.tenant`,
		`select agui_internal.set_row_security(false)`, `create or replace function agui_internal.has_row_security() returns boolean language sql return false`,
	} {
		for _, access := range accessRoles {
			if err := as(t.Context(), pool, access, call); testdb.State(err) != "42501" {
				t.Errorf("%s: %s: %v", access, call, err)
			}
		}
	}
	// The range of a scope is that of the keys of its threads.
	for _, problem := range testdb.List[string](t, pool, `
		select scope
		from (values (''), ('a'), ('ä\b'), (repeat('x', 1024))) as given (scope)
		where agui.thread_key(scope, 'thread') not between agui_internal.first_key(scope) and agui_internal.last_key(scope)
			or left(agui_internal.first_key(scope)::text, 18) <> left(agui.thread_key(scope, '')::text, 18)
			or left(agui_internal.first_key(scope)::text, 18) <> left(agui_internal.last_key(scope)::text, 18)
			or right(agui_internal.first_key(scope)::text, 17) <> '0000-000000000000'
			or right(agui_internal.last_key(scope)::text, 17) <> 'ffff-ffffffffffff'`) {
		t.Errorf("scope %q: its keys are not one range", problem)
	}
}

// Two scopes whose hashes meet would be one range of keys: the second one gets no threads and no role. The hash cannot be made to collide, so here the
// threads of a scope say that they are of another one.
func TestScopesWhoseHashesMeetAreRefused(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	role := newRole(t, pool, "tenant")
	testdb.Exec(t, pool, `
		select agui.append('t', 'r', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]', scope => 'a');
		alter table agui.thread disable trigger user;
		update agui.thread set scope = 'victim'`)
	for _, statement := range []string{
		`select agui.append('new', 'r', '[{"type":"RUN_STARTED"}]', scope => 'a')`,
		`select agui.import_events('new', 'r', '[{"type":"RUN_STARTED"}]', scope => 'a')`,
		`select agui.set_thread('new', create_if_missing => true, scope => 'a')`,
		`select agui.save_session_state('new', 'k', '1', scope => 'a')`,
		`select agui.save_session('{"threadId":"new","state":{"k":1}}', scope => 'a')`,
		`select agui.save_checkpoint('new', 'c', '1', scope => 'a')`,
		`select agui.map_tenant('` + role + `', 'a')`,
	} {
		_, err := pool.Exec(t.Context(), statement)
		if refused, ok := errors.AsType[*pgconn.PgError](err); !ok || refused.Code != "UI012" || strings.Contains(refused.Error()+refused.Detail+refused.Hint, "victim") {
			t.Errorf("%s: %v", statement, err)
		}
	}
	if got := testdb.List[string](t, pool, `select error_code from agui.append_many('{new}', '{r}', array['[{"type":"RUN_STARTED"}]'::json], scopes => '{a}')`); !slices.Equal(got, []string{"UI012"}) {
		t.Errorf("append_many: %s", got)
	}
}

// Jobs do what the scope of their role has, and one that has none says so.
func TestJobsOfTenants(t *testing.T) {
	t.Parallel()
	tenants := newTenancy(t)
	testdb.Exec(t, tenants.owner, `
		select agui.abandon('t', 'r2', scope => 'a'), agui.abandon('t', 'r2', scope => 'b');
		delete from agui_internal.job_note`)
	waiting := func() string {
		return testdb.List[string](t, tenants.owner, `
			select format('%s %s', count(*) filter (where scope = 'a'), count(*) filter (where scope = 'b'))
			from agui.run join agui.thread using (thread_key)
			where log_bytes is null or repacked_at is null`)[0]
	}
	before := waiting()
	for _, job := range []string{
		`call agui.compact()`, `call agui.compact_running(1)`, `call agui.repack(older_than => '0')`, `call agui.reap()`, `call agui.erase_older('1 day', scope => null)`, `call agui.apply_retention()`,
	} {
		for name, pool := range map[string]*pgxpool.Pool{"a role without a mapping": tenants.asNone, "a pool without a scope": tenants.asPool} {
			if _, err := pool.Exec(t.Context(), job); testdb.State(err) != "42501" {
				t.Errorf("%s: %s: %v", name, job, err)
			}
		}
	}
	if got := waiting(); got != before {
		t.Errorf("roles without a scope did something: %s, before %s", got, before)
	}
	testdb.Exec(t, tenants.asB, `call agui.compact()`)
	testdb.Exec(t, tenants.asB, `call agui.repack(older_than => '0')`)
	ofA, _, _ := strings.Cut(before, " ")
	if got := waiting(); ofA == "0" || strings.HasSuffix(before, " 0") || got != ofA+" 0" {
		t.Errorf("after the jobs of b %s runs of a and b wait, %s before", got, before)
	}
	testdb.Exec(t, tenants.asB, `select agui.lift_hold('t', scope => 'b')`)
	testdb.Exec(t, tenants.asB, `call agui.erase_older('-1 hour', scope => null)`)
	if got := testdb.List[string](t, tenants.owner, `select string_agg(distinct scope, ',') from agui.thread`)[0]; got != "a" {
		t.Errorf("after b erased all threads there are those of %s", got)
	}
	testdb.Exec(t, tenants.asOperator, `call agui.compact()`)
	testdb.Exec(t, tenants.asOperator, `call agui.repack(older_than => '0')`)
	if got := waiting(); got != "0 0" {
		t.Errorf("after the jobs of an operator %s runs of a and b wait", got)
	}
	// What holds for all scopes takes one that has them.
	for _, change := range []string{`select agui.set_setting('lease', '1 minute')`, `select agui.enable_chain()`, `select agui.disable_chain()`, `select agui.set_retention('erase', '1 year')`, `select agui.remove_retention('erase')`,
		`select agui.add_webhook('hook', 'https://example.com', scope => 'a')`, `select agui.webhooks()`, `select agui.webhook_failures('hook')`,
		`select agui.enable_webhook('hook', false)`, `select agui.retry_webhook_failures('hook')`, `select agui.drop_webhook_failures('hook')`,
		`select agui_internal.webhook_endpoints(now())`, `select agui_internal.add_webhook_requests('hook', '', '', '{a}', '{t}', '{r1}')`,
		`select agui_internal.claim_webhook_requests('hook', now(), now(), 1)`,
		`select agui_internal.note_webhook_request('hook', '', 1, true, null, '', true)`, `select agui.remove_webhook('hook')`,
		`select agui.rotate_webhook_secret('hook')`, `select agui.take_over_webhooks()`,
	} {
		for name, pool := range map[string]*pgxpool.Pool{"a tenant": tenants.asA, "a pool": tenants.asPool, "a role without a mapping": tenants.asNone} {
			if _, err := pool.Exec(t.Context(), change); testdb.State(err) != "42501" {
				t.Errorf("%s: %s: %v", name, change, err)
			}
		}
		testdb.Exec(t, tenants.asOperator, change)
	}
}

// Helpers that take a row of a table can be given one of another scope: they find no more of it than what is given.
func TestForgedRowsLeadNowhere(t *testing.T) {
	t.Parallel()
	tenants := newTenancy(t)
	connection := connectOne(t, tenants.asB)
	const unknown = "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"
	key := testdb.List[string](t, tenants.owner, `select agui.thread_key('a', 't')::text`)[0]
	taking := 0
	for _, f := range callable(t, tenants.owner) {
		place := slices.IndexFunc(f.types, func(kind string) bool { return strings.HasPrefix(kind, "agui.") })
		if place < 0 {
			continue
		}
		taking++
		table := strings.TrimSuffix(f.types[place], "[]")
		for _, row := range testdb.List[string](t, tenants.owner, `select row::text from `+table+` as row where thread_key = agui.thread_key('a', 't')`) {
			call := func(row string) string {
				var given []string
				for i, name := range f.arguments {
					value := foreignArgument(name, f.types[i], "t")
					if i == place {
						value = "'" + strings.ReplaceAll(row, "'", "''") + "'::" + table
						if strings.HasSuffix(f.types[i], "[]") {
							value = "array[" + value + "]"
						}
					}
					given = append(given, value)
				}
				return fmt.Sprintf(`select coalesce(answer::text, '') from %s(%s) as answer`, f.qualified, strings.Join(given, ", "))
			}
			// Cursors have the key without its dashes.
			forged := strings.NewReplacer(key, unknown, strings.ReplaceAll(key, "-", ""), strings.ReplaceAll(unknown, "-", "")).
				Replace(saidTo(t.Context(), connection, call(row)))
			if want := saidTo(t.Context(), connection, call(strings.ReplaceAll(row, key, unknown))); forged != want {
				t.Errorf("%s\nsays\n%s\nand of a row that leads nowhere\n%s", call(row), forged, want)
			}
		}
	}
	if taking < 10 {
		t.Errorf("only %d functions take rows", taking)
	}
}

// What is asked about all conversations is answered from the caller's own, whichever scope it names; a role without a scope has none.
func TestQuestionsAreAboutTheCallersScope(t *testing.T) {
	t.Parallel()
	tenants := newTenancy(t)
	for _, question := range []string{
		`agui.changes(scope => 'b')`, `agui.changes()`, `agui.consume('c', scope => 'b')`, `agui.consume('c')`, `agui.search('secret', scope => 'b')`, `agui.search('secret')`,
		`agui.waiting(scope => 'b')`, `agui.waiting()`, `agui.tool_report(scope => 'b')`, `agui.agent_report(scope => 'b')`, `agui.model_report(scope => 'b')`,
		`agui.day_report(scope => 'b')`, `agui.list_runs(scope => 'b')`,
	} {
		answer := func(pool *pgxpool.Pool) string {
			return strings.Join(testdb.List[string](t, pool, `select answer::text from `+question+` as answer`), "\n")
		}
		if strings.Contains(question, "'b'") && answer(tenants.asB) == "" && !strings.HasPrefix(question, "agui.list_runs") {
			t.Errorf("%s: b gets nothing", question)
		}
		for name, pool := range map[string]*pgxpool.Pool{"a": tenants.asA, "a role without a mapping": tenants.asNone, "a pool without a scope": tenants.asPool} {
			if name == "a" && !strings.Contains(question, "'b'") {
				continue
			}
			if got := answer(pool); got != "" {
				t.Errorf("%s: %s gets %s", question, name, got)
			}
		}
	}
}

// An erased thread comes to readers of its scope and of all scopes, and to no other.
func TestErasuresComeToTheirScope(t *testing.T) {
	t.Parallel()
	tenants := newTenancy(t)
	// Behind all that has ended.
	after := testdb.List[string](t, tenants.owner, `
		select agui_internal.epoch() || ' changed ' || (pg_snapshot_xmin(pg_current_snapshot())::text::numeric - 1) || ' ffffffff-ffff-ffff-ffff-ffffffffffff 1'`)[0]
	uid := testdb.List[string](t, tenants.owner, `select thread_uid::text from agui.thread where scope = 'b' order by thread_id limit 1`)[0]
	testdb.Exec(t, tenants.asB, `select agui.erase(thread_id, scope => 'b') from (select thread_id from agui.thread where scope = 'b' order by thread_id limit 1) as first`)
	erased := func(pool *pgxpool.Pool, scope string) []string {
		return testdb.List[string](t, pool, `select thread_uid::text from agui.changes('`+after+`', scope => `+scope+`) where is_erased`)
	}
	wait.For(t, "the erasure", func() bool { return slices.Contains(erased(tenants.owner, "null"), uid) }) // erasures of before may come too
	for _, reader := range []struct {
		name, scope string
		pool        *pgxpool.Pool
		gets        bool
	}{
		{"b", "null", tenants.asB, true}, {"b", "'b'", tenants.asB, true}, {"an operator", "null", tenants.asOperator, true}, {"an operator", "'b'", tenants.asOperator, true},
		{"an operator", "'a'", tenants.asOperator, false}, {"a", "null", tenants.asA, false}, {"a", "'b'", tenants.asA, false}, {"a role without a mapping", "null", tenants.asNone, false},
		{"a pool without a scope", "null", tenants.asPool, false},
	} {
		if got := erased(reader.pool, reader.scope); slices.Contains(got, uid) != reader.gets {
			t.Errorf("%s gets of the scope %s %v", reader.name, reader.scope, got)
		}
	}
	// Whatever the salt is, which decides the order of the keys of erased threads.
	for salt := range 20 {
		testdb.Exec(t, tenants.owner, fmt.Sprintf(`update agui_internal.erasure_salt set salt = '\x%02x'`, salt))
		testdb.Exec(t, tenants.owner, `update agui.erasure set erased_key = agui_internal.erasure_key(agui.thread_key('b', 'asks')) where thread_uid = '`+uid+`'`)
		if got := erased(tenants.asA, "'b'"); slices.Contains(got, uid) {
			t.Errorf("with the salt %d a gets of the scope b %v", salt, got)
		}
	}
}
