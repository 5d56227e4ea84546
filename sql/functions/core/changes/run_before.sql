create or replace function agui_internal.run_before(key uuid, low uuid, out thread_key uuid, out run_no int)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    select run.thread_key, run.run_no into thread_key, run_no
    from agui.run as run
    where run.thread_key >= low and run.thread_key < key
    order by run.thread_key desc, run.run_no desc
    limit 1;
    if not found then
        thread_key := '00000000-0000-0000-0000-000000000000';
        run_no := 0;
    end if;
end
$$;

comment on function agui_internal.run_before(uuid, uuid) is
    'The last run of the threads whose keys are below key, and not below low; if there is none, the place '
    'before all runs. A position that named an erased thread names this run instead: none is between them.';

revoke execute on function agui_internal.run_before(uuid, uuid) from public;
