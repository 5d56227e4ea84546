create type agui_internal.fold_attachment as (
    n          int,
    message_id text,
    type       text,
    mime_type  text,
    filename   text,
    value      text
);

comment on type agui_internal.fold_attachment is
    'A part of a message of an agui_internal.fold that holds data: as agui.attachment_row, with its '
    'base64 text.';
