drop table conversation;
