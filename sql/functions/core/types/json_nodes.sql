-- Numbers of nodes in agui_internal.json_patch_apply. A domain, because PostgreSQL has no arrays of
-- arrays of different lengths.
create domain agui_internal.json_nodes as int[];

comment on domain agui_internal.json_nodes is
    'The members of a JSON object or the items of an array, as node numbers, while '
    'agui_internal.json_patch_apply has it taken apart.';
