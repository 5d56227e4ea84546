create or replace function agui_internal.seq_at(thread_key uuid, at_seq bigint, at_time timestamptz)
returns bigint
language sql
stable
parallel safe
return case
    when at_time is null then at_seq
    else least(at_seq, agui_internal.last_seq_by(thread_key, at_time))
end;

comment on function agui_internal.seq_at(uuid, bigint, timestamptz) is
    'The seq up to which the events of a thread count for a read at a seq and a point in time, the '
    'earlier of the two; null: all events.';

revoke execute on function agui_internal.seq_at(uuid, bigint, timestamptz) from public;
