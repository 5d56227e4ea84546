-- What copies of the conversations elsewhere have to hear of erasures; and which database sends the requests of a webhook, so that a copy
-- of the database sends none.

-- In two steps, so that the table is not rewritten.
alter table agui.thread add column thread_uid uuid;
alter table agui.thread alter column thread_uid set default gen_random_uuid();

comment on column agui.thread.thread_uid is
    'A random id, another one if the thread is erased and begun again. Readers of changes recognize '
    'an erased thread by it. Null for threads from before there was one (agui_internal.uid_of_thread).';

alter table agui.erasure
    add column thread_uid uuid,
    add column erased_in xid8;

create index erasure_by_change on agui.erasure (erased_in, thread_uid) where thread_uid is not null;

comment on column agui.erasure.thread_uid is
    'The random id that the thread had (agui.thread), by which those recognize it who copied the '
    'thread; null: as for erased_in, or it had nothing but a claim.';
comment on column agui.erasure.erased_in is
    'The transaction that erased it, for readers of changes; null: it was erased before this was noted, or in another database.';
comment on index agui.erasure_by_change is 'The erasures in the order of the transactions.';

alter table agui.webhook
    add column old_secret text,
    add column old_secret_until timestamptz,
    add column sends_from text,
    add constraint webhook_old_secret_has_the_form check (
        case when old_secret ~ '^whsec_[A-Za-z0-9+/]+=*$' then octet_length(decode(substr(old_secret, 7), 'base64')) between 24 and 64 else old_secret is null end
    ),
    add constraint webhook_old_secret_has_an_end check ((old_secret is null) = (old_secret_until is null));

comment on column agui.webhook.old_secret is
    'The secret before agui.rotate_webhook_secret, which signs too until old_secret_until; null: there is none.';
comment on column agui.webhook.old_secret_until is 'Until when old_secret signs.';
comment on column agui.webhook.sends_from is
    'The database that sends the requests (agui_internal.database_identity). In another one, which '
    'has the row from a dump, nothing is sent until agui.take_over_webhooks is called.';

alter table agui.webhook
    alter column old_secret set statistics 0,
    alter column sends_from set statistics 0;
