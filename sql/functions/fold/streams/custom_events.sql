create or replace function agui_internal.custom_events(leaf agui.run, until bigint, of_runs text)
returns text
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    most_events constant int := 100;
    most_bytes  constant int := 1048576;
begin
    if coalesce(of_runs, 'none') = 'none' then
        return null;
    end if;
    return (
        with run as (
            select ancestor.* from agui_internal.ancestors(leaf) as ancestor where of_runs = 'lineage'
            union all
            select leaf.* where of_runs = 'head'
        ),
        custom as (
            select
                batch.first_seq + element.position as place,
                element.payload::text as payload,
                octet_length(element.payload::text) as bytes
            from run
            join agui.batch as batch
                on batch.thread_key = run.thread_key
                and batch.run_no = run.run_no
                and batch.first_seq between run.first_seq and least(run.last_seq, until)
            cross join lateral json_array_elements(
                case when strpos(batch.events::text, '"CUSTOM"') > 0 then batch.events end
            ) with ordinality as element (payload, position)
            where agui_internal.event_type(element.payload) = 'CUSTOM'
                and (until is null or batch.first_seq + element.position - 1 <= until)
                -- agui_internal.replay_part asks what is open.
                and not agui_internal.is_question(agui_internal.json_guarded(element.payload))
        ),
        counted as (
            select
                custom.*,
                row_number() over newest <= most_events and sum(custom.bytes) over newest <= most_bytes as is_kept
            from custom
            window newest as (order by custom.place desc)
        )
        select concat_ws(
            ',',
            case when count(*) filter (where not counted.is_kept) > 0 then
                '{"type":"CUSTOM","name":"pgagui.left_out","value":{"customEvents":' || count(*) filter (where not counted.is_kept) || '}}'
            end,
            string_agg(counted.payload, ',' order by counted.place) filter (where counted.is_kept)
        )
        from counted
    );
end
$$;

comment on function agui_internal.custom_events(agui.run, bigint, text) is
    'The CUSTOM events of a run up to a seq (null: all), for a client that reloads: JSON texts, joined '
    'by commas; null or empty: none. of_runs: none, head (that run) or lineage (with its ancestors). '
    'The last 100 in 1 MiB at most; a CUSTOM event pgagui.left_out before them counts those left out. '
    'Questions are not among them.';

revoke execute on function agui_internal.custom_events(agui.run, bigint, text) from public;
