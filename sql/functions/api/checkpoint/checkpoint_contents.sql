create or replace function agui.checkpoint_contents(
    thread_id     text default null,
    checkpoint_id text default null,
    namespace     text default null,
    before_id     text default null,
    filter        json default null,
    max_rows      int default 50,
    cursor        text default null,
    scope         text default ''
)
returns setof agui.checkpoint_content
language plpgsql
stable
security definer
rows 200
set search_path = pg_catalog, pg_temp
-- A plan for each call, or one made while the tables were small, costs more than the look-ups.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
declare
    most_rows constant int := 1000;
    low       uuid;
    high      uuid;
    wanted    constant jsonb := agui_internal.json_guard(filter::text)::jsonb;
    last_key  uuid;
    last_no   bigint;
    last_id   text collate "C";
    -- In one namespace of a thread ids are unique, so a cursor is an id.
    below_id  text collate "C";
    listed    agui.checkpoint;
begin
    if scope is null then
        raise exception using
            errcode = 'UI008',
            message = 'a list of checkpoints needs a scope that is not null';
    end if;
    if max_rows is null or max_rows not between 0 and most_rows then
        raise exception using
            errcode = 'UI011',
            message = format('a list of checkpoints: max_rows must be between 0 and %s, not %s', most_rows, coalesce(max_rows::text, 'null')),
            hint = 'To read the next page, pass the cursor of the last row.';
    end if;
    if cursor is not null then
        if cursor !~ '^[0-9a-f]{48}.' then
            raise exception using
                errcode = '22023',
                message = format('a list of checkpoints: "%s" is not a cursor', left(cursor, 100)),
                hint = 'Use the cursor of a row of agui.checkpoint_contents.';
        end if;
        last_key := left(cursor, 32)::uuid;
        last_no := ('x' || substr(cursor, 33, 16))::bit(64)::bigint;
        last_id := substr(cursor, 49);
    end if;
    below_id := least(before_id collate "C", last_id);
    if thread_id is not null then
        low := agui_internal.checked_thread_key(thread_id, scope);
        high := low;
    else
        -- The threads of a scope are one range of keys.
        low := agui_internal.visible_key(agui_internal.first_key(scope));
        high := agui_internal.visible_key(agui_internal.last_key(scope));
    end if;

    -- The usual cases have statements of their own, which the unique index answers in its order.
    if thread_id is not null and namespace is not null and checkpoint_id is not null then
        select checkpoint.* into listed
        from agui.checkpoint as checkpoint
        where checkpoint.thread_key = low and checkpoint.namespace = checkpoint_contents.namespace and checkpoint.checkpoint_id = checkpoint_contents.checkpoint_id;
        if listed.metadata is not null
            and max_rows > 0
            and (listed.checkpoint_id < below_id) is not false
            and (agui_internal.json_guard(listed.metadata::text)::jsonb @> wanted) is not false
        then
            return query select * from agui_internal.contents_of_checkpoint(listed, thread_id);
        end if;
        return;
    elsif thread_id is not null and namespace is not null and below_id is null then
        for listed in
            select checkpoint.*
            from agui.checkpoint as checkpoint
            where checkpoint.thread_key = low
                and checkpoint.namespace = checkpoint_contents.namespace
                and checkpoint.metadata is not null
                and (wanted is null or agui_internal.json_guard(checkpoint.metadata::text)::jsonb @> wanted)
            order by checkpoint.checkpoint_id desc
            limit max_rows
        loop
            return query select * from agui_internal.contents_of_checkpoint(listed, thread_id);
        end loop;
        return;
    elsif thread_id is not null and namespace is not null then
        for listed in
            select checkpoint.*
            from agui.checkpoint as checkpoint
            where checkpoint.thread_key = low
                and checkpoint.namespace = checkpoint_contents.namespace
                and checkpoint.checkpoint_id < below_id
                and checkpoint.metadata is not null
                and (wanted is null or agui_internal.json_guard(checkpoint.metadata::text)::jsonb @> wanted)
            order by checkpoint.checkpoint_id desc
            limit max_rows
        loop
            return query select * from agui_internal.contents_of_checkpoint(listed, thread_id);
        end loop;
        return;
    end if;
    for listed in
        select checkpoint.*
        from agui.checkpoint as checkpoint
        where checkpoint.thread_key between low and high
            and (checkpoint_contents.namespace is null or checkpoint.namespace = checkpoint_contents.namespace)
            and (checkpoint_contents.checkpoint_id is null or checkpoint.checkpoint_id = checkpoint_contents.checkpoint_id)
            and (before_id is null or checkpoint.checkpoint_id < before_id)
            and (last_id is null or (checkpoint.checkpoint_id, checkpoint.thread_key, checkpoint.checkpoint_no) < (last_id, last_key, last_no))
            and checkpoint.metadata is not null
            and (wanted is null or agui_internal.json_guard(checkpoint.metadata::text)::jsonb @> wanted)
        order by checkpoint.checkpoint_id desc, checkpoint.thread_key desc, checkpoint.checkpoint_no desc
        limit max_rows
    loop
        return query select * from agui_internal.contents_of_checkpoint(listed, thread_id);
    end loop;
end
$$;

comment on function agui.checkpoint_contents(text, text, text, text, json, int, text, text) is
    'Returns checkpoints that agui.put_checkpoint stored, with all that belongs to them, one row for '
    'each piece: the document, the metadata, the values of the channels, and what tasks wrote, in the '
    'order (task_path, task_id, place). They are those of a thread (null: of all threads of the scope), '
    'of a namespace (null: all), with an id (null: any), whose id is less than before_id, and whose '
    'metadata contains the members of filter (as jsonb @> does); greatest id first. Ids compare by '
    'code point, so max_rows => 1 is the newest checkpoint if ids begin with a time, as those of '
    'LangGraph do. max_rows counts checkpoints (0 to 1,000); to continue, pass the cursor of the last '
    'one. Without thread and namespace a call reads all checkpoints of the scope, or of the thread. '
    'Returns no row for an unknown thread or id. '
    'Errors: UI008 no scope, UI011 max_rows is out of range, UI012 another thread has the same key, '
    '22023 invalid cursor.';

revoke execute on function agui.checkpoint_contents(text, text, text, text, json, int, text, text) from public;
