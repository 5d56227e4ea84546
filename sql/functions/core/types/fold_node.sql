-- The small fields of a message or tool call while agui_internal.fold_events has the conversation
-- taken apart. sql/functions/fold/README.md draws the nodes. They are counted from 1; a link is the
-- number of another node.
create type agui_internal.fold_node as (
    -- what it is
    key           text,     -- the id of a message, or 'call ' and the id of a tool call; null if
                            -- there is none, and for a loaded message
    role          text,     -- of a message
    parent        int,      -- of a call: its message; 0 if that was replaced
    number        int,      -- of a loaded, unchanged message: its stored version
    same_as       int,      -- of a second place of a message: the first place
    is_shared     boolean,  -- other nodes are the same message

    -- how far its texts were read
    activity_type text,     -- of an activity that is taken apart
    name          text,     -- of a call whose name was read; '' if it has no function
    has_text      boolean,  -- of an inspected message in one piece: its content is a string
    grows         boolean,  -- its string has grown, so it has more pieces
    last_patch    int,      -- the last pending one, as its place among the changes
    patches_cost  boolean,  -- a pending one may use fuel

    -- the conversation
    following     int,      -- of a message: the next one
    rank          bigint,   -- its place as a number, once a message was inserted in between
    last_call     int,      -- of a message: its last call
    call_before   int,      -- of a call: the previous one of its message
    last_result   int,      -- of a message: the last of the results after it, as far as they were
    result_era    int,      -- searched since messages replaced others

    -- calls that have the same id
    next_same     int,      -- the next one
    last_same     int,      -- of the first: the last one
    assistant     int       -- of the first: the first one in an assistant message, or itself
);

comment on type agui_internal.fold_node is
    'The small fields of a message or tool call of agui_internal.fold_events.';
