create or replace function agui.last_events(
    thread_id text,
    run_id    text default null,
    at_seq    bigint default null,
    types     text[] default null,
    max_rows  int default 100,
    lineage   boolean default true,
    scope     text default '',
    page_bytes int default null
)
returns setof agui.event_row
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
-- Planned once, and each batch is one step back in the index.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
    most_rows constant int := 1000;
    until constant bigint := coalesce(at_seq, 9223372036854775807);
    leaf  agui.run := agui_internal.find_run(thread_id, run_id, scope);
    run   agui.run;
    batch record;
    -- The batches of the page, the last one first, and how many of its events they have.
    first_seqs bigint[] := '{}';
    of_runs    text[] := '{}';
    row_count  bigint := 0;
begin
    if max_rows is null or max_rows not between 1 and most_rows then
        raise exception using
            errcode = 'UI011',
            message = format('last events of thread "%s": max_rows must be between 1 and %s, not %s', thread_id, most_rows, coalesce(max_rows::text, 'null')),
            hint = 'To read the page before this one, pass its least seq minus 1 as at_seq.';
    end if;
    if page_bytes < 1 then
        raise exception using
            errcode = 'UI011',
            message = format('last events of thread "%s": page_bytes must be at least 1', thread_id);
    end if;
    if lineage is false then
        leaf.parent_no := null;
    end if;

    run := agui_internal.run_at(leaf, until);
    <<back>>
    while run.run_no is not null loop
        for batch in
            select
                stored.first_seq,
                case
                    when types is null then least(stored.n, until - stored.first_seq + 1)
                    else (
                        select count(*)
                        from rows from (json_to_recordset(agui_internal.json_guarded(stored.events)) as (type text)) with ordinality as event (type, position)
                        where stored.first_seq + event.position - 1 <= until and event.type = any (types)
                    )
                end as n
            from agui.batch as stored
            where stored.thread_key = leaf.thread_key
                and stored.first_seq between run.first_seq and least(coalesce(run.last_seq, until), until)
                and stored.run_no = run.run_no
                and (
                    types is null
                    or strpos(stored.events::text, '\u00') > 0  -- a type may be spelled with escapes
                    or exists (select from unnest(types) as wanted (type) where strpos(stored.events::text, wanted.type) > 0)
                )
            order by stored.first_seq desc
        loop
            first_seqs := array_append(first_seqs, batch.first_seq);
            of_runs := array_append(of_runs, run.run_id);
            row_count := row_count + batch.n;
            exit back when row_count >= max_rows;
        end loop;
        select parent.* into run
        from agui.run as parent
        where parent.thread_key = leaf.thread_key and parent.run_no = run.parent_no;
    end loop back;

    return query
    with event as materialized (
        select
            stored.first_seq + element.position - 1 as seq,
            place.run_id,
            element.type,
            agui_internal.event_time(stored.recorded_at, element.earlier_us) as recorded_at,
            element.payload
        from unnest(first_seqs, of_runs) as place (first_seq, run_id)
        cross join lateral (
            select * from agui.batch as held where held.thread_key = leaf.thread_key and held.first_seq = place.first_seq offset 0
        ) as stored
        cross join lateral rows from (
            json_to_recordset(agui_internal.json_guarded(stored.events)) as (type text),
            json_array_elements(stored.events),
            unnest(stored.earlier_us)
        ) with ordinality as element (type, payload, earlier_us, position)
        where stored.first_seq + element.position - 1 <= until
            and (types is null or element.type = any (types))
        order by seq desc
        limit max_rows
    ),
    cut as materialized (
        select max(sized.seq) as seq
        from (
            select event.seq, sum(octet_length(event.payload::text)) over newest as bytes, row_number() over newest as place
            from event
            where page_bytes is not null
            window newest as (order by event.seq desc)
        ) as sized
        where sized.bytes > page_bytes and sized.place > 1
    )
    select event.seq, event.run_id, event.type, event.recorded_at, event.payload
    from event
    where (event.seq <= (select cut.seq from cut)) is not true
    union all
    select null, null, null, null, null
    from cut
    where cut.seq is not null
    order by seq;
end
$$;

comment on function agui.last_events(text, text, bigint, text[], int, boolean, text, int) is
    'Returns the last events of the lineage of a run (null: the head) up to event at_seq (null: its '
    'end), in the order of seq: up to max_rows (default 100, at most 1,000), of the given types '
    '(null: all). lineage => false: only those of the run itself. To read the page before this one, '
    'pass its least seq minus 1 as at_seq; fewer rows than max_rows are the first ones. page_bytes bounds '
    'the bytes of the events of a page (null: no bound), which has one event at least. If events do not '
    'fit because of it, a last row of nulls says so. Reads the '
    'log backwards as far as the page needs, so a page of a rare type may read all of it. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI011 max_rows is out of range, UI012 '
    'another thread has the same key.';

revoke execute on function agui.last_events(text, text, bigint, text[], int, boolean, text, int) from public;
