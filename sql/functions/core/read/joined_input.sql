create or replace function agui_internal.joined_input(
    thread_key uuid,
    skeleton   text[],
    sections   jsonb,
    is_checked boolean default true
)
returns text
language plpgsql
stable
strict
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
    section record;
    joined  record;
    result  text := skeleton[1];
begin
    for section in
        select listed.*
        from rows from (jsonb_to_recordset(sections) as (kind text, separator text, part_nos int4range[])) with ordinality
            as listed (kind, separator, part_nos, place)
        order by listed.place
    loop
        select
            -- They come in order. To sort them once more takes three times as long as to join them.
            string_agg(
                -- A member of the state is stored as an object.
                case when section.kind = 'state' then substr(part.body::text, 2, length(part.body::text) - 2) else part.body::text end,
                section.separator
            ) as text,
            count(*) as n,
            (select sum(upper(range.part_nos) - lower(range.part_nos)) from unnest(section.part_nos) as range (part_nos)) as listed_n
        into joined
        from agui_internal.parts_in(thread_key, section.kind, section.part_nos) as part;
        if is_checked and joined.n <> joined.listed_n then
            raise exception using
                errcode = 'data_corrupted',
                message = format('an input of the thread with key %s lacks %s parts of the kind %s', thread_key, joined.listed_n - joined.n, section.kind),
                hint = 'agui.verify names all that is wrong with the thread.';
        end if;
        result := result || coalesce(joined.text, '') || skeleton[section.place + 1];
    end loop;
    return result;
end
$$;

comment on function agui_internal.joined_input(uuid, text[], jsonb, boolean) is
    'The text of an input that is stored in parts, byte for byte, given the columns of its row. XX001: '
    'a part is missing, unless is_checked is false.';

revoke execute on function agui_internal.joined_input(uuid, text[], jsonb, boolean) from public;
