module github.com/pgagui/pgagui/server

go 1.26.0

require (
	github.com/MicahParks/jwkset v0.11.4
	github.com/MicahParks/keyfunc/v3 v3.9.1
	github.com/golang-jwt/jwt/v5 v5.3.1
	github.com/pgagui/pgagui v0.0.0
	github.com/rs/cors v1.11.1
	go.yaml.in/yaml/v3 v3.0.5
	golang.org/x/time v0.16.0
)
