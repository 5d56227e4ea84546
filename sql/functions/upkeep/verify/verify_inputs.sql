create or replace function agui_internal.verify_inputs(thread_key uuid)
returns setof agui.verify_row
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
        with section as (
            select stored.run_no, listed.kind, range.part_nos
            from agui.run_input as stored
            cross join jsonb_to_recordset(stored.sections) as listed (kind text, part_nos int4range[])
            cross join unnest(listed.part_nos) as range (part_nos)
            where stored.thread_key = verify_inputs.thread_key
        ),
        missing as (
            -- The first part that is missing in each input.
            select distinct on (section.run_no) section.run_no, section.kind, number.part_no
            from section
            -- A damaged range may have any length.
            cross join lateral generate_series(
                lower(section.part_nos),
                least(upper(section.part_nos) - 1, (
                    select coalesce(max(part.part_no), 0) + 1
                    from agui.input_part as part
                    where part.thread_key = verify_inputs.thread_key and part.kind = section.kind
                ))
            ) as number (part_no)
            where not exists (
                select
                from agui.input_part as part
                where part.thread_key = verify_inputs.thread_key and part.kind = section.kind and part.part_no = number.part_no
            )
            order by section.run_no, section.kind, number.part_no
        )
        select run.run_id, problem.text, 'damage'
        from agui.run_input as stored
        left join agui.run as run
            on run.thread_key = stored.thread_key and run.run_no = stored.run_no
        left join missing on missing.run_no = stored.run_no
        cross join lateral (
            select case
                when (stored.input is null) <> (stored.skeleton is not null and stored.sections is not null)
                    or stored.input is null and stored.hash is null
                    then 'the row of the input beside the events of the run is neither whole nor in parts'
                when missing.run_no is not null
                    then format('the input beside the events of the run lacks a part, number %s of the kind %s', missing.part_no, missing.kind)
                when agui_internal.stored_input_hash(stored.thread_key, stored.run_no) <> stored.hash
                    then 'the input beside the events of the run does not have its hash'
            end as text
        ) as problem
        where stored.thread_key = verify_inputs.thread_key and problem.text is not null
        order by stored.run_no;
    -- Folds skip messages by these columns, and count them.
    return query
        select null::text, format('the part number %s of the kind %s of inputs does not have the size and the id of its text', part.part_no, part.kind), 'damage'
        from agui.input_part as part
        cross join lateral (select agui_internal.json_guard(part.body::text) as guarded offset 0) as text
        where part.thread_key = verify_inputs.thread_key
            and (part.bytes, part.message_id) is distinct from (octet_length(text.guarded), agui_internal.message_id_of(part.kind, text.guarded))
        order by part.kind, part.part_no;
end
$$;

comment on function agui_internal.verify_inputs(uuid) is
    'The damage of the inputs beside the events of the runs of a thread: rows that are neither whole '
    'nor in parts, parts that are missing, and hashes, sizes and ids that do not fit.';

revoke execute on function agui_internal.verify_inputs(uuid) from public;
