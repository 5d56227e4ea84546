create or replace function agui_internal.begin_step()
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    -- In PL/pgSQL the plan is cached. A function in SQL is planned in each call.
    perform
        -- The commit does not wait for the disk: a job repeats what a crash loses.
        set_config('synchronous_commit', 'off', true),
        -- An open transaction does not block a job: the job processes other threads first, then
        -- retries once.
        set_config('lock_timeout', '200ms', true),
        -- A job in Go folds between its statements.
        set_config('idle_in_transaction_session_timeout', '0', true),
        case when current_setting('transaction_timeout', true) is not null then set_config('transaction_timeout', '0', true) end,
        -- A job plans its statements once, not for each run. If the tables were analyzed while they
        -- were empty, it would read them whole for each run, however large they become. Plans
        -- without an index look costly then, and must not be compiled.
        set_config('plan_cache_mode', 'force_generic_plan', true),
        set_config('enable_seqscan', 'off', true),
        -- The same of a bitmap, which reads all rows of a thread where a scan in order ends at the first.
        set_config('enable_bitmapscan', 'off', true),
        set_config('jit', 'off', true);
end
$$;

comment on function agui_internal.begin_step() is
    'Makes the settings of each transaction of a job. They last until it ends.';

revoke execute on function agui_internal.begin_step() from public;
