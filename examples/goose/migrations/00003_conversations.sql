-- +goose Up
-- Which conversation belongs to whom. The log is in the schema agui: agui.messages(thread_id), for example.
create table conversation (
    customer_id bigint not null references customer on delete cascade,
    thread_id   text not null unique,
    begun_at    timestamptz not null default now(),
    primary key (customer_id, thread_id)
);

-- +goose Down
drop table conversation;
