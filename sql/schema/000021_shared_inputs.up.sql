-- The row of an input may refer to parts before it is split.

alter table agui.run_input
    drop constraint run_input_is_whole_or_in_parts,
    add constraint run_input_is_whole_or_in_parts check (
        case
            when input is not null then num_nonnulls(skeleton, sections, part_bytes) = 0
            else num_nulls(hash, bytes, skeleton, sections, part_bytes) = 0
        end
    );

comment on column agui.run_input.sections is
    'In parts: a JSON array of what stands between two pieces of the skeleton: {"kind", "separator", '
    '"part_nos"}. part_nos are the parts in order (agui.input_part), as an array of ranges; the '
    'separator stands between them. The kind beginning: the first messages, while the input is not split.';
