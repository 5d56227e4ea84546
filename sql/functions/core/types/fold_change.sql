create type agui_internal.fold_change as (
    node int,
    kind text,
    text text,
    name text,
    previous int
);

comment on type agui_internal.fold_change is
    'A change of a node of agui_internal.fold_events: ''grow'' a piece of its string, ''merge'' '
    'metadata, ''patch'' a patch of an activity (guarded JSON), with the activityType (name) that '
    'it sets and the position of the previous patch of the same node (previous). ''new content'' '
    'ends what earlier changes did to its content, ''new message'' to its metadata, too.';
