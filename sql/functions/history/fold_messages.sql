create or replace function agui.fold_messages(fold agui.fold, roles text[])
returns setof agui.fold_message
language plpgsql
stable
parallel safe
rows 1000  -- so that nobody who joins them takes them for one
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select place.position, place.id, place.role, agui.json_guarded(place.body::json)
    from unnest(fold.message_ids, fold.roles, fold.bodies) with ordinality as place (id, role, body, position)
    where place.role = any (fold_messages.roles);
end
$$;

comment on function agui.fold_messages(agui.fold, text[]) is 'The messages of a fold that have one of the roles, in order.';

revoke execute on function agui.fold_messages(agui.fold, text[]) from public;
