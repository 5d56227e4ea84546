-- Planned as part of the calling query. So it has no search_path and names its columns.
create or replace function agui_internal.batches_behind(thread_key uuid, after_seq bigint)
returns table (first_seq bigint, recorded_at timestamptz, n int, run_no int, events json, earlier_us int[])
language sql
stable
parallel safe
rows 100
begin atomic
    select batch.first_seq, batch.recorded_at, batch.n, batch.run_no, batch.events, batch.earlier_us
    from agui.batch as batch
    where batch.thread_key = batches_behind.thread_key
        and batch.first_seq >= coalesce(
            (
                -- a repacked batch may begin before the event after after_seq
                select max(holder.first_seq)
                from agui.batch as holder
                where holder.thread_key = batches_behind.thread_key
                    and holder.first_seq <= least(batches_behind.after_seq, 9223372036854775806) + 1
            ),
            1
        );
end;

comment on function agui_internal.batches_behind is
    'The batches of a thread from the one that contains the event after after_seq. Its first '
    'events may precede that event.';

create or replace function agui_internal.event_type(payload json)
returns text
language sql
immutable
strict
parallel safe
-- The operators of PostgreSQL on json fail if an event contains \u0000 or half an emoji. Such
-- events contain a backslash.
return case
    when strpos(payload::text, '\') = 0 then payload ->> 'type'
    else agui_internal.json_guard(payload::text)::json ->> 'type'
end;

comment on function agui_internal.event_type is
    'The type of an event, whatever else it contains.';

create or replace function agui_internal.fits(document json, max_bytes bigint)
returns boolean
language sql
stable
parallel safe
-- Decompressing a value takes as long as reading it, so only values that may be too large are
-- decompressed. The best possible ratio is that of lz4, 255 bytes for one.
return 255 * pg_column_size(document)::bigint <= max_bytes or agui_internal.text_bytes(document) <= max_bytes;

comment on function agui_internal.fits is
    'Whether the text of a stored JSON value has at most max_bytes bytes.';

create or replace function agui_internal.page_of_batches(
    thread_key uuid,
    from_seq   bigint,
    through_seq bigint,
    run_nos    int[],
    max_rows   int,
    max_bytes  bigint,
    input_seqs bigint[] default '{}',
    out last_seq bigint,
    out bytes    bigint,
    out has_more boolean
)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    next_batch record;
    row_count  int := 0;
begin
    -- Usually all rows fit, and the loop would take as long as reading them.
    if coalesce(cardinality(input_seqs), 0) = 0 then
        select max(batch.first_seq), sum(batch.bytes), count(*) = max_rows
        into last_seq, bytes, has_more
        from (
            select batch.first_seq, agui_internal.batch_bytes(batch.events, batch.text_bytes) as bytes
            from agui.batch as batch
            where batch.thread_key = page_of_batches.thread_key
                and batch.first_seq between from_seq and page_of_batches.through_seq
                and batch.run_no = any (run_nos)
            order by batch.first_seq
            limit max_rows
        ) as batch;
        if (bytes > max_bytes) is not true then
            return;
        end if;
    end if;

    last_seq := null;
    bytes := 0;
    has_more := false;
    for next_batch in
        select
            batch.first_seq,
            agui_internal.batch_bytes(batch.events, batch.text_bytes) + coalesce(
                (
                    select sum(coalesce(case when given.split_at is not null then given.part_bytes end, given.bytes, octet_length(given.input::text)))
                    from unnest(input_seqs) as place (seq)
                    join agui.run_input as given
                        on given.thread_key = batch.thread_key and given.run_no = batch.run_no
                    where place.seq between batch.first_seq and batch.first_seq + batch.n - 1
                ),
                0
            ) as bytes
        from agui.batch as batch
        where batch.thread_key = page_of_batches.thread_key
            and batch.first_seq between from_seq and page_of_batches.through_seq
            and batch.run_no = any (run_nos)
        order by batch.first_seq
        limit max_rows + 1
    loop
        has_more := row_count = max_rows or row_count > 0 and bytes + next_batch.bytes > max_bytes;
        exit when has_more;
        row_count := row_count + 1;
        bytes := bytes + next_batch.bytes;
        last_seq := next_batch.first_seq;
    end loop;
end
$$;

comment on function agui_internal.page_of_batches is
    'A page of the batches of some runs that begin between two seqs: up to max_rows batches with '
    'up to max_bytes of text in total, and at least one if there is any. last_seq is the first seq '
    'of the last batch (null: there is none). bytes is their size, including the inputs that count '
    'at input_seqs. has_more: others may follow.';

create or replace function agui_internal.batch_bytes(events json, text_bytes int)
returns int
language sql
stable
parallel safe
return coalesce(text_bytes, agui_internal.text_bytes(events));

comment on function agui_internal.batch_bytes is
    'The bytes of the text of a batch, given its columns as stored. Usually the batch is not '
    'decompressed for that.';

create or replace function agui_internal.text_bytes(document json)
returns int
language sql
stable
parallel safe
-- A value that is not compressed is as large as it is stored.
return case
    when pg_column_compression(document) is null then pg_column_size(document)
    else octet_length(document::text)
end;

comment on function agui_internal.text_bytes is
    'The bytes of the text of a stored JSON value, which is opened only if it is compressed; null '
    'for null.';

create or replace function agui_internal.seq_at(thread_key uuid, at_seq bigint, at_time timestamptz)
returns bigint
language sql
stable
parallel safe
return case
    when at_time is null then at_seq
    else least(at_seq, agui_internal.last_seq_by(thread_key, at_time))
end;

comment on function agui_internal.seq_at is
    'The seq up to which the events of a thread count for a read at a seq and a point in time, the '
    'earlier of the two; null: all events.';

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

comment on function agui_internal.last_seq_by is
    'The seq of the last event of a thread that was recorded before a point in time or (or_at) at '
    'it; 0 if there is none.';

-- Planned as part of the calling query. So it has no search_path and names its columns.
create or replace function agui_internal.batch_with(thread_key uuid, seq bigint)
returns table (first_seq bigint, recorded_at timestamptz, n int, run_no int, events json, earlier_us int[])
language sql
stable
parallel safe
rows 1
begin atomic
    select batch.first_seq, batch.recorded_at, batch.n, batch.run_no, batch.events, batch.earlier_us
    from agui.batch as batch
    where batch.thread_key = batch_with.thread_key and batch.first_seq <= batch_with.seq
    order by batch.first_seq desc
    limit 1;
end;

comment on function agui_internal.batch_with is
    'The batch of a thread that contains the event with this seq; after the end of the log its '
    'last batch, before its beginning none.';

create or replace function agui_internal.event_time(recorded_at timestamptz, earlier_us int)
returns timestamptz
language sql
stable
parallel safe
return case when earlier_us is null then recorded_at else recorded_at - earlier_us * interval '1 microsecond' end;

comment on function agui_internal.event_time is
    'The time when an event was appended, given recorded_at of its batch and its item of '
    'earlier_us.';
