create or replace function agui_internal.still_waits(thread_key uuid, run_no int, expires_at timestamptz)
returns boolean
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
begin
    return (expires_at <= clock_timestamp()) is not true
        and not exists (
            select
            from agui.run as later
            where later.thread_key = still_waits.thread_key and later.run_no > still_waits.run_no
        );
end
$$;

comment on function agui_internal.still_waits(uuid, int, timestamptz) is
    'Whether an interrupt with which a run ended waits for an answer: it has not expired, and no other run '
    'was begun in the conversation. Once false, it stays false.';

revoke execute on function agui_internal.still_waits(uuid, int, timestamptz) from public;
