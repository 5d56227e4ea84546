create or replace function agui_internal.receive_erasures(erasures json)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_unless_operator('move tombstones');
    insert into agui.erasure as known
    select given.* from json_populate_recordset(null::agui.erasure, erasures) as given
    on conflict (erased_key, erased_at) do update
    set allowed_at = excluded.allowed_at, allowed_by = excluded.allowed_by
    where known.allowed_at is null and excluded.allowed_at is not null;
end
$$;

comment on function agui_internal.receive_erasures(json) is
    'Stores tombstones of another node, a list of rows of agui.erasure, so that threads that were erased '
    'there are refused here too. All nodes have one salt (agui.join_cluster).';

revoke execute on function agui_internal.receive_erasures(json) from public;
