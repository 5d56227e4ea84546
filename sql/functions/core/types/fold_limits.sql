create type agui_internal.fold_limits as (
    document_bytes      bigint,
    document_depth      int,
    patch_operations    int,
    patch_copied_bytes  bigint,
    patch_shifted_items bigint,
    fold_bytes          bigint,
    fold_messages       int,
    fold_lanes          int,
    fold_fuel           bigint
);

comment on type agui_internal.fold_limits is
    'The limits of a fold and of the JSON patches in it: the settings of these names '
    '(agui.setting).';
