create or replace function agui_internal.epoch()
returns text
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select system.system_identifier || '/' || checkpoint.timeline_id
    from pg_control_system() as system
    cross join pg_control_checkpoint() as checkpoint
$$;

comment on function agui_internal.epoch() is
    'The cluster and its timeline. Numbers of transactions compare only within an epoch: a dump brings '
    'those of another cluster, and after a failover or a restore to a point in time the server may '
    'assign numbers once more.';

revoke execute on function agui_internal.epoch() from public;
