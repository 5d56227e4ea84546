create or replace function agui.interrupts(
    thread_id text,
    run_id    text default null,
    at_seq    bigint default null,
    at_time   timestamptz default null,
    scope     text default ''
)
returns setof agui.interrupt_row
language plpgsql
stable
security definer
rows 5
set search_path = pg_catalog, pg_temp
as $$
declare
    fold agui_internal.fold := agui_internal.state_at(agui_internal.find_run(thread_id, run_id, scope), at_seq, at_time);
begin
    return query
    select
        agui_internal.json_string_text((guarded.interrupt -> 'id')::text),
        agui_internal.json_string_text((guarded.interrupt -> 'reason')::text),
        agui_internal.json_string_text((guarded.interrupt -> 'message')::text),
        agui_internal.json_string_text((guarded.interrupt -> 'toolCallId')::text),
        expiry.at,
        coalesce(expiry.at <= clock_timestamp(), false),
        element.interrupt
    from json_array_elements(fold.interrupts::json) with ordinality as element (interrupt, position)
    cross join lateral (select agui_internal.json_guarded(element.interrupt) as interrupt offset 0) as guarded
    cross join lateral (select agui_internal.json_timestamp(guarded.interrupt -> 'expiresAt') as at offset 0) as expiry
    order by element.position;
end
$$;

comment on function agui.interrupts(text, text, bigint, timestamptz, text) is
    'Returns the open interrupts after a run (null: the head) or, for a point in the past, after '
    'event at_seq of its lineage or at at_time, whichever is earlier: one row for each, in the order '
    'of the agent. expired compares with the current time. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key, UI022 '
    'a run is in quarantine, UI023 the fold exceeds a limit.';

revoke execute on function agui.interrupts(text, text, bigint, timestamptz, text) from public;
