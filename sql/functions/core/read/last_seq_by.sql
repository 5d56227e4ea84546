-- recorded_at never decreases along the log, so a binary search finds the place. Each step is one
-- look-up in the primary key.
create or replace function agui_internal.last_seq_by(thread_key uuid, point timestamptz, or_at boolean default true)
returns bigint
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    low    bigint := 0;  -- the events up to it are early enough
    high   bigint;       -- the batches that begin after it are not
    middle bigint;
    mid    record;       -- the batch of the event in the middle; in a damaged log one before it, or none
begin
    select batch.first_seq + batch.n - 1 into high
    from agui_internal.batch_with(last_seq_by.thread_key, 9223372036854775807) as batch;

    while low < high loop
        middle := low + (high - low + 1) / 2;
        select batch.first_seq, batch.n, batch.recorded_at, batch.earlier_us into mid
        from agui_internal.batch_with(last_seq_by.thread_key, middle) as batch;
        if mid.first_seq is null or mid.recorded_at < point or or_at and mid.recorded_at = point then
            low := greatest(middle, mid.first_seq + mid.n - 1);
        elsif mid.earlier_us is null then
            high := mid.first_seq - 1;
        else
            -- A repacked batch: its first events may be early enough, and then all events before
            -- them are.
            high := mid.first_seq - 1 + (
                select count(*)
                from unnest(mid.earlier_us) as earlier (us)
                where agui_internal.event_time(mid.recorded_at, earlier.us) < point
                    or or_at and agui_internal.event_time(mid.recorded_at, earlier.us) = point
            );
            exit when high >= mid.first_seq;
        end if;
    end loop;
    return coalesce(high, 0);
end
$$;

comment on function agui_internal.last_seq_by(uuid, timestamptz, boolean) is
    'The seq of the last event of a thread that was recorded before a point in time or (or_at) at '
    'it; 0 if there is none.';

revoke execute on function agui_internal.last_seq_by(uuid, timestamptz, boolean) from public;
