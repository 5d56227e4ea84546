create or replace function agui_internal.verify_batches(thread_key uuid)
returns setof agui.verify_row
language plpgsql
stable
-- Not parallel safe: before PostgreSQL 17 a parallel query cannot catch errors.
set search_path = pg_catalog, pg_temp
as $$
declare
    batch    record;
    events_n int;
    no_event_at bigint;
    unusable    text;
    times_in_order boolean;
    problems    text[];
begin
    for batch in
        select
            stored.first_seq,
            stored.n,
            stored.run_no,
            run.run_id,
            stored.recorded_at,
            stored.events,
            stored.earlier_us,
            agui_internal.event_time(stored.recorded_at, stored.earlier_us[1]) as begun_at,
            coalesce(lag(stored.first_seq + stored.n) over in_order, 1) as expected_seq,
            lag(stored.recorded_at) over in_order as previous_at
        from agui.batch as stored
        left join agui.run as run
            on run.thread_key = stored.thread_key and run.run_no = stored.run_no
        where stored.thread_key = verify_batches.thread_key
        window in_order as (order by stored.first_seq)
        order by stored.first_seq
    loop
        events_n := null;
        no_event_at := null;
        unusable := null;
        begin
            if json_typeof(batch.events) = 'array' then
                select count(*), min(element.position) filter (where json_typeof(element.value) <> 'object')
                into events_n, no_event_at
                from json_array_elements(batch.events) with ordinality as element (value, position);
            else
                unusable := format('the batch at seq %s holds a JSON %s in place of an array of events', batch.first_seq, json_typeof(batch.events));
            end if;
        exception
            when others then
                unusable := format('the batch at seq %s cannot be read: %s', batch.first_seq, sqlerrm);
        end;

        times_in_order := true;
        if batch.earlier_us is not null then
            times_in_order := batch.earlier_us = array(select earlier.us from unnest(batch.earlier_us) as earlier (us) where earlier.us >= 0 order by earlier.us desc);
        end if;
        problems := array_remove(
            array[
                case when batch.first_seq <> batch.expected_seq then
                    format('the batch at seq %s should begin at seq %s: events are missing or double', batch.first_seq, batch.expected_seq)
                end,
                unusable,
                case when events_n <> batch.n then
                    format('the batch at seq %s holds %s events, its row says %s', batch.first_seq, events_n, batch.n)
                end,
                case when no_event_at is not null then
                    format('the event at seq %s is not a JSON object', batch.first_seq + no_event_at - 1)
                end,
                case when batch.run_id is null then
                    format('the batch at seq %s belongs to run number %s, which does not exist', batch.first_seq, batch.run_no)
                end,
                case when cardinality(batch.earlier_us) <> batch.n then
                    format('the batch at seq %s has the times of %s events, its row says %s', batch.first_seq, cardinality(batch.earlier_us), batch.n)
                end,
                case when not times_in_order then
                    format('the times of the events in the batch at seq %s are not in order', batch.first_seq)
                end,
                case when batch.begun_at < batch.previous_at then
                    format('the batch at seq %s was recorded before the one that precedes it', batch.first_seq)
                end
            ],
            null
        );
        if problems <> '{}' then
            return query select batch.run_id, unnest(problems), 'damage';
        end if;
    end loop;
end
$$;

comment on function agui_internal.verify_batches(uuid) is
    'The damage of the batches of a thread: seqs, counts, invalid events, runs, times.';

revoke execute on function agui_internal.verify_batches(uuid) from public;
