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

comment on function agui.put_checkpoint(text, text, json, json, text, text[], text[], text[], json, text, text, text) is
    'Stores a checkpoint of a graph, as the checkpointers of LangGraph need it, and returns its number '
    'in the thread. document is the checkpoint without its values; its member channel_versions says '
    'which version of each channel belongs to it. channels, versions, types and channel_values bring '
    'the values of the channels that have changed: a value of the type json is JSON, byte for byte; of '
    'any other type it is a string of base64. A version that is stored already stays as it is. Arrays '
    'of 256 bytes or more share their equal elements. parent_id may name a checkpoint that is '
    'not stored. A checkpoint gets its number when it is first named: by this function, by a child or by '
    'a write. So its number may be smaller than that of a checkpoint stored earlier. run_id names the run of the log that the graph is working on, whether it has begun or '
    'not. If the checkpoint exists, document, metadata, parent and run are replaced. A parent_id '
    'that is the id of the checkpoint itself changes no parent, and is none if the checkpoint is new. '
    'The thread does not need to have runs. '
    'Errors: UI007 the checkpoint is from agui.save_checkpoint, UI008 '
    'invalid arguments, UI011 a limit is exceeded, UI012 another thread has the same key, UI014 the '
    'thread was erased, 22023 invalid base64.';

revoke execute on function agui.put_checkpoint(text, text, json, json, text, text[], text[], text[], json, text, text, text) from public;
