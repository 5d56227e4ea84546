create or replace function agui.set_thread(
    thread_id text,
    title     text default null,
    agent     text default null,
    archived  boolean default null,
    metadata  jsonb default null,
    create_if_missing boolean default false,
    scope     text default ''
)
returns agui.thread_row
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    max_text_bytes     constant int := 1024;
    max_metadata_bytes constant int := 64 * 1024;
    subject constant text := format('thread "%s"', left(thread_id, 200));
    key     constant uuid := agui_internal.key_to_change(thread_id, scope);
    shown   agui.thread_activity;
    thread  agui.thread_row;
begin
    if greatest(octet_length(title), octet_length(agent)) > max_text_bytes then
        raise exception using
            errcode = 'UI011',
            message = format('%s: title and agent may be %s bytes long at most', subject, to_char(max_text_bytes, 'FM9,999'));
    end if;
    if jsonb_typeof(metadata) <> 'object' then
        raise exception using
            errcode = '22023',
            message = format('%s: metadata must be a JSON object, not %s', subject, jsonb_typeof(metadata));
    end if;

    -- The order in which agui.append takes them: the lock first, then the row.
    perform agui_internal.lock_thread(key);
    if create_if_missing then
        perform agui_internal.ensure_writable_thread(thread_id, scope);
    else
        perform from agui.thread as known where known.thread_key = key;
        if not found then
            raise exception using
                errcode = 'UI001',
                message = format('%s is unknown%s', subject, ' in scope "' || nullif(scope, '') || '"'),
                hint = 'Is it in another scope? create_if_missing => true makes a thread that has no runs yet.';
        end if;
    end if;

    -- Where it is missing, which is damage, that is put right.
    perform from agui.thread_activity as activity where activity.thread_key = key;
    if not found then
        perform agui_internal.rebuild_activity(key);
    end if;

    update agui.thread_activity as activity
    set title = case when set_thread.title is null then activity.title else nullif(set_thread.title, '') end,
        agent = case when set_thread.agent is null then activity.agent else nullif(set_thread.agent, '') end,
        archived = coalesce(set_thread.archived, activity.archived),
        metadata = case
            when set_thread.metadata is null then activity.metadata
            else (
                select coalesce(jsonb_object_agg(member.key, member.value), '{}')
                from jsonb_each(activity.metadata || set_thread.metadata) as member (key, value)
                where set_thread.metadata -> member.key is distinct from 'null'
            )
        end
    where activity.thread_key = key
    returning activity.* into shown;
    if octet_length(shown.metadata::text) > max_metadata_bytes then
        raise exception using
            errcode = 'UI011',
            message = format('%s: its metadata would take %s bytes, more than the %s that it may take',
                subject, octet_length(shown.metadata::text), max_metadata_bytes),
            hint = 'Every list carries it: keep what is large elsewhere, and its address here.';
    end if;

    select * into thread from agui_internal.show_threads(array[shown], scope);
    return thread;
end
$$;

comment on function agui.set_thread(text, text, text, boolean, jsonb, boolean, text) is
    'Sets what lists show of a thread: title and agent ('''' clears them), whether it is archived, and '
    'metadata, a JSON object that is merged into the one that is kept: member by member, the last write wins, '
    'never deep, and null removes a member. A null argument leaves things as they are. It is no activity: the '
    'thread stays at its place. create_if_missing makes a thread that has no runs yet. Returns the thread as '
    'agui.threads shows it. In a transaction, it keeps other writers from the thread until the end. '
    'Errors: UI001 unknown thread, UI008 no thread id or scope, UI011 title or agent over 1,024 bytes, '
    'metadata over 64 KB, UI012 another thread has the same key, UI014 the thread was erased, 22023 metadata '
    'is no object.';

revoke execute on function agui.set_thread(text, text, text, boolean, jsonb, boolean, text) from public;
