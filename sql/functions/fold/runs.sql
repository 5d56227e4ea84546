-- A lineage, folded from the nearest snapshot: inputs, runs, events.
--
--    fold_base              the nearest run on the lineage with a snapshot
--    load_snapshot          its fold, or fold_empty
--    fold_run, fold_runs    the runs behind it: fold_input, what the input beside a run adds, then
--                           fold/events, its batches
--
-- - A snapshot counts only if it has the rules of this version (upkeep/rules) and ends at or before
--   the seq that is wanted.
-- - A fold ignores messages of an input whose ids the conversation has. So it reads only those
--   parts of the input that are new to it (agui_internal.new_input; compaction.Input in Go). It
--   decides by id and not by part, because an event may have removed a message.
-- - A fold never fails because of events, only at a limit (agui_internal.limits_of_folds).
--   docs/settings.md says what each limit means. Both reducers count the same towards it, so they
--   end at the same event.

create or replace function agui_internal.fold_base(thread_key uuid, run_no int, at_seq bigint default null, distrusted int[] default '{}')
returns int
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    thread_key := agui_internal.visible_key(thread_key);
    -- In PL/pgSQL the plan is cached. Planning takes several times as long as execution.
    return (
        with recursive ancestor as (
            select run.thread_key, run.run_no, run.parent_no, snapshot.run_no is not null as is_base
            from agui.run as run
            left join agui.snapshot as snapshot
                on snapshot.thread_key = run.thread_key and snapshot.run_no = run.run_no and snapshot.rules = agui_internal.rules()
                    and (fold_base.at_seq is null or snapshot.through_seq <= fold_base.at_seq)
                    and snapshot.run_no <> all (fold_base.distrusted)
            where run.thread_key = fold_base.thread_key and run.run_no = fold_base.run_no
            union all
            select parent.thread_key, parent.run_no, parent.parent_no, snapshot.run_no is not null
            from ancestor
            join agui.run as parent
                on parent.thread_key = ancestor.thread_key and parent.run_no = ancestor.parent_no and parent.run_no < ancestor.run_no
            left join agui.snapshot as snapshot
                on snapshot.thread_key = parent.thread_key and snapshot.run_no = parent.run_no and snapshot.rules = agui_internal.rules()
                    and (fold_base.at_seq is null or snapshot.through_seq <= fold_base.at_seq)
                    and snapshot.run_no <> all (fold_base.distrusted)
            where not ancestor.is_base
        )
        select ancestor.run_no from ancestor where ancestor.is_base
    );
end
$$;

comment on function agui_internal.fold_base is
    'The nearest run on the lineage of a run, itself included, with a snapshot that ends at or '
    'before at_seq (null: any snapshot); null if there is none. Snapshots of the runs in '
    'distrusted are skipped.';

create or replace function agui_internal.fold_run(
    thread_key uuid,
    run_no     int,
    at_seq     bigint default null,
    base_no    int default null,
    stop_at    timestamptz default null
)
returns agui_internal.fold
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    start    agui_internal.fold := agui_internal.load_snapshot(thread_key, base_no);
    until    bigint := coalesce(at_seq, 9223372036854775807);
    run_nos  int[];
    after_seqs   bigint[];
    through_seqs bigint[];
begin
    with recursive ancestor as (
        select run.thread_key, run.run_no, run.parent_no, run.first_seq, run.last_seq
        from agui.run as run
        where run.thread_key = fold_run.thread_key and run.run_no = fold_run.run_no
        union all
        select parent.thread_key, parent.run_no, parent.parent_no, parent.first_seq, parent.last_seq
        from ancestor
        -- The offset makes this one look-up for each, as in agui_internal.ancestors.
        cross join lateral (
            select older.*
            from agui.run as older
            where older.thread_key = ancestor.thread_key and older.run_no = ancestor.parent_no and older.run_no < ancestor.run_no
            offset 0
        ) as parent
        where ancestor.run_no is distinct from base_no
    )
    select
        array_agg(ancestor.run_no order by ancestor.run_no),
        array_agg(greatest(ancestor.first_seq - 1, start.through_seq) order by ancestor.run_no),
        array_agg(least(coalesce(ancestor.last_seq, until), until) order by ancestor.run_no)
    into run_nos, after_seqs, through_seqs
    from ancestor
    where ancestor.first_seq <= until
        and coalesce(ancestor.last_seq, until) > start.through_seq;

    if run_nos is null then
        return start;
    end if;
    return agui_internal.fold_patched(agui_internal.fold_runs(start, thread_key, run_nos, after_seqs, through_seqs, stop_at));
end
$$;

comment on function agui_internal.fold_run is
    'Folds the lineage of a run up to at_seq (null: to its end), from the snapshot of the run '
    'base_no on its lineage (null: from the beginning of the log). agui_internal.fold_base finds '
    'the nearest base. From stop_at on (null: no limit) it ends within the run, as '
    'agui_internal.fold_events does.';

create or replace function agui_internal.load_snapshot(thread_key uuid, run_no int)
returns agui_internal.fold
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
-- Planned once: a plan for each call would take longer than the call.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
    fold agui_internal.fold;
begin
    select
        snapshot.through_seq, list.message_nos, list.message_ids, list.roles, list.bodies,
        snapshot.state::text, snapshot.interrupts::text, snapshot.lanes::text, '{}',
        octet_length(snapshot.state::text) + octet_length(snapshot.interrupts::text) + list.octets, 0
    into fold
    from agui.snapshot as snapshot
    cross join lateral (
        select
            coalesce(array_agg(item.message_no), '{}'),
            coalesce(array_agg(item.message_id), '{}'),
            coalesce(array_agg(item.role), '{}'),
            coalesce(array_agg(item.body), '{}'),
            coalesce(sum(octet_length(item.body)), 0)
        from (
            -- Sorted once for all of the arrays.
            select message.message_no, message.message_id, message.role, message.body::text as body
            from unnest(snapshot.message_nos) with ordinality as part (message_nos, position)
            -- The offset makes this one look-up for each range. A join may read all messages of the
            -- thread.
            cross join lateral (
                select stored.*
                from agui.message as stored
                where stored.thread_key = snapshot.thread_key
                    and stored.message_no >= lower(part.message_nos) and stored.message_no < upper(part.message_nos)
                offset 0
            ) as message
            order by part.position, message.message_no
        ) as item
    ) as list (message_nos, message_ids, roles, bodies, octets)
    where snapshot.thread_key = load_snapshot.thread_key and snapshot.run_no = load_snapshot.run_no and snapshot.rules = agui_internal.rules();

    if not found then
        fold := agui_internal.fold_empty();
    end if;
    return fold;
end
$$;

comment on function agui_internal.load_snapshot is
    'The fold in the snapshot of a run. If there is none by the present rules, agui_internal.fold_empty().';

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
    return agui_internal.fold_events(
        result, thread_key, run_nos[first_segment :], after_seqs[first_segment :], through_seqs[first_segment :], null, at_start[first_segment :],
        stop_at, limits
    );
end
$$;

comment on function agui_internal.fold_runs is
    'Applies the events of further runs of a lineage to its result so far (start), for each run '
    'after one seq and up to another, and the inputs stored beside them. From stop_at on (null: no '
    'limit) it ends within the last run, as agui_internal.fold_events does; the runs before it are '
    'always folded. limits: null reads them.';

create or replace function agui_internal.fold_input(start agui_internal.fold, thread_key uuid, run_no int)
returns agui_internal.fold
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    result agui_internal.fold;
begin
    result := agui_internal.fold_given(start, (
        select '{"type":"RUN_STARTED","input":' || given.input || '}'
        from agui.input as given
        where given.thread_key = fold_input.thread_key and given.run_no = fold_input.run_no
    ));
    result.through_seq := start.through_seq;
    return result;
end
$$;

comment on function agui_internal.fold_input is
    'Applies the input that is stored beside the events of a run without RUN_STARTED to the result '
    'of its lineage, before the first event of the run.';

create or replace function agui_internal.fold_given(start agui_internal.fold, events text)
returns agui_internal.fold
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    given constant json := '[' || events || ']';
begin
    start := coalesce(start, agui_internal.fold_empty());
    start.spent := 0;
    return agui_internal.fold_patched(
        agui_internal.fold_events(
            start,
            null,
            '{null}',
            '{0}',
            array[json_array_length(given)],
            given
        )
    );
end
$function$;

comment on function agui_internal.fold_given is
    'Applies events (JSON texts, joined by commas), which need not be in the log, to the result of '
    'a lineage (null: the empty fold). For the fuel limit, a RUN_STARTED among them begins a run.';

-- Not strict and without a query, so that it is inlined.
create or replace function agui_internal.fold_empty()
returns agui_internal.fold
language sql
immutable
parallel safe
return row(0, '{}', '{}', '{}', '{}', '{}', '[]', null, '{}', 4, 0)::agui_internal.fold;

comment on function agui_internal.fold_empty is
    'The fold of no events: no messages, state {}.';
