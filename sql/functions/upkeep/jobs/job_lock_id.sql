create or replace function agui_internal.job_lock_id(name text)
returns bigint
language plpgsql
stable
strict
set search_path = pg_catalog, pg_temp
as $$
begin
    if agui_internal.has_row_security() and (select own.low is null from agui_internal.own_keys() as own) then
        raise exception using
            errcode = '42501',
            message = format('role "%s" has no scope, so the job would find no threads', agui_internal.caller_role()),
            hint = 'Row-level security is on. Give the role of the jobs all scopes with agui.map_operator.';
    end if;
    -- The seed ("agui" in ASCII) separates the locks of pgagui from other 64-bit advisory locks in
    -- the database.
    return hashtextextended('job ' || name, x'61677569'::bigint);
end
$$;

comment on function agui_internal.job_lock_id(text) is
    'The transaction-level advisory lock of a job (compact, repack, …). A job that finds it taken '
    'returns at once. 42501: the calling role sees no threads, so the job would silently do '
    'nothing.';

revoke execute on function agui_internal.job_lock_id(text) from public;
