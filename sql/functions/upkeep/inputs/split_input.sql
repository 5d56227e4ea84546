create or replace function agui_internal.split_input(thread_key uuid, run_no int)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    -- A smaller value stays in the skeleton: the row of a part takes about as much.
    least_value constant int := 256;
    -- To parse takes about 22 bytes of memory for one of the text. If there is more, the input stays
    -- whole.
    most_bytes constant int := 16 * 1024 * 1024;
    body    bytea;
    known   record;  -- the messages that need not be parsed
    unknown bytea;   -- the text without known messages
    rest    text;    -- of that: what follows the last section
    member  record;
    split   record;
    stored  record;
    at      int;
    pieces    text[] := '{}';
    joints    jsonb := '[]';  -- the sections
    new_bytes bigint := 0;
begin
    select convert_to(given.input::text, 'UTF8') into body
    from agui.run_input as given
    where given.thread_key = split_input.thread_key and given.run_no = split_input.run_no and given.split_at is null;

    begin
        if octet_length(body) >= agui_internal.least_input_to_split() then
            select * into known from agui_internal.known_messages(thread_key, run_no, body);
            unknown := case
                when known.part_nos is null then body
                else overlay(body placing '' from known.first_at for known.rest_at - known.first_at)
            end;
        end if;
        if octet_length(unknown) <= most_bytes then
            rest := agui_internal.json_guard(convert_from(unknown, 'UTF8'));
            for member in
                select
                    case of_input.key when 'messages' then 'message' else of_input.key end as kind,
                    of_input.value
                from (
                    select *, count(*) over (partition by given.key) as times
                    from json_each(rest::json) with ordinality as given (key, value, place)
                ) as of_input
                where of_input.times = 1  -- readers take the last of several
                    and of_input.key in ('messages', 'state', 'tools', 'context')
                    and (
                        octet_length(of_input.value::text) >= least_value
                        or of_input.key = 'messages' and known.part_nos is not null
                    )
                order by of_input.place
            loop
                select * into split from agui_internal.input_parts_of(member.kind, member.value);
                continue when split.bodies is null;
                at := case
                    -- The known messages stood here.
                    when member.kind = 'message' and known.part_nos is not null
                        then length(rest) - length(agui_internal.json_guard(convert_from(substring(unknown from known.first_at - 1), 'UTF8'))) + 1
                    -- The text around the values stays as it is, so nothing is lost by where they are found.
                    else strpos(rest, member.value::text)
                end;
                continue when at = 0;
                select * into stored from agui_internal.store_input_parts(thread_key, member.kind, split.bodies);
                if member.kind = 'message' and known.part_nos is not null then
                    stored.part_nos := known.part_nos || stored.part_nos;
                    split.separator := known.separator;
                end if;
                new_bytes := new_bytes + stored.bytes;
                joints := joints || jsonb_build_object(
                    'kind', member.kind, 'separator', split.separator, 'part_nos', agui_internal.ranges_of(stored.part_nos)
                );
                pieces := pieces || agui_internal.json_unguard(
                    left(rest, at - 1) || case member.kind when 'message' then '[' when 'state' then '{' else '' end
                );
                rest := case member.kind when 'message' then ']' when 'state' then '}' else '' end
                    || substr(rest, at + length(member.value::text));
            end loop;
            pieces := pieces || agui_internal.json_unguard(rest);
        end if;
        if joints <> '[]' then
            -- From now on readers must get exactly what they got before.
            if convert_to(agui_internal.joined_input(thread_key, pieces, joints), 'UTF8') is distinct from body then
                raise data_corrupted;
            end if;
            perform agui_internal.allow_log_change(true);
            update agui.run_input as given
            set input = null,
                hash = sha256(body),
                bytes = octet_length(body),
                skeleton = pieces,
                sections = joints,
                part_bytes = new_bytes,
                split_at = clock_timestamp()
            where given.thread_key = split_input.thread_key and given.run_no = split_input.run_no;
            perform agui_internal.allow_log_change(false);
            return;
        end if;
    exception
        when data_corrupted then
            null;  -- nothing of it is stored
    end;

    perform agui_internal.allow_log_change(true);
    update agui.run_input as given
    set split_at = clock_timestamp()
    where given.thread_key = split_input.thread_key and given.run_no = split_input.run_no and given.split_at is null;
    perform agui_internal.allow_log_change(false);
end
$$;

comment on function agui_internal.split_input(uuid, int) is
    'Stores the input of a run in parts, reads it back, and keeps it whole unless the text is the same, '
    'byte for byte. The caller holds the row of the thread.';

revoke execute on function agui_internal.split_input(uuid, int) from public;
