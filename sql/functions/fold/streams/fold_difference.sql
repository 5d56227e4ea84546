create or replace function agui_internal.fold_difference(a agui_internal.fold, b agui_internal.fold)
returns text
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
-- Other plans have copies of the fold.
set plan_cache_mode = force_generic_plan
as $$
declare
    differs_at bigint;
begin
    if cardinality(a.bodies) <> cardinality(b.bodies) then
        return format('%s messages instead of %s', cardinality(a.bodies), cardinality(b.bodies));
    end if;
    select min(pair.position) into differs_at
    from unnest(a.bodies, b.bodies) with ordinality as pair (a, b, position)
    where pair.a <> pair.b and not agui_internal.json_equal(pair.a, pair.b);
    if differs_at is not null then
        return format('message %s of %s differs', differs_at, cardinality(a.bodies));
    end if;
    -- A message at several places is one message: later events change all of them.
    select min(pair.position) into differs_at
    from (
        select
            place.position,
            case when place.a is not null then min(place.position) over (partition by place.a) else place.position end as first_a,
            case when place.b is not null then min(place.position) over (partition by place.b) else place.position end as first_b
        from unnest(a.message_nos, b.message_nos) with ordinality as place (a, b, position)
    ) as pair
    where pair.first_a <> pair.first_b;
    if differs_at is not null then
        return format('message %s of %s is one with another in only one of the two', differs_at, cardinality(a.bodies));
    end if;
    return case
        when not agui_internal.json_equal(a.state, b.state) then 'the state differs'
        when not agui_internal.json_equal(a.interrupts, b.interrupts) then 'the interrupts differ'
        when not agui_internal.json_equal(coalesce(a.lanes, '[]'), coalesce(b.lanes, '[]')) then 'the open chunk streams differ'
    end;
end
$$;

comment on function agui_internal.fold_difference(agui_internal.fold, agui_internal.fold) is
    'The first difference of two folds; null: they are equal.';

revoke execute on function agui_internal.fold_difference(agui_internal.fold, agui_internal.fold) from public;
