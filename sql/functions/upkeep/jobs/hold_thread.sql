create or replace function agui_internal.hold_thread(thread_key uuid, step_no bigint default null)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.own_key(thread_key);
    perform from agui.thread as thread where thread.thread_key = hold_thread.thread_key for no key update skip locked;
    if not found then
        return false;
    end if;
    if step_no is not null then
        -- A sequence keeps its value if the transaction ends without a commit.
        perform setval('agui_internal.compaction_progress', step_no);
    end if;
    return true;
end
$$;

comment on function agui_internal.hold_thread(uuid, bigint) is
    'Locks the row of a thread, which excludes other jobs until the transaction ends. Appends do '
    'not wait for it. False: another transaction holds the row, or it is gone. step_no: the step of '
    'agui.compact that begins (agui_internal.compaction_step).';

revoke execute on function agui_internal.hold_thread(uuid, bigint) from public;
