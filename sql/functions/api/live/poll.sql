create or replace function agui.poll(
    thread_ids  text[],
    after_seqs  bigint[],
    after_times timestamptz[] default null,
    max_rows    int default 100,
    page_bytes  int default 16777216,
    scopes      text[] default null
)
returns setof agui.poll_row
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
-- Planned once: a plan for each call would take longer than the call.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
    is_standby boolean := pg_is_in_recovery();
    own        record;
    batch      record;
    size       bigint;
    room       bigint := page_bytes;
    is_begun   boolean := false;
    cut        int[] := '{}';  -- the threads with more events than fit
begin
    select * into own from agui_internal.own_keys();
    if cardinality(thread_ids) is distinct from cardinality(after_seqs)
        or cardinality(thread_ids) <> cardinality(after_times) or cardinality(thread_ids) <> cardinality(scopes)
    then
        raise exception using
            errcode = 'UI008',
            message = 'agui.poll: all arrays must have one item for each thread';
    end if;

    for batch in
    with followed as materialized (
        select
            item.thread_no::int, key.thread_key, item.after_seq, holder.first_seq, holder.n,
            case
                when agui_internal.this_node() is not null and agui_internal.node_of(key.thread_key) <> agui_internal.this_node() then 'UI027'
                -- Checked once for each follower: a follower that has already seen events passed
                -- the check before.
                when item.after_seq <= 0 then (
                    select 'UI012'
                    from agui.thread as thread
                    where thread.thread_key = key.thread_key and (thread.scope <> item.scope or thread.thread_id <> item.thread_id)
                )
                when holder.first_seq is null and agui_internal.erased_at(key.thread_key) is not null then 'UI014'
                when holder.first_seq is null or holder.first_seq + holder.n - 1 < item.after_seq then
                    -- A standby may not have received these events yet.
                    case when not is_standby then 'UI017' end
                when item.after_time <> agui_internal.event_time(holder.recorded_at, holder.earlier_us[item.after_seq - holder.first_seq + 1]) then 'UI017'
            end as problem
        from (
            select thread_id, greatest(after_seq, 0) as after_seq, after_time, coalesce(scope, '') as scope, thread_no
            from unnest(thread_ids, after_seqs, after_times, scopes) with ordinality
                as item (thread_id, after_seq, after_time, scope, thread_no)
        ) as item
        cross join lateral (select agui.thread_key(item.scope, item.thread_id) as thread_key offset 0) as derived
        -- A thread of another scope counts as missing.
        cross join lateral (
            select case when derived.thread_key >= own.low and derived.thread_key <= own.high then derived.thread_key end as thread_key
            offset 0
        ) as key
        -- The batch that contains after_seq. That event must still be the one that the follower has
        -- seen.
        left join lateral agui_internal.batch_with(key.thread_key, item.after_seq) as holder on true
    )
    select
        followed.thread_no,
        followed.problem,
        unseen.first_seq,
        unseen.n,
        unseen.run_no,
        unseen.recorded_at,
        unseen.earlier_us,
        unseen.events,
        unseen.text_bytes,
        greatest(followed.after_seq - unseen.first_seq + 1, 0)::int as seen,
        run.run_id,
        run.status
    from followed
    left join lateral (
        select stored.*, row_number() over (order by stored.first_seq) as place
        from (
            select *
            from agui.batch as stored
            where stored.thread_key = followed.thread_key
                and stored.first_seq > case
                    when followed.first_seq + followed.n - 1 > followed.after_seq then followed.first_seq - 1
                    else followed.after_seq
                end
            order by stored.first_seq
            limit max_rows
        ) as stored
    ) as unseen on followed.problem is null
    left join lateral (
        select run.run_id, run.status
        from agui.run as run
        where run.thread_key = followed.thread_key and run.run_no = unseen.run_no
        offset 0
    ) as run on true
    where followed.problem is not null or unseen.first_seq is not null
    -- Return the first batch of each thread before the second of any. If not all batches fit, no
    -- thread is starved by its neighbours.
    order by unseen.place, followed.thread_no
    loop
        continue when batch.thread_no = any (cut);
        if batch.problem is not null then
            return next (batch.thread_no, null, null, null, null, null, null, null, batch.problem)::agui.poll_row;
            continue;
        end if;
        size := agui_internal.batch_bytes(batch.events, batch.text_bytes);
        if is_begun and size > room then
            cut := cut || batch.thread_no;
            return next (batch.thread_no, null, null, null, null, null, null, null, null)::agui.poll_row;
            continue;
        end if;
        is_begun := true;
        room := room - size;
        if batch.seen > 0 then
            batch.earlier_us := batch.earlier_us[batch.seen + 1 :];
            batch.events := (
                select ('[' || string_agg(element.value::text, ',' order by element.position) || ']')::json
                from json_array_elements(batch.events) with ordinality as element (value, position)
                where element.position > batch.seen
            );
        end if;
        return next (
            batch.thread_no, batch.run_id, batch.status, batch.first_seq + batch.seen, batch.n - batch.seen, batch.recorded_at,
            batch.earlier_us, batch.events, null
        )::agui.poll_row;
    end loop;
end
$$;

comment on function agui.poll(text[], bigint[], timestamptz[], int, int, text[]) is
    'Returns the new events of the threads that a process follows: for each thread all events '
    'after the last seq that the process has seen (0: none), of all runs, in order. Limits: '
    'max_rows rows (batches) for each thread and page_bytes of events in total, but always at '
    'least one row. If a thread has more events than fit, its last row has only thread_no; put '
    'this thread first in the next call. after_times gives the recorded_at of the last seen '
    'events. With it, a log that was rewound by a crash or a failover is always detected (problem '
    'UI017), even if it has grown since. A thread that does not exist yet returns no row. Works on '
    'standbys and through connection poolers. '
    'Errors: UI008 arrays of different lengths.';

revoke execute on function agui.poll(text[], bigint[], timestamptz[], int, int, text[]) from public;
