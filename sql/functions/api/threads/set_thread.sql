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
            message = format('%s: title and agent are limited to %s bytes each', subject, to_char(max_text_bytes, 'FM9,999'));
    end if;
    if jsonb_typeof(metadata) <> 'object' then
        raise exception using
            errcode = '22023',
            message = format('%s: metadata must be a JSON object, not %s', subject, jsonb_typeof(metadata));
    end if;

    -- The same order as in agui.append: first the lock, then the row.
    perform agui_internal.lock_thread(key);
    if create_if_missing then
        perform agui_internal.ensure_writable_thread(thread_id, scope);
    else
        perform from agui.thread as known where known.thread_key = key;
        if not found then
            raise exception using
                errcode = 'UI001',
                message = format('%s is unknown%s', subject, ' in scope "' || nullif(scope, '') || '"'),
                hint = 'Is it in another scope? To create a thread without runs, pass create_if_missing => true.';
        end if;
    end if;

    -- If the row is missing, which is damage, create it.
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
            message = format('%s: its metadata would have %s bytes, more than the limit of %s',
                subject, octet_length(shown.metadata::text), max_metadata_bytes),
            hint = 'Every list returns the metadata. Store large values elsewhere and put a reference here.';
    end if;

    select * into thread from agui_internal.show_threads(array[shown], scope);
    return thread;
end
$$;

comment on function agui.set_thread(text, text, text, boolean, jsonb, boolean, text) is
    'Sets what lists show of a thread and returns the thread as agui.threads shows it. title and '
    'agent: an empty text clears them. archived: whether the thread is archived. metadata: a JSON object that '
    'is merged into the stored one, at the top level only; the last write wins, and null removes a '
    'member. An argument of null changes nothing. The call is not an activity, so the thread keeps '
    'its place in lists. create_if_missing => true creates a thread without runs. Until the '
    'transaction ends, other writers wait for the thread. '
    'Errors: UI001 unknown thread, UI008 no thread id or scope, UI011 title or agent over 1,024 '
    'bytes, metadata over 64 KB, UI012 another thread has the same key, UI014 the thread was '
    'erased, 22023 metadata is not an object.';

revoke execute on function agui.set_thread(text, text, text, boolean, jsonb, boolean, text) from public;
