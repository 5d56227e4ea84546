-- name: JoinCluster :exec
-- The salt is empty for the first node.
call agui.join_cluster(@node::text, sqlc.narg(map)::json, sqlc.narg(erasure_salt)::bytea);

-- name: LeaveCluster :exec
call agui.leave_cluster();

-- name: ErasureSalt :one
select salt from agui_internal.erasure_salt;

-- name: ClusterMap :one
select agui.cluster_map()::json as map;

-- name: BeginMove :one
select agui_internal.begin_move(@token::bigint)::boolean as is_alone;

-- name: BeginMoveStep :exec
select agui_internal.begin_move_step(@token::bigint);

-- name: SetFenceTimeout :exec
-- Bounds how long writers of a bucket wait behind a fence that itself waits for an open transaction.
select set_config('lock_timeout', '100ms', true);

-- name: UnfinishedMoves :one
-- Threads that were moved away, or are about to be, and whose rows are here.
select count(*)::bigint as threads
from agui_internal.moved_thread as moved
join agui.thread as thread
    on thread.thread_key = moved.thread_key
where moved.node <> agui_internal.this_node();

-- name: SentThreads :many
-- Those, with the node that calls for them are sent to.
select thread.thread_key, thread.scope, thread.thread_id, thread.created_at, moved.node, moved.moved_at
from agui_internal.moved_thread as moved
join agui.thread as thread
    on thread.thread_key = moved.thread_key
where moved.node <> agui_internal.this_node() and moved.thread_key > @after::uuid
order by moved.thread_key
limit @page::int;

-- name: ThreadsHere :many
select listed.thread_key::uuid as thread_key, listed.scope::text as scope, listed.thread_id::text as thread_id, listed.created_at::timestamptz as created_at
from agui_internal.threads_here(@buckets::int[], @after::uuid, @page::int) as listed;

-- name: ThreadHere :many
-- A thread, if the node has it. before is the key before its own.
select listed.thread_key::uuid as thread_key, listed.scope::text as scope, listed.thread_id::text as thread_id, listed.created_at::timestamptz as created_at
from agui_internal.threads_here(array[agui_internal.bucket_of_thread(@thread_key::uuid)], @before::uuid, 1) as listed
where listed.thread_key = @thread_key::uuid;

-- name: Pins :one
select agui_internal.pins()::json as pins;

-- name: PinScope :one
-- The bucket is null for a scope that is no longer pinned.
select agui_internal.pin_scope(@scope::text, sqlc.narg(bucket)::int, @epoch::bigint)::boolean as is_done;

-- name: KeepThreadsOfScope :exec
select agui_internal.keep_threads_of_scope(@scope::text);

-- name: ThreadsOfScopeElsewhere :one
select agui_internal.threads_of_scope_elsewhere(@scope::text, @to_node::text)::json as threads;

-- name: NodeOfThread :one
select agui_internal.node_of(@thread_key::uuid)::text as node;

-- name: FenceThreads :one
select agui_internal.fence_threads(@thread_keys::uuid[], @to_node::text)::uuid[] as fenced;

-- name: TakeBackThread :exec
select agui_internal.take_back_thread(@thread_key::uuid);

-- name: ReceiveThread :one
-- Null: the thread is there already.
select agui_internal.receive_thread(@scope::text, @thread_id::text, @created_at::timestamptz)::uuid as thread_key;

-- name: ReadersOfThread :one
select agui_internal.readers_of_thread(@thread_key::uuid)::json as readers;

-- name: ReceiveReaders :exec
select agui_internal.receive_readers(@thread_key::uuid, @readers::json);

-- name: RemoveMovedThread :one
select agui_internal.remove_moved_thread(@thread_key::uuid)::boolean as is_removed;

-- name: HandOverBuckets :one
-- The buckets that were given, as a map.
select agui_internal.hand_over_buckets(@buckets::int[], @to_node::text)::json as map;

-- name: ThreadsElsewhere :one
select agui_internal.threads_elsewhere(@buckets::int[], @to_node::text)::json as threads;

-- name: ErasuresSince :one
-- Those that were recorded or lifted since.
select coalesce(json_agg(erasure), '[]')::json as erasures
from agui.erasure as erasure
where erasure.erased_at >= @since::timestamptz or erasure.allowed_at >= @since::timestamptz;

-- name: ReceiveBuckets :exec
select agui_internal.receive_buckets(@map::json, @elsewhere::json, @erasures::json);

-- name: ForgetMovedThreads :one
select agui_internal.forget_moved_threads(@buckets::int[])::bigint as left_alone;
