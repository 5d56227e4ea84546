create or replace function agui_internal.facts_of_runs(keys uuid[], run_nos int[])
returns setof agui.projected_run
language plpgsql
stable
parallel safe
rows 100
set search_path = pg_catalog, pg_temp
as $$
declare
    tokens constant text[] := agui_internal.event_types('continue text', 'chunk text');
    common constant text := 'TEXT_MESSAGE_C';  -- what they begin with
begin
    return query
    select
        run.thread_key, run.run_no, run.changed_in, counted.events, counted.bytes, token.at, why.error_code, why.error_message
    from unnest(keys, run_nos) as listed (thread_key, run_no)
    join agui.run as run
        on run.thread_key = listed.thread_key and run.run_no = listed.run_no and run.status <> 'running'
    cross join lateral agui_internal.why_ended(run, 1000) as why
    cross join lateral (
        -- Brackets and commas do not count: they depend on the batches.
        select
            coalesce(sum(batch.n), 0) as events,
            coalesce(sum(coalesce(batch.text_bytes, octet_length(batch.events::text)) - batch.n - 1), 0) as bytes
        from agui.batch as batch
        where batch.thread_key = run.thread_key
            and batch.run_no = run.run_no
            and batch.first_seq between run.first_seq and run.last_seq
        offset 0
    ) as counted
    left join lateral (
        select told.at
        from agui.batch as batch
        cross join lateral (
            select agui_internal.event_time(batch.recorded_at, batch.earlier_us[event.position]) as at
            from json_array_elements(batch.events) with ordinality as event (value, position)
            where agui_internal.mentions_type(event.value::text, common)
                and agui_internal.json_guarded(event.value) ->> 'type' = any (tokens)
            order by event.position
            limit 1
        ) as told
        where batch.thread_key = run.thread_key
            and batch.run_no = run.run_no
            and batch.first_seq between run.first_seq and run.last_seq
            and agui_internal.mentions_type(batch.events::text, common)
        order by batch.first_seq
        limit 1
    ) as token on true;
end
$$;

comment on function agui_internal.facts_of_runs(uuid[], int[]) is
    'What agui.projected_run is to say of runs, those in progress left out.';

revoke execute on function agui_internal.facts_of_runs(uuid[], int[]) from public;
