package test

import (
	"context"
	"testing"

	"github.com/pgagui/pgagui/internal/testdb"
)

// Names, arguments and defaults that anyone writes against stay as they are.
func TestSQLSurface(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	for name, signature := range map[string]string{
		"append":               "thread_id text, run_id text, events json, after_seq bigint DEFAULT NULL::bigint, scope text DEFAULT ''::text, parallel boolean DEFAULT false",
		"lineage":              "thread_id text, run_id text DEFAULT NULL::text, scope text DEFAULT ''::text",
		"branches":             "thread_id text, scope text DEFAULT ''::text",
		"head":                 "thread_id text, scope text DEFAULT ''::text",
		"merge_base":           "thread_id text, run_a text, run_b text, scope text DEFAULT ''::text",
		"events":               "thread_id text, run_id text DEFAULT NULL::text, after_seq bigint DEFAULT 0, scope text DEFAULT ''::text",
		"messages":             "thread_id text, run_id text DEFAULT NULL::text, at_seq bigint DEFAULT NULL::bigint, scope text DEFAULT ''::text",
		"state":                "thread_id text, run_id text DEFAULT NULL::text, at_seq bigint DEFAULT NULL::bigint, scope text DEFAULT ''::text",
		"interrupts":           "thread_id text, run_id text DEFAULT NULL::text, at_seq bigint DEFAULT NULL::bigint, scope text DEFAULT ''::text",
		"restore":              "thread_id text, run_id text DEFAULT NULL::text, at_seq bigint DEFAULT NULL::bigint, scope text DEFAULT ''::text",
		"replay":               "thread_id text, run_id text DEFAULT NULL::text, shape text DEFAULT 'snapshot'::text, scope text DEFAULT ''::text",
		"compact_events":       "events json, shape text DEFAULT 'stream'::text",
		"json_patch":           "doc jsonb, patch jsonb",
		"compact":              "IN max_runs integer DEFAULT NULL::integer, IN max_time interval DEFAULT NULL::interval, IN older_than interval DEFAULT '00:00:00'::interval",
		"rebuild_snapshots":    "thread_id text, scope text DEFAULT ''::text",
		"verify":               "thread_id text, scope text DEFAULT ''::text",
		"repack":               "IN max_runs integer DEFAULT NULL::integer, IN max_time interval DEFAULT NULL::interval, IN older_than interval DEFAULT NULL::interval",
		"erase":                "thread_id text, scope text DEFAULT ''::text, reason text DEFAULT NULL::text",
		"allow":                "thread_id text, scope text DEFAULT ''::text",
		"append_many":          "thread_ids text[], run_ids text[], events json[], after_seqs bigint[] DEFAULT NULL::bigint[], scopes text[] DEFAULT NULL::text[], parallel boolean[] DEFAULT NULL::boolean[], wait boolean DEFAULT true, durable boolean DEFAULT true",
		"poll":                 "thread_ids text[], after_seqs bigint[], after_times timestamp with time zone[] DEFAULT NULL::timestamp with time zone[], scopes text[] DEFAULT NULL::text[], max_batches integer DEFAULT 100",
		"status":               "thread_id text, run_id text DEFAULT NULL::text, scope text DEFAULT ''::text",
		"request_stop":         "thread_id text, run_id text DEFAULT NULL::text, reason text DEFAULT NULL::text, scope text DEFAULT ''::text",
		"keep_alive":           "thread_ids text[], run_ids text[], scopes text[] DEFAULT NULL::text[]",
		"history":              "thread_id text, types text[] DEFAULT NULL::text[], since timestamp with time zone DEFAULT NULL::timestamp with time zone, until timestamp with time zone DEFAULT NULL::timestamp with time zone, after_seq bigint DEFAULT 0, max_rows integer DEFAULT 100, compressed boolean DEFAULT true, run_id text DEFAULT NULL::text, max_bytes integer DEFAULT NULL::integer, max_idle interval DEFAULT NULL::interval, scope text DEFAULT ''::text",
		"session_messages":     "thread_id text, run_id text DEFAULT NULL::text, at_seq bigint DEFAULT NULL::bigint, after_seq bigint DEFAULT 0, scope text DEFAULT ''::text",
		"session_runs":         "thread_id text, messages json, run_prefix text DEFAULT 'session-run-'::text",
		"tool_calls":           "thread_id text, run_id text DEFAULT NULL::text, at_seq bigint DEFAULT NULL::bigint, after_seq bigint DEFAULT 0, scope text DEFAULT ''::text",
		"activities":           "thread_id text, run_id text DEFAULT NULL::text, at_seq bigint DEFAULT NULL::bigint, scope text DEFAULT ''::text",
		"save_session_state":   "thread_id text, key text, document json, run_id text DEFAULT NULL::text, expected_version bigint DEFAULT 0, overwrite boolean DEFAULT false, scope text DEFAULT ''::text",
		"load_session_state":   "thread_id text, key text, run_id text DEFAULT NULL::text, version bigint DEFAULT NULL::bigint, scope text DEFAULT ''::text",
		"remove_session_state": "thread_id text, key text, run_id text DEFAULT NULL::text, expected_version bigint DEFAULT 0, overwrite boolean DEFAULT false, scope text DEFAULT ''::text",
		"session_states":       "thread_id text, run_id text DEFAULT NULL::text, scope text DEFAULT ''::text",
		"session_versions":     "thread_id text, key text, run_id text DEFAULT NULL::text, scope text DEFAULT ''::text",
		"load_session":         "thread_id text, run_id text DEFAULT NULL::text, scope text DEFAULT ''::text",
		"save_session":         "session json, scope text DEFAULT ''::text",
		"load_sessions":        "thread_ids text[], run_ids text[] DEFAULT NULL::text[], scope text DEFAULT ''::text",
		"save_sessions":        "sessions json, scope text DEFAULT ''::text",
		"save_checkpoint":      "thread_id text, checkpoint_id text, document json, parent_id text DEFAULT NULL::text, namespace text DEFAULT ''::text, scope text DEFAULT ''::text",
		"load_checkpoint":      "thread_id text, checkpoint_id text DEFAULT NULL::text, namespace text DEFAULT ''::text, scope text DEFAULT ''::text",
		"checkpoints":          "thread_id text, namespace text DEFAULT NULL::text, scope text DEFAULT ''::text",
		"checkpoint_lineage":   "thread_id text, checkpoint_id text DEFAULT NULL::text, namespace text DEFAULT ''::text, scope text DEFAULT ''::text",
		"reap":                 "IN max_runs integer DEFAULT NULL::integer, IN max_time interval DEFAULT NULL::interval",
	} {
		var got string
		err := pool.QueryRow(context.Background(), `
			select pg_get_function_arguments(oid) from pg_proc
			where pronamespace = 'agui'::regnamespace and proname = $1`, name).Scan(&got)
		if err != nil {
			t.Errorf("agui.%s: %v", name, err)
		} else if got != signature {
			t.Errorf("agui.%s(%s), want (%s)", name, got, signature)
		}
	}
}
