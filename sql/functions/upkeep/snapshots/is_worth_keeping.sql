create or replace function agui_internal.is_worth_keeping(log_bytes bigint, snapshot_bytes bigint)
returns boolean
language sql
immutable
parallel safe
return log_bytes >= 2 * snapshot_bytes;

comment on function agui_internal.is_worth_keeping(bigint, bigint) is
    'The rule for snapshots of runs that are not the tip of their thread: since the last kept '
    'snapshot on the lineage, the stored log has grown by at least twice the size of this one. So '
    'all snapshots together stay smaller than the log, and a read folds no more than in proportion '
    'to what it returns.';

revoke execute on function agui_internal.is_worth_keeping(bigint, bigint) from public;
