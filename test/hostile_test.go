package test

import (
	cryptorand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgagui/pgagui/internal/hostile"
	"github.com/pgagui/pgagui/internal/testdb"
)

// A run with all that the fold takes: strings that jsonb refuses, chunks side by side, patches, tools, activities.
const eventsOfAllKinds = `[
	{"type":"RUN_STARTED","threadId":"t","runId":"%run%","input":{"messages":[{"id":"u\\u0000","role":"user","content":"a \\ud83d b \\\\ \\u0041"}],"state":{"a":1e400}}},
	{"type":"STATE_SNAPSHOT","snapshot":{"a":{"b":[1,2,{"c":"\\u0000"}]},"n":1e100000}},
	{"type":"STATE_DELTA","delta":[{"op":"add","path":"/a/b/0","value":"\\ud83d"},{"op":"test","path":"/a/b/1","value":1},{"op":"move","from":"/a/b/1","path":"/z~0~1"},
		{"op":"copy","from":"/a","path":"/d"},{"op":"replace","path":"/d/b","value":{}},{"op":"remove","path":"/a"}]},
	{"type":"TEXT_MESSAGE_CHUNK","messageId":"m\\u0000","role":"assistant","delta":"x\\ud83d"},
	{"type":"TEXT_MESSAGE_CHUNK","messageId":"m\\u0000","delta":"\\ude00 y","metadata":{"k":1}},
	{"type":"TOOL_CALL_CHUNK","toolCallId":"c\\u0000","toolCallName":"f","parentMessageId":"m\\u0000","delta":"{\"a\":"},
	{"type":"TOOL_CALL_CHUNK","delta":"1}"},
	{"type":"TOOL_CALL_RESULT","messageId":"r","toolCallId":"c\\u0000","content":"done","role":"tool"},
	{"type":"TOOL_CALL_START","toolCallId":"s","toolCallName":"g"},{"type":"TOOL_CALL_ARGS","toolCallId":"s","delta":"[]"},{"type":"TOOL_CALL_END","toolCallId":"s"},
	{"type":"REASONING_MESSAGE_CHUNK","messageId":"q","delta":"hm"},
	{"type":"ACTIVITY_SNAPSHOT","messageId":"a","activityType":"plan","content":{"steps":[]}},
	{"type":"ACTIVITY_DELTA","messageId":"a","activityType":"plan","patch":[{"op":"add","path":"/steps/-","value":1}]},
	{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"m\\u0000","role":"assistant","content":"x","metadata":{"k":2}},{"id":"n","role":"user","content":"y"}]},
	{"type":"TEXT_MESSAGE_CONTENT","messageId":"m\\u0000","delta":"z"},
	{"type":"STEP_STARTED","stepName":"s\\u0000"},{"type":"STEP_FINISHED","stepName":"s\\u0000"},
	{"type":"RAW","event":{"type":"x"}},{"type":"CUS\\u0054OM","name":"\\ud83d","value":1}%end%]`

func runOfAllKinds(run, end string) string {
	return strings.NewReplacer("%run%", run, "%end%", end, "'", "''", `\\`, `\`).Replace(eventsOfAllKinds)
}

// callsOfAll calls every routine of the schema agui, and reads every view.
func callsOfAll() []string {
	all := runOfAllKinds("r", `,{"type":"RUN_FINISHED"}`)
	return []string{
		`select agui.thread_key('', 't')`,
		// All threads are chained, which each append and repack then see to.
		`select agui.enable_chain(), agui.enable_chain('other'), agui.disable_chain('other')`,
		`select agui.append('t', 'r', '` + all + `', after_seq => 0, input => null)`,
		`select agui.append('t', 'r', '` + all + `', after_seq => 0)`,
		`select agui.append('t', 'r', '[{"type":"CUSTOM"}]', after_seq => 21)`,
		`select agui.append('t', 's', '` + runOfAllKinds("s", "") + `', input => '{"messages":[]}', parent_run_id => 'r')`,
		`select agui.append('t', 's', '[{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"x"}]')`,
		`select agui.append_many('{t,t,u}', '{s,s,v}', array[
			'[{"type":"CUSTOM"}]', '[{"type":"CUSTOM"},{"type":"RUN_ERROR","message":"x"}]', '[{"type":"RUN_STARTED"}]']::pg_catalog.json[], '{null,null,0}',
			'{null,null,"{}"}', '{null,null,""}', '{f,f,t}', wait => false, scopes => '{"","",""}')`,
		`select agui.import_events('i', 'r', '[{"type":"RUN_STARTED","timestamp":1},{"type":"CUSTOM","timestamp":1000000},{"type":"CUSTOM","timestamp":9000000}]')`,
		`select agui.heads()`,
		`select agui.poll('{t,u}', '{0,1}', '{null,null}')`,
		`select agui.attach('t', shape => 'snapshot'), agui.attach_part('t'), agui.attach('t', 's', shape => 'stream'), agui.attach('t', at_seq => 5, shape => 'events')`,
		`select agui.status('t'), agui.head('t'), agui.merge_base('t', 'r', 's'), agui.message_origin('t', 'm')`,
		`select agui.keep_alive('{u}', '{v}'), agui.keep_alive('{u}', '{v}', detach => true)`,
		`select agui.request_stop('u', reason => 'x')`,
		`select agui.claim_run('claimed', 'r', 'me', '{"a":1}'), agui.claim_run('claimed', 'r', 'me', '{"a":1}'), agui.claims('claimed')`,
		`select agui.keep_alive('{claimed}', '{r}'), agui.request_stop('claimed'), agui.append('claimed', 's', '[{"type":"RUN_STARTED"}]', parallel => true)`,
		`select agui.claim_run('claimed', 'q', 'me', parent_run_id => '', parallel => true), agui.release_claim('claimed', 'q', 'me')`,
		`select agui.append('claimed', 'r', '[{"type":"RUN_STARTED"}]')`,
		`call agui.compact_running(1, max_time => '1 minute')`,
		`select agui.abandon('u', 'v')`,
		`select agui.restore('t'), agui.restore('t', at_seq => 9), agui.state('t'), agui.interrupts('t', 'r')`,
		`select agui.messages('t', at_time => 'now')`,
		`select agui.attachments('t'), agui.attachment_data('t', 1)`,
		`select agui.keep_agent_error('t', 'r', 422, 'text/plain', 'x'), agui.get_agent_error('t', 'r')`,
		`select agui.events('t', after_seq => 1, lineage => false), agui.lineage('t'), agui.runs('t'), agui.branches('t'), agui.answered('t', asked_by => 'r1', interrupt_ids => '{i}'), agui.children('t')`,
		`select agui.history('t', types => '{CUSTOM,TEXT_MESSAGE_CHUNK}', since => '2000-01-01', max_bytes => 100, max_idle => '1 s')`,
		`select agui.history('t', compressed => false), agui.tool_calls('t'), agui.activities('t'), agui.session_messages('t')`,
		`select agui.usage('t'), agui.usage('t', whole_thread => true), agui.subagents('t')`,
		`select agui.session_runs('t', '[{"type":"user","content":"x"}]')`,
		`select agui.replay('t'), agui.replay('t', 'r', shape => 'stream')`,
		`select agui.compact_events('` + all + `'), agui.compact_events('` + all + `', 'snapshot')`,
		`select agui.json_patch('{"a":"\\u0041"}', '[{"op":"add","path":"/b~1","value":1}]'), agui.json_patch_agg('[{"op":"add","path":"/b","value":1}]')`,
		`select agui.save_session_state('t', 'k', '{"a":"\u0000"}', 'r'), agui.save_session_state('t', 'l', '1')`,
		`select agui.load_session_state('t', 'k'), agui.session_states('t'), agui.session_versions('t', 'k')`,
		`select agui.load_session('t'), agui.load_sessions('{t,u}', '{r,null}')`,
		`select agui.save_session('{"threadId":"t","runId":"r","state":{"m":{"x\u0000":1}}}')`,
		`select agui.save_sessions('[{"threadId":"t","state":{"n":1}}]')`,
		`select agui.remove_session_state('t', 'l', overwrite => true)`,
		`select agui.save_checkpoint('t', 'c', '{}'), agui.save_checkpoint('t', 'd', '{}', 'c')`,
		`select agui.load_checkpoint('t'), agui.checkpoints('t'), agui.checkpoint_lineage('t')`,
		`select agui.put_checkpoint('t', 'g', '{"channel_versions":{"list":1,"a\\b":2}}', '{"a":1}', 'f', '{list,bin,"a\\b"}', '{1,1,2}', '{json,bytes,json}',
			pg_catalog.json_build_array(pg_catalog.json_build_array(pg_catalog.repeat('x', 300)), 'AAEC', 1), 'r')`,
		`select agui.put_checkpoint_writes('t', 'g', 'task', '{list,other}', '{json,bytes}', '[[1],"AAEC"]', '{0,-1}', 'path')`,
		`select agui.put_checkpoint('t', 'h', '{"channel_versions":{"list":1}}', parent_id => 'g')`,
		`select agui.checkpoint_contents(), agui.checkpoint_contents('t', 'g', '', filter => '{"a":1}'), agui.checkpoint_contents('t', before_id => 'z', namespace => '')`,
		`select agui.channel_history('t', '{list,other}', 'h'), agui.channel_history('t', '{list}')`,
		`select agui.load_checkpoint('t', run_id => 'r'), agui.put_checkpoint('other', 'g', '{}'), agui.remove_checkpoints('other')`,
		`select agui.copy_checkpoints('t', 'copy'), agui.remove_run_checkpoints('{r}', 'copy'), agui.remove_run_checkpoints('{none}'), agui.prune_checkpoints('copy'), agui.remove_checkpoints('copy')`,
		`select agui.set_thread('t', title => 'x', metadata => '{"a":1}'), agui.get_thread('t')`,
		`select agui.threads(title => 'x', metadata => '{"a":1}', status => 'failed'), agui.thread_page(since => '2000-01-01', agent => null), agui.list_runs(), agui.pending_tool_calls('t'), agui.malformed_events('t')`,
		`call agui.compact(max_time => '1 minute', older_than => '0')`,
		`call agui.repack(older_than => '0')`,
		`select agui.restore('t'), agui.messages('t'), agui.tool_calls('t')`,
		`select agui.retry('compact', 't'), agui.retry()`,
		`select agui.changes(), agui.changes((select position from agui.changes() limit 1), scope => 'x')`,
		`call agui.project('1 minute')`,
		`select agui.move_consumer('c', (select position from agui.consume('c') limit 1)), agui.mark_read('c', 't', 1)`,
		`select agui.consume('c'), agui.consumers()`, `select agui.remove_consumer('c')`,
		`select agui.last_messages('t'), agui.last_events('t'), agui.run_tool_calls('t'), agui.last_errors('t')`,
		`select agui.map_usage('{metadata,usage}', '{"inputTokens":"prompt"}')`, `select agui.usage('t')`, `select agui.unmap_usage()`,
		`select agui.enable_search('english')`, `select agui.search('x', scope => 'x')`, `select agui.disable_search()`,
		`select agui.waiting(), agui.tool_report(), agui.agent_report('2020-01-01'), agui.model_report(scope => ''), agui.day_report()`,
		`table agui.run_fact`, `table agui.tool_fact`, `table agui.interrupt_fact`, `table agui.usage_fact`,
		`select agui.verify('t')`,
		`select agui.rebuild_facts()`,
		`select agui.rebuild_snapshots('t')`,
		`select agui.set_setting('lease', '1'), agui.set_setting('lease', null)`,
		`update agui.run set seen_at = '2000-01-01', started_at = '2000-01-01' where status operator(pg_catalog.=) 'running'`,
		`call agui.reap(max_runs => 1)`,
		`call agui.reap()`,
		`table agui.event`, `select agui.stats(), agui.lag()`, `select agui.stats(true), agui.lag(true)`, `table agui.quarantine`, `table agui.setting`,
		`call agui.grant_access()`,
		`select agui_internal.changed_objects(), agui_internal.installed()`,
		`select agui.set_hold('t', 'x'), agui.set_hold('t', 'y')`, `table agui.held_thread`, `select agui.lift_hold('t')`,
		`select agui.set_retention('erase', '10 years'), agui.set_retention('archive', '1 microsecond', ''), agui.set_retention('remove_checkpoints', '1 microsecond')`,
		`call agui.apply_retention(1)`, `call agui.apply_retention(max_time => '1 minute')`,
		`select agui.remove_retention('erase'), agui.remove_retention('archive', '')`,
		`select agui.add_webhook('hook', 'https://example.com/'), agui.add_webhook('other', 'https://example.com/', '{run.failed}', scope => 'x')`,
		`update agui.webhook set created_at = '2000-01-01'`,
		`select agui_internal.add_webhook_requests(name, position, position, '{"","x",""}', '{t,t,i}', '{r1,r1,r}') from agui_internal.webhook_endpoints(pg_catalog.now())`,
		`select agui_internal.claim_webhook_requests('hook', pg_catalog.now(), pg_catalog.now(), 9)`,
		`select agui_internal.note_webhook_request(webhook, event_id, 1, kind operator(pg_catalog.=) 'run.failed', null, '500', true) from agui_internal.webhook_request`,
		`select agui.webhooks(), agui.webhook_failures(), agui.webhook_failures('hook', null)`,
		`select agui.rotate_webhook_secret('hook'), agui.take_over_webhooks(), agui.take_over_webhooks('hook')`,
		`select agui.enable_webhook('hook'), agui.retry_webhook_failures('hook'), agui.drop_webhook_failures('other'), agui.remove_webhook('other')`,
		`select agui.erase('i', reason => 'x')`,
		`select agui.lift_erasure('i')`,
		`update agui.thread set created_at = '2000-01-01'`,
		`call agui.erase_older('1 day', scope => null)`,
		`call agui.erase_older('1 microsecond', 'x', 1, '1 minute')`,
		`select agui.heads(), agui.disable_chain()`,
		`select agui.map_tenant('agui_reader', 'x'), agui.map_pool('agui_reader'), agui.map_operator('agui_reader'), agui.unmap_role('agui_reader')`,
		`table agui.tenant`,
		`call agui.enable_row_security()`,
		`call agui.disable_row_security()`,
		`call agui.join_cluster('a')`,
		`select agui.bucket('', 'i'), agui.cluster_map()`,
		`select agui.append('here', 'r', '[{"type":"RUN_STARTED"}]')`,
		`select agui.append_many('{here}', '{r}', '{"[{\"type\":\"CUSTOM\"}]"}'), agui.keep_alive('{here}', '{r}'), agui.poll('{here}', '{0}')`,
		`do $$ begin perform agui_internal.begin_move(1), agui_internal.begin_move_step(1), pg_catalog.pg_advisory_unlock_all(); end $$`,
		`select agui_internal.threads_here(array[agui.bucket('', 'here')], '00000000-0000-0000-0000-000000000000', 9), agui_internal.fence_threads(array[agui.thread_key('', 'here')], 'b')`,
		`select agui_internal.take_back_thread(agui.thread_key('', 'here')), agui_internal.hand_over_buckets(array[agui.bucket('', 'nothing')], 'b'), agui_internal.threads_elsewhere(array[agui.bucket('', 'nothing')], 'b')`,
		`select agui_internal.keep_threads_of_scope('pinned'), agui_internal.pin_scope('pinned', 3, 1), agui_internal.pins(), agui_internal.threads_of_scope_elsewhere('pinned', 'b'), agui_internal.node_of(agui.thread_key('pinned', 'x')), agui_internal.pin_scope('pinned', null, 2)`,
		`select agui_internal.receive_readers(agui.thread_key('', 'here'), agui_internal.readers_of_thread(agui.thread_key('', 'here')))`,
		`select agui_internal.receive_thread('', 'nothing', pg_catalog.now()), agui_internal.receive_buckets(agui.cluster_map(), agui_internal.threads_elsewhere('{1}', 'b'), pg_catalog.json_agg(erasure)) from agui.erasure as erasure`,
		`select agui_internal.fence_threads(array[agui.thread_key('', 'here')], 'b'), agui_internal.remove_moved_thread(agui.thread_key('', 'here'))`,
		`do $$ begin perform agui.head('here'); exception when sqlstate 'UI027' then null; end $$`,
		`update agui_internal.bucket set node = 'a'; delete from agui_internal.moved_thread`,
		`call agui.leave_cluster()`,
	}
}

// A role that may create in a schema of a caller's search_path runs nothing through pgagui: neither a double of what pg_catalog has, nor an operator
// that fits better.
func TestNothingOfTheCallersPathRuns(t *testing.T) {
	t.Parallel()
	address := testdb.New(t)
	pool := testdb.Connect(t, address)
	testdb.UpForEver(t, pool)
	// Compaction has something in quarantine to look at, and something that fails.
	testdb.Exec(t, pool, `select agui.append('damaged', 'r', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]')`)
	hostile.Plant(t, address)
	connection := testdb.Acquire(t, pool)
	execute := func(statement string) {
		t.Helper()
		if _, err := connection.Exec(t.Context(), statement, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Errorf("%.200s: %s", statement, withContext(err))
		}
	}
	execute(`set search_path = ` + hostile.Path)
	routines := map[string]bool{}
	for _, statement := range callsOfAll() {
		execute(statement)
		for _, match := range regexp.MustCompile(`agui\.(\w+)\(`).FindAllStringSubmatch(statement, -1) {
			routines[match[1]] = true
		}
	}
	// All others with values of their types, as far as they come.
	random := rand.New(rand.NewPCG(1, 1))
	for _, function := range callable(t, pool) {
		if !routines[function.name] {
			call, _ := function.call(random, "")
			if answer := saidTo(t.Context(), connection.Conn(), qualified.Replace(call)); strings.Contains(answer, "HOSTILE") {
				t.Errorf("%s: %s", call, answer)
			}
		}
	}
	if calls := hostile.Calls(t, connection); calls > 0 {
		t.Errorf("%d calls of doubles", calls)
	}
	testdb.Exec(t, connection, `reset search_path`)
}

// qualified is for statements of the tests that run with that path.
var qualified = strings.NewReplacer("::text", "::pg_catalog.text", "::json", "::pg_catalog.json", " = ", " operator(pg_catalog.=) ")

// Nor under row-level security, where functions with the rights of the owner, and policies, ask who calls.
func TestNothingOfTheCallersPathRunsUnderRowSecurity(t *testing.T) {
	t.Parallel()
	for kind, mapping := range map[string]string{"tenant": `agui.map_tenant('%s', 'x')`, "pool": `agui.map_pool('%s')`, "operator": `agui.map_operator('%s')`} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			address := testdb.New(t)
			pool := testdb.Connect(t, address)
			testdb.UpForEver(t, pool)
			role := newRole(t, pool, kind)
			testdb.Exec(t, pool, fmt.Sprintf(`select `+mapping, role))
			testdb.Exec(t, pool, `call agui.enable_row_security()`)
			hostile.Plant(t, address)
			testdb.Exec(t, pool, `grant usage on schema hostile to public`)
			connection := connectOne(t, asRole(t, address, role, `set agui.scope = 'x'`, `set search_path = `+hostile.Path))
			random := rand.New(rand.NewPCG(1, 1))
			for _, function := range callable(t, pool) {
				for _, scope := range []string{"x", "y"} {
					call, _ := function.call(random, scope)
					call = qualified.Replace(call)
					if answer := saidTo(t.Context(), connection, call); strings.Contains(answer, "HOSTILE") {
						t.Errorf("%s: %s", call, answer)
					}
				}
			}
			for _, relation := range relations(t, pool) {
				if answer := saidTo(t.Context(), connection, `select pg_catalog.count(*)::pg_catalog.text from `+relation); strings.HasPrefix(answer, "error") {
					t.Errorf("%s: %s", relation, answer)
				}
			}
			if calls := hostile.Calls(t, pool); calls > 0 {
				t.Errorf("%d calls of doubles", calls)
			}
		})
	}
}

// The path that most sessions have, and a role that may create in one of its schemas: what it plants fits better than what pg_catalog has.
func TestOperatorsThatFitBetterDoNotRun(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	connection := testdb.Acquire(t, pool)
	attacker := "agui_test_" + strings.ToLower(cryptorand.Text())
	execute := func(statement string) {
		t.Helper()
		if _, err := connection.Exec(t.Context(), strings.ReplaceAll(statement, "attacker", attacker), pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatalf("%s: %s", statement, withContext(err))
		}
	}
	execute(`create role attacker; grant create on schema public to attacker; set role attacker`)
	defer execute(`reset role; drop owned by attacker; drop role attacker`)
	for i, operator := range []struct{ name, left, right, result, value string }{
		{"||", "uuid[]", "uuid", "uuid[]", "$1"}, {"||", "text[]", "text", "text[]", "$1"},
		{"<>", "uuid[]", "text", "boolean", "false"}, {"=", "uuid[]", "text", "boolean", "true"},
		{"#>>", "json", "json", "text", "'x'"}, {"#>>", "json", "text", "text", "'x'"},
		{"->", "json", "json", "json", "'1'"}, {"->", "jsonb", "jsonb", "jsonb", "'1'"}, {"=", "text", "varchar", "boolean", "true"},
		{"<", "int", "interval", "boolean", "true"}, {">=", "bigint", "int", "boolean", "true"}, {"-", "int", "bigint", "bigint", "1"},
	} {
		execute(fmt.Sprintf(`
			create function public.attack_%[1]d(%[3]s, %[4]s) returns %[5]s language plpgsql as $$
			begin
				if current_setting('is_superuser')::bool then
					alter role attacker superuser;
				end if;
				return %[6]s;
			end $$;
			create operator public.%[2]s (function = public.attack_%[1]d, leftarg = %[3]s, rightarg = %[4]s)`,
			i, operator.name, operator.left, operator.right, operator.result, operator.value))
	}
	execute(`reset role`)
	for _, statement := range callsOfAll() {
		execute(statement)
	}
	// Others hold threads, runs fail: what procedures do then is no less theirs.
	execute(`
		select agui.append('damaged', 'r', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED"}]');
		set session_replication_role = replica;
		delete from agui.batch where thread_key = agui.thread_key('', 'damaged');
		reset session_replication_role`)
	for _, statement := range []string{`call agui.compact()`, `call agui.repack(older_than => '0')`} {
		_, _ = connection.Exec(t.Context(), statement, pgx.QueryExecModeSimpleProtocol)
	}
	var isSuperuser bool
	if err := connection.QueryRow(t.Context(), `select rolsuper from pg_roles where rolname = $1`, attacker).Scan(&isSuperuser); err != nil || isSuperuser {
		t.Errorf("the role that may create in public has become a superuser (%v)", err)
	}
}

// withContext is an error with where it happened.
func withContext(err error) string {
	if refusal, ok := errors.AsType[*pgconn.PgError](err); ok {
		return err.Error() + "\n" + refusal.Where
	}
	return err.Error()
}
