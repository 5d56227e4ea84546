create or replace function agui.channel_history(
    thread_id     text,
    channels      text[],
    checkpoint_id text default null,
    namespace     text default '',
    scope         text default ''
)
returns setof agui.channel_write_row
language plpgsql
stable
security definer
rows 100
set search_path = pg_catalog, pg_temp
-- A plan for each call, or one made while the tables were small, costs more than the look-ups.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
declare
    key        uuid := agui_internal.checked_thread_key(thread_id, scope);
    checkpoint agui.checkpoint;
    remaining  text[] := array(select distinct name from unnest(channels) as name where name is not null);
    found_here text[];
    step       agui.channel_write_row;
    next_place int := 0;
    -- A child may have been stored before its parent, so numbers do not rule out a cycle.
    steps      bigint := (select max(candidate.checkpoint_no) from agui.checkpoint as candidate where candidate.thread_key = key);
begin
    if thread_id is null or channels is null or namespace is null or scope is null then
        raise exception using
            errcode = 'UI008',
            message = 'the history of channels needs a thread id, channels, a namespace and a scope that are not null';
    end if;
    if checkpoint_id is not null then
        select candidate.* into checkpoint
        from agui.checkpoint as candidate
        where candidate.thread_key = key
            and candidate.namespace = channel_history.namespace
            and candidate.checkpoint_id = channel_history.checkpoint_id
            and candidate.metadata is not null;
    else
        select candidate.* into checkpoint
        from agui.checkpoint as candidate
        where candidate.thread_key = key and candidate.namespace = channel_history.namespace and candidate.metadata is not null
        order by candidate.checkpoint_id desc
        limit 1;
    end if;

    -- What tasks wrote after the checkpoint itself is not part of its state.
    while cardinality(remaining) > 0 loop
        select parent.* into checkpoint
        from agui.checkpoint as parent
        where parent.thread_key = key and parent.checkpoint_no = checkpoint.parent_no and parent.metadata is not null and steps > 0;
        exit when not found;
        steps := steps - 1;
        for step in
            select (next_place - row_number() over (order by written.ordinality desc))::int, checkpoint.checkpoint_id, written.channel, written.task_id,
                written.type, written.body, written.bytes
            from agui_internal.writes_of_checkpoint(checkpoint, remaining) with ordinality as written
            order by written.ordinality desc
        loop
            return next step;
            next_place := step.place;
        end loop;
        found_here := '{}';
        for step in
            select (next_place - value.ordinality)::int, checkpoint.checkpoint_id, value.channel, null, value.type, value.body, value.bytes
            from agui_internal.values_of_checkpoint(checkpoint, remaining) with ordinality as value
        loop
            return next step;
            next_place := step.place;
            found_here := found_here || step.channel;
        end loop;
        if found_here <> '{}' then
            remaining := array(select unnest(remaining) except select unnest(found_here));
        end if;
    end loop;
end
$$;

comment on function agui.channel_history is
    'Returns what built the values of channels at a checkpoint (null: the one with the greatest id in '
    'the namespace): for each channel the value at its nearest ancestor that has one, and what tasks '
    'wrote to the channel from that ancestor on. Newest first; order by place for oldest first. What '
    'tasks wrote after the checkpoint itself is not included. The graph may store only what changes, as the DeltaChannel of LangGraph '
    'does. Returns no row for an unknown thread or checkpoint. '
    'Errors: UI008 an argument is null, UI012 another thread has the same key.';

-- route: thread if named
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

comment on function agui.checkpoint_contents is
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

create or replace function agui.checkpoint_lineage(
    thread_id     text,
    checkpoint_id text default null,
    namespace     text default '',
    scope         text default '',
    after_no      bigint default null,
    page_bytes    int default null
)
returns setof agui.checkpoint_row
language plpgsql
stable
security definer
rows 100
set search_path = pg_catalog, pg_temp
-- Plans made while the tables were small would read all rows of the thread for each look-up.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    most_steps bigint;
    leaf       agui.checkpoint := agui_internal.find_checkpoint(thread_id, checkpoint_id, namespace, scope);
    checkpoint agui.checkpoint;
    size       int;     -- of a document
    bytes      bigint;  -- of the page
begin
    -- A child may have been stored before its parent, so numbers do not rule out a cycle.
    most_steps := (select max(candidate.checkpoint_no) from agui.checkpoint as candidate where candidate.thread_key = leaf.thread_key);
    for checkpoint in
        with recursive ancestor (checkpoint_no, parent_no, depth) as (
            select leaf.checkpoint_no, leaf.parent_no, 0
            where leaf.checkpoint_no is not null
            union all
            select parent.checkpoint_no, parent.parent_no, ancestor.depth + 1
            from ancestor
            join agui.checkpoint as parent on parent.thread_key = leaf.thread_key and parent.checkpoint_no = ancestor.parent_no
            where parent.document is not null and ancestor.depth < most_steps
        ),
        step as (
            select ancestor.checkpoint_no, min(ancestor.depth) as depth
            from ancestor
            group by ancestor.checkpoint_no
        )
        select stored.*
        from step
        join agui.checkpoint as stored on stored.thread_key = leaf.thread_key and stored.checkpoint_no = step.checkpoint_no
        where after_no is null or step.depth < (select passed.depth from step as passed where passed.checkpoint_no = after_no)
        order by step.depth desc
    loop
        size := octet_length(checkpoint.document::text);
        if bytes + size > page_bytes then
            return next null::agui.checkpoint_row;
            return;
        end if;
        bytes := coalesce(bytes, 0) + size;
        return next agui_internal.show_checkpoint(checkpoint);
    end loop;
end
$$;

comment on function agui.checkpoint_lineage is
    'Returns the checkpoints from the root to a checkpoint (null: to the one saved last in the '
    'namespace), root first. page_bytes bounds the bytes of the documents (null: no bound), of which there '
    'is one at least. If checkpoints do not fit because of it, a last row of nulls says so: pass the '
    'number of the row before it as after_no. '
    'Errors: UI008 no thread, namespace or scope, UI012 another thread has the same key, UI019 '
    'unknown checkpoint (when one is named).';

create or replace function agui.checkpoints(
    thread_id  text,
    namespace  text default null,
    scope      text default '',
    after_no   bigint default null,
    page_bytes int default null
)
returns setof agui.checkpoint_row
language plpgsql
stable
security definer
rows 100
set search_path = pg_catalog, pg_temp
as $$
declare
    key uuid := agui_internal.checked_thread_key(thread_id, scope);
    checkpoint agui.checkpoint;
    size       int;     -- of a document
    bytes      bigint;  -- of the page
begin
    for checkpoint in
        select stored.*
        from agui.checkpoint as stored
        where stored.thread_key = key
            and (checkpoints.namespace is null or stored.namespace = checkpoints.namespace)
            and stored.document is not null
            and stored.checkpoint_no > coalesce(after_no, 0)
        order by stored.checkpoint_no
    loop
        size := octet_length(checkpoint.document::text);
        if bytes + size > page_bytes then
            return next null::agui.checkpoint_row;
            return;
        end if;
        bytes := coalesce(bytes, 0) + size;
        return next agui_internal.show_checkpoint(checkpoint);
    end loop;
end
$$;

comment on function agui.checkpoints is
    'Returns the checkpoints of a thread, in one namespace or (null) in all, in the order of '
    'their numbers. Parents precede their children, unless agui.put_checkpoint stored the child first. '
    'Returns no row if the thread has none. page_bytes bounds the bytes of the documents (null: no bound), '
    'of which there is one at least. If checkpoints do not fit because of it, a last row of nulls says so: '
    'pass the number of the row before it as after_no. '
    'Errors: UI012 another thread has the same key.';

-- role: writer
create or replace function agui.copy_checkpoints(thread_id text, to_thread_id text, scope text default '')
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
-- Plans made while the tables were small would read all rows for each look-up.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
    key    uuid := agui_internal.own_thread_key(scope, thread_id);
    target uuid;
begin
    if thread_id is null or to_thread_id is null or scope is null or thread_id = to_thread_id then
        raise exception using
            errcode = 'UI008',
            message = 'to copy checkpoints, name two threads, and a scope that is not null';
    end if;
    perform agui_internal.checked_thread_key(thread_id, scope);
    if not exists (select from agui.checkpoint as checkpoint where checkpoint.thread_key = key) then
        return 0;
    end if;
    target := agui_internal.ensure_writable_thread(to_thread_id, scope);
    -- Nothing is saved in either thread meanwhile.
    perform from agui.thread as thread where thread.thread_key in (key, target) order by thread.thread_key for update;
    if exists (select from agui.checkpoint as checkpoint where checkpoint.thread_key = target) then
        raise exception using
            errcode = 'UI007',
            message = format('thread "%s" has checkpoints already, so those of thread "%s" cannot be copied to it', left(to_thread_id, 200), left(thread_id, 200)),
            hint = 'Copy to a new thread, or remove its checkpoints first.';
    end if;

    insert into agui.checkpoint (thread_key, checkpoint_no, namespace, checkpoint_id, parent_no, run_id, document, metadata, saved_at)
    select target, source.checkpoint_no, source.namespace, source.checkpoint_id, source.parent_no, source.run_id, source.document, source.metadata, source.saved_at
    from agui.checkpoint as source
    where source.thread_key = key;
    insert into agui.channel (thread_key, channel_no, namespace, name, parts)
    select target, source.channel_no, source.namespace, source.name, source.parts
    from agui.channel as source
    where source.thread_key = key;
    insert into agui.channel_part (thread_key, channel_no, part_no, print, body)
    select target, source.channel_no, source.part_no, agui_internal.part_print(uuid_send(target) || int4send(source.channel_no), source.body::text), source.body
    from agui.channel_part as source
    where source.thread_key = key;
    insert into agui.channel_value (thread_key, channel_no, version, type, part_nos, body, bytes)
    select target, source.channel_no, source.version, source.type, source.part_nos, source.body, source.bytes
    from agui.channel_value as source
    where source.thread_key = key;
    insert into agui.checkpoint_write (thread_key, checkpoint_no, task_id, place, task_path, channel_no, type, part_nos, body, bytes)
    select
        target, source.checkpoint_no, source.task_id, source.place, source.task_path, source.channel_no, source.type, source.part_nos, source.body,
        source.bytes
    from agui.checkpoint_write as source
    where source.thread_key = key;
    return (select count(*) from agui.checkpoint as checkpoint where checkpoint.thread_key = target and checkpoint.document is not null);
end
$$;

comment on function agui.copy_checkpoints is
    'Copies all checkpoints of a thread, with their ids, times, values and writes, to another thread of '
    'the scope that has none, and returns their number. The log is not copied. Returns 0 if there are '
    'none. In a cluster both threads must be on one node. '
    'Errors: UI007 the other thread has checkpoints, UI008 no thread or scope, or the same thread twice, '
    'UI011 a limit is exceeded, UI012 another thread has the same key, UI014 the other thread was erased.';

create or replace function agui.load_checkpoint(
    thread_id     text,
    checkpoint_id text default null,
    namespace     text default '',
    run_id        text default null,
    scope         text default ''
)
returns setof agui.checkpoint_row
language plpgsql
stable
security definer
rows 1
set search_path = pg_catalog, pg_temp
as $$
declare
    checkpoint agui.checkpoint;
begin
    if run_id is null then
        checkpoint := agui_internal.find_checkpoint(thread_id, checkpoint_id, namespace, scope);
    elsif checkpoint_id is not null or namespace is null then
        raise exception using
            errcode = 'UI008',
            message = format('to load the checkpoint of run "%s", give a namespace and no id of a checkpoint', left(run_id, 200));
    else
        checkpoint := agui_internal.checkpoint_at(agui_internal.find_run(thread_id, run_id, scope), namespace);
    end if;
    if checkpoint.checkpoint_no is not null then
        return next agui_internal.show_checkpoint(checkpoint);
    end if;
end
$$;

comment on function agui.load_checkpoint is
    'Returns a checkpoint (null: the one saved last in the namespace). With run_id and without an id: '
    'the one saved last at that run, or else at the nearest run before it on its lineage. So a branch '
    'of the conversation leads to the state that belongs to it. Returns no row if there is none. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI008 no thread, namespace or scope, or both id '
    'and run, UI012 another thread has the same key, UI019 unknown checkpoint (when one is named).';

-- role: writer
create or replace function agui.prune_checkpoints(thread_id text, scope text default '')
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
-- Plans made while the tables were small would read all rows of the thread for each look-up.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
    key        uuid := agui_internal.own_thread_key(scope, thread_id);
    checkpoint agui.checkpoint;
    kept       bigint[] := '{}';
    deltas     text[];  -- the channels whose values are built from what ancestors have
begin
    if thread_id is null or scope is null then
        raise exception using
            errcode = 'UI008',
            message = 'to prune checkpoints, thread_id and scope must not be null';
    end if;
    perform agui_internal.checked_thread_key(thread_id, scope);
    -- Nothing is saved in the thread meanwhile.
    perform from agui.thread as thread where thread.thread_key = key for update;
    for checkpoint in
        select distinct on (candidate.namespace) candidate.*
        from agui.checkpoint as candidate
        where candidate.thread_key = key and candidate.metadata is not null
        order by candidate.namespace, candidate.checkpoint_id desc
    loop
        deltas := agui_internal.delta_channels(checkpoint.metadata);
        loop
            kept := kept || checkpoint.checkpoint_no;
            deltas := array(
                select unnest(deltas)
                except
                select value.channel from agui_internal.values_of_checkpoint(checkpoint, deltas) as value
            );
            exit when deltas = '{}';
            select parent.* into checkpoint
            from agui.checkpoint as parent
            where parent.thread_key = key and parent.checkpoint_no = checkpoint.parent_no and parent.metadata is not null;
            -- The other case is a cycle.
            exit when not found or checkpoint.checkpoint_no = any (kept);
        end loop;
    end loop;
    return agui_internal.forget_checkpoints(key, array(
        select candidate.checkpoint_no
        from agui.checkpoint as candidate
        where candidate.thread_key = key and candidate.metadata is not null and candidate.checkpoint_no <> all (kept)
    ));
end
$$;

comment on function agui.prune_checkpoints is
    'Removes the checkpoints of graphs in a thread but the newest of each namespace (the greatest id), '
    'with values and writes that no other needs, and returns how many. If the newest has DeltaChannels of '
    'LangGraph (the member counters_since_delta_snapshot of its metadata), the ancestors from which their '
    'values are built stay, too. Checkpoints of agui.save_checkpoint stay. '
    'Errors: UI008 no thread or scope, UI012 another thread has the same key.';

-- role: writer
create or replace function agui.put_checkpoint(
    thread_id      text,
    checkpoint_id  text,
    document       json,
    metadata       json default '{}',
    parent_id      text default null,
    channels       text[] default '{}',
    versions       text[] default '{}',
    types          text[] default '{}',
    channel_values json default '[]',
    run_id         text default null,
    namespace      text default '',
    scope          text default ''
)
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
-- Plans made while the tables were small would read all rows of the thread for each look-up.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
    subject constant text := agui_internal.checkpoint_subject(thread_id, checkpoint_id);
    key     uuid := agui_internal.own_thread_key(scope, thread_id);
    parent  bigint;
    existing record;
begin
    perform agui_internal.check_checkpoint_ids(checkpoint_id, namespace, subject, run_id);
    if document is null or metadata is null or json_typeof(document) <> 'object' or json_typeof(metadata) <> 'object' then
        raise exception using
            errcode = 'UI008',
            message = format('%s: document and metadata must be JSON objects', subject);
    end if;
    if parent_id is not null then
        perform agui_internal.check_checkpoint_ids(parent_id, namespace, subject || ', its parent');
    end if;
    if cardinality(versions) is distinct from cardinality(channels) or array_position(versions, null) is not null then
        raise exception using
            errcode = 'UI008',
            message = format('%s: each channel needs a version', subject);
    end if;
    perform agui_internal.refuse_large_document(document, subject);
    perform agui_internal.refuse_large_document(metadata, subject);
    key := agui_internal.ensure_writable_thread(thread_id, scope);

    -- LangGraph 1.4 puts the checkpoint at which a nested graph asked a second time, as its own
    -- parent.
    if parent_id <> checkpoint_id then
        parent := ((agui_internal.ensure_checkpoint(key, namespace, parent_id)).kept).checkpoint_no;
    end if;
    select * into existing
    from agui_internal.ensure_checkpoint(key, namespace, checkpoint_id, parent, run_id, document, metadata);
    if not existing.is_new then
        -- Another transaction may have saved it since it was read.
        update agui.checkpoint as checkpoint
        set
            document = put_checkpoint.document,
            metadata = put_checkpoint.metadata,
            parent_no = case when put_checkpoint.parent_id = put_checkpoint.checkpoint_id then checkpoint.parent_no else parent end,
            run_id = put_checkpoint.run_id,
            saved_at = clock_timestamp()
        where checkpoint.thread_key = key
            and checkpoint.checkpoint_no = (existing.kept).checkpoint_no
            and (checkpoint.document is null or checkpoint.metadata is not null);
        if not found then
            raise exception using
                errcode = 'UI007',
                message = format('%s was saved by agui.save_checkpoint and cannot change', subject);
        end if;
    end if;

    if cardinality(channels) > 0 then
        insert into agui.channel_value (thread_key, channel_no, version, type, part_nos, body, bytes)
        select key, stored.channel_no, versions[array_lower(versions, 1) + stored.ordinality - 1], stored.type, stored.part_nos, stored.body, stored.bytes
        from agui_internal.store_contents(key, namespace, channels, types, channel_values, subject) as stored
        on conflict do nothing;
    end if;
    return (existing.kept).checkpoint_no;
end
$$;

comment on function agui.put_checkpoint is
    'Stores a checkpoint of a graph, as the checkpointers of LangGraph need it, and returns its number '
    'in the thread. document is the checkpoint without its values; its member channel_versions says '
    'which version of each channel belongs to it. channels, versions, types and channel_values bring '
    'the values of the channels that have changed: a value of the type json is JSON, byte for byte; of '
    'any other type it is a string of base64. Arrays of 256 bytes or more share their equal elements. The '
    'type append is for an array that begins like another version of its channel that has such elements: '
    '{"version": "…", "keep": n, "values": […]} are its first n elements, and more. A version that is '
    'stored already stays as it is. parent_id may name a checkpoint that is '
    'not stored. A checkpoint gets its number when it is first named: by this function, by a child or by '
    'a write. So its number may be smaller than that of a checkpoint stored earlier. run_id names the run of the log that the graph is working on, whether it has begun or '
    'not. If the checkpoint exists, document, metadata, parent and run are replaced. A parent_id '
    'that is the id of the checkpoint itself changes no parent, and is none if the checkpoint is new. '
    'The thread does not need to have runs. '
    'Errors: UI007 the checkpoint is from agui.save_checkpoint, UI008 '
    'invalid arguments, UI011 a limit is exceeded, UI012 another thread has the same key, UI014 the '
    'thread was erased, UI019 no such version to append to, 22023 invalid base64.';

-- role: writer
create or replace function agui.put_checkpoint_writes(
    thread_id     text,
    checkpoint_id text,
    task_id       text,
    channels      text[],
    types         text[],
    channel_values json,
    places        int[] default null,
    task_path     text default '',
    namespace     text default '',
    scope         text default ''
)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
-- Plans made while the tables were small would read all rows of the thread for each look-up.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
    subject constant text := agui_internal.checkpoint_subject(thread_id, checkpoint_id);
    key     uuid := agui_internal.own_thread_key(scope, thread_id);
    kept    agui.checkpoint;
begin
    perform agui_internal.check_checkpoint_ids(checkpoint_id, namespace, subject);
    if task_id is null or task_path is null then
        raise exception using
            errcode = 'UI008',
            message = format('%s: task_id and task_path must not be null', subject);
    end if;
    if greatest(octet_length(task_id), octet_length(task_path)) > 1024 then
        raise exception using
            errcode = 'UI011',
            message = format('%s: task_id and task_path are limited to 1,024 bytes each', subject);
    end if;
    if places is not null and (cardinality(places) is distinct from cardinality(channels) or array_position(places, null) is not null) then
        raise exception using
            errcode = 'UI008',
            message = format('%s: each write of task "%s" needs a place', subject, left(task_id, 200));
    end if;
    key := agui_internal.ensure_writable_thread(thread_id, scope);
    kept := (agui_internal.ensure_checkpoint(key, namespace, checkpoint_id)).kept;
    if kept.document is not null and kept.metadata is null then
        raise exception using
            errcode = 'UI007',
            message = format('%s was saved by agui.save_checkpoint and has no writes', subject);
    end if;

    insert into agui.checkpoint_write as written (thread_key, checkpoint_no, task_id, place, task_path, channel_no, type, part_nos, body, bytes)
    -- A call may name a place more than once: a node with several interrupts resumes each of them.
    select distinct on (numbered.place)
        key, kept.checkpoint_no, put_checkpoint_writes.task_id, numbered.place,
        put_checkpoint_writes.task_path, stored.channel_no, stored.type, stored.part_nos, stored.body, stored.bytes
    from agui_internal.store_contents(key, namespace, channels, types, channel_values, subject) as stored
    cross join lateral (
        select coalesce(places[array_lower(places, 1) + stored.ordinality - 1], stored.ordinality - 1) as place
    ) as numbered
    order by numbered.place, case when numbered.place < 0 then -stored.ordinality else stored.ordinality end
    on conflict on constraint checkpoint_write_pkey do update
    set
        task_path = excluded.task_path,
        channel_no = excluded.channel_no,
        type = excluded.type,
        part_nos = excluded.part_nos,
        body = excluded.body,
        bytes = excluded.bytes
    where written.place < 0;
end
$$;

comment on function agui.put_checkpoint_writes is
    'Stores what a task of a graph wrote to channels after a checkpoint. It may come before '
    'the checkpoint. types and channel_values have the form that they have in agui.put_checkpoint. '
    'places are the places of the writes in those of the task (null: 0, 1, 2, …). A place that is '
    'stored already stays as it is; a negative one is replaced. The same holds for a place that a '
    'call names more than once. Readers get the writes of a checkpoint in the order (task_path, '
    'task_id, place). '
    'Errors: UI007 the checkpoint is from agui.save_checkpoint, UI008 invalid arguments, UI011 a limit '
    'is exceeded, UI012 another thread has the same key, UI014 the thread was erased, UI019 no such version '
    'to append to, 22023 invalid base64.';

-- role: writer
create or replace function agui.remove_checkpoints(thread_id text, scope text default '')
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    key     uuid := agui_internal.own_thread_key(scope, thread_id);
    removed bigint;
begin
    if thread_id is null or scope is null then
        raise exception using
            errcode = 'UI008',
            message = 'to remove checkpoints, thread_id and scope must not be null';
    end if;
    perform agui_internal.checked_thread_key(thread_id, scope);
    -- Nothing is saved in the thread meanwhile.
    perform from agui.thread as thread where thread.thread_key = key for update;
    removed := (select count(*) from agui.checkpoint as checkpoint where checkpoint.thread_key = key and checkpoint.document is not null);
    perform agui_internal.delete_checkpoints(key);
    return removed;
end
$$;

comment on function agui.remove_checkpoints is
    'Removes all checkpoints of a thread, with their values and writes, and returns their number. The '
    'log of the thread stays, and new checkpoints can be saved; agui.erase removes a thread for good. '
    'Errors: UI008 no thread or scope, UI012 another thread has the same key.';

-- role: writer; route: thread if named
create or replace function agui.remove_run_checkpoints(run_ids text[], thread_id text default null, scope text default '')
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
-- Plans made while the tables were small would read all rows for each look-up.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
    low     uuid;
    high    uuid;
    key     uuid;
    removed bigint := 0;
begin
    if run_ids is null or scope is null then
        raise exception using
            errcode = 'UI008',
            message = 'to remove the checkpoints of runs, run_ids and scope must not be null';
    end if;
    if thread_id is not null then
        low := agui_internal.own_thread_key(scope, thread_id);
        high := low;
        perform agui_internal.checked_thread_key(thread_id, scope);
    else
        perform agui_internal.refuse_foreign_scope(scope, 'remove checkpoints');
        low := agui_internal.first_key(scope);
        high := agui_internal.last_key(scope);
    end if;
    for key in
        select distinct checkpoint.thread_key
        from agui.checkpoint as checkpoint
        where checkpoint.thread_key between low and high and checkpoint.run_id = any (run_ids) and checkpoint.metadata is not null
        order by checkpoint.thread_key
    loop
        -- Nothing is saved in the thread meanwhile.
        perform from agui.thread as thread where thread.thread_key = key for update;
        removed := removed + agui_internal.forget_checkpoints(key, array(
            select checkpoint.checkpoint_no
            from agui.checkpoint as checkpoint
            where checkpoint.thread_key = key and checkpoint.run_id = any (run_ids) and checkpoint.metadata is not null
        ));
    end loop;
    return removed;
end
$$;

comment on function agui.remove_run_checkpoints is
    'Removes the checkpoints that agui.put_checkpoint stored for runs, with values and writes that no '
    'other needs, and returns how many. They are those of a thread (null: of all threads of the scope, '
    'whose checkpoints it reads). A DeltaChannel of LangGraph whose value is built from them is lost. '
    'Errors: UI008 no runs or scope, UI012 another thread has the same key.';

-- role: writer
create or replace function agui.save_checkpoint(
    thread_id     text,
    checkpoint_id text,
    document      json,
    parent_id     text default null,
    namespace     text default '',
    run_id        text default null,
    scope         text default ''
)
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
-- Plans made while the tables were small would read all rows of the thread for each look-up.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
    subject  text := agui_internal.checkpoint_subject(thread_id, checkpoint_id);
    key      uuid := agui_internal.own_thread_key(scope, thread_id);
    existing record;
    kept     agui.checkpoint;
    parent   agui.checkpoint;
begin
    perform agui_internal.check_checkpoint_ids(checkpoint_id, namespace, subject, run_id);
    if document is null then
        raise exception using
            errcode = 'UI008',
            message = format('%s: there is no document to save', subject);
    end if;
    perform agui_internal.refuse_large_document(document, subject);
    key := agui_internal.ensure_writable_thread(thread_id, scope);

    if parent_id is not null then
        select * into parent
        from agui.checkpoint as checkpoint
        where checkpoint.thread_key = key
            and checkpoint.namespace = save_checkpoint.namespace
            and checkpoint.checkpoint_id = save_checkpoint.parent_id
            and checkpoint.document is not null;
        if not found then
            raise exception using
                errcode = 'UI003',
                message = format('%s: the parent "%s" is not a checkpoint in namespace "%s" of this thread', subject, parent_id, namespace),
                hint = 'Save the parent first.';
        end if;
    end if;

    select * into existing
    from agui_internal.ensure_checkpoint(key, namespace, checkpoint_id, parent.checkpoint_no, run_id, document);
    kept := existing.kept;
    if kept.document is null and kept.parent_no is null then
        update agui.checkpoint as checkpoint
        set document = save_checkpoint.document, parent_no = parent.checkpoint_no, run_id = save_checkpoint.run_id, saved_at = clock_timestamp()
        where checkpoint.thread_key = key and checkpoint.checkpoint_no = kept.checkpoint_no and checkpoint.document is null;
        if found then
            return kept.checkpoint_no;
        end if;
        -- Another transaction has stored it meanwhile.
        select * into kept from agui.checkpoint as checkpoint where checkpoint.thread_key = key and checkpoint.checkpoint_no = kept.checkpoint_no;
    end if;
    if not existing.is_new and (kept.metadata is not null
        or kept.document::text <> document::text
        or kept.parent_no is distinct from parent.checkpoint_no)
    then
        raise exception using
            errcode = 'UI007',
            message = format('%s was already saved with another document or parent', subject),
            hint = 'A checkpoint is immutable. Save a new version under a new id.';
    end if;
    return kept.checkpoint_no;
end
$$;

comment on function agui.save_checkpoint is
    'Saves a checkpoint of a workflow engine byte for byte and returns its number. The checkpoints '
    'of a thread are numbered 1, 2, 3, … in commit order (those of agui.put_checkpoint: in the order in '
    'which they were first named). parent_id names the checkpoint that it '
    'continues from, in the same namespace. run_id names the run of the log that the engine is working '
    'on, whether it has begun or not: agui.load_checkpoint finds the checkpoint by it. The call is '
    'idempotent: saving the same checkpoint a second time returns the same number. The thread does not '
    'need to have runs. '
    'Errors: UI003 unknown parent, UI007 the id has another document or parent, UI008 no id or no '
    'document, UI011 a limit is exceeded, UI012 another thread has the same key, UI014 the thread '
    'was erased.';
