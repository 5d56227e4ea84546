create or replace function agui_internal.note_run_ended(thread_key uuid, run_no int, active_at timestamptz)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    -- What the user says stands at the beginning of a run.
    max_batches constant int := 8;
    batch_bytes constant int := 64 * 1024;
    derived text;
begin
    if agui_internal.note_activity(thread_key, active_at) is distinct from false then
        return;
    end if;

    select agui_internal.title_of_events(coalesce(('[' || string_agg(first.events, ',' order by first.first_seq) || ']')::json, '[]'))
    into derived
    from (
        select batch.first_seq, substr(btrim(batch.events::text, E' \t\r\n'), 2, length(btrim(batch.events::text, E' \t\r\n')) - 2) as events
        from (
            select stored.first_seq, stored.events
            from agui.run as run
            join agui.batch as stored
                on stored.thread_key = run.thread_key and stored.run_no = run.run_no and stored.first_seq >= run.first_seq
            where run.thread_key = note_run_ended.thread_key and run.run_no = note_run_ended.run_no
            order by stored.first_seq
            limit max_batches
        ) as batch
        where agui_internal.json_octets(batch.events) <= batch_bytes
    ) as first;
    if derived is not null then
        update agui.thread_activity as activity
        set derived_title = derived
        where activity.thread_key = note_run_ended.thread_key;
    end if;
end
$$;

comment on function agui_internal.note_run_ended(uuid, int, timestamptz) is
    'Moves a thread to its place in lists when a run of it ends. While the thread has no title, it '
    'looks for one in the first events of the run. The caller holds the lock of the thread.';

revoke execute on function agui_internal.note_run_ended(uuid, int, timestamptz) from public;
