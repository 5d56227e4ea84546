create or replace function agui_internal.batch_bytes(events json, text_bytes int)
returns int
language sql
stable
parallel safe
return coalesce(text_bytes, agui_internal.text_bytes(events));

comment on function agui_internal.batch_bytes(json, int) is
    'The bytes of the text of a batch, given its columns as stored. Usually the batch is not '
    'decompressed for that.';

revoke execute on function agui_internal.batch_bytes(json, int) from public;
