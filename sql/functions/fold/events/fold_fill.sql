create or replace function agui_internal.fold_fill(head text, large text[])
returns text
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    texts text[];
    marks text[];
begin
    if cardinality(large) = 0 or head !~ '"\\\\[0-9]' then
        return head;
    end if;
    texts := regexp_split_to_array(head, '"\\\\[0-9]+"(?::0)?');
    marks := array(select mark[1] from regexp_matches(head, '"\\\\([0-9]+)"', 'g') as mark);
    return (
        select string_agg(part.text || coalesce(large[part.mark::int], ''), '' order by part.position)
        from unnest(texts, marks) with ordinality as part (text, mark, position)
    );
end
$function$;

comment on function agui_internal.fold_fill(text, text[]) is
    'Puts the parts back into a head that agui_internal.fold_shrink took out of it.';

revoke execute on function agui_internal.fold_fill(text, text[]) from public;
