create or replace function agui_internal.begin_step()
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
    select
        -- No commit need wait for the disk: what a crash takes back is done again.
        set_config('synchronous_commit', 'off', true),
        -- Nobody's open transaction holds a job up: it goes on with other threads, and comes back.
        set_config('lock_timeout', '200ms', true)
$$;

comment on function agui_internal.begin_step() is 'Sets what each transaction of a job has, until it ends.';

revoke execute on function agui_internal.begin_step() from public;
