create type agui.channel_value_row as (
    channel text,
    version text,
    type    text,
    body    json,
    bytes   bytea
);

comment on type agui.channel_value_row is
    'A version of the value of a channel: body, byte for byte, if it is JSON (its type is json), '
    'otherwise bytes.';
