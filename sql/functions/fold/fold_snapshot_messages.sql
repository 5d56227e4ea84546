-- MESSAGES_SNAPSHOT. A message that the snapshot names takes the snapshot's version in its present place, new ones follow in the
-- snapshot's order, the others go. Activities and reasoning often live in the client only: they stay unless the snapshot holds any of
-- their role, and for activities its metadata may say instead which types it speaks for.
--
-- Several messages with an id that the snapshot names are one message from then on, at several places: they get one number.
create or replace function agui.fold_snapshot_messages(before agui.fold, event json)
returns agui.fold
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $function$
declare
    result      agui.fold := before;
    bodies      constant text[] := agui.fold_message_list(event -> 'messages');
    authority   constant json := event -> 'metadata' -> '@ag-ui/client';
    spoken_for  constant json := case when json_typeof(authority) = 'object' then authority -> 'authoritativeActivityTypes' end;
    owned_types text[];
begin
    -- Types that make no sense: it speaks for none.
    if authority is not null and (json_typeof(authority) <> 'object' or spoken_for is not null) then
        owned_types := '{}';
        if json_typeof(spoken_for) = 'array' then
            if not exists (select from json_array_elements(spoken_for) as type where json_typeof(type.value) <> 'string') then
                owned_types := array(select agui.json_string_token(type.value::text) from json_array_elements(spoken_for) as type);
            end if;
        end if;
    end if;

    with named as (
        select
            case
                when json_typeof(message.body::json -> 'id') = 'string' then agui.json_string_token((message.body::json -> 'id')::text)
            end as key,
            agui.json_string_text((message.body::json -> 'role')::text) as role,
            agui.json_unguard(message.body) as body,
            message.position
        from unnest(bodies) with ordinality as message (body, position)
    ),
    present as (
        select
            message.*,
            case
                when message.role = 'activity' and json_typeof(spoken_for) = 'null' then false
                when message.role = 'activity' and owned_types is not null
                    then (agui.json_string_token((agui.json_guard(message.body)::json -> 'activityType')::text) = any (owned_types))
                        is not true
                when message.role in ('activity', 'reasoning')
                    then message.role <> all (array(select named.role from named where named.role in ('activity', 'reasoning')))
                else false
            end as stays
        from unnest(agui.fold_keys(before.message_ids, before.bodies), before.roles, before.bodies, before.message_nos)
            with ordinality as message (key, role, body, message_no, position)
    ),
    -- One partition an id: its present messages first, then those of the snapshot, the last of which counts.
    message as (
        select
            either.*,
            count(*) filter (where not is_new) over same_id as places,
            bool_or(is_new) over same_id as is_named,
            first_value(body) over same_id as first_body,
            first_value(message_no) over same_id as first_no,
            first_value(position) over same_id as first_position,
            last_value(body) over same_id as last_body,
            last_value(role) over same_id as last_role
        from (
            select false as is_new, key, role, body, message_no, stays, position
            from present
            union all
            select true, key, role, body, null, null, position
            from named
        ) as either
        window same_id as (
            partition by key, case when key is null then position * case when is_new then 1 else -1 end end
            order by is_new, position
            rows between unbounded preceding and unbounded following
        )
    ),
    version as (
        select
            is_new,
            position,
            key,
            case
                when is_new or not is_named then body
                when says_the_same then first_body
                else last_body
            end as body,
            case when is_new or not is_named then role else last_role end as role,
            case
                when not is_named then message_no
                when says_the_same and first_no > 0 then first_no
                when places > 1 then least((select min(no) from unnest(before.message_nos) as no), 0) - first_position::int
            end as message_no
        from message
        cross join lateral (
            select case
                when is_new or not is_named then false
                when first_body = last_body then true
                else agui.json_to_jsonb(first_body)::text = agui.json_to_jsonb(last_body)::text
            end as says_the_same
        ) as compared
        where case when is_new then places = 0 else is_named or stays end
    )
    select
        coalesce(array_agg(message_no order by is_new, position), '{}'),
        coalesce(array_agg(agui.json_string_text(key) order by is_new, position), '{}'),
        coalesce(array_agg(role order by is_new, position), '{}'),
        coalesce(array_agg(body order by is_new, position), '{}')
    into result.message_nos, result.message_ids, result.roles, result.bodies
    from version;

    return result;
end
$function$;

comment on function agui.fold_snapshot_messages(agui.fold, json) is
    'The fold after a MESSAGES_SNAPSHOT event (guarded JSON).';

revoke execute on function agui.fold_snapshot_messages(agui.fold, json) from public;
