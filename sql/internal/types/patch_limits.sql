create type agui_internal.patch_limits as (
    document_bytes      bigint,
    document_depth      int,
    patch_operations    int,
    patch_copied_bytes  bigint,
    patch_shifted_items bigint
);

comment on type agui_internal.patch_limits is
    'What JSON patches may make and take: the settings of these names (agui.setting).';
