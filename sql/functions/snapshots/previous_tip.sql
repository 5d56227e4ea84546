create or replace function agui.previous_tip(thread_key uuid, before_no int)
returns int
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select max(snapshot.run_no)
    from agui.snapshot as snapshot
    where snapshot.thread_key = previous_tip.thread_key and snapshot.run_no < before_no
$$;

comment on function agui.previous_tip(uuid, int) is
    'The youngest run with a snapshot before a run: it may owe its snapshot to having been the tip. Null: none.';

revoke execute on function agui.previous_tip(uuid, int) from public;
