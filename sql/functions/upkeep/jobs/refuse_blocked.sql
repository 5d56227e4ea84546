create or replace function agui_internal.refuse_blocked(job text, blocked text)
returns void
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    if blocked is not null then
        raise exception using
            errcode = '55P03',
            message = format('%s cannot run: %s', job, blocked),
            hint = 'End that database session with pg_terminate_backend. Work already done is kept.';
    end if;
end
$$;

comment on function agui_internal.refuse_blocked(text, text) is
    'Raises 55P03 if agui_internal.job_lock_problem gave a reason why the procedure cannot take '
    'the lock of its job.';

revoke execute on function agui_internal.refuse_blocked(text, text) from public;
