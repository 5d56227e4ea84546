create or replace function agui_internal.fold_messages(fold agui_internal.fold, roles text[])
returns setof agui_internal.fold_message
language plpgsql
stable
parallel safe
rows 1000  -- otherwise a join would be planned for one row
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select place.position, place.id, place.role, agui_internal.json_guarded(place.body::json)
    from unnest(fold.message_ids, fold.roles, fold.bodies) with ordinality as place (id, role, body, position)
    where place.role = any (fold_messages.roles);
end
$$;

comment on function agui_internal.fold_messages(agui_internal.fold, text[]) is
    'The messages of a fold with one of the given roles, in order.';

revoke execute on function agui_internal.fold_messages(agui_internal.fold, text[]) from public;
