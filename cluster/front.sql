-- Makes this database a front of a cluster of pgagui: the schema agui has the functions of the nodes, and a call goes to the
-- node of its thread. Written by "pgagui cluster front". Run it as a superuser, in a database without a store:
-- PL/Proxy is a language that only superusers create functions in. Run a newer one over it after an upgrade of the nodes,
-- and when nodes were added or have other addresses: it creates all of it from scratch, and drops what depends on it.
begin;

set local search_path = pg_catalog, pg_temp;
set local check_function_bodies = off;
set local client_min_messages = warning;

do $do$
begin
    if to_regnamespace('agui') is not null and to_regnamespace('agui_front') is null then
        raise exception 'this database has a schema agui that is no front'
            using hint = 'Use an empty database.';
    end if;
end
$do$;

create schema if not exists agui;
create schema if not exists agui_front;
create extension if not exists plproxy with schema public;
drop schema agui, agui_front cascade;
create schema agui;
create schema agui_front;
comment on schema agui is 'The functions of the cluster of pgagui whose front this database is.';
comment on schema agui_front is 'How the front of pgagui carries calls to the nodes. Not an interface.';

create table agui_front.node (name text primary key);
create table agui_front.bucket (bucket int primary key, node text not null references agui_front.node, epoch bigint not null);
create table agui_front.pinned_scope (scope_hash bytea primary key, bucket int not null references agui_front.bucket);
comment on table agui_front.node is 'The nodes of the cluster. The server agui_NAME has the address of each.';
comment on table agui_front.bucket is 'Which node has which bucket, as far as the front knows. A node that has it no longer says so, and the front corrects its copy.';
comment on table agui_front.pinned_scope is 'Scopes whose threads are all in one bucket, when this was written. Calls for one that is missing take a call more.';

create function agui_front.server_of(node text) returns text language sql immutable
return 'agui_' || $1;

-- One call of a node.
create function agui_front.cluster_map(text) returns json language plproxy security definer as $front$
    cluster agui_front.server_of($1);
    run on 0;
    select * from agui.cluster_map();
$front$;

-- In PL/pgSQL, which keeps its plans.
create function agui_front.node_of(scope text, thread_id text) returns text language plpgsql stable as $front$
declare
    found_node text;
begin
    select placed.node into found_node
    from agui_front.bucket as placed
    where placed.bucket = coalesce(
        (
            select pinned.bucket
            from agui_front.pinned_scope as pinned
            where pinned.scope_hash = substring(uuid_send(agui.thread_key(node_of.scope, node_of.thread_id)) for 8)
        ),
        agui.bucket(node_of.scope, node_of.thread_id)
    );
    if not found then -- of a null: a node says what is wrong with it
        select min(node.name) into found_node from agui_front.node as node;
    end if;
    return found_node;
end
$front$;

create function agui_front.node_of_all(caller text, scopes text[], scope text, thread_ids text[]) returns text language plpgsql stable as $front$
declare
    nodes text[] := array(
        select distinct agui_front.node_of(coalesce(of.scope, node_of_all.scope, ''), of.thread_id) as node
        from unnest(thread_ids, scopes) as of (thread_id, scope)
        order by node
    );
begin
    if cardinality(nodes) > 1 then
        raise exception using
            errcode = '0A000',
            message = format('%s: the threads are on several nodes of the cluster (%s), and a front calls one', caller, array_to_string(nodes, ', ')),
            hint = 'Call it once for the threads of each node: agui_front.node_of(scope, thread_id) names it.';
    end if;
    return coalesce(nodes[1], agui_front.node_of('', ''));
end
$front$;

-- A write commits on its node, whatever the transaction here does. So it has to be all of the transaction.
create function agui_front.begin_write(caller text) returns void language plpgsql volatile as $front$
declare
    begun  constant timestamptz := transaction_timestamp();
    portal record;
    reason text;
    is_in_block boolean;
begin
    -- With the extended protocol there is a portal for the statement. The message that makes it begins the transaction, or
    -- the one that prepared the statement did. That one is not to be seen if it gave no name: then nothing is known.
    select held.creation_time, held.statement into portal from pg_cursors as held where held.name = '';
    is_in_block := case
        when portal.creation_time is null then statement_timestamp() <> begun
        else portal.creation_time <> begun
            and exists (select from pg_prepared_statements as prepared where prepared.statement = portal.statement and prepared.prepare_time <> begun)
    end;
    if current_setting('agui_front.wrote', true) = 'on' then
        reason := 'the transaction has another write through the front';
    elsif pg_current_xact_id_if_assigned()::text <> coalesce(current_setting('agui_front.learned', true), '') then
        reason := 'the transaction has written to this database';
    elsif is_in_block then
        reason := 'a transaction is open';
    end if;
    if reason is not null then
        raise exception using
            errcode = '25001',
            message = format('%s: %s, and a write through a front commits by itself', caller, reason),
            hint = 'Call it as a statement of its own, outside of BEGIN and COMMIT; or connect to the node of the thread.';
    end if;
    perform set_config('agui_front.wrote', 'on', true);
end
$front$;

-- Takes over what a node knows better. Not where that could make others wait or fail: then another call does it.
create function agui_front.learn(of_node text) returns void language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $front$
begin
    if current_setting('transaction_read_only') = 'on' or current_setting('transaction_isolation') <> 'read committed' then
        return;
    end if;
    update agui_front.bucket as placed
    set node = newer.node, epoch = newer.epoch
    from (
        select held.bucket, known.node, known.epoch
        from json_to_recordset(agui_front.cluster_map(of_node) -> 'buckets') as known (first int, last int, node text, epoch bigint)
        join agui_front.bucket as held on held.bucket between known.first and known.last and held.epoch < known.epoch
        join agui_front.node as node on node.name = known.node
        for update of held skip locked
    ) as newer
    where placed.bucket = newer.bucket;
    if found then
        perform set_config('agui_front.learned', pg_current_xact_id()::text, true);
    end if;
end
$front$;

-- Before a call of the next node. While a thread is copied, each of two nodes names the other one.
create function agui_front.pause(try int) returns void language sql volatile as $front$
    select pg_sleep(least(0.002 * 2 ^ least(try, 10), 0.1)) where try > 1
$front$;

-- What to do about an error of a node: call another node, which it returns, or raise the error as the node did. Null: the thread is
-- unknown, and the session wants no error of that (agui.unknown_thread).
create function agui_front.next_node(of_node text, begun timestamptz, try int, reads boolean, state text, message text, detail text, hint text)
returns text language plpgsql volatile as $front$
declare
    place json;
begin
    message := regexp_replace(message, '^[^\n]*?: \[[^\]\n]*\] REMOTE ERROR: ', '');
    detail := regexp_replace(detail, '^Remote detail: ', '');
    hint := regexp_replace(hint, '^Remote hint: ', '');
    if state = 'UI001' and reads and current_setting('agui.unknown_thread', true) = 'empty' then
        return null;
    elsif state = 'UI027' and clock_timestamp() < begun + interval '10 seconds' then
        place := detail::json -> 0;
        if not exists (select from agui_front.node as node where node.name = place ->> 'node') then
            raise exception using
                errcode = '55000',
                message = format('the front does not know node "%s", which has thread "%s"', place ->> 'node', place ->> 'threadId'),
                hint = 'Run what "pgagui cluster front" prints, with a description of all nodes.';
        end if;
        if not (place ->> 'ofThread')::boolean then
            perform agui_front.learn(of_node);
        end if;
        perform agui_front.pause(try);
        return place ->> 'node';
    end if;
    raise exception using errcode = state, message = message, detail = coalesce(detail, ''), hint = coalesce(hint, '');
end
$front$;
