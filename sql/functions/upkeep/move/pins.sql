create or replace function agui_internal.pins()
returns json
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_unless_operator('list pinned scopes');
    return (
        select coalesce(json_agg(json_build_object('scope', pinned.scope, 'bucket', pinned.bucket, 'epoch', pinned.epoch) order by pinned.scope), '[]')
        from agui_internal.pinned_scope as pinned
    );
end
$$;

comment on function agui_internal.pins() is
    'The scopes that are or were pinned, as this node knows it: [{"scope", "bucket", "epoch"}, …]. Of two '
    'copies the greater epoch is the newer one; bucket null: the scope is no longer pinned.';

revoke execute on function agui_internal.pins() from public;
