-- role: maintainer; route: each node
create or replace function agui.disable_chain(scope text default null)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_foreign_scope(scope, 'disable the chain');
    delete from agui_internal.chained_scope as chained
    where chained.scope = coalesce(disable_chain.scope, '') and chained.is_all = (disable_chain.scope is null);
    return found;
end
$$;

comment on function agui.disable_chain is
    'Reverts agui.enable_chain for a scope (null: for all scopes). Threads that are not chained '
    'stay unchained; chained threads stay chained. Returns whether the chain was enabled. Requires '
    'agui_maintainer.';

-- role: maintainer; route: each node
create or replace function agui.enable_chain(scope text default null)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_foreign_scope(scope, 'enable the chain');
    insert into agui_internal.chained_scope (scope, is_all)
    values (coalesce(enable_chain.scope, ''), enable_chain.scope is null)
    on conflict do nothing;
    return found;
end
$$;

comment on function agui.enable_chain is
    'Makes the logs of a scope (null: of all scopes) tamper-evident. From the next run of a thread '
    'on, each append stores a hash over its events and the previous hash, so that pgagui verify '
    '--chain finds events that were changed, removed or reordered. A chained thread stays chained. '
    'Returns whether this call enabled it. Requires agui_maintainer.';

-- route: merged
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

comment on function agui.heads is
    'Returns the last link of each chained thread (agui.enable_chain) of a scope (null: of all '
    'scopes): the seq of its last event, its hash and its time. A third party that keeps these rows can '
    'later prove what the log contained (pgagui verify --chain --heads).';

-- route: front
create or replace function agui.bucket(scope text, thread_id text)
returns int
language sql
immutable
strict
parallel safe
return agui_internal.bucket_of(agui.thread_key(scope, thread_id));

comment on function agui.bucket is
    'The bucket of a thread in a cluster, from 0 to 1023: the first 10 bits of the second half of '
    'agui.thread_key. agui.cluster_map() says which node has it. If the scope is pinned ("pgagui cluster '
    'pin"), its threads are in another one, which DETAIL of UI027 names.';

-- Which node has a bucket is so for all scopes.
-- role: reader, recorder; check: none; route: cluster
create or replace function agui.cluster_map()
returns json
language sql
stable
security definer
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select json_build_object(
        'node', agui_internal.this_node(),
        'buckets', coalesce(json_agg(json_build_object(
            'first', ranges.first, 'last', ranges.last, 'node', ranges.node, 'epoch', ranges.epoch
        ) order by ranges.first), '[]')
    )
    from (
        select min(placed.bucket) as first, max(placed.bucket) as last, placed.node, placed.epoch
        from (
            select bucket.*, bucket.bucket - row_number() over (partition by bucket.node, bucket.epoch order by bucket.bucket) as island
            from agui_internal.bucket as bucket
        ) as placed
        group by placed.node, placed.epoch, placed.island
    ) as ranges
$$;

comment on function agui.cluster_map is
    'Which node of the cluster has which buckets (agui.bucket), as this node knows it: {"node": its own '
    'name, "buckets": [{"first", "last", "node", "epoch"}, …]}. Of two maps the greater epoch of a '
    'bucket is the newer one. A database that is no node has a null and an empty list.';

-- route: cluster
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

comment on procedure agui.join_cluster is
    'Makes the database a node of a cluster. map is agui.cluster_map() of another node; null: the '
    'database is the first node, and has all threads. erasure_salt is the one of the first node '
    '(agui_internal.erasure_salt), so that erased threads are recognized on each node. From then on a '
    'call for a thread that another node has fails with UI027. For the owner. '
    'Errors: 55000 the database is another node, or has threads that the map gives to others.';

-- route: cluster
create or replace procedure agui.leave_cluster()
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    own constant text := (select node.name from agui_internal.node as node);
begin
    if not pg_try_advisory_xact_lock(agui_internal.move_lock_id()) then
        raise exception using
            errcode = '55000',
            message = format('a move of the cluster is in progress on node "%s"', own),
            hint = 'Call agui.leave_cluster() again when it has ended.';
    end if;
    -- Behind this lock no step of an interrupted move is left.
    perform agui_internal.wait_for_lock(agui_internal.step_lock_id(), format('node "%s" of the cluster', own));
    -- An empty node stays one: a program that has not heard of the moves would begin threads here.
    if exists (select from agui_internal.bucket as placed where placed.node is distinct from own)
        or exists (select from agui_internal.moved_thread as moved where moved.node is distinct from own)
    then
        raise exception using
            errcode = '55000',
            message = format('other nodes have threads of the cluster that node "%s" does not have', own),
            hint = 'Move all buckets to the node that is to stay ("pgagui cluster move"), leave the cluster there, and drop the other databases.';
    end if;
    delete from agui_internal.moved_thread;
    delete from agui_internal.bucket;
    delete from agui_internal.pinned_scope;
    delete from agui_internal.node;
    perform agui_internal.set_node(null);
end
$$;

comment on procedure agui.leave_cluster is
    'Makes the database an ordinary one again, if it has all buckets and threads of the cluster. For the '
    'owner. Errors: 55000 other nodes have some, or a move is in progress; 55P03 a step of an interrupted move is '
    'not committed yet.';

-- role: maintainer; route: each node
create or replace function agui.set_setting(name text, value text)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    setting agui_internal.setting;
    wanted  numeric;
begin
    perform agui_internal.refuse_unless_operator('change a setting');
    select stored.* into setting
    from agui_internal.setting as stored
    where stored.name = set_setting.name;
    if not found then
        raise exception using
            errcode = '22023',
            message = format('unknown setting "%s"', name),
            hint = case
                when exists (select from agui_internal.known_settings() as known where known.name = set_setting.name)
                    then 'Its row is missing, for example after a restore without data. Run "pgagui migrate up" to add it.'
                else format('The settings are: %s.', (select string_agg(known.name, ', ' order by known.name) from agui_internal.known_settings() as known))
            end;
    end if;
    begin
        wanted := case
            when set_setting.value is null then setting.default_value
            when setting.unit = 'seconds' then extract(epoch from set_setting.value::interval)
            when setting.unit = 'bytes' then pg_size_bytes(set_setting.value)
            else set_setting.value::numeric
        end;
    exception
        when data_exception then
            raise exception using
                errcode = '22023',
                message = format('setting "%s": "%s" is not a value in %s', name, set_setting.value, setting.unit),
                hint = case setting.unit
                    when 'seconds' then 'Use an interval, for example "90 seconds" or "5 minutes".'
                    when 'bytes' then 'Use a size, for example "16 MB".'
                    else 'Use a number.'
                end;
    end;
    if wanted not between setting.min_value and setting.max_value then
        raise exception using
            errcode = '22023',
            message = format('setting "%s": %s is out of range; it must be between %s and %s %s',
                name, set_setting.value, setting.min_value, setting.max_value, setting.unit);
    end if;
    update agui_internal.setting as stored
    set value = wanted
    where stored.name = set_setting.name;
end
$$;

comment on function agui.set_setting is
    'Changes a setting of this database (agui.setting) for all later transactions. The value is an '
    'interval if the unit is seconds, a size such as "16 MB" if it is bytes, otherwise a number; '
    'null restores the default. Requires agui_maintainer and, while row-level security is on, an '
    'operator. '
    'Errors: 22023 unknown setting or invalid value.';

-- route: each node
create or replace procedure agui.disable_row_security()
language sql
set search_path = pg_catalog, pg_temp
as $$
    select agui_internal.set_row_security(false)
$$;

comment on procedure agui.disable_row_security is
    'Turns row-level security off: every role that may read or write can do so in all scopes. The '
    'mappings of roles are kept for the next agui.enable_row_security(). For the owner.';

-- route: each node
create or replace procedure agui.enable_row_security()
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    unmapped text;
begin
    perform agui_internal.set_row_security(true);

    select string_agg(quote_ident(role.rolname), ', ' order by role.rolname) into unmapped
    from pg_roles as role
    where role.rolcanlogin
        and pg_has_role(role.oid, 'agui_reader', 'usage')
        and not agui_internal.is_exempt(role.rolname)
        and not exists (select from agui_internal.tenant as tenant where tenant.role_name = role.rolname);
    if unmapped is not null then
        raise warning using
            message = format('roles without a scope, which can see and change no threads: %s', unmapped),
            hint = 'Map each with agui.map_tenant, agui.map_pool or agui.map_operator. The jobs need an operator.';
    end if;
end
$$;

comment on procedure agui.enable_row_security is
    'Turns row-level security on: from now on a role sees and changes only the threads of the '
    'scope that it is mapped to (agui.map_tenant, agui.map_pool, agui.map_operator), and a role '
    'without a mapping none. Reads treat threads of other scopes as missing; changes of them fail '
    'with 42501. Superusers, roles with BYPASSRLS and the owner are exempt, as usual in '
    'PostgreSQL. The call waits for transactions in progress on the tables and blocks others '
    'behind it. "pgagui migrate up --rls" waits only briefly and retries. '
    'agui.disable_row_security() reverts it. For the owner.';

-- route: each node
create or replace function agui.map_operator(role_name name)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
    select agui_internal.map_role(role_name, null, false, true)
$$;

comment on function agui.map_operator is
    'Maps a role to all scopes, present and future. Use it for the role of the jobs, of a recorder '
    'that serves all tenants, and of support staff. For the owner. '
    'Errors: 42704 unknown role.';

-- route: each node
create or replace function agui.map_pool(role_name name)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
    select agui_internal.map_role(role_name, null, true, false)
$$;

comment on function agui.map_pool is
    'Maps a role that works for many scopes and is trusted to name the right one. While row-level '
    'security is on, the role sees and changes the threads of the scope in the setting agui.scope, '
    'for example after select set_config(''agui.scope'', ''acme'', true), which is valid until the '
    'transaction ends. If the setting is missing or empty, the role sees no threads. For the owner. '
    'Errors: 42704 unknown role.';

-- route: each node
create or replace function agui.map_tenant(role_name name, scope text)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    if scope is null then
        raise exception using
            errcode = '22023',
            message = format('role "%s" cannot be mapped to a null scope', role_name),
            hint = 'agui.map_operator gives a role all scopes; agui.unmap_role takes them away.';
    end if;
    perform agui_internal.refuse_scope_collision(scope);
    perform agui_internal.map_role(role_name, scope, false, false);
end
$$;

comment on function agui.map_tenant is
    'Maps a role to a scope. While row-level security is on (agui.enable_row_security), the role '
    'sees and changes only the threads of this scope. The mapping applies to the role itself, '
    'logged in or set with SET ROLE, and not to its members. A role has one mapping; the last call '
    'wins. What the role may do with its threads depends on agui_reader, agui_writer, agui_worker '
    'and agui_maintainer. For the owner. '
    'Errors: UI012 another scope has the same key, 22023 the scope is null, 42704 unknown role.';

-- route: each node
create or replace function agui.unmap_role(role_name name)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    delete from agui_internal.tenant as tenant
    where tenant.role_name = unmap_role.role_name;
    return found;
end
$$;

comment on function agui.unmap_role is
    'Removes the mapping of a role. While row-level security is on, the role sees no threads. The '
    'role does not need to exist any more. Returns whether it had a mapping. For the owner.';
