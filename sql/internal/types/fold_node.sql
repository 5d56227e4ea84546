-- A message or a tool call while agui_internal.fold_events changes it. One that came whole is untouched text, its body, until it changes; then
-- agui_internal.fold_open takes it apart. What is added to its string, its metadata or its activity is in the list of changes, and counts from
-- the change behind content_since or metadata_since on.
create type agui_internal.fold_node as (
    key            text,
    number         int,
    role           text,
    body           text,
    head           text,
    content        text,
    activity_type  text,
    parent         int,
    same_as        int,
    is_shared      boolean,
    has_calls      boolean,
    grows          boolean,
    content_since  int,
    metadata_since int,
    last_patch     int,
    costs          boolean
);

comment on type agui_internal.fold_node is
    'A message or tool call. key: the id of a message, ''call '' and the id of a tool call; null for one without id, and for a message that was loaded. '
    'number: the stored version of a message, null when it is new or changed. body: the whole of it (guarded for a tool call); null once it is taken '
    'apart into head (the members that stay, with marks in place of the others) and content (what its string began with, or the content of an '
    'activity, without the patches that wait). parent: of a tool call the node of its message, 0 when that is gone. same_as: the node of the message that this '
    'one is too, at a second place; is_shared: others are the same as this one. has_calls: nodes have it as their parent. grows: its string has grown, so it takes more. '
    'last_patch: the place of the last patch that waits; costs: one of them may use fuel.';
