module github.com/pgagui/pgagui/test/clients

go 1.26.0

require (
	github.com/jackc/pgx/v5 v5.12.0
	github.com/pgagui/pgagui v0.0.0
	github.com/pgagui/pgagui/server v0.0.0
)
