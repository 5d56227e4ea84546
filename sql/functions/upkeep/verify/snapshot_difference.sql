create or replace function agui_internal.snapshot_difference(thread_key uuid, run_no int, fold agui_internal.fold)
returns text
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
-- Other plans have copies of the fold.
set plan_cache_mode = force_generic_plan
as $$
declare
    stored  agui.snapshot;
    numbers int[];
    is_same boolean;
begin
    select snapshot.* into stored
    from agui.snapshot as snapshot
    where snapshot.thread_key = snapshot_difference.thread_key and snapshot.run_no = snapshot_difference.run_no;
    numbers := agui_internal.snapshot_numbers(thread_key, run_no, cardinality(fold.bodies));

    if numbers is null then
        is_same := false;
    elsif numbers = fold.message_nos then
        is_same := true;
    else
        with place as materialized (
            select pair.position, pair.number, pair.fold_number
            from unnest(numbers, fold.message_nos) with ordinality as pair (number, fold_number, position)
        ),
        -- Only what may differ: compare its body.
        changed as materialized (
            select place.position, place.number, place.fold_number
            from place
            where place.fold_number is distinct from place.number
        ),
        -- A message at several places is one in both.
        related as (
            select
                place.position,
                min(place.position) over (partition by place.number) as first_stored,
                case
                    when place.fold_number is null then place.position
                    else min(place.position) over (partition by place.fold_number)
                end as first_folded
            from place
            where place.number in (select changed.number from changed)
                or place.fold_number in (select changed.fold_number from changed)
        )
        select
            not exists (
                select
                from changed
                -- One look-up each: few have changed.
                cross join lateral (
                    select (
                        select message.body::text
                        from agui.message as message
                        where message.thread_key = snapshot_difference.thread_key and message.message_no = changed.number
                    )
                ) as message (body)
                where message.body is null
                    or message.body <> fold.bodies[changed.position]
                        and not agui_internal.json_equal(message.body, fold.bodies[changed.position])
            )
            and not exists (select from related where related.first_stored <> related.first_folded)
        into is_same;
    end if;
    if is_same
        and agui_internal.json_equal(stored.state::text, fold.state)
        and agui_internal.json_equal(stored.interrupts::text, fold.interrupts)
        and agui_internal.json_equal(coalesce(stored.lanes::text, '[]'), coalesce(fold.lanes, '[]'))
    then
        return null;
    end if;
    return agui_internal.fold_difference(agui_internal.load_snapshot(thread_key, run_no), fold);
end
$$;

comment on function agui_internal.snapshot_difference(uuid, int, agui_internal.fold) is
    'The first difference between the snapshot of a run and a fold; null: they are equal. Messages '
    'with the same number in both are not read: the fold has them from a snapshot that was '
    'compared before.';

revoke execute on function agui_internal.snapshot_difference(uuid, int, agui_internal.fold) from public;
