create or replace function agui.mark_read(
    consumer text, thread_id text, seq bigint, thread_scope text default null, thread_uid uuid default null, scope text default null
)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    read_by uuid := agui_internal.consumer_key(consumer, scope);
    key     uuid;
begin
    perform agui_internal.refuse_foreign_scope(scope, 'change a consumer of all scopes');
    if scope <> thread_scope then
        raise exception using
            errcode = '22023',
            message = format('consumer "%s" of scope "%s" reads no threads of scope "%s"', consumer, scope, thread_scope);
    end if;
    key := agui_internal.key_to_change(thread_id, coalesce(thread_scope, scope, ''));
    if read_by is null then
        perform agui.move_consumer(consumer, null, scope);
        read_by := agui_internal.consumer_key(consumer, scope);
    end if;
    -- A thread that was erased in the meantime has nothing to note, neither the one that was begun again under its name.
    insert into agui_internal.consumer_thread as consumed (thread_key, consumer_key, read_seq)
    select thread.thread_key, read_by, mark_read.seq
    from agui.thread as thread
    where thread.thread_key = key and (mark_read.thread_uid is null or agui_internal.uid_of_thread(key, thread.thread_uid) = mark_read.thread_uid)
    for key share
    on conflict on constraint consumer_thread_pkey do update
    set read_seq = excluded.read_seq;
end
$$;

comment on function agui.mark_read(text, text, bigint, text, uuid, text) is
    'Notes that a consumer has processed the events of a thread up to a seq, which agui.consume returns '
    'as read_seq. For consumers that read events: read those behind read_seq (agui.events), process '
    'them, note the last one, then move the consumer. So each event is processed once, or once more if the '
    'process ends in between; process and note in one transaction to have it exactly once. '
    'thread_uid: that of the row; if the thread was erased and begun again in the meantime, nothing is '
    'noted, so that its new events come. '
    'thread_scope: the scope of the thread (null: the one of the consumer, or the scope ''''); scope: as for '
    'agui.consume. '
    'Errors: 22023 not a name, or the thread is of another scope than the consumer, 42501 the role does '
    'not have the scope, UI012 another thread has the same key.';

revoke execute on function agui.mark_read(text, text, bigint, text, uuid, text) from public;
