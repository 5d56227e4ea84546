create type agui.attachment_row as (
    n          int,
    message_id text,
    type       text,
    mime_type  text,
    filename   text,
    bytes      bigint
);

comment on type agui.attachment_row is
    'A part of a message that holds data: its number in the conversation (from 1), the id of the '
    'message, and what the part says of itself: type (image, audio, video, document, binary), type '
    'of media, and name of the file (null: none). bytes: size of the decoded data.';
