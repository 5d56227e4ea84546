-- Each end reports the usage of the whole run so far, so the last one counts and nothing is added
-- up. An end without usage reports nothing, not zero. If that is RUN_ERROR after RUN_FINISHED, the
-- one that wrote it (a server whose connection broke, say) is often not the one that called the
-- models, so the usage of RUN_FINISHED stands.
create or replace function agui_internal.reported_usage(run agui.run)
returns json
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
-- Planned once: a plan for each call would take longer than the call.
set plan_cache_mode = force_generic_plan
as $$
declare
    usage json;
begin
    select case when json_typeof(report.usage) = 'array' then report.usage end into usage
    from agui.batch as batch
    cross join lateral (
        select event.usage
        from rows from (
            json_to_recordset(agui_internal.json_guarded(batch.events)) as (type text, usage json)
        ) with ordinality as event (type, usage, position)
        where (event.type = 'RUN_FINISHED' or event.type = 'RUN_ERROR' and json_typeof(event.usage) = 'array')
            -- An end behind RUN_ERROR has no effect.
            and batch.first_seq + event.position - 1 <= coalesce(run.end_seq, run.last_seq)
        order by event.position desc
        limit 1
    ) as report
    where batch.thread_key = run.thread_key
        and batch.run_no = run.run_no
        -- No rows for a run in progress. One that was cut off did not end by itself.
        and batch.first_seq between run.first_seq and run.last_seq
        and run.cut_off_reason is null
        -- Skip batches that cannot contain an end. A type written with escapes has \u00 in it.
        and (batch.events::text ~ 'RUN_(FINISHED|ERROR)' or strpos(batch.events::text, '\u00') > 0)
    order by batch.first_seq desc
    limit 1;
    if usage is null and exists (select from agui_internal.usage_mapping) then
        usage := (select agui_internal.mapped_usage(ending.event) from agui_internal.end_of_run(run) as ending where run.cut_off_reason is null);
    end if;
    return usage;
end
$$;

comment on function agui_internal.reported_usage(agui.run) is
    'The usage of a run, a JSON array (guarded), as its last end reports it. Null if that reports '
    'none, or the run has not ended. Usually reads the last batch of the run only.';

revoke execute on function agui_internal.reported_usage(agui.run) from public;
