create or replace function agui_internal.lineage_events(leaf agui.run, after_seq bigint, until bigint)
returns json
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select ('[' || coalesce(string_agg(element.payload::text, ',' order by batch.first_seq, element.position), '') || ']')::json
        from agui_internal.ancestors(leaf) as ancestor
        join agui_internal.batches_behind(leaf.thread_key, after_seq) as batch
            on batch.run_no = ancestor.run_no
                and batch.first_seq between ancestor.first_seq and coalesce(least(ancestor.last_seq, until), 9223372036854775807)
        cross join lateral json_array_elements(batch.events) with ordinality as element (payload, position)
        where batch.first_seq + element.position - 1 > after_seq
            and (until is null or batch.first_seq + element.position - 1 <= until)
    );
end
$$;

comment on function agui_internal.lineage_events(agui.run, bigint, bigint) is
    'The events of the lineage of a run behind after_seq, up to a seq (null: all), as a JSON array.';

revoke execute on function agui_internal.lineage_events(agui.run, bigint, bigint) from public;
