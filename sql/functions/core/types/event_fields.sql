-- json_populate_recordset converts each event to such a row in one pass over the text. A column
-- that no event has costs next to nothing. Add new fields of events here.
create type agui_internal.event_fields as (
    type                text,
    "messageId"         json,
    "toolCallId"        json,
    delta               json,
    "subagentRunId"     json,
    metadata            json,
    role                json,
    name                json,
    "toolCallName"      json,
    "parentMessageId"   json,
    content             json,
    snapshot            json,
    patch               json,
    "activityType"      json,
    replace             json,
    input               json,
    outcome             json,
    messages            json,
    "entityId"          json,
    "encryptedValue"    json,
    subtype             json
);

comment on type agui_internal.event_fields is
    'The fields of an event (guarded JSON, agui_internal.json_guard) that SQL reads. Null counts '
    'as absent. Strings have one normalized spelling, whatever that of the event: equal strings '
    'are equal texts.';
