create or replace function agui_internal.store_input_parts(
    thread_key uuid,
    kind       text,
    guarded    text[],
    out part_nos int[],
    out bytes    bigint
)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    bodies constant text[] := array(
        select agui_internal.json_unguard(element.body)
        from unnest(guarded) with ordinality as element (body, place)
        order by element.place
    );
    -- So that long threads cost no more. What is older stays as it is, until snapshots are rebuilt.
    newest_messages constant int := 1000;
    beginning constant bytea := uuid_send(thread_key) || convert_to(kind, 'UTF8');
    last_no constant int := (
        select coalesce(max(part.part_no), 0)
        from agui.input_part as part
        where part.thread_key = store_input_parts.thread_key and part.kind = store_input_parts.kind
    );
begin
    loop
        part_nos := array(
            select agui_internal.known_part(thread_key, kind, element.body)
            from unnest(bodies) with ordinality as element (body, place)
            order by element.place
        );
        exit when array_position(part_nos, null) is null;
        insert into agui.input_part (thread_key, kind, part_no, print, bytes, message_id, body)
        select
            store_input_parts.thread_key, store_input_parts.kind, last_no + row_number() over (order by added.place), added.print,
            octet_length(added.guarded), agui_internal.message_id_of(store_input_parts.kind, added.guarded),
            added.body::json
        from (
            select distinct on (element.print, element.body collate "C") element.*
            from (
                select listed.place, agui_internal.part_print(beginning, listed.body) as print, listed.body, listed.guarded
                from rows from (unnest(bodies), unnest(guarded), unnest(part_nos)) with ordinality as listed (body, guarded, part_no, place)
                where listed.part_no is null
            ) as element
            order by element.print, element.body collate "C", element.place
        ) as added;
    end loop;
    if kind = 'message' then
        -- What an agent said comes back with the next input: from now on it is stored once.
        update agui.message_version as version
        set body = null, part_no = part.part_no
        from agui.input_part as part
        where part.thread_key = store_input_parts.thread_key and part.kind = 'message' and part.part_no > last_no
            and version.thread_key = store_input_parts.thread_key
            and version.message_no > (
                select max(newest.message_no) - newest_messages
                from agui.message_version as newest
                where newest.thread_key = store_input_parts.thread_key
            )
            and version.message_id = part.message_id
            and version.body::text = part.body::text;
    end if;
    bytes := (
        select coalesce(sum(pg_column_size(part.body) + 70), 0)
        from agui.input_part as part
        where part.thread_key = store_input_parts.thread_key and part.kind = store_input_parts.kind and part.part_no > last_no
    );
end
$$;

comment on function agui_internal.store_input_parts(uuid, text, text[]) is
    'Stores the parts of an input that its thread does not have yet, given in guarded JSON. Returns the '
    'numbers of all, in order, and the stored size of the new ones in bytes. Messages of snapshots that '
    'are the same as a new one point to it. The caller holds the row of the thread.';

revoke execute on function agui_internal.store_input_parts(uuid, text, text[]) from public;
