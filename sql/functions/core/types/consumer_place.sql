create type agui.consumer_place as (
    scope      text,
    consumer   text,
    position   text,
    behind     bigint,
    is_lost    boolean,
    created_at timestamptz,
    moved_at   timestamptz
);

comment on type agui.consumer_place is
    'A consumer of agui.consume. scope: null for all scopes. position: it has processed the changes up '
    'to here (null: none). behind: how many changed runs and erased threads it has not processed, at most 10000 are '
    'counted; null if is_lost. is_lost: the position is of another history of transactions (the database '
    'was restored, or failed over), so it has to begin again. created_at, moved_at: when its place was '
    'noted first and last.';
