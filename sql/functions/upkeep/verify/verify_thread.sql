create or replace function agui_internal.verify_thread(thread_key uuid)
returns setof agui.verify_row
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
        select null::text, problem.text, 'damage'
        from (values (verify_thread.thread_key)) as checked (thread_key)
        left join agui.thread as thread on thread.thread_key = checked.thread_key
        cross join lateral (select agui_internal.erased_at(checked.thread_key)) as erasure (erased_at)
        cross join lateral (select agui.thread_key(thread.scope, thread.thread_id)) as derived (thread_key)
        cross join lateral (
            select
                concat_ws(', ',
                    case when exists (select from agui.batch where batch.thread_key = checked.thread_key) then 'batches' end,
                    case when exists (select from agui.run where run.thread_key = checked.thread_key) then 'runs' end,
                    case when exists (select from agui.snapshot where snapshot.thread_key = checked.thread_key) then 'snapshots' end,
                    case when exists (select from agui.message_version as message where message.thread_key = checked.thread_key) then 'messages' end,
                    case
                        when exists (select from agui.session_key where session_key.thread_key = checked.thread_key)
                            or exists (select from agui.session_state where session_state.thread_key = checked.thread_key) then 'session state'
                    end,
                    case when exists (select from agui.checkpoint where checkpoint.thread_key = checked.thread_key) then 'checkpoints' end,
                    case when exists (select from agui.thread_activity where thread_activity.thread_key = checked.thread_key) then 'a place in lists' end
                )
        ) as it (has)
        cross join lateral (
            values
                -- A thread that was erased since it was listed has no rows at all. That is no damage.
                (thread.thread_key is null and it.has <> '',
                    format('no row of agui.thread has the key %s, to which these belong: %s', checked.thread_key, it.has)),
                (thread.thread_key <> derived.thread_key,
                    format('the thread has the key %s, that of its scope and id is %s', thread.thread_key, derived.thread_key)),
                -- A thread created by agui.set_thread is as active as it was then; one whose runs are
                -- lost is not.
                (thread.thread_key is not null and it.has !~ 'runs|session state|checkpoints'
                        and not exists (
                            select
                            from agui.thread_activity as activity
                            where activity.thread_key = checked.thread_key and activity.active_at = thread.created_at
                        ),
                    'the thread has no runs'),
                (erasure.erased_at is not null and (thread.thread_key is not null or it.has <> ''),
                    format('the thread was erased at %s, yet there are rows of it', erasure.erased_at))
        ) as problem (is_there, text)
        where problem.is_there;
end
$$;

comment on function agui_internal.verify_thread(uuid) is
    'The damage of the row of a thread: its key is wrong, or the row is missing.';

revoke execute on function agui_internal.verify_thread(uuid) from public;
