create or replace function agui_internal.insert_imported(
    thread_key  uuid,
    run_no      int,
    after_seq   bigint,
    recorded_at timestamptz,
    events      json,
    previous    bytea,
    run_id      text,
    beginning   bytea,
    out last_seq bigint,
    out began_at timestamptz,
    out ended_at timestamptz
)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    -- A longer span needs a new batch, because earlier_us is an int.
    max_span constant interval := '30 minutes';
    last_at  constant timestamptz := greatest(clock_timestamp(), insert_imported.recorded_at);
    n        bigint := 0;
    batch    record;
    hash     bytea := previous;
begin
    for batch in
    with event as materialized (  -- materialized: otherwise each of the windows below would parse the times
        select
            element.position,
            element.payload::text as payload,
            case when stated.at >= agui_internal.earliest_time() then stated.at end as told
        from rows from (
            json_to_recordset(agui_internal.json_guarded(events)) as (timestamp json),
            json_array_elements(events)
        ) with ordinality as element (told, payload, position)
        cross join lateral (
            select case
                -- The usual spelling. The function takes several times as long.
                when element.told::text ~ '^[0-9]{13}$' then timestamptz 'epoch' + element.told::text::bigint * interval '1 millisecond'
                else agui_internal.json_timestamp(element.told)
            end as at
            offset 0
        ) as stated
    ),
    -- An event without a time gets the time of the event before it or, at the beginning of a
    -- thread, of the event after it.
    dated as (
        select
            event.position,
            event.payload,
            least(last_at, coalesce(
                greatest(insert_imported.recorded_at, max(event.told) over (order by event.position)),
                first_value(event.told) over (order by event.told is null, event.position),
                last_at
            )) as at
        from event
    )
    select
        after_seq + min(dated.position) as first_seq,
        count(*)::int as n,
        max(dated.at) as recorded_at,
        '[' || string_agg(dated.payload, ',' order by dated.position) || ']' as events,
        array_agg(dated.at order by dated.position) as times
    from (
        select dated.*, div(extract(epoch from dated.at - min(dated.at) over ()), extract(epoch from max_span)) as span
        from dated
    ) as dated
    group by dated.span
    order by 1
    loop
        if previous is not null then
            hash := agui_internal.chain_link(
                hash, batch.first_seq, batch.n, agui_internal.chain_times(batch.times), run_id,
                coalesce(case when n = 0 then beginning end, '\x00'), batch.events::json
            );
        end if;
        insert into agui.batch (thread_key, first_seq, recorded_at, n, run_no, events, text_bytes, earlier_us, hash)
        values (
            insert_imported.thread_key, batch.first_seq, batch.recorded_at, batch.n, insert_imported.run_no, batch.events::json,
            octet_length(batch.events),
            case
                when batch.times[1] < batch.recorded_at then (
                    select array_agg((extract(epoch from batch.recorded_at - event.at) * 1000000)::int order by event.position)
                    from unnest(batch.times) with ordinality as event (at, position)
                )
            end,
            hash
        )
        on conflict do nothing;
        exit when not found;
        n := n + batch.n;
        last_seq := batch.first_seq + batch.n - 1;
        began_at := coalesce(began_at, batch.times[1]);
        ended_at := batch.recorded_at;
    end loop;

    if n > 0 and n < json_array_length(events) then
        raise exception using
            errcode = '40001',
            message = format('thread key %s: another writer came first', thread_key),
            hint = 'Another program writes to agui.batch without agui.append. Repeat the call.';
    end if;
end
$$;

comment on function agui_internal.insert_imported(uuid, int, bigint, timestamptz, json, bytea, text, bytea) is
    'Writes events to the log after after_seq with the times that they state (timestamp), unless they '
    'are before agui_internal.earliest_time(). These '
    'times never decrease, are never below recorded_at and never in the future. previous, run_id '
    'and beginning are arguments for agui_internal.chain_link. last_seq is null if another writer '
    'came first. The caller holds the lock of the thread.';

revoke execute on function agui_internal.insert_imported(uuid, int, bigint, timestamptz, json, bytea, text, bytea) from public;
