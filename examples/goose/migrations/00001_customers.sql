-- +goose Up
create table customer (
    id    bigint generated always as identity primary key,
    email text not null unique
);

-- +goose Down
drop table customer;
