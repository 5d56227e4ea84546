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

comment on function agui.put_checkpoint_writes(text, text, text, text[], text[], json, int[], text, text, text) is
    'Stores what a task of a graph wrote to channels after a checkpoint. It may come before '
    'the checkpoint. types and channel_values have the form that they have in agui.put_checkpoint. '
    'places are the places of the writes in those of the task (null: 0, 1, 2, …). A place that is '
    'stored already stays as it is; a negative one is replaced. The same holds for a place that a '
    'call names more than once. Readers get the writes of a checkpoint in the order (task_path, '
    'task_id, place). '
    'Errors: UI007 the checkpoint is from agui.save_checkpoint, UI008 invalid arguments, UI011 a limit '
    'is exceeded, UI012 another thread has the same key, UI014 the thread was erased, 22023 invalid '
    'base64.';

revoke execute on function agui.put_checkpoint_writes(text, text, text, text[], text[], json, int[], text, text, text) from public;
