-- Checkpoints of workflow engines and of graphs (LangGraph), saved beside the log.
--
--   checkpoint         namespace, id, parent, document; names the version of each channel
--   channel_value      each version of a channel once: a text, or ranges of part numbers
--   channel_part       the elements of arrays, each once for its channel
--   checkpoint_write   what the tasks of a graph wrote after it; it shares the parts
--
-- - Checkpoints of engines do not change and are not pruned. So the unique key alone gives the next
--   number: a second writer waits for the first to commit, and numbers are in commit order.
-- - Checkpoints of graphs are replaced when they are put a second time; parents and writes may come
--   in any order; the newest has the greatest id. A parent that is not there yet has a row without
--   a document, which readers do not see. It has no foreign key, which would need an index.
-- - An array of 256 bytes or more is split into elements, which are found by a salted hash. A list
--   that grows by one element at a time is one range. Arrays with white space between elements stay
--   whole, because bytes do not change.
-- - A run may be named before it begins in the log. agui.load_checkpoint goes up the lineage to the
--   nearest checkpoint. So a branch of the conversation and the state of its graph are found
--   together, without a place in the log that both would have to agree on.
-- - Functions that read tables are PL/pgSQL, which keeps its plans: planning was half of a read.

create or replace function agui_internal.check_checkpoint_ids(checkpoint_id text, namespace text, subject text, run_id text default null)
returns void
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    if checkpoint_id is null or checkpoint_id = '' or namespace is null then
        raise exception using
            errcode = 'UI008',
            message = format('%s: a checkpoint needs a non-empty id and a namespace that is not null', subject);
    end if;
    if greatest(octet_length(checkpoint_id), octet_length(namespace)) > 1024 then
        raise exception using
            errcode = 'UI011',
            message = format('%s: the checkpoint id and the namespace are limited to 1,024 bytes each', subject);
    end if;
    if octet_length(run_id) > 1024 then
        raise exception using
            errcode = 'UI011',
            message = format('%s: the id of its run is limited to 1,024 bytes', subject);
    end if;
end
$$;

comment on function agui_internal.check_checkpoint_ids is
    'Raises UI008 for an empty checkpoint id or a namespace that is null, and UI011 for these or a run '
    'id that are too long.';

create or replace function agui_internal.checkpoint_at(run agui.run, namespace text)
returns agui.checkpoint
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select checkpoint.*
    from agui_internal.ancestors(run) as ancestor
    join agui.checkpoint as checkpoint
        on checkpoint.thread_key = ancestor.thread_key
            and checkpoint.namespace = checkpoint_at.namespace
            and checkpoint.run_id = ancestor.run_id
            and checkpoint.document is not null
    order by ancestor.run_no desc, checkpoint.checkpoint_no desc
    limit 1
$$;

comment on function agui_internal.checkpoint_at is
    'The checkpoint of a namespace that was saved last at a run, or else at the nearest run before it '
    'on its lineage; null if there is none.';

create or replace function agui_internal.checkpoint_subject(thread_id text, checkpoint_id text)
returns text
language sql
immutable
parallel safe
return format('checkpoint "%s" of thread "%s"', left(checkpoint_id, 200), left(thread_id, 200));

comment on function agui_internal.checkpoint_subject is
    'How errors name a checkpoint.';

create or replace function agui_internal.contents_of_checkpoint(checkpoint agui.checkpoint, thread_id text)
returns setof agui.checkpoint_content
language plpgsql
stable
parallel safe
rows 10
set search_path = pg_catalog, pg_temp
as $$
declare
    content agui.checkpoint_content;
begin
    content.thread_id := coalesce(thread_id, (select thread.thread_id from agui.thread as thread where thread.thread_key = checkpoint.thread_key));
    content.namespace := checkpoint.namespace;
    content.checkpoint_id := checkpoint.checkpoint_id;
    if checkpoint.parent_no is not null then
        content.parent_id := (
            select parent.checkpoint_id
            from agui.checkpoint as parent
            where parent.thread_key = checkpoint.thread_key and parent.checkpoint_no = checkpoint.parent_no
        );
    end if;
    content.run_id := checkpoint.run_id;
    content.cursor := agui_internal.checkpoint_cursor(checkpoint);
    content.kind := 'document';
    content.type := 'json';
    content.body := checkpoint.document;
    return next content;
    content.kind := 'metadata';
    content.body := checkpoint.metadata;
    return next content;

    content.kind := 'value';
    for content.channel, content.version, content.type, content.body, content.bytes in
        select value.channel, value.version, value.type, value.body, value.bytes
        from agui_internal.values_of_checkpoint(checkpoint) as value
    loop
        return next content;
    end loop;
    content.kind := 'write';
    content.version := null;
    for content.task_path, content.task_id, content.place, content.channel, content.type, content.body, content.bytes in
        select written.task_path, written.task_id, written.place, written.channel, written.type, written.body, written.bytes
        from agui_internal.writes_of_checkpoint(checkpoint) as written
    loop
        return next content;
    end loop;
end
$$;

comment on function agui_internal.contents_of_checkpoint is
    'The pieces of a checkpoint as users see them. thread_id: the id of its thread, if the caller knows '
    'it.';

create or replace function agui_internal.checkpoint_cursor(checkpoint agui.checkpoint)
returns text
language sql
immutable
parallel safe
return replace(checkpoint.thread_key::text, '-', '') || lpad(to_hex(checkpoint.checkpoint_no), 16, '0') || checkpoint.checkpoint_id;

comment on function agui_internal.checkpoint_cursor is
    'The place of a checkpoint in the list of agui.checkpoint_contents: key and number in 48 digits, '
    'then the id.';

create or replace function agui_internal.values_of_checkpoint(checkpoint agui.checkpoint, only_channels text[] default null)
returns table (channel text, version text, type text, body json, bytes bytea)
-- In PL/pgSQL the plan is cached.
language plpgsql
stable
parallel safe
rows 10
set search_path = pg_catalog, pg_temp
as $$
begin
    -- Each offset makes its query a look-up for each row before it. A join could read all channels of
    -- the thread for each row.
    return query
    select
        named.name, known.version, coalesce(known.type, 'json'),
        case
            when known.part_nos is null then known.body
            else agui_internal.joined_parts(known.thread_key, known.channel_no, known.part_nos)
        end,
        known.bytes
    from agui_internal.channel_versions(checkpoint.document) as current
    cross join lateral (
        select channel.channel_no, channel.name
        from agui.channel as channel
        where channel.thread_key = checkpoint.thread_key and channel.namespace = checkpoint.namespace and channel.name = current.channel
        offset 0
    ) as named
    cross join lateral (
        select value.*
        from agui.channel_value as value
        where value.thread_key = checkpoint.thread_key and value.channel_no = named.channel_no and value.version = current.version
        offset 0
    ) as known
    where only_channels is null or current.channel in (select unnest(only_channels))
    order by named.name;
end
$$;

comment on function agui_internal.values_of_checkpoint is
    'The values of the channels of a checkpoint, or of some of them: those versions that its document '
    'names and that are stored.';

create or replace function agui_internal.channel_versions(document json)
returns table (channel text, version text)
language plpgsql
stable
parallel safe
rows 10
set search_path = pg_catalog, pg_temp
as $$
begin
    if strpos(document::text, '\') = 0 then
        if json_typeof(document -> 'channel_versions') = 'object' then
            return query select member.key, member.value from json_each_text(document -> 'channel_versions') as member;
        end if;
        return;
    end if;
    return query
    select named.name, case when json_typeof(named.value) = 'string' then agui_internal.json_text(named.value::text) else named.value::text end
    from agui_internal.json_members(document) as member
    cross join agui_internal.json_members(case when json_typeof(member.value) = 'object' then member.value end) as named
    where member.name = 'channel_versions';
end
$$;

comment on function agui_internal.channel_versions is
    'The versions of the channels that belong to a checkpoint, as its document names them.';

create or replace function agui_internal.writes_of_checkpoint(checkpoint agui.checkpoint, only_channels text[] default null)
returns table (task_path text, task_id text, place int, channel text, type text, body json, bytes bytea)
-- In PL/pgSQL the plan is cached.
language plpgsql
stable
parallel safe
rows 10
set search_path = pg_catalog, pg_temp
as $$
begin
    -- The offsets as in agui_internal.values_of_checkpoint.
    return query
    select
        written.task_path, written.task_id, written.place, named.name, coalesce(written.type, 'json'),
        case
            when written.part_nos is null then written.body
            else agui_internal.joined_parts(written.thread_key, written.channel_no, written.part_nos)
        end,
        written.bytes
    from agui.checkpoint_write as written
    cross join lateral (
        select channel.name
        from agui.channel as channel
        where channel.thread_key = written.thread_key and channel.channel_no = written.channel_no
        offset 0
    ) as named
    where written.thread_key = checkpoint.thread_key
        and written.checkpoint_no = checkpoint.checkpoint_no
        and (only_channels is null or named.name in (select unnest(only_channels)))
    order by written.task_path, written.task_id, written.place;
end
$$;

comment on function agui_internal.writes_of_checkpoint is
    'What tasks wrote after a checkpoint, to all channels or to some, in the order in which a graph '
    'applies it.';

create or replace function agui_internal.joined_parts(thread_key uuid, channel_no int, part_nos int4range[])
returns json
-- In PL/pgSQL the plan is cached.
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select ('[' || string_agg(part.body::text, ',' order by run.place, part.part_no) || ']')::json
        from unnest(part_nos) with ordinality as run (part_nos, place)
        -- The offset makes this a look-up for each range. A join could read all parts of the channel for
        -- each.
        cross join lateral (
            select part.part_no, part.body
            from agui.channel_part as part
            where part.thread_key = joined_parts.thread_key and part.channel_no = joined_parts.channel_no
                and part.part_no >= lower(run.part_nos) and part.part_no < upper(run.part_nos)
            offset 0
        ) as part
    );
end
$$;

comment on function agui_internal.joined_parts is
    'The array that these parts of a channel are the elements of.';

create or replace function agui_internal.delete_checkpoints(thread_key uuid)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
-- Plans made while the tables were small would read all rows of the thread for each look-up.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
    delete from agui.checkpoint_write as written where written.thread_key = delete_checkpoints.thread_key;
    delete from agui.channel_value as value where value.thread_key = delete_checkpoints.thread_key;
    delete from agui.channel_part as part where part.thread_key = delete_checkpoints.thread_key;
    delete from agui.channel as channel where channel.thread_key = delete_checkpoints.thread_key;
    delete from agui.checkpoint as checkpoint where checkpoint.thread_key = delete_checkpoints.thread_key;
$$;

comment on function agui_internal.delete_checkpoints is
    'Deletes the checkpoints of a thread, with their values and writes. The caller holds a lock of the '
    'thread''s row.';

create or replace function agui_internal.delta_channels(metadata json)
returns text[]
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select array(
        select channel.name
        from agui_internal.json_members(metadata) as member
        cross join agui_internal.json_members(case when json_typeof(member.value) = 'object' then member.value end) as channel
        where member.name = 'counters_since_delta_snapshot'
    )
$$;

comment on function agui_internal.delta_channels is
    'The channels whose values at a checkpoint are built from what ancestors have: the DeltaChannels of '
    'LangGraph that have changed since they were stored whole, as the metadata counts.';

create or replace function agui_internal.forget_checkpoints(thread_key uuid, checkpoint_nos bigint[])
returns bigint
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
-- Plans made while the tables were small would read all rows of the thread for each look-up.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
    forgotten bigint;
    channel   agui.channel;
    used      int[];
begin
    update agui.checkpoint as checkpoint
    set parent_no = null, run_id = null, document = null, metadata = null
    where checkpoint.thread_key = forget_checkpoints.thread_key and checkpoint.checkpoint_no = any (checkpoint_nos);
    get diagnostics forgotten = row_count;
    if forgotten = 0 then
        return 0;
    end if;
    delete from agui.checkpoint_write as written
    where written.thread_key = forget_checkpoints.thread_key and written.checkpoint_no = any (checkpoint_nos);
    with named as (
        select distinct known.channel_no, current.version
        from agui.checkpoint as checkpoint
        cross join lateral agui_internal.channel_versions(checkpoint.document) as current
        join agui.channel as known
            on known.thread_key = checkpoint.thread_key and known.namespace = checkpoint.namespace and known.name = current.channel
        where checkpoint.thread_key = forget_checkpoints.thread_key and checkpoint.metadata is not null
    )
    delete from agui.channel_value as value
    where value.thread_key = forget_checkpoints.thread_key
        and not exists (select from named where named.channel_no = value.channel_no and named.version = value.version);

    -- Parts have no gaps in their numbers, so those that stay get new ones.
    for channel in
        select known.* from agui.channel as known where known.thread_key = forget_checkpoints.thread_key and known.parts > 0
    loop
        used := array(
            select distinct part_no
            from (
                select value.part_nos
                from agui.channel_value as value
                where value.thread_key = channel.thread_key and value.channel_no = channel.channel_no
                union all
                select written.part_nos
                from agui.checkpoint_write as written
                where written.thread_key = channel.thread_key and written.channel_no = channel.channel_no
            ) as holder
            cross join unnest(holder.part_nos) as run
            cross join generate_series(lower(run), upper(run) - 1) as part_no
            order by part_no
        );
        continue when cardinality(used) = channel.parts;
        delete from agui.channel_part as part
        where part.thread_key = channel.thread_key and part.channel_no = channel.channel_no and part.part_no <> all (used);
        -- In two steps, so that no number is there twice meanwhile.
        update agui.channel_part as part
        set part_no = -known.place
        from unnest(used) with ordinality as known (part_no, place)
        where part.thread_key = channel.thread_key and part.channel_no = channel.channel_no and part.part_no = known.part_no;
        update agui.channel_part as part
        set part_no = -part.part_no
        where part.thread_key = channel.thread_key and part.channel_no = channel.channel_no;
        update agui.channel_value as value
        set part_nos = agui_internal.renumbered(value.part_nos, used)
        where value.thread_key = channel.thread_key and value.channel_no = channel.channel_no and value.part_nos is not null;
        update agui.checkpoint_write as written
        set part_nos = agui_internal.renumbered(written.part_nos, used)
        where written.thread_key = channel.thread_key and written.channel_no = channel.channel_no and written.part_nos is not null;
        update agui.channel as known
        set parts = cardinality(used)
        where known.thread_key = channel.thread_key and known.channel_no = channel.channel_no;
    end loop;
    return forgotten;
end
$$;

comment on function agui_internal.forget_checkpoints is
    'Removes checkpoints of graphs, with values, writes and parts that no other needs, and returns how '
    'many. Their rows stay without a document, because numbers have no gaps and children name them. The '
    'caller holds a lock of the thread''s row.';

create or replace function agui_internal.renumbered(part_nos int4range[], used int[])
returns int4range[]
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select agui_internal.ranges_of(array(
        select known.place::int
        from unnest(part_nos) with ordinality as run (part_nos, place)
        cross join lateral generate_series(lower(run.part_nos), upper(run.part_nos) - 1) as part_no
        join unnest(used) with ordinality as known (part_no, place) on known.part_no = part_no.part_no
        order by run.place, part_no.part_no
    ))
$$;

comment on function agui_internal.renumbered is
    'The numbers of parts when only those that are used are left, in their order, numbered 1, 2, 3, ….';

create or replace function agui_internal.ensure_checkpoint(
    thread_key    uuid,
    namespace     text,
    checkpoint_id text,
    parent_no     bigint default null,
    run_id        text default null,
    document      json default null,
    metadata      json default null,
    out kept      agui.checkpoint,
    out is_new    boolean
)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    -- If another transaction inserts the same number first, the insert waits for its commit, then
    -- the loop tries the next one.
    loop
        select * into kept
        from agui.checkpoint as checkpoint
        where checkpoint.thread_key = ensure_checkpoint.thread_key
            and checkpoint.namespace = ensure_checkpoint.namespace
            and checkpoint.checkpoint_id = ensure_checkpoint.checkpoint_id;
        is_new := not found;
        exit when found;
        insert into agui.checkpoint (thread_key, checkpoint_no, namespace, checkpoint_id, parent_no, run_id, document, metadata)
        select
            ensure_checkpoint.thread_key, coalesce(max(checkpoint.checkpoint_no), 0) + 1, ensure_checkpoint.namespace,
            ensure_checkpoint.checkpoint_id, ensure_checkpoint.parent_no, ensure_checkpoint.run_id, ensure_checkpoint.document,
            ensure_checkpoint.metadata
        from agui.checkpoint as checkpoint
        where checkpoint.thread_key = ensure_checkpoint.thread_key
        on conflict do nothing
        returning * into kept;
        exit when found;
    end loop;
end
$$;

comment on function agui_internal.ensure_checkpoint is
    'The row of a checkpoint, and whether it is new: if there is none, the function creates it with '
    'the next number and these contents. Without a document it does not exist for readers.';

create or replace function agui_internal.find_checkpoint(thread_id text, checkpoint_id text, namespace text, scope text)
returns agui.checkpoint
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
    key   uuid := agui_internal.checked_thread_key(thread_id, scope);
    found_checkpoint agui.checkpoint;
begin
    if thread_id is null or namespace is null or scope is null then
        raise exception using
            errcode = 'UI008',
            message = 'to find a checkpoint, thread_id, namespace and scope must not be null';
    end if;
    if checkpoint_id is null then
        select * into found_checkpoint
        from agui.checkpoint as checkpoint
        where checkpoint.thread_key = key and checkpoint.namespace = find_checkpoint.namespace and checkpoint.document is not null
        order by checkpoint.checkpoint_no desc
        limit 1;
        return found_checkpoint;
    end if;
    select * into found_checkpoint
    from agui.checkpoint as checkpoint
    where checkpoint.thread_key = key
        and checkpoint.namespace = find_checkpoint.namespace
        and checkpoint.checkpoint_id = find_checkpoint.checkpoint_id
        and checkpoint.document is not null;
    if not found then
        raise exception using
            errcode = 'UI019',
            message = format('checkpoint "%s" of thread "%s"%s is unknown', checkpoint_id, thread_id, ', namespace "' || nullif(namespace, '') || '",'),
            hint = format('select * from agui.checkpoints(%L%s) shows those that there are.', thread_id,
                case when scope <> '' then format(', scope => %L', scope) else '' end);
    end if;
    return found_checkpoint;
end
$$;

comment on function agui_internal.find_checkpoint is
    'Returns the row of a checkpoint (null id: the one saved last in the namespace, or null if '
    'there is none). UI008: no thread, namespace or scope; UI019: unknown checkpoint.';

create or replace function agui_internal.show_checkpoint(checkpoint agui.checkpoint)
returns agui.checkpoint_row
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select
        checkpoint.checkpoint_no,
        checkpoint.namespace,
        checkpoint.checkpoint_id,
        (
            select parent.checkpoint_id
            from agui.checkpoint as parent
            where parent.thread_key = checkpoint.thread_key and parent.checkpoint_no = checkpoint.parent_no
        ),
        checkpoint.run_id,
        checkpoint.saved_at,
        checkpoint.document
$$;

comment on function agui_internal.show_checkpoint is
    'Converts a checkpoint to the row that users see, with the id of its parent.';

create or replace function agui_internal.store_contents(
    thread_key uuid,
    namespace  text,
    channels   text[],
    types      text[],
    contents   json,
    subject    text
)
returns setof agui_internal.channel_content
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    -- A row of agui.channel_part takes about 130 bytes beside its body, so short arrays stay whole.
    least_bytes constant int := 256;
    bodies json[];
    stored agui_internal.channel_content;
    is_append boolean;
begin
    if json_typeof(contents) is distinct from 'array' then
        raise exception using
            errcode = 'UI008',
            message = format('%s: the values must be a JSON array', subject);
    end if;
    perform agui_internal.refuse_large_document(contents, subject);
    bodies := array(select element.value from json_array_elements(contents) with ordinality as element (value, place) order by element.place);
    if cardinality(channels) <> cardinality(bodies) or cardinality(types) <> cardinality(bodies)
        or array_position(channels, null) is not null or array_position(types, null) is not null
    then
        raise exception using
            errcode = 'UI008',
            message = format('%s: there are %s channels, %s types and %s values', subject,
                coalesce(cardinality(channels), 0), coalesce(cardinality(types), 0), cardinality(bodies)),
            hint = 'Each value needs a channel and a type that are not null.';
    end if;
    if (select max(octet_length(name)) from unnest(channels || types) as name) > 1024 then
        raise exception using
            errcode = 'UI011',
            message = format('%s: names of channels and types are limited to 1,024 bytes each', subject);
    end if;

    perform agui_internal.ensure_channels(thread_key, namespace, channels);
    for stored.ordinality, stored.channel_no, stored.type, stored.body in
        select named.ordinality, channel.channel_no, named.type, bodies[named.ordinality]
        from rows from (unnest(channels), unnest(types)) with ordinality as named (name, type, ordinality)
        -- The offset makes this a look-up for each name, not a pass over all names for each channel.
        cross join lateral (
            select channel.channel_no
            from agui.channel as channel
            where channel.thread_key = store_contents.thread_key and channel.namespace = store_contents.namespace and channel.name = named.name
            offset 0
        ) as channel
        -- One order for all calls, because parts are stored under a lock of the channel's row.
        order by channel.channel_no, named.ordinality
    loop
        stored.part_nos := null;
        stored.bytes := null;
        is_append := stored.type = 'append';
        if not is_append and stored.type <> 'json' then
            if json_typeof(stored.body) <> 'string' then
                raise exception using
                    errcode = 'UI008',
                    message = format('%s: the value of channel "%s" has the type "%s", so it must be a string of base64', subject,
                        left(channels[stored.ordinality], 200), left(stored.type, 200));
            end if;
            stored.bytes := decode(stored.body #>> '{}', 'base64');
            stored.body := null;
            return next stored;
            continue;
        end if;
        stored.type := null;
        if is_append then
            stored.part_nos := agui_internal.appended_parts(thread_key, stored.channel_no, stored.body, format('%s: channel "%s"', subject, left(channels[stored.ordinality], 200)));
            stored.body := null;
        elsif octet_length(stored.body::text) >= least_bytes and json_typeof(stored.body) = 'array' then
            stored.part_nos := agui_internal.store_parts(thread_key, stored.channel_no, stored.body);
            if stored.part_nos is not null then
                stored.body := null;
            end if;
        end if;
        return next stored;
    end loop;
end
$$;

comment on function agui_internal.store_contents is
    'Converts the values of a call to the form in which they are stored. Creates missing channels, and '
    'stores the elements of arrays that are not stored yet. UI008: invalid arguments; UI011: too large '
    'or too deep; UI019: unknown version; 22023: no base64.';

create or replace function agui_internal.appended_parts(thread_key uuid, channel_no int, appended json, subject text)
returns int4range[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    base_version text;
    keep     text;
    elements text;
    base     int4range[];
    added    int4range[] := '{}';
    kept     int4range[] := '{}';
    rest     bigint;  -- elements to keep
    run      int4range;
begin
    if json_typeof(appended) = 'object' then
        select
            max(agui_internal.json_text(member.value::text)) filter (where member.name = 'version'),
            max(member.value::text) filter (where member.name = 'keep'),
            max(member.value::text) filter (where member.name = 'values')
        into base_version, keep, elements
        from agui_internal.json_members(appended) as member;
    end if;
    if base_version is null or keep !~ '^[0-9]{1,9}$' is not false or json_typeof(elements::json) is distinct from 'array' then
        raise exception using
            errcode = 'UI008',
            message = format('%s: what is appended must be {"version": "…", "keep": n, "values": […]}', subject);
    end if;
    base := (
        select value.part_nos
        from agui.channel_value as value
        where value.thread_key = appended_parts.thread_key and value.channel_no = appended_parts.channel_no and value.version = base_version
    );
    if base is null then
        raise exception using
            errcode = 'UI019',
            message = format('%s: there is no version "%s" to append to', subject, left(base_version, 200)),
            hint = 'Store the whole value.';
    end if;
    if json_array_length(elements::json) > 0 then
        added := agui_internal.store_parts(thread_key, channel_no, elements::json);
        if added is null then
            raise exception using
                errcode = 'UI008',
                message = format('%s: elements to append must have no white space between them', subject);
        end if;
    end if;
    rest := keep::bigint;
    foreach run in array base loop
        exit when rest <= 0;
        run := int4range(lower(run), least(upper(run), lower(run) + rest)::int);
        kept := kept || run;
        rest := rest - (upper(run) - lower(run));
    end loop;
    if rest > 0 or kept || added = '{}' then
        raise exception using
            errcode = 'UI008',
            message = format('%s: version "%s" has fewer elements than are kept, or no element is left', subject, left(base_version, 200));
    end if;
    -- A list that grows by one element at a time is one range.
    if upper(kept[cardinality(kept)]) = lower(added[1]) then
        kept[cardinality(kept)] := int4range(lower(kept[cardinality(kept)]), upper(added[1]));
        added := added[2:];
    end if;
    return kept || added;
end
$$;

comment on function agui_internal.appended_parts is
    'The numbers of the parts of an array that begins like a version of its channel: the first elements '
    'of it, and others, which are stored. UI008: invalid; UI019: unknown version.';

create or replace function agui_internal.ensure_channels(thread_key uuid, namespace text, names text[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    missing text[];
begin
    -- Loops only if another transaction adds channels to the thread at the same time: its numbers, or
    -- its names, are taken then.
    loop
        missing := array(
            select distinct name
            from unnest(names) as name
            where not exists (
                select
                from agui.channel as channel
                where channel.thread_key = ensure_channels.thread_key
                    and channel.namespace = ensure_channels.namespace
                    and channel.name = name.name
                offset 0  -- a look-up for each name, not a join
            )
        );
        exit when missing = '{}';
        insert into agui.channel (thread_key, channel_no, namespace, name)
        select ensure_channels.thread_key, known.last_no + added.place, ensure_channels.namespace, added.name
        from (
            select coalesce(max(channel.channel_no), 0) as last_no
            from agui.channel as channel
            where channel.thread_key = ensure_channels.thread_key
        ) as known
        cross join unnest(missing) with ordinality as added (name, place)
        on conflict do nothing;
    end loop;
end
$$;

comment on function agui_internal.ensure_channels is
    'Creates those of the named channels that do not exist in the namespace.';

create or replace function agui_internal.store_parts(thread_key uuid, channel_no int, value json)
returns int4range[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    bodies   text[] := array(select element.body::text from json_array_elements(value) with ordinality as element (body, place) order by element.place);
    -- Equal elements of other threads have other prints, so that none is common to many rows.
    beginning constant bytea := uuid_send(thread_key) || int4send(channel_no);
    prints   bigint[];
    part_nos int[];
    last_no  int;
begin
    -- Only the elements are stored. White space between them would be lost.
    if bodies = '{}' or '[' || array_to_string(bodies, ',') || ']' <> value::text then
        return null;
    end if;
    prints := array(
        select agui_internal.part_print(beginning, element.body)
        from unnest(bodies) with ordinality as element (body, place)
        order by element.place
    );

    -- Another call that stores parts of this channel waits here, then sees these.
    select channel.parts into last_no
    from agui.channel as channel
    where channel.thread_key = store_parts.thread_key and channel.channel_no = store_parts.channel_no
    for no key update;

    part_nos := array(
        select known.part_no
        from rows from (unnest(bodies), unnest(prints)) with ordinality as element (body, print, place)
        left join lateral (
            select part.part_no
            -- The offset keeps the other conditions from the choice of the index: a plan made while the
            -- table was small would read all parts of the channel for each element.
            from (select * from agui.channel_part as part where part.print = element.print offset 0) as part
            where part.thread_key = store_parts.thread_key and part.channel_no = store_parts.channel_no and part.body::text = element.body
            limit 1
        ) as known on true
        order by element.place
    );
    if array_position(part_nos, null) is not null then
        -- Equal elements get the number of the first of them.
        with numbered as (
            select
                element.body, element.print, element.place, element.first_place,
                coalesce(
                    element.part_no,
                    last_no + (dense_rank() over (partition by element.part_no is null order by element.first_place))::int
                ) as part_no,
                element.part_no is null as is_new
            from (
                select element.*, min(element.place) over (partition by element.part_no is null, element.print, element.body collate "C") as first_place
                from rows from (unnest(bodies), unnest(prints), unnest(part_nos)) with ordinality as element (body, print, part_no, place)
            ) as element
        ),
        added as (
            insert into agui.channel_part (thread_key, channel_no, part_no, print, body)
            select store_parts.thread_key, store_parts.channel_no, numbered.part_no, numbered.print, numbered.body::json
            from numbered
            where numbered.is_new and numbered.place = numbered.first_place
        )
        select array_agg(numbered.part_no order by numbered.place), max(numbered.part_no) filter (where numbered.is_new)
        into part_nos, last_no
        from numbered;

        update agui.channel as channel
        set parts = last_no
        where channel.thread_key = store_parts.thread_key and channel.channel_no = store_parts.channel_no;
    end if;

    return agui_internal.ranges_of(part_nos);
end
$$;

comment on function agui_internal.store_parts is
    'Stores the elements of an array that its channel does not have yet, and returns the numbers of '
    'all elements in order. Null: the array is empty, or has white space between its elements.';
