create or replace function agui.heads(scope text default null)
returns setof agui.chain_head
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
    select head.scope, head.thread_id, head.seq, head.hash, head.recorded_at
    from agui_internal.own_keys() as own
    cross join lateral agui_internal.page_of_heads(heads.scope, '00000000-0000-0000-0000-000000000000', null) as head
    where head.thread_key between own.low and own.high
$$;

comment on function agui.heads(text) is
    'Returns the last link of each chained thread (agui.enable_chain) of a scope (null: of all '
    'scopes): the seq of its last event, its hash and its time. A third party that keeps these rows can '
    'later prove what the log contained (pgagui verify --chain --heads).';

revoke execute on function agui.heads(text) from public;
