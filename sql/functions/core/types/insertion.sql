create type agui_internal.insertion as (
    position int,
    slot     int,
    event    text,
    owner    text,
    copy     int
);

comment on type agui_internal.insertion is
    'An event that a stream lacks: its place (the position of an event; slots 0 closings, 1 an '
    'end, 2 a beginning and 3 starts before it, 5 starts after it), its text without the last '
    'brace (guarded), the subagent that it names in addition, or the position of the event that it '
    'copies.';
