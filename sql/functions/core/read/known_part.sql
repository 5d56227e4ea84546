create or replace function agui_internal.known_part(thread_key uuid, kind text, body text)
returns int
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
begin
    return (
        select part.part_no
        -- The offset keeps the other conditions from the choice of the index.
        from (
            select *
            from agui.input_part as part
            where part.print = agui_internal.part_print(
                uuid_send(known_part.thread_key) || convert_to(known_part.kind, 'UTF8'), known_part.body
            )
            offset 0
        ) as part
        where part.thread_key = known_part.thread_key
            and part.kind = known_part.kind
            and part.body::text = known_part.body
        limit 1
    );
end
$$;

comment on function agui_internal.known_part(uuid, text, text) is
    'The number of the part of the inputs of a thread (agui.input_part) with this text, byte for byte; '
    'null: there is none.';

revoke execute on function agui_internal.known_part(uuid, text, text) from public;
