package server

import (
	_ "embed"
	"net/http"

	"github.com/pgagui/pgagui/server/face"
)

// openAPI describes all endpoints over HTTP.
//
//go:embed openapi.yaml
var openAPI []byte

var openAPIFace = face.Face{Name: "openapi", Register: func(to *face.HTTP) {
	to.Mux.HandleFunc("GET /openapi.yaml", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/yaml")
		_, _ = w.Write(openAPI)
	})
}}
