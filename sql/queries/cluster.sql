-- name: ClusterMap :one
-- Which node the database is, and which node has which buckets, as JSON.
select agui.cluster_map()::json as map;
