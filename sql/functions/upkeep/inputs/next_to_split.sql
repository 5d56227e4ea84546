create or replace function agui_internal.next_to_split(
    passed_over uuid[],
    out thread_key uuid,
    out run_nos    int[]
)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    -- Of a step, which is a transaction: some hundred milliseconds.
    max_bytes  constant int := 4 * 1024 * 1024;
    max_inputs constant int := 100;
    own record;
begin
    select * into own from agui_internal.own_keys();
    select given.thread_key into next_to_split.thread_key
    from agui.run_input as given
    where given.split_at is null
        and given.thread_key >= own.low and given.thread_key <= own.high
        and given.thread_key <> all (passed_over)
        and not exists (
            select
            from agui_internal.job_note as note
            where note.job = 'split' and note.thread_key = given.thread_key and note.run_no = given.run_no
        )
    order by given.thread_key, given.run_no
    limit 1;
    if found then
        select array_agg(input.run_no order by input.run_no) into run_nos
        from (
            select waiting.run_no, sum(waiting.bytes) over (order by waiting.run_no) - waiting.bytes as bytes_before
            from (
                select given.run_no, coalesce(given.bytes, agui_internal.text_bytes(given.input)) as bytes
                from agui.run_input as given
                where given.split_at is null
                    and given.thread_key = next_to_split.thread_key
                    and not exists (
                        select
                        from agui_internal.job_note as note
                        where note.job = 'split' and note.thread_key = given.thread_key and note.run_no = given.run_no
                    )
                order by given.run_no
                limit max_inputs
            ) as waiting
        ) as input
        where input.bytes_before < max_bytes;
        return;
    end if;
    -- Last, one of an earlier attempt that did not succeed.
    select note.thread_key, array[note.run_no]
    into next_to_split.thread_key, run_nos
    from agui_internal.job_note as note
    join agui.run_input as given
        on given.thread_key = note.thread_key and given.run_no = note.run_no
    where note.job = 'split' and (note.next_at is null or note.next_at <= clock_timestamp())
        and given.split_at is null
        and note.thread_key <> all (passed_over)
        and note.thread_key >= own.low and note.thread_key <= own.high
    order by note.attempts, note.noted_at
    limit 1;
end
$$;

comment on function agui_internal.next_to_split(uuid[]) is
    'The next inputs to store in parts: of one thread, up to 100 with about 4 MB of text, at least one. '
    'Those of a failed attempt come last, one by one. Only in scopes of the role. Nulls: there are none.';

revoke execute on function agui_internal.next_to_split(uuid[]) from public;
