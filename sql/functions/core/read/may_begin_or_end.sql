-- A function of its own, so that what it reads of large events is freed at once.
create or replace function agui_internal.may_begin_or_end(events json)
returns boolean
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
begin
    -- A type written with escapes has \u00 in it.
    return (
        select given.bytes like any (array['%RUN\\_%'::bytea, '%\\\\u00%'::bytea, agui_internal.question_pattern()])
        from (select agui_internal.json_bytes(events) as bytes offset 0) as given
    );
end
$$;

comment on function agui_internal.may_begin_or_end(json) is
    'Whether an event, or one of an array, may begin or end a run, or ask, by its bytes.';

revoke execute on function agui_internal.may_begin_or_end(json) from public;
