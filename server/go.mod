module github.com/pgagui/pgagui/server

go 1.26.0

require github.com/pgagui/pgagui v0.0.0
