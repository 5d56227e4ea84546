package test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/internal/testdb"
)

// To a function with the rights of the owner no policy applies. So each asks, by the function on the left, whether the role that calls has the scope, or
// reads its threads through another one that does. TestTenantsAreAloneInRandomCalls calls them all; here a new one has to say which it is.
var definersAsk = map[string][]string{
	// For one thread: what changes it is refused (42501), what reads it finds nothing.
	"agui_internal.own_thread_key": {
		"agui.append", "agui.claim_run", "agui.import_events", "agui.keep_alive",
		"agui.put_checkpoint", "agui.put_checkpoint_writes", "agui_internal.begin_unarchive", "agui.remove_checkpoints", "agui.remove_session_state", "agui.save_checkpoint", "agui.save_session_state", "agui.save_sessions",
	},
	"agui_internal.key_to_change": {
		"agui.abandon", "agui.erase", "agui.keep_agent_error", "agui.lift_erasure", "agui.lift_hold", "agui.mark_read", "agui.rebuild_snapshots", "agui.release_claim", "agui.request_stop", "agui.set_hold", "agui.set_thread",
	},
	"agui_internal.own_key": {
		"agui_internal.finish_unarchive", "agui_internal.unarchive_rows", "agui_internal.add_messages", "agui_internal.add_snapshot", "agui_internal.choose_to_compact", "agui_internal.compact_sequence",
		"agui_internal.compact_running_run", "agui_internal.drop_needless_snapshot", "agui_internal.drop_snapshots", "agui_internal.erase_thread",
		"agui_internal.fill_title", "agui_internal.hold_thread", "agui_internal.mark_compacted", "agui_internal.note_attempt",
		"agui_internal.note_failure", "agui_internal.note_success", "agui_internal.prune_snapshots", "agui_internal.reap_run",
		"agui_internal.repack_run", "agui_internal.retain_thread", "agui_internal.split_thread_inputs", "agui_internal.take_back_attempt",
	},
	"agui_internal.attach_at": {"agui.attach", "agui.attach_part"},
	"agui_internal.visible_thread_key": {
		"agui.load_session", "agui.load_session_state", "agui.session_states", "agui.session_versions",
	},
	"agui_internal.visible_key": {
		"agui.checkpoint_contents", "agui.list_runs", "agui.thread_page", "agui_internal.archived_rows", "agui_internal.content_digests", "agui_internal.erased_at", "agui_internal.erasures_of", "agui_internal.fold_base", "agui_internal.lineage_behind", "agui_internal.log_bytes_since",
		"agui_internal.key_on_this_node", "agui_internal.refuse_damaged_log", "agui_internal.verify_log", "agui_internal.verify_snapshots",
	},
	"agui_internal.checked_thread_key": {"agui.channel_history", "agui.checkpoints", "agui.claims", "agui.get_thread"},
	"agui_internal.find_run": {
		"agui.activities", "agui.get_agent_error", "agui.answered", "agui.attachment_data", "agui.attachments", "agui.branches", "agui.children", "agui.events", "agui.head", "agui.history", "agui.interrupts", "agui.last_errors", "agui.last_events", "agui.last_messages", "agui.lineage", "agui.malformed_events",
		"agui.merge_base", "agui.message_origin", "agui.messages", "agui.pending_tool_calls", "agui.replay", "agui.restore", "agui.run_tool_calls", "agui.runs", "agui.session_messages", "agui.state", "agui.status",
		"agui.subagents", "agui.tool_calls", "agui.usage",
	},
	"agui_internal.consumer_key": {"agui.consume"},
	"agui_internal.refuse_foreign_scope": {
		"agui.disable_chain", "agui.enable_chain", "agui.move_consumer", "agui.remove_consumer", "agui.remove_retention", "agui.set_retention",
	},
	"agui_internal.find_checkpoint": {"agui.checkpoint_lineage", "agui.load_checkpoint"},
	"agui_internal.thread_keys":     {"agui.verify"},
	"agui.load_session":             {"agui.load_sessions"},
	"agui.save_sessions":            {"agui.save_session"},
	"agui.thread_page":              {"agui.threads"},

	// For all threads of the caller.
	"agui_internal.monitored_keys": {"agui.consumers", "agui.lag", "agui.stats", "agui_internal.threads_of_older_rules", "agui_internal.webhook_states"},
	"agui_internal.own_keys_in": {
		"agui.agent_report", "agui.changes", "agui.day_report", "agui.model_report", "agui.search", "agui.tool_report", "agui.waiting",
	},
	"agui_internal.own_keys": {
		"agui.append_many", "agui.poll", "agui.retry", "agui_internal.apply_rules", "agui_internal.choose_thread_to_compact", "agui_internal.find_ends", "agui_internal.forget_claims", "agui_internal.forget_ended_runs", "agui_internal.next_to_repack", "agui_internal.next_to_split",
		"agui_internal.consumer_key", "agui_internal.note_interruption", "agui_internal.own_erased_keys",
	},

	"agui_internal.refuse_unless_operator": {
		"agui.disable_search", "agui.enable_search", "agui.map_usage", "agui.rebuild_facts", "agui.set_setting", "agui.unmap_usage", "agui_internal.project_step", "agui_internal.settle_calls",
		"agui.add_webhook", "agui.drop_webhook_failures", "agui.enable_webhook", "agui.remove_webhook", "agui.retry_webhook_failures", "agui.rotate_webhook_secret", "agui.take_over_webhooks", "agui.webhook_failures",
		"agui.webhooks", "agui_internal.add_webhook_requests", "agui_internal.claim_webhook_requests", "agui_internal.note_webhook_request",
		"agui_internal.webhook_endpoints",
		"agui_internal.begin_move", "agui_internal.begin_move_step", "agui_internal.fence_threads", "agui_internal.forget_moved_threads", "agui_internal.hand_over_buckets", "agui_internal.keep_threads_of_scope", "agui_internal.pin_scope", "agui_internal.pins", "agui_internal.readers_of_thread", "agui_internal.receive_buckets",
		"agui_internal.receive_readers", "agui_internal.receive_thread",
		"agui_internal.remove_moved_thread", "agui_internal.take_back_thread", "agui_internal.threads_elsewhere", "agui_internal.threads_here", "agui_internal.threads_of_scope_elsewhere",
	},

	// What the others ask: they answer with what the caller is mapped to.
	"agui_internal.checked_caller_role": {"agui_internal.monitored_keys", "agui_internal.own_keys", "agui_internal.visible_key"},
	"agui_internal.caller_role":         {"agui_internal.scope_refusal"}, // for a text
	// Which node has a bucket, that the server is up, and how far the jobs are is so for all scopes.
	"": {"agui.cluster_map", "agui_internal.bucket_of_thread", "agui_internal.note_uptime", "agui_internal.waits_for_facts", "agui_internal.waits_for_rules"},
}

// Functions with the rights of their callers, that the ones above go through.
var invokersAsk = map[string]string{
	"agui_internal.attach_at":              "agui_internal.visible_thread_key",
	"agui_internal.own_thread_key":         "agui_internal.visible_key",
	"agui_internal.key_to_change":          "agui_internal.own_thread_key",
	"agui_internal.refuse_foreign_scope":   "agui_internal.own_thread_key",
	"agui_internal.own_keys_in":            "agui_internal.own_keys",
	"agui_internal.own_key":                "agui_internal.visible_key",
	"agui_internal.refuse_unless_operator": "agui_internal.own_keys",
	"agui_internal.visible_thread_key":     "agui_internal.visible_key",
	"agui_internal.checked_thread_key":     "agui_internal.visible_thread_key",
	"agui_internal.find_run":               "agui_internal.visible_thread_key",
	"agui_internal.find_checkpoint":        "agui_internal.checked_thread_key",
	"agui_internal.thread_keys":            "agui_internal.visible_thread_key",
}

// Every function that a role can call is bound to the scopes of its caller: those with the rights of the caller by the policies of the tables, those with
// the rights of the owner by what they ask.
func TestEveryFunctionIsBoundToScopes(t *testing.T) {
	t.Parallel()
	asks := map[string]string{}
	for check, functions := range definersAsk {
		for _, function := range functions {
			if other, twice := asks[function]; twice {
				t.Errorf("%s is listed twice, for %s and %s", function, check, other)
			}
			asks[function] = check
		}
	}
	maps.Copy(asks, invokersAsk)
	rows, err := testdb.Pool(t).Query(t.Context(), `
		select format('%s.%s', proc.pronamespace::regnamespace, proc.proname), proc.prosecdef, pg_get_functiondef(proc.oid)
		from pg_proc as proc
		where proc.pronamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace) and proc.prokind in ('f', 'p') and proc.prorettype <> 'trigger'::regtype
			and exists (
				select from unnest('{agui_reader,agui_writer,agui_worker,agui_maintainer,agui_recorder,agui_diagnoser,pg_monitor}'::text[]) as role
				where has_function_privilege(role, proc.oid, 'execute')
			)`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	byPolicies, definers := 0, 0
	for rows.Next() {
		var function, definition string
		var isDefiner bool
		if err := rows.Scan(&function, &isDefiner, &definition); err != nil {
			t.Fatal(err)
		}
		check, isListed := asks[function]
		_, isInvoker := invokersAsk[function]
		delete(asks, function)
		switch {
		case isDefiner && !isListed:
			t.Errorf("%s has the rights of the owner, to which no policy applies: which function does it ask for the scopes of its caller?", function)
		case isDefiner == isInvoker && isListed:
			t.Errorf("%s has the rights of the owner: %t", function, isDefiner)
		case !isDefiner:
			byPolicies++
		default:
			definers++
		}
		body := definition[strings.Index(definition, "LANGUAGE"):]
		if isListed && !regexp.MustCompile(`\b`+regexp.QuoteMeta(check)+`\(`).MatchString(body) && check != "" {
			t.Errorf("%s does not call %s", function, check)
		}
	}
	if rows.Err() != nil || byPolicies < 150 || definers < 70 {
		t.Errorf("%d functions are bound by policies, %d ask (%v)", byPolicies, definers, rows.Err())
	}
	for function := range asks {
		if function == "agui_internal.refuse_foreign_scope" {
			continue // only what has the rights of the owner calls it
		}
		t.Errorf("%s is listed, but no role may call it", function)
	}
	// What is asked leads to the caller's mapping.
	for check := range definersAsk {
		path := []string{check}
		for check != "" && !strings.HasSuffix(check, "caller_role") {
			next, ok := invokersAsk[check]
			for asked, functions := range definersAsk {
				if slices.Contains(functions, check) {
					next, ok = asked, true
				}
			}
			if !ok || slices.Contains(path, next) {
				t.Errorf("%s leads to nothing that asks who calls", strings.Join(path, " → "))
				break
			}
			path = append(path, next)
			check = next
		}
	}
}
