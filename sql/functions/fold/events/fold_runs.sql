create or replace function agui_internal.fold_runs(
    start agui_internal.fold,
    thread_key uuid,
    run_nos int[],
    after_seqs bigint[],
    through_seqs bigint[],
    stop_at timestamptz default null,
    limits agui_internal.fold_limits default null
)
returns agui_internal.fold
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    result agui_internal.fold := start;  -- with the fuel of the current run
    first_segment int := 1;  -- the segments before it are folded
    segment       int;
    at_start      boolean[];
    place         agui_internal.input_place;
begin
    result.spent := 0;
    for place in
        select * from agui_internal.input_places(thread_key, run_nos, through_seqs)
    loop
        segment := array_position(run_nos, place.run_no);
        continue when place.seq <= after_seqs[segment];  -- it is part of what the fold starts from
        if place.is_start then
            at_start := coalesce(at_start, array_fill(false, array[cardinality(run_nos)]));
            at_start[segment] := true;
            continue;
        end if;
        if segment = cardinality(run_nos) then
            -- a later RUN_STARTED would change what its events mean, so a partial result could not
            -- be kept
            stop_at := null;
        end if;
        if segment > first_segment then
            result := agui_internal.fold_events(
                result, thread_key,
                run_nos[first_segment : segment - 1], after_seqs[first_segment : segment - 1], through_seqs[first_segment : segment - 1],
                null, at_start[first_segment : segment - 1],
                limits => limits
            );
            first_segment := segment;
            result.spent := 0;
        end if;
        result := agui_internal.fold_input(result, thread_key, place.run_no);
    end loop;
    if first_segment = 1 then
        return agui_internal.fold_events(result, thread_key, run_nos, after_seqs, through_seqs, null, at_start, stop_at, limits);
    end if;
    return agui_internal.fold_events(
        result, thread_key, run_nos[first_segment :], after_seqs[first_segment :], through_seqs[first_segment :], null, at_start[first_segment :],
        stop_at, limits
    );
end
$$;

comment on function agui_internal.fold_runs(agui_internal.fold, uuid, int[], bigint[], bigint[], timestamptz, agui_internal.fold_limits) is
    'Applies the events of further runs of a lineage to its result so far (start), for each run '
    'after one seq and up to another, and the inputs stored beside them. From stop_at on (null: no '
    'limit) it ends within the last run, as agui_internal.fold_events does; the runs before it are '
    'always folded. limits: null reads them.';

revoke execute on function agui_internal.fold_runs(agui_internal.fold, uuid, int[], bigint[], bigint[], timestamptz, agui_internal.fold_limits) from public;
