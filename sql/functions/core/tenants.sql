-- The keys of threads, and row-level security: how a role sees the threads of its own scopes only.
-- docs/security.md says how to use it.
--
--   thread_key     hash of the scope (64 bits) │ hash of scope and thread id (64 bits)
--                  so the threads of a scope are one range of keys
--   agui_internal.tenant     the range of each mapped role; that of a pool comes from agui.scope
--   tables and views         a policy: the key lies in the range of agui_internal.caller
--   functions                own_key and its like refuse (42501) before anything is looked up;
--                            visible_key and its like find nothing
--
-- - Functions of the schema agui and steps of jobs have the rights of the owner, to which no policy
--   applies. So each first checks its caller. test/tenants_catalog_test.go lists the check of each,
--   and fails for a function that is not listed. A procedure that commits runs with the rights of
--   its caller: policies apply to it, and its steps check.
-- - Reading functions are no invokers. The planner takes the range for 1/200 of a table, and chose
--   plans that read all runs of a thread for each of them.
-- - The caller is the role that is set, or else logged in: current_user is the owner here.
-- - In a security-restricted operation (autovacuum, ANALYZE, REFRESH) the code of one role runs in
--   the session of another. Only a command notices that, so checked_caller_role executes UNLISTEN,
--   which does nothing otherwise. Commands do not run in parallel queries, so what needs its caller
--   is not parallel safe. In a trigger no role has all scopes.
-- - Off, it costs nothing: has_row_security() is a constant that the planner puts into each
--   statement. set_row_security replaces it, and sessions plan again. It is stable: the value of an
--   immutable function would stay in plans.
-- - visible_key and the functions that it calls pin no search path, which would take a third of
--   their time. All names in them are qualified.
-- - Texts have no statistics, because EXPLAIN would show them. agui.erasure has salted keys, whose
--   first half is the scope's as well.
--
-- `go test ./test -run Tenant` lets two tenants call every function at random.

create or replace function agui_internal.map_role(role_name name, scope text, is_pool boolean, is_operator boolean)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    least_key    constant uuid := case when is_operator then '00000000-0000-0000-0000-000000000000' else agui_internal.first_key(scope) end;
    greatest_key constant uuid := case when is_operator then 'ffffffff-ffff-ffff-ffff-ffffffffffff' else agui_internal.last_key(scope) end;
begin
    if not exists (select from pg_roles as role where role.rolname = map_role.role_name) then
        raise exception using
            errcode = '42704',
            message = format('role "%s" does not exist, so it cannot be mapped', role_name),
            hint = 'A mapping is for one role, by its exact name. Create the role first.';
    end if;
    insert into agui_internal.tenant as tenant (role_name, scope, is_pool, is_operator, low, high)
    values (map_role.role_name, map_role.scope, map_role.is_pool, map_role.is_operator, least_key, greatest_key)
    on conflict on constraint tenant_pkey do update
    set scope = excluded.scope,
        is_pool = excluded.is_pool,
        is_operator = excluded.is_operator,
        low = excluded.low,
        high = excluded.high;
    if agui_internal.is_exempt(role_name) then
        raise warning using
            message = format('row-level security does not apply to role "%s", whatever it is mapped to', role_name),
            hint = 'It is a superuser, has BYPASSRLS, or has the rights of the owner of the tables. Use another role.';
    end if;
end
$$;

comment on function agui_internal.map_role is
    'Maps a role to a scope, as a pool, or as an operator, in place of its previous mapping. '
    '42704: there is no such role.';

create or replace function agui_internal.monitored_keys(out low uuid, out high uuid)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    caller constant name := agui_internal.checked_caller_role();
begin
    if agui_internal.has_row_security() and not pg_has_role(caller, 'pg_monitor', 'usage') and not agui_internal.is_exempt(caller) then
        select * into low, high from agui_internal.own_keys();
        return;
    end if;
    low := '00000000-0000-0000-0000-000000000000';
    high := 'ffffffff-ffff-ffff-ffff-ffffffffffff';
end
$$;

comment on function agui_internal.monitored_keys is
    'The range of thread keys that agui.stats, agui.lag and agui.consumers count for the calling role: all keys '
    'without row-level security and for members of pg_monitor, else those that the role may see; '
    'nulls: none.';

create or replace function agui_internal.own_key(thread_key uuid)
returns uuid
language sql
stable
return case
    when agui_internal.has_row_security()
        then coalesce(agui_internal.visible_key(thread_key), agui_internal.refuse_foreign(thread_key, null))
    else thread_key
end;

comment on function agui_internal.own_key is
    'The key of a thread, which need not exist, that the calling role may change. A function with '
    'the rights of the owner that writes calls this one, or agui_internal.own_thread_key, before '
    'it looks anything up. 42501: row-level security is on, and the key belongs to another scope.';

create or replace function agui_internal.own_keys_in(scope text, out low uuid, out high uuid)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
    select own.low, own.high into low, high from agui_internal.own_keys() as own;
    if scope is not null and low is not null then  -- greatest and least leave nulls out
        low := greatest(low, agui_internal.first_key(scope));
        high := least(high, agui_internal.last_key(scope));
        -- Not an empty range: between its ends there may be salted keys (agui_internal.erased_range).
        if low > high then
            low := null;
            high := null;
        end if;
    end if;
end
$$;

comment on function agui_internal.own_keys_in is
    'The range of thread keys of a scope (null: of all scopes) that the calling role may change; nulls: '
    'none.';

create or replace function agui_internal.refuse_foreign_scope(scope text, change text)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    if scope is null then
        perform agui_internal.refuse_unless_operator(change);
    else
        perform agui_internal.own_thread_key(scope, '');
    end if;
end
$$;

comment on function agui_internal.refuse_foreign_scope is
    'Raises 42501 for a change that concerns a scope, or (null) all scopes, if row-level security is on and '
    'the calling role does not have them. change: what the role may not do, for the message.';

create or replace function agui_internal.refuse_unless_operator(change text)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if agui_internal.has_row_security() and (select own.high from agui_internal.own_keys() as own) is distinct from 'ffffffff-ffff-ffff-ffff-ffffffffffff' then
        raise exception using
            errcode = '42501',
            message = format('role "%s" may not %s, because that affects all scopes', agui_internal.caller_role(), change),
            hint = 'Row-level security is on. agui.map_operator gives a role all scopes.';
    end if;
end
$$;

comment on function agui_internal.refuse_unless_operator is
    'Raises 42501 for a change that affects all scopes if row-level security is on and the calling '
    'role does not have all of them.';

create or replace function agui_internal.own_keys(out low uuid, out high uuid)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    caller constant name := agui_internal.checked_caller_role();
begin
    if agui_internal.has_row_security() then
        select coalesce(tenant.low, agui_internal.pool_first_key()), coalesce(tenant.high, agui_internal.pool_last_key())
        into low, high
        from agui_internal.tenant as tenant
        where tenant.role_name = caller;
        if found or not agui_internal.is_exempt(caller) then
            return;
        end if;
    end if;
    low := '00000000-0000-0000-0000-000000000000';
    high := 'ffffffff-ffff-ffff-ffff-ffffffffffff';
end
$$;

comment on function agui_internal.own_keys is
    'The range of thread keys that the calling role may change: all without row-level security; '
    'nulls: none. For functions with the rights of the owner that search all scopes. For a single '
    'key, agui_internal.own_key gives a better error.';

create or replace function agui_internal.pool_first_key()
returns uuid
language plpgsql
stable
parallel safe
-- Every statement of a pool calls it for each table, and pinning the search path would take longer
-- than the rest. In PL/pgSQL, because an inlined function is prepared by each statement, those of
-- other roles too.
as $$
begin
    -- After a transaction that set it locally, the setting reads '', so '' counts as unset.
    return case
        when pg_catalog.current_setting('agui.scope', true) operator(pg_catalog.<>) ''
            then agui_internal.first_key(pg_catalog.current_setting('agui.scope', true))
    end;
end
$$;

comment on function agui_internal.pool_first_key is
    'The smallest possible key of a thread of the scope in the setting agui.scope; null: the '
    'setting is not set.';

create or replace function agui_internal.pool_last_key()
returns uuid
language plpgsql
stable
parallel safe
-- As in agui_internal.pool_first_key.
as $$
begin
    return case
        when pg_catalog.current_setting('agui.scope', true) operator(pg_catalog.<>) ''
            then agui_internal.last_key(pg_catalog.current_setting('agui.scope', true))
    end;
end
$$;

comment on function agui_internal.pool_last_key is
    'The greatest possible key of a thread of the scope in the setting agui.scope; null: the '
    'setting is not set.';

create or replace function agui_internal.own_thread_key(scope text, thread_id text)
returns uuid
language sql
stable
-- Inlined: without row-level security, and outside of a cluster, this is agui.thread_key.
return case
    when agui_internal.this_node() is not null then agui_internal.key_on_this_node(scope, thread_id, changes => true)
    when agui_internal.has_row_security()
        then coalesce(
            agui_internal.visible_key(agui.thread_key(scope, thread_id)),
            agui_internal.refuse_foreign(agui.thread_key(scope, thread_id), scope)
        )
    else agui.thread_key(scope, thread_id)
end;

comment on function agui_internal.own_thread_key is
    'agui.thread_key of a thread, which need not exist, that the calling role may change. 42501: '
    'row-level security is on, and the role does not have the scope; UI027: another node of the '
    'cluster has the thread.';

create or replace function agui_internal.refuse_scope_collision(scope text)
returns void
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
-- Planned once: a plan for each call would take longer than the call.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
    other text;
begin
    -- All threads in the range have the same scope, so the first one is sufficient.
    select thread.scope into other
    from agui.thread as thread
    where thread.thread_key >= agui_internal.first_key(refuse_scope_collision.scope)
        and thread.thread_key <= agui_internal.last_key(refuse_scope_collision.scope)
    order by thread.thread_key
    limit 1;
    if other <> scope then
        raise exception using
            errcode = 'UI012',
            message = format('scope "%s" has the same key as another scope', left(scope, 200)),
            hint = 'The two scopes have the same 64-bit hash, so row-level security could not separate them. Use another scope.';
    end if;
end
$$;

comment on function agui_internal.refuse_scope_collision is
    'Raises UI012 if the hash of a scope equals that of another scope that has threads: both would '
    'be one range of thread keys.';

create or replace function agui_internal.set_row_security(wanted boolean)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    protected record;
begin
    for protected in
        select
            owned.name,
            kept.key,
            kept.range,
            class.relrowsecurity,
            exists (select from pg_policy where polrelid = class.oid and polname = 'agui_scope') as has_policy,
            exists (select from pg_policy where polrelid = class.oid and polname <> 'agui_scope') as has_others
        from agui_internal.installed() as installed
        cross join unnest(installed.objects) as object (key)
        cross join lateral (select split_part(object.key, ' ', 2) as name where object.key like 'table %') as owned
        join pg_class as class
            on class.oid = to_regclass(owned.name)
        join pg_attribute as attribute
            on attribute.attrelid = class.oid and not attribute.attisdropped
        join (values
            ('thread_key', 'thread_key', 'agui_internal.caller'),
            ('erased_key', 'erased_key', 'agui_internal.erased_caller'),
            -- A row for one scope or for all: every role that has a scope sees the latter.
            (
                'is_all', 'case when is_all then (select own.low from agui_internal.caller as own) else agui_internal.first_key(scope) end',
                'agui_internal.caller'
            )
        ) as kept (by, key, range)
            on kept.by = attribute.attname
        order by owned.name
    loop
        if wanted and not protected.has_policy then
            -- Each half is evaluated once for each statement, and both are one condition of an
            -- index.
            execute format(
                'create policy agui_scope on %1$s for select using ('
                    '%2$s >= (select own.low from %3$s as own) and %2$s <= (select own.high from %3$s as own))',
                protected.name, protected.key, protected.range
            );
        elsif not wanted and protected.has_policy then
            execute format('drop policy agui_scope on %s', protected.name);
        end if;
        if wanted and not protected.relrowsecurity then
            execute format('alter table %s enable row level security', protected.name);
        elsif not wanted and protected.has_policy and protected.relrowsecurity and not protected.has_others then
            execute format('alter table %s disable row level security', protected.name);
        end if;
    end loop;
    if agui_internal.has_row_security() <> wanted then
        execute format(
            'create or replace function agui_internal.has_row_security() returns boolean language sql stable parallel safe return %s',
            wanted::text
        );
    end if;
end
$$;

comment on function agui_internal.set_row_security is
    'Turns row-level security on or off: the policy agui_scope on each table of the install that '
    'distinguishes scopes, and agui_internal.has_row_security(). The function changes only what '
    'differs, so it also repairs an incomplete state.';

create or replace function agui_internal.visible_thread_key(scope text, thread_id text)
returns uuid
language sql
stable
-- Inlined, as agui_internal.own_thread_key.
return case
    when agui_internal.this_node() is not null then agui_internal.key_on_this_node(scope, thread_id, changes => false)
    when agui_internal.has_row_security() then agui_internal.visible_key(agui.thread_key(scope, thread_id))
    else agui.thread_key(scope, thread_id)
end;

comment on function agui_internal.visible_thread_key is
    'The key by which a function that reads finds a thread, which need not exist: agui.thread_key, '
    'or null if row-level security is on and the calling role does not have the scope. So a thread '
    'of another scope counts as missing. UI027: another node of the cluster has the thread.';

create or replace function agui_internal.key_on_this_node(scope text, thread_id text, changes boolean)
returns uuid
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    key  constant uuid := agui.thread_key(scope, thread_id);
    node text;
begin
    if agui_internal.visible_key(key) is null then
        return case when changes then agui_internal.refuse_foreign(key, scope) end;
    end if;
    if thread_id = '' then
        return key;  -- no thread: the caller asks for the scope
    end if;
    -- What changes a thread keeps it here until its transaction ends. What reads it sees it whole, if
    -- its snapshot sees that it is here.
    node := case when changes then agui_internal.fenced_node_of(key) else agui_internal.node_of(key) end;
    if node <> agui_internal.this_node() then
        return agui_internal.refuse_moved(json_build_array(agui_internal.place_of_thread(key, scope, thread_id)));
    end if;
    return key;
end
$$;

comment on function agui_internal.key_on_this_node is
    'What agui_internal.own_thread_key (changes) and agui_internal.visible_thread_key return on a node of '
    'a cluster. UI027: another node has the thread.';

-- route: front
create or replace function agui.thread_key(scope text, thread_id text)
returns uuid
language sql
immutable
strict
parallel safe
-- The text is converted by way of its bytea spelling, which is IMMUTABLE; convert_to is not. The
-- NUL byte, which text cannot contain, distinguishes ('a', 'bc') from ('ab', 'c').
return encode(
    substring(sha256(replace(scope, '\', '\\')::bytea) for 8)
    || substring(sha256(replace(scope, '\', '\\')::bytea || '\x00'::bytea || replace(thread_id, '\', '\\')::bytea) for 8),
    'hex'
)::uuid;

comment on function agui.thread_key is
    'Computes the key of the rows of a thread: 64 bits of SHA-256 of the scope, then 64 bits of '
    'SHA-256 of scope and thread id. If two threads have the same key, every call that names the '
    'second one fails with UI012.';

create or replace function agui_internal.visible_key(thread_key uuid)
returns uuid
language plpgsql
stable
security definer
-- Every append calls it, and pinning the search path would take a third of its time. So every name
-- is qualified.
as $$
declare
    caller pg_catalog.name;
    named  pg_catalog.text;  -- the scope that a pool names
begin
    if not agui_internal.has_row_security() then
        return thread_key;
    end if;
    caller := agui_internal.checked_caller_role();
    named := pg_catalog.current_setting('agui.scope', true);
    if named operator(pg_catalog.=) '' then  -- the value after a transaction that set it locally
        named := null;
    end if;
    perform
    from agui_internal.tenant as tenant
    where tenant.role_name operator(pg_catalog.=) caller
        and visible_key.thread_key operator(pg_catalog.>=) coalesce(tenant.low, agui_internal.first_key(named))
        and visible_key.thread_key operator(pg_catalog.<=) coalesce(tenant.high, agui_internal.last_key(named));
    if found or thread_key is not null and agui_internal.is_exempt(caller) then
        return thread_key;
    end if;
    return null;
end
$$;

comment on function agui_internal.visible_key is
    'The key of a thread, which need not exist; null if row-level security is on and the calling '
    'role does not have the scope of the thread. For functions with the rights of the owner, to '
    'which policies do not apply.';

create or replace function agui_internal.checked_caller_role()
returns name
language plpgsql
volatile
-- Every append calls it under row-level security, and pinning the search path would take a third of
-- its time. So every name is qualified.
as $$
declare
    caller constant pg_catalog.name := agui_internal.caller_role();
begin
    -- In a security-restricted operation PostgreSQL runs the code of the owner of a table, and the
    -- session is another role's: a superuser's in autovacuum. The code may have neither its scopes
    -- nor, as nothing tells who it is, those of its owner. Only commands notice such an operation.
    -- This one fails in it (42501) and does nothing elsewhere. It does not run in a parallel query,
    -- so neither does what calls this function.
    unlisten "pgagui has no caller in a security-restricted operation";
    -- A trigger may be code of another role, too, and an action of a foreign key runs as the owner
    -- of its table.
    if pg_catalog.pg_trigger_depth() operator(pg_catalog.>) 0 then
        perform agui_internal.refuse_all_scopes(caller);
    end if;
    -- A front calls as one role for all who call it, unless it was made under row-level security.
    if pg_catalog.current_setting('agui.front', true) operator(pg_catalog.=) 'calls as one role' and agui_internal.has_row_security() then
        raise exception using
            errcode = '42501',
            message = 'the front was made before row-level security was turned on, so this node cannot tell who calls',
            hint = 'Run what "pgagui cluster front" prints now in the database of the front.';
    end if;
    return caller;
end
$$;

comment on function agui_internal.checked_caller_role is
    'agui_internal.caller_role, for a decision about what it may see. 42501: PostgreSQL runs code of '
    'another role in its session, in a security-restricted operation (autovacuum, ANALYZE, REINDEX, '
    'REFRESH MATERIALIZED VIEW and their like), it has all scopes and this is a trigger, or a front '
    'carries the call that was made without row-level security.';

create or replace function agui_internal.refuse_all_scopes(caller name)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    if agui_internal.is_exempt(caller)
        or exists (
            select
            from agui_internal.tenant as tenant
            where tenant.role_name = caller and tenant.is_operator
        )
    then
        raise exception using
            errcode = '42501',
            message = format('role "%s" has all scopes, but none of them in a trigger', caller),
            hint = 'Row-level security is on, and the trigger may be code of another role. Set a role that is mapped to one scope before the statement.';
    end if;
end
$$;

comment on function agui_internal.refuse_all_scopes is
    'Raises 42501 in a trigger if row-level security is on and the calling role has all scopes.';

create or replace function agui_internal.is_exempt(role_name name)
returns boolean
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    -- In PL/pgSQL, which caches the plan: under row-level security every call of a superuser gets
    -- here.
    perform
    from pg_roles as role
    join pg_class as protected
        on protected.oid = 'agui.thread'::regclass
    where role.rolname = is_exempt.role_name
        and (role.rolbypassrls or pg_has_role(role.oid, protected.relowner, 'usage'));
    return found;
end
$$;

comment on function agui_internal.is_exempt is
    'Whether PostgreSQL exempts a role from row-level security: a superuser, a role with '
    'BYPASSRLS, the owner of the tables and roles that have its rights.';

create or replace function agui_internal.has_row_security()
returns boolean
language sql
stable
parallel safe
-- The planner inlines the constant into the calling statements, so a check costs nothing while
-- row-level security is off. agui_internal.set_row_security replaces the function, and PostgreSQL
-- then replans these statements. With an immutable function it would not, and keep the value.
return false;

comment on function agui_internal.has_row_security is
    'Whether row-level security is on. agui.enable_row_security() and agui.disable_row_security() replace this function.';

create or replace function agui_internal.first_key(scope text)
returns uuid
language sql
immutable
strict
parallel safe
-- The part of the scope, as in agui.thread_key, without the part of the thread.
return encode(substring(sha256(replace(scope, '\', '\\')::bytea) for 8) || '\x0000000000000000'::bytea, 'hex')::uuid;

comment on function agui_internal.first_key is
    'The smallest possible key of a thread of a scope. The threads of a scope are one range of '
    'keys, up to agui_internal.last_key.';

create or replace function agui_internal.last_key(scope text)
returns uuid
language sql
immutable
strict
parallel safe
return encode(substring(sha256(replace(scope, '\', '\\')::bytea) for 8) || '\xffffffffffffffff'::bytea, 'hex')::uuid;

comment on function agui_internal.last_key is
    'The greatest possible key of a thread of a scope.';

create or replace function agui_internal.refuse_foreign(thread_key uuid, scope text)
returns uuid
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    refusal record;
begin
    if thread_key is null then
        return null;  -- the caller reports what is missing
    end if;
    select * into refusal from agui_internal.scope_refusal(thread_key, scope);
    raise exception using
        errcode = '42501',
        message = refusal.message,
        hint = refusal.hint;
end
$$;

comment on function agui_internal.refuse_foreign is
    'Raises 42501 with the text of agui_internal.scope_refusal: the calling role does not have the '
    'scope that it wants to change. Does nothing without a key.';

-- It names the role of the caller in a text.
-- check: none
create or replace function agui_internal.scope_refusal(thread_key uuid, scope text, out message text, out hint text)
language plpgsql
stable
security definer
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    tenant agui_internal.tenant;
begin
    select mapped.* into tenant
    from agui_internal.tenant as mapped
    where mapped.role_name = agui_internal.caller_role();
    message := format('role "%s" may not change %s', agui_internal.caller_role(), case
        when scope is null then format('the thread with key %s', thread_key)
        else format('threads of scope "%s"', left(scope, 200))
    end);
    hint := case
        when tenant.role_name is null then
            'Row-level security is on, and the role has no scope. Map it with agui.map_tenant, agui.map_pool or agui.map_operator.'
        when tenant.is_pool and nullif(current_setting('agui.scope', true), '') is null then
            'The role is a pool, and agui.scope is not set: select set_config(''agui.scope'', …, true) in the same transaction.'
        when tenant.is_pool then
            'The role is a pool, and agui.scope names another scope.'
        else
            'The role has another scope (pgagui: --scope NAME).'
    end;
end
$$;

comment on function agui_internal.scope_refusal is
    'The error text for a change in a scope that the calling role does not have (scope null: of '
    'the thread with a key). It reveals nothing about the contents of the scope.';

create or replace function agui_internal.caller_role()
returns name
language sql
stable
parallel safe
-- Inside of functions with the rights of the owner, current_user is the owner.
return case current_setting('role') when 'none' then session_user else current_setting('role')::name end;

comment on function agui_internal.caller_role is
    'The role that calls a function with the rights of the owner: the one set with SET ROLE, else '
    'the one that is logged in.';
