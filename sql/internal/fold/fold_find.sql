-- Open addressing: a key is in the first bucket from its own on that holds it, and not there when an empty bucket comes first. Then it
-- may still be among the ids of the messages that were loaded.
--
-- Called in the innermost loops of functions that pin the search path; to pin it here again would take longer than the work.
create or replace function agui_internal.fold_find(buckets int[], keys text[], loaded_ids text[], key text)
returns int
language plpgsql
immutable
strict
parallel safe
as $function$
declare
    mask   constant int := cardinality(buckets) - 1;
    bucket int := hashtext(key) & mask;
    node   int;
begin
    loop
        node := buckets[bucket + 1];
        if node = 0 then
            return case when key ^@ '"' then array_position(loaded_ids, agui_internal.json_string_text(key)) end;
        elsif keys[node] = key then
            return node;
        end if;
        bucket := (bucket + 1) & mask;
    end loop;
end
$function$;

comment on function agui_internal.fold_find(int[], text[], text[], text) is
    'The node (message or tool call) that has a key, in the hash table of agui_internal.fold_events; null when there is none.';

revoke execute on function agui_internal.fold_find(int[], text[], text[], text) from public;
