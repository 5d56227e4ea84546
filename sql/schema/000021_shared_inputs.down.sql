-- Inputs that refer to parts of an earlier one become whole again.
alter table agui.run_input disable trigger user;

update agui.run_input as given
set input = (
        given.skeleton[1] || (
            select string_agg(part.body::text, given.sections -> 0 ->> 'separator' order by range.place, part.part_no)
            from jsonb_to_recordset(given.sections) as section (part_nos int4range[])
            cross join unnest(section.part_nos) with ordinality as range (part_nos, place)
            join agui.input_part as part
                on part.thread_key = given.thread_key and part.kind = 'message' and part.part_no <@ range.part_nos
        ) || given.skeleton[2]
    )::json,
    skeleton = null,
    sections = null,
    part_bytes = null
where given.split_at is null and given.skeleton is not null;

alter table agui.run_input
    enable trigger user,
    drop constraint run_input_is_whole_or_in_parts,
    add constraint run_input_is_whole_or_in_parts check (
        case
            when input is not null then num_nonnulls(skeleton, sections, part_bytes) = 0
            else num_nulls(hash, bytes, skeleton, sections, part_bytes, split_at) = 0
        end
    );

comment on column agui.run_input.sections is
    'In parts: a JSON array of what stands between two pieces of the skeleton: {"kind", "separator", '
    '"part_nos"}. part_nos are the parts in order (agui.input_part), as an array of ranges; the '
    'separator stands between them.';
