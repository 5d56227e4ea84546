create or replace function agui_internal.join_batches(thread_key uuid, from_seq bigint, through_seq bigint)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    joined_at   timestamptz;
    payloads    text[];
    times       timestamptz[];
    new_hash    bytea;
    new_links   int[];
    new_payloads text[];
    new_times    timestamptz[];
begin
    select
        max(batch.recorded_at),
        array_agg(element.payload::text order by batch.first_seq, element.position),
        array_agg(agui_internal.event_time(batch.recorded_at, element.earlier_us) order by batch.first_seq, element.position)
    into joined_at, payloads, times
    from agui.batch as batch
    cross join lateral rows from (json_array_elements(batch.events), unnest(batch.earlier_us)) with ordinality
        as element (payload, earlier_us, position)
    where batch.thread_key = join_batches.thread_key
        and batch.first_seq between from_seq and through_seq;

    -- The links are preserved: the number of events in each, and the hash of the last.
    select
        (array_agg(batch.hash order by batch.first_seq desc))[1],
        array_agg(link.n order by batch.first_seq, link.position) filter (where batch.hash is not null)
    into new_hash, new_links
    from agui.batch as batch
    cross join lateral unnest(coalesce(batch.links, array[batch.n])) with ordinality as link (n, position)
    where batch.thread_key = join_batches.thread_key
        and batch.first_seq between from_seq and through_seq;

    perform agui_internal.allow_log_change(true);
    delete from agui.batch as batch
    where batch.thread_key = join_batches.thread_key
        and batch.first_seq > from_seq and batch.first_seq <= through_seq;
    update agui.batch as batch
    set n = cardinality(payloads),
        recorded_at = joined_at,
        events = ('[' || array_to_string(payloads, ',') || ']')::json,
        text_bytes = octet_length(array_to_string(payloads, ',')) + 2,
        hash = new_hash,
        links = new_links,
        earlier_us = (
            select array_agg((extract(epoch from joined_at - event.recorded_at) * 1000000)::int order by event.position)
            from unnest(times) with ordinality as event (recorded_at, position)
        )
    where batch.thread_key = join_batches.thread_key and batch.first_seq = from_seq;
    perform agui_internal.allow_log_change(false);

    -- From now on readers must get exactly what they got before, to the byte and to the
    -- microsecond.
    select
        array_agg(element.payload::text order by element.position),
        array_agg(agui_internal.event_time(batch.recorded_at, element.earlier_us) order by element.position)
    into new_payloads, new_times
    from agui.batch as batch
    cross join lateral rows from (json_array_elements(batch.events), unnest(batch.earlier_us)) with ordinality
        as element (payload, earlier_us, position)
    where batch.thread_key = join_batches.thread_key
        and batch.first_seq between from_seq and through_seq;
    if new_payloads is distinct from payloads or new_times is distinct from times then
        raise exception using
            errcode = 'data_corrupted',
            message = format('the batches from seq %s to %s of thread key %s would not be read back unchanged, so they are not joined',
                from_seq, through_seq, thread_key);
    end if;
end
$$;

comment on function agui_internal.join_batches(uuid, bigint, bigint) is
    'Joins the adjacent batches whose first seqs are in a range into one batch, reads it back, and '
    'fails unless every event is the same, byte for byte, with the same time. The caller holds the '
    'lock of the thread and has updated its row.';

revoke execute on function agui_internal.join_batches(uuid, bigint, bigint) from public;
