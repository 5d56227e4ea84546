create or replace function agui_internal.refuse_moved(places json)
returns uuid
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    refusal record;
begin
    if places is null then
        return null;
    end if;
    select * into refusal from agui_internal.moved_refusal(places);
    raise exception using
        errcode = 'UI027',
        message = refusal.message,
        detail = refusal.detail,
        hint = refusal.hint;
end
$$;

comment on function agui_internal.refuse_moved(json) is
    'Raises UI027 for a list of agui_internal.place_of_thread: other nodes have these threads. Does '
    'nothing without a list.';

revoke execute on function agui_internal.refuse_moved(json) from public;
