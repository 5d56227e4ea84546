create type agui_internal.json_note as (
    node         int,
    owner        int,
    opened       int,
    size         bigint,
    member_count int
);

comment on type agui_internal.json_note is
    'What a node, or the members or items that a node was opened to (owner), were before a patch of '
    'agui_internal.json_patch_apply, to undo it if it fails. Pieces and items are noted beside.';
