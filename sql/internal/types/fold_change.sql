create type agui_internal.fold_change as (
    node int,
    kind text,
    text text
);

comment on type agui_internal.fold_change is
    'What comes to a node (agui_internal.fold_node): ''grow'' a piece of its string, ''merge'' metadata, ''patch'' a patch of an activity (guarded JSON).';
