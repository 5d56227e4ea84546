create or replace function agui_internal.job_lock_id(name text)
returns bigint
language plpgsql
stable
strict
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    if agui_internal.has_row_security() and (select own.low is null from agui_internal.own_keys() as own) then
        raise exception using
            errcode = '42501',
            message = format('role "%s" has no scope, so it finds nothing to do', agui_internal.caller_role()),
            hint = 'Row-level security is on. agui.map_operator gives the role of the jobs all scopes.';
    end if;
    -- The seed ("agui" in ASCII) keeps the locks of pgagui apart from other users of 64-bit advisory locks in the database.
    return hashtextextended('job ' || name, x'61677569'::bigint);
end
$$;

comment on function agui_internal.job_lock_id(text) is
    'The transaction-level advisory lock that a job (compact, repack, …) tries to take, so that a second start while one is at work returns at once. '
    '42501: the role that calls sees no threads, so the job would do nothing, and nobody would notice.';

revoke execute on function agui_internal.job_lock_id(text) from public;
