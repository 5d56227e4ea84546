// Package routes says of each function of the schema agui which node of a cluster has the answer, and what a front does with
// a call. A test compares the list with the catalog, checks each node by it, and writes docs/reference/routes.md.
package routes

// By is what decides which node a call goes to.
type By string

const (
	Thread        By = "its thread"
	ThreadIfNamed By = "its thread; without one, all nodes"
	Threads       By = "each of its threads"
	AllNodes      By = "all nodes"
	ThisNode      By = "this node alone"
	NoData        By = "no data"
)

// Front is what a front does with a call.
type Front string

const (
	Sent     Front = "sent to the node of the thread"
	OneNode  Front = "sent, if one node has all threads of the call"
	Split    Front = "sent to each node with its threads"
	Merged   Front = "sent to all nodes, and merged"
	Anywhere Front = "sent to any node"
	Local    Front = "answered by the front"
	Refused  Front = "refused"
	Missing  Front = "not there"
)

// Route is that of a function.
type Route struct {
	By    By
	Front Front
	// Instead says what to do instead of a call that a front refuses.
	Instead string
}

// Of returns the routes of all functions, procedures and aggregates by their names.
func Of() map[string]Route {
	all := map[string]Route{}
	add := func(route Route, names ...string) {
		for _, name := range names {
			if _, known := all[name]; known {
				panic("two routes of " + name)
			}
			all[name] = route
		}
	}
	add(Route{Thread, Sent, ""},
		"abandon", "activities", "answered", "append", "attach", "attach_part", "attachment_data", "attachments", "branches", "channel_history", "checkpoint_lineage", "checkpoints",
		"children", "claim_run", "claims", "erase", "events", "get_agent_error", "get_thread", "head", "history", "import_events", "interrupts", "keep_agent_error", "last_errors", "last_events",
		"last_messages", "lift_erasure", "lift_hold", "lineage", "load_checkpoint", "load_session", "load_session_state", "malformed_events", "merge_base", "message_origin",
		"messages", "pending_tool_calls", "put_checkpoint", "put_checkpoint_writes", "rebuild_snapshots", "release_claim", "remove_checkpoints",
		"remove_session_state", "replay", "request_stop", "restore", "run_tool_calls", "runs", "save_checkpoint", "save_session", "save_session_state",
		"session_messages", "session_states", "session_versions", "set_hold", "set_thread", "state", "status", "subagents", "tool_calls", "usage", "verify")
	add(Route{ThreadIfNamed, Sent, "name a thread, or call each node"}, "checkpoint_contents", "retry")
	add(Route{Threads, OneNode, "call once for the threads of each node"}, "append_many", "save_sessions")
	add(Route{Threads, Split, ""}, "keep_alive", "load_sessions", "poll")

	add(Route{AllNodes, Merged, ""}, "day_report", "heads", "lag", "list_runs", "model_report", "search", "stats", "thread_page", "threads", "waiting")
	const positions = "call each node: a position is one of its node"
	add(Route{AllNodes, Refused, positions}, "changes", "consume", "consumers", "move_consumer", "remove_consumer")
	add(Route{Thread, Refused, positions}, "mark_read")
	add(Route{AllNodes, Refused, "call each node: medians of nodes have no sum"}, "agent_report", "tool_report")

	const onEach = "call each node"
	add(Route{ThisNode, Refused, onEach},
		"add_webhook", "disable_chain", "disable_search", "drop_webhook_failures", "enable_chain", "enable_search", "enable_webhook", "map_operator", "map_pool",
		"map_tenant", "map_usage", "rebuild_facts", "remove_retention", "remove_webhook", "retry_webhook_failures", "rotate_webhook_secret", "set_retention",
		"set_setting", "take_over_webhooks", "unmap_role", "unmap_usage", "webhook_failures", "webhooks",
		"disable_row_security", "enable_row_security", "grant_access")
	add(Route{ThisNode, Refused, `use "pgagui worker"`},
		"apply_retention", "compact", "compact_running", "erase_older", "project", "reap", "repack")
	add(Route{ThisNode, Refused, `use "pgagui cluster"`}, "cluster_map", "join_cluster", "leave_cluster")
	add(Route{NoData, Local, ""}, "bucket", "thread_key")
	add(Route{NoData, Anywhere, ""}, "compact_events", "json_patch", "session_runs")
	add(Route{NoData, Missing, "call any node"}, "json_patch_agg")
	return all
}
