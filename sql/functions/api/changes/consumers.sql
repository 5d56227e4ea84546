create or replace function agui.consumers()
returns setof agui.consumer_place
language plpgsql
stable
security definer
rows 10
set search_path = pg_catalog, pg_temp
as $$
declare
    own    record;
    listed agui.consumer;
    low    uuid;
    high   uuid;
    place  agui_internal.change_place;
    counted bigint;
begin
    select * into own from agui_internal.monitored_keys();
    for listed in
        select known.*
        from agui.consumer as known
        where case
            when known.is_all then own.low = '00000000-0000-0000-0000-000000000000' and own.high = 'ffffffff-ffff-ffff-ffff-ffffffffffff'
            else agui_internal.first_key(known.scope) between own.low and own.high
        end
        order by known.is_all, known.scope, known.consumer
    loop
        low := case when listed.is_all then own.low else agui_internal.first_key(listed.scope) end;
        high := case when listed.is_all then own.high else agui_internal.last_key(listed.scope) end;
        begin
            place := agui_internal.place_of_position(listed.position);
            counted := 0;
            if place.is_in_first_reading then
                select count(*) into counted
                from (
                    select
                    from agui.run as run
                    where (run.thread_key, run.run_no) > (place.thread_key, place.run_no) and run.thread_key between low and high
                    limit 10000
                ) as unread;
                place.thread_key := '00000000-0000-0000-0000-000000000000';
                place.run_no := 0;
            end if;
            counted := least(10000, counted + (
                select count(*)
                from (
                    select from agui_internal.changed_after(place.changed_in, place.thread_key, place.run_no, 10000, low, high)
                    union all
                    select from agui_internal.erased_after(place.changed_in, place.thread_key, place.run_no, 10000, low, high)
                ) as changed
            ));
        exception
            when sqlstate 'UI024' then
                counted := null;
        end;
        return next row(
            case when not listed.is_all then listed.scope end, listed.consumer, listed.position, counted, counted is null, listed.created_at, listed.moved_at
        )::agui.consumer_place;
    end loop;
end
$$;

comment on function agui.consumers() is
    'Returns the consumers of the scopes that the role sees (those of all scopes only to a role that sees '
    'all, or is a member of pg_monitor), with their places and how many changes they are behind.';

revoke execute on function agui.consumers() from public;
