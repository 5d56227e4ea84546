package testdb

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Fill puts rows into every table, and does what jobs would do with them.
func Fill(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	const start, end = `{"type":"RUN_STARTED"}`, `{"type":"RUN_FINISHED"}`
	for _, statement := range []string{
		`select agui.set_setting('lease', '1 hour')`,
		`select agui.add_webhook('hook', 'https://example.com')`,
		`select agui.append('kept', 'r1', '[` + start + `,{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"x"},` + end + `]')`,
		`select agui.append('kept', 'r2', '[` + start + `,{"type":"STATE_SNAPSHOT","snapshot":{"a":1}},{"type":"STATE_DELTA","delta":[{"op":"add","path":"/b","value":[1]}]},` + end + `]')`,
		// An input in parts, one that stays whole, and a message with an image that inputs and snapshots share.
		`select agui.append('kept', 'r3', '[` + start + `,` + end + `]', 0, ('{"messages":[{"id":"u","role":"user","content":"' || repeat('x', 9000) || '"}]}')::json)`,
		`select agui.append('kept', 'r4', '[` + start + `,` + end + `]', 0, '{"messages":[{"id":"v","role":"user","content":"short"}],"tools":[]}')`,
		`select agui.append('kept', 'r5', '[` + start + `,` + end + `]', 0, ('{"messages":[{"id":"u","role":"user","content":"' || repeat('x', 9000) ||
			'"},{"id":"i","role":"user","content":[{"type":"image","source":{"type":"data","mimeType":"image/png","value":"' || repeat('aW1n', 3000) || '"}}]}]}')::json)`,
		// Every status, tool calls, branches, a run in progress.
		`select agui.append('kept', 'failed', '[` + start + `,{"type":"RUN_ERROR","message":"no","code":"E","usage":[{"model":"m","inputTokens":1}]}]')`,
		`select agui.append('kept', 'cancelled', '[` + start + `,{"type":"RUN_FINISHED","outcome":{"type":"cancelled"}}]', parent_run_id => 'r2')`,
		`select agui.append('kept', 'interrupted', '[` + start + `,{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"buy"},{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{}"},
			{"type":"TOOL_CALL_END","toolCallId":"c"},{"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[{"id":"i1","reason":"tool_call","toolCallId":"c"}]}}]', parent_run_id => 'r2')`,
		`select agui.import_events('kept', 'cut', '[` + start + `,{"type":"CUSTOM","name":"n","value":1,"timestamp":1700000000000}]', parent_run_id => 'r1')`,
		`select agui.abandon('kept', 'cut', 'gone')`,
		`select agui.append('kept', 'running', '[` + start + `,{"type":"TEXT_MESSAGE_START","messageId":"open"}]', parent_run_id => 'r1')`,
		`select agui.append('scoped', 'r1', '[` + start + `,` + end + `]', scope => 'acme')`,
		`select agui.set_thread('kept', title => 'Kept', archived => true, metadata => '{"team":"a"}')`,
		`select agui.enable_chain('chained')`,
		`select agui.append('linked', 'r1', '[` + start + `,` + end + `]', scope => 'chained')`,
		`select agui.save_session_state('kept', 'k', '1', 'r1'), agui.save_session_state('kept', 'k', '{"n":2}', 'r2', 1)`,
		`select agui.save_checkpoint('kept', 'c', '{}')`,
		`select agui.put_checkpoint('kept', 'g', '{"channel_versions":{"list":1}}', channels => '{list}', versions => '{1}', types => '{json}',
			channel_values => json_build_array(json_build_array(repeat('x', 300)))), agui.put_checkpoint_writes('kept', 'g', 'task', '{list}', '{json}', '[1]')`,
		`select agui.claim_run('kept', 'claimed', 'claimant', parent_run_id => 'r1', parallel => true)`,
		`select agui.map_tenant('agui_reader', 'acme')`,
		`select agui_internal.note_attempt('compact', agui.thread_key('', 'kept'), '{99}')`,
		`select agui.append('gone', 'r1', '[` + start + `,` + end + `]')`,
		`select agui.erase('gone')`,
		`select agui_internal.add_webhook_requests('hook', position, position, '{""}', '{kept}', '{r1}') from agui_internal.webhook_position`,
		`select agui.keep_agent_error('kept', 'failed', 422, 'application/json', 'no'), agui.set_hold('kept', 'a reason'), agui.set_retention('erase', '1 year'), agui.set_retention('archive', '1 month', 'acme')`,
		`select agui.move_consumer('copy', (select position from agui.changes() limit 1)), agui.mark_read('copy', 'kept', 2)`,
		`select agui.enable_search('english'), agui.map_usage('{metadata,usage}')`,
		`call agui.compact()`,
		`call agui.repack()`,
		`call agui.compact()`,
		`call agui.project()`,
		`call agui.join_cluster('a')`,
		`insert into agui_internal.moved_thread (thread_key, node) values (agui.thread_key('', 'elsewhere'), 'b')`,
		`insert into agui_internal.pinned_scope (scope_hash, scope, bucket, epoch) values (agui_internal.scope_hash(agui_internal.first_key('pinned')), 'pinned', 1, 1)`,
	} {
		if _, err := pool.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}
