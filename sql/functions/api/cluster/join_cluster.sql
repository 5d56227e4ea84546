create or replace procedure agui.join_cluster(node text, map json default null, erasure_salt bytea default null)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    if exists (select from agui_internal.node as known where known.name <> join_cluster.node) then
        raise exception using
            errcode = '55000',
            message = format('this database is node "%s" already', agui_internal.this_node()),
            hint = 'call agui.leave_cluster() first.';
    elsif map is not null and exists (select from agui.thread) and not exists (select from agui_internal.node) then
        raise exception using
            errcode = '55000',
            message = format('node "%s" has threads already, and the map says that others have them', node),
            hint = 'Only the first node of a cluster may have threads. Bring them in by "pgagui archive" and "pgagui unarchive".';
    end if;
    if erasure_salt is not null and exists (select from agui_internal.erasure_salt as known where known.salt <> join_cluster.erasure_salt) then
        if exists (select from agui.erasure) then
            raise exception using
                errcode = '55000',
                message = format('node "%s" has erased threads, which it would no longer recognize with the salt of the cluster', node),
                hint = 'Join with an empty database.';
        end if;
        update agui_internal.erasure_salt set salt = join_cluster.erasure_salt;
    end if;
    insert into agui_internal.node (name) values (node) on conflict do nothing;
    if map is null then
        insert into agui_internal.bucket (bucket, node, epoch)
        select number, join_cluster.node, 1 from generate_series(0, 1023) as number
        on conflict do nothing;
    else
        perform agui_internal.set_buckets(map);
    end if;
    perform agui_internal.set_node(node);
end
$$;

comment on procedure agui.join_cluster(text, json, bytea) is
    'Makes the database a node of a cluster. map is agui.cluster_map() of another node; null: the '
    'database is the first node, and has all threads. erasure_salt is the one of the first node '
    '(agui_internal.erasure_salt), so that erased threads are recognized on each node. From then on a '
    'call for a thread that another node has fails with UI027. For the owner. '
    'Errors: 55000 the database is another node, or has threads that the map gives to others.';

revoke execute on procedure agui.join_cluster(text, json, bytea) from public;
