create or replace function agui_internal.epoch()
returns text
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select system.system_identifier || '/' || case
            when pg_is_in_recovery() then greatest(checkpoint.timeline_id, recovery.min_recovery_end_timeline)
            -- The one that is written. The last checkpoint is still of the one before, for minutes
            -- after a standby was promoted.
            else ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::int
        end
        from pg_control_system() as system
        cross join pg_control_checkpoint() as checkpoint
        cross join pg_control_recovery() as recovery
    );
exception
    when insufficient_privilege or undefined_function or feature_not_supported then
        return '0/0';  -- some managed services
end
$$;

comment on function agui_internal.epoch() is
    'The cluster and its timeline. Numbers of transactions compare only within an epoch: a dump brings '
    'those of another cluster, and after a failover or a restore to a point in time the server may '
    'assign numbers once more. 0/0: the server does not say.';

revoke execute on function agui_internal.epoch() from public;
