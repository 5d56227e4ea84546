create or replace function agui_internal.begin_step()
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
    select
        -- A commit does not wait for the disk: a job repeats what a crash takes back.
        set_config('synchronous_commit', 'off', true),
        -- An open transaction of another session does not stop a job: it does other threads first, then tries once more.
        set_config('lock_timeout', '200ms', true)
$$;

comment on function agui_internal.begin_step() is 'Sets what each transaction of a job has, until it ends.';

revoke execute on function agui_internal.begin_step() from public;
