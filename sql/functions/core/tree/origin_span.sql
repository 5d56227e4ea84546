create or replace function agui_internal.origin_span(
    leaf       agui.run,
    message_id text,
    out from_no   int,
    out to_no     int,
    out after_seq bigint,
    out holder_no int
)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    with stored as materialized (
        select snapshot.run_no, snapshot.through_seq, snapshot.message_nos
        from agui_internal.ancestors(leaf) as ancestor
        join agui.snapshot as snapshot
            on snapshot.thread_key = ancestor.thread_key and snapshot.run_no = ancestor.run_no and snapshot.rules = agui_internal.rules()
    ),
    version as materialized (
        select message.message_no
        from (
            select unnest(range_agg(part)) as message_nos
            from stored
            cross join unnest(stored.message_nos) as part
        ) as held
        -- The offset makes this one look-up for each range: other branches have messages, too.
        cross join lateral (
            select version.message_no
            from agui.message_version as version
            where version.thread_key = leaf.thread_key
                and version.message_no >= lower(held.message_nos) and version.message_no < upper(held.message_nos)
                and version.message_id = origin_span.message_id
            offset 0
        ) as message
    ),
    kept as (
        select
            stored.run_no,
            stored.through_seq,
            exists (
                select
                from unnest(stored.message_nos) as part (message_nos)
                join version on part.message_nos @> version.message_no
            ) as is_holder
        from stored
    ),
    holder as (
        select min(kept.run_no) as run_no from kept where kept.is_holder
    )
    select coalesce(max(kept.run_no), 1), coalesce(holder.run_no, leaf.run_no), coalesce(max(kept.through_seq), 0), holder.run_no
    into from_no, to_no, after_seq, holder_no
    from holder
    left join kept
        on holder.run_no is null or kept.run_no < holder.run_no
    group by holder.run_no;
end
$$;

comment on function agui_internal.origin_span(agui.run, text) is
    'The part of the lineage of a run in which a message arrived: the runs from_no to to_no, after '
    'after_seq. It ends with the first run whose snapshot holds the message (holder_no; null: there '
    'is none), and begins with the last snapshot before.';

revoke execute on function agui_internal.origin_span(agui.run, text) from public;
