create or replace function agui.attachment_data(
    thread_id text,
    n         int,
    run_id    text default null,
    at_seq    bigint default null,
    at_time   timestamptz default null,
    scope     text default '',
    out message_id text,
    out type       text,
    out mime_type  text,
    out filename   text,
    out data       bytea
)
returns setof record
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    fold agui_internal.fold := agui_internal.fold_at(agui_internal.find_run(thread_id, run_id, scope), at_seq, at_time);
    encoded text;
begin
    select found.message_id, found.type, found.mime_type, found.filename, agui_internal.base64_text(found.value)
    into attachment_data.message_id, attachment_data.type, attachment_data.mime_type, attachment_data.filename, encoded
    from agui_internal.fold_attachments(fold) as found
    where found.n = attachment_data.n;
    if encoded is null then
        return;
    end if;
    begin
        data := decode(rpad(encoded, (octet_length(encoded) + 3) / 4 * 4, '='), 'base64');
    exception
        when invalid_parameter_value then
            null;
    end;
    return next;
end
$$;

comment on function agui.attachment_data is
    'Returns what the part number n of agui.attachments holds, for the same run and point in time; no '
    'row: there is none. data is null if its text is not base64. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key, UI022 '
    'a run is in quarantine, UI023 the fold exceeds a limit.';

create or replace function agui.attachments(
    thread_id text,
    run_id    text default null,
    at_seq    bigint default null,
    at_time   timestamptz default null,
    scope     text default ''
)
returns setof agui.attachment_row
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    fold agui_internal.fold := agui_internal.fold_at(agui_internal.find_run(thread_id, run_id, scope), at_seq, at_time);
begin
    return query
    select
        attachment.n, attachment.message_id, attachment.type, attachment.mime_type, attachment.filename,
        octet_length(agui_internal.base64_text(attachment.value)) * 3::bigint / 4
    from agui_internal.fold_attachments(fold) as attachment
    order by attachment.n;
end
$$;

comment on function agui.attachments is
    'Returns the images, files and other data that the messages of a conversation hold, without the '
    'data, after a run (null: the head) or, for a point in the past, after event at_seq of its '
    'lineage or at at_time, whichever is earlier. Parts that name a URL are left out. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key, UI022 '
    'a run is in quarantine, UI023 the fold exceeds a limit.';

create or replace function agui.events(
    thread_id text,
    run_id    text default null,
    after_seq bigint default 0,
    lineage   boolean default true,
    scope     text default ''
)
returns setof agui.event_row
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    leaf   agui.run := agui_internal.find_run(thread_id, run_id, scope);
    behind constant bigint := coalesce(after_seq, 0);
    run    record;
begin
    if lineage is false then
        leaf.parent_no := null;
    end if;
    for run in
        select ancestor.* from agui_internal.ancestors(leaf, behind) as ancestor order by ancestor.run_no
    loop
        return query
        select
            batch.first_seq + element.position - 1,
            run.run_id,
            agui_internal.event_type(element.payload),
            agui_internal.event_time(batch.recorded_at, element.earlier_us),
            element.payload
        from agui_internal.batches_behind(leaf.thread_key, behind) as batch
        cross join lateral rows from (json_array_elements(batch.events), unnest(batch.earlier_us)) with ordinality
            as element (payload, earlier_us, position)
        where batch.run_no = run.run_no
            and batch.first_seq between run.first_seq and coalesce(run.last_seq, 9223372036854775807)
            and batch.first_seq + element.position - 1 > behind
        order by batch.first_seq, element.position;
    end loop;
end
$$;

comment on function agui.events is
    'Returns the events of the lineage of a run (null: the head) after after_seq, in order. '
    'lineage => false: only those of the run itself. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key.';

create or replace function agui.interrupts(
    thread_id text,
    run_id    text default null,
    at_seq    bigint default null,
    at_time   timestamptz default null,
    scope     text default ''
)
returns setof agui.interrupt_row
language plpgsql
stable
security definer
rows 5
set search_path = pg_catalog, pg_temp
as $$
declare
    fold agui_internal.fold := agui_internal.state_at(agui_internal.find_run(thread_id, run_id, scope), at_seq, at_time);
begin
    return query
    select
        agui_internal.json_string_text((guarded.interrupt -> 'id')::text),
        agui_internal.json_string_text((guarded.interrupt -> 'reason')::text),
        agui_internal.json_string_text((guarded.interrupt -> 'message')::text),
        agui_internal.json_string_text((guarded.interrupt -> 'toolCallId')::text),
        expiry.at,
        coalesce(expiry.at <= clock_timestamp(), false),
        element.interrupt
    from json_array_elements(fold.interrupts::json) with ordinality as element (interrupt, position)
    cross join lateral (select agui_internal.json_guarded(element.interrupt) as interrupt offset 0) as guarded
    cross join lateral (select agui_internal.json_timestamp(guarded.interrupt -> 'expiresAt') as at offset 0) as expiry
    order by element.position;
end
$$;

comment on function agui.interrupts is
    'Returns the open interrupts after a run (null: the head) or, for a point in the past, after '
    'event at_seq of its lineage or at at_time, whichever is earlier: one row for each, in the order '
    'of the agent. expired compares with the current time. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key, UI022 '
    'a run is in quarantine, UI023 the fold exceeds a limit.';

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

comment on function agui.last_events is
    'Returns the last events of the lineage of a run (null: the head) up to event at_seq (null: its '
    'end), in the order of seq: up to max_rows (default 100, at most 1,000), of the given types '
    '(null: all). lineage => false: only those of the run itself. To read the page before this one, '
    'pass its least seq minus 1 as at_seq; fewer rows than max_rows are the first ones. page_bytes bounds '
    'the bytes of the events of a page (null: no bound), which has one event at least. If events do not '
    'fit because of it, a last row of nulls says so. Reads the '
    'log backwards as far as the page needs, so a page of a rare type may read all of it. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI011 max_rows is out of range, UI012 '
    'another thread has the same key.';

create or replace function agui.messages(
    thread_id text,
    run_id    text default null,
    at_seq    bigint default null,
    at_time   timestamptz default null,
    scope     text default ''
)
returns setof agui.message_row
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    fold agui_internal.fold := agui_internal.fold_at(agui_internal.find_run(thread_id, run_id, scope), at_seq, at_time);
begin
    return query
    select message.position::int, message.message_id, message.role, message.body::json
    from unnest(fold.message_ids, fold.roles, fold.bodies) with ordinality
        as message (message_id, role, body, position)
    order by message.position;
end
$$;

comment on function agui.messages is
    'Returns the messages of a conversation after a run (null: the head) or, for a point in the '
    'past, after event at_seq of its lineage or at at_time, whichever is earlier. Before the first '
    'event there are none. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key, UI022 '
    'a run is in quarantine, UI023 the fold exceeds a limit.';

create or replace function agui.restore(
    thread_id text,
    run_id    text default null,
    at_seq    bigint default null,
    at_time   timestamptz default null,
    scope     text default ''
)
returns json
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    run      agui.run := agui_internal.find_run(thread_id, run_id, scope);
    fold     agui_internal.fold := agui_internal.fold_at(run, at_seq, at_time);
    restored text;
begin
    -- Put together as text: the parts are already JSON and keep their spelling. concat copies large
    -- ones once, operators would do so one after the other.
    restored := concat(
        '{"threadId":', to_json(thread_id),
        ',"runId":', to_json(run.run_id),
        ',"seq":', fold.through_seq,
        ',"status":', to_json(run.status),
        ',"messages":[', array_to_string(fold.bodies, ','), ']',
        ',"state":', fold.state,
        ',"interrupts":', fold.interrupts,
        '}'
    );
    fold := null;
    return restored;
end
$$;

comment on function agui.restore is
    'Returns all that a UI needs to show a conversation, as {threadId, runId, seq, status, '
    'messages, state, interrupts}, after a run (null: the head) or, for a point in the past, after '
    'event at_seq of its lineage or at at_time, whichever is earlier. seq is that of the last '
    'event included (0: none); status is the current status of the run. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key, UI022 '
    'a run is in quarantine, UI023 the fold exceeds a limit.';

create or replace function agui.state(
    thread_id text,
    run_id    text default null,
    at_seq    bigint default null,
    at_time   timestamptz default null,
    scope     text default ''
)
returns json
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select (agui_internal.state_at(agui_internal.find_run(thread_id, run_id, scope), at_seq, at_time)).state::json
$$;

comment on function agui.state is
    'Returns the state that agent and UI shared after a run (null: the head) or, for a point in '
    'the past, after event at_seq of its lineage or at at_time, whichever is earlier. Before the '
    'first event it is {}. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key, UI022 '
    'a run is in quarantine, UI023 the fold exceeds a limit.';

create or replace function agui.replay(
    thread_id text,
    run_id    text default null,
    at_seq    bigint default null,
    at_time   timestamptz default null,
    shape     text default 'snapshot',
    scope     text default ''
)
returns setof json
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    leaf agui.run := agui_internal.find_run(thread_id, run_id, scope);
begin
    return query
    select event.payload
    from json_array_elements(
        agui_internal.replay_events(thread_id, leaf, agui_internal.seq_at(leaf.thread_key, at_seq, at_time), shape)
    ) with ordinality as event (payload, position)
    order by event.position;
end
$function$;

comment on function agui.replay is
    'Returns a short stream of events, one in each row, that gives any AG-UI client the messages, '
    'state and interrupts of the lineage of a run (null: the head) or, for a point in the past, '
    'after event at_seq or at at_time, whichever is earlier. Shape snapshot: RUN_STARTED, '
    'MESSAGES_SNAPSHOT, STATE_SNAPSHOT, what is open (a message, a tool call, a step), and the '
    'event that ended the run, if it has ended. An earlier run precedes it in two cases: if '
    'interrupts still wait that this run does not end with itself; and, with messages and state in '
    'it, if the run is in progress and continues from another run or has subagents. Shape stream: '
    'the compacted stream of the lineage (agui.compact_events). '
    'Errors: UI001 unknown thread, UI002 unknown run, UI008 invalid arguments, UI012 another '
    'thread has the same key, UI013 unknown shape, UI022 a run is in quarantine, UI023 the fold '
    'exceeds a limit.';

-- route: any node
create or replace function agui.json_patch(doc jsonb, patch jsonb)
returns jsonb
language plpgsql
immutable
strict
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    patched record;
begin
    patched := agui_internal.json_patch_apply(doc, array[patch], agui_internal.limits_of_jsonb(), null, false);
    if patched.problem is not null then
        raise exception 'JSON patch: %', patched.problem
            using errcode = 'UI020';
    end if;
    return patched.document;
end
$function$;

comment on function agui.json_patch is
    'Applies an RFC 6902 patch (add, remove, replace, move, copy, test) to a document and returns '
    'the result. If an operation fails, nothing is applied, and UI020 names the operation and the '
    'reason. To apply many patches to one document, see agui.json_patch_agg and '
    'agui_internal.json_patch_all. '
    'Errors: UI020 the patch fails.';

-- array_append is written in C and takes constant time. A transition function in SQL or PL/pgSQL
-- would copy the collected array for every row.
-- route: missing
create or replace aggregate agui.json_patch_agg(patch jsonb) (
    sfunc = array_append,
    stype = jsonb[],
    finalfunc = agui_internal.json_patch_agg_result,
    parallel = safe
);

comment on aggregate agui.json_patch_agg(jsonb) is
    'Applies RFC 6902 patches to an empty object in the given order and returns the result: the '
    'state that a stream of state deltas describes. A patch with a failing operation is skipped as '
    'a whole, as AG-UI clients do (agui.json_patch raises an error instead). Returns null for no '
    'rows. To start from another document: agui_internal.json_patch_all(document, array_agg(patch '
    'order by seq)). Example: select agui.json_patch_agg(payload::jsonb -> ''delta'' order by seq) '
    'from agui.events(''my-thread'') where type = ''STATE_DELTA''';
