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
    with version as materialized (
        select message.message_no
        from agui.message_version as message
        where message.thread_key = leaf.thread_key and message.message_id = origin_span.message_id
    ),
    kept as (
        select
            snapshot.run_no,
            snapshot.through_seq,
            exists (
                select
                from unnest(snapshot.message_nos) as part (message_nos)
                join version on part.message_nos @> version.message_no
            ) as is_holder
        from agui_internal.ancestors(leaf) as ancestor
        join agui.snapshot as snapshot
            on snapshot.thread_key = ancestor.thread_key and snapshot.run_no = ancestor.run_no
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
