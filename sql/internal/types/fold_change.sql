create type agui_internal.fold_change as (
    node int,
    kind text,
    text text,
    name text,
    previous int
);

comment on type agui_internal.fold_change is
    'What comes to a node (agui_internal.fold_node): ''grow'' a piece of its string, ''merge'' metadata, ''patch'' a patch of an activity (guarded JSON), '
    'with the activityType (name) that it gives and the place of the patch of the same node before it (previous).';
