create or replace function agui.checkpoint_tuples(
    thread_id     text default null,
    checkpoint_id text default null,
    namespace     text default null,
    before_id     text default null,
    filter        json default null,
    max_rows      int default 50,
    cursor        text default null,
    scope         text default ''
)
returns setof agui.checkpoint_tuple
language plpgsql
stable
security definer
parallel safe
rows 50
set search_path = pg_catalog, pg_temp
set jit = off
as $$
declare
    most_rows constant int := 1000;
    low       uuid;
    high      uuid;
    wanted    constant jsonb := agui_internal.json_guard(filter::text)::jsonb;
    last_key  uuid;
    last_no   bigint;
    last_id   text;
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
                hint = 'Use the cursor of a row of agui.checkpoint_tuples.';
        end if;
        last_key := left(cursor, 32)::uuid;
        last_no := ('x' || substr(cursor, 33, 16))::bit(64)::bigint;
        last_id := substr(cursor, 49);
    end if;
    if thread_id is not null then
        low := agui_internal.checked_thread_key(thread_id, scope);
        high := low;
    else
        -- The threads of a scope are one range of keys.
        low := agui_internal.visible_key(agui_internal.first_key(scope));
        high := agui_internal.visible_key(agui_internal.last_key(scope));
    end if;

    if thread_id is not null and namespace is not null then
        -- In the order of the unique index.
        for listed in
            select checkpoint.*
            from agui.checkpoint as checkpoint
            where checkpoint.thread_key = low
                and checkpoint.namespace = checkpoint_tuples.namespace
                and (checkpoint_tuples.checkpoint_id is null or checkpoint.checkpoint_id = checkpoint_tuples.checkpoint_id)
                and (before_id is null or checkpoint.checkpoint_id < before_id)
                and (last_id is null or checkpoint.checkpoint_id < last_id)
                and checkpoint.metadata is not null
                and (wanted is null or agui_internal.json_guard(checkpoint.metadata::text)::jsonb @> wanted)
            order by checkpoint.checkpoint_id desc
            limit max_rows
        loop
            return next agui_internal.show_checkpoint_tuple(listed, thread_id);
        end loop;
        return;
    end if;
    for listed in
        select checkpoint.*
        from agui.checkpoint as checkpoint
        where checkpoint.thread_key between low and high
            and (checkpoint_tuples.namespace is null or checkpoint.namespace = checkpoint_tuples.namespace)
            and (checkpoint_tuples.checkpoint_id is null or checkpoint.checkpoint_id = checkpoint_tuples.checkpoint_id)
            and (before_id is null or checkpoint.checkpoint_id < before_id)
            and (last_id is null or (checkpoint.checkpoint_id, checkpoint.thread_key, checkpoint.checkpoint_no) < (last_id, last_key, last_no))
            and checkpoint.metadata is not null
            and (wanted is null or agui_internal.json_guard(checkpoint.metadata::text)::jsonb @> wanted)
        order by checkpoint.checkpoint_id desc, checkpoint.thread_key desc, checkpoint.checkpoint_no desc
        limit max_rows
    loop
        return next agui_internal.show_checkpoint_tuple(listed, thread_id);
    end loop;
end
$$;

comment on function agui.checkpoint_tuples(text, text, text, text, json, int, text, text) is
    'Returns checkpoints that agui.put_checkpoint stored, with their values and writes, greatest id '
    'first: those of a thread (null: of all threads of the scope), of a namespace (null: all), with an '
    'id (null: any), whose id is less than before_id, and whose metadata contains the members of '
    'filter (as jsonb @> does). Ids compare by code point. So the newest one has max_rows => 1, '
    'if ids begin with a time, as those of LangGraph do. At most max_rows rows (0 to 1,000); to '
    'continue, pass the cursor of the last one. Without thread and namespace a call reads all '
    'checkpoints of the scope, or of the thread. Returns no row for an unknown thread or id. '
    'Errors: UI008 no scope, UI011 max_rows is out of range, UI012 another thread has the same key, '
    '22023 invalid cursor.';

revoke execute on function agui.checkpoint_tuples(text, text, text, text, json, int, text, text) from public;
