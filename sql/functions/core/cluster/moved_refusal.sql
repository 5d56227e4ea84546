create or replace function agui_internal.moved_refusal(places json, out message text, out detail text, out hint text)
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select
        format('thread "%s"%s is on node "%s" of the cluster, and this is node "%s"%s',
            left(place ->> 'threadId', 200),
            case when place ->> 'scope' <> '' then format(' of scope "%s"', left(place ->> 'scope', 200)) else '' end,
            place ->> 'node', agui_internal.this_node(),
            case when json_array_length(places) > 1 then format('; %s threads of the call are on other nodes', json_array_length(places)) else '' end),
        places::text,
        'Call that node. Clients that know the cluster do so themselves.'
    from (select places -> 0) as first (place)
$$;

comment on function agui_internal.moved_refusal(json) is
    'The error text of UI027 for a list of agui_internal.place_of_thread, which is its DETAIL.';

revoke execute on function agui_internal.moved_refusal(json) from public;
