create table note (
    thread_id text not null,
    seq       bigint not null,
    note      text not null
);
