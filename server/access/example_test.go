package access_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/pgagui/pgagui/server/access"
)

// A server takes static tokens, and the JWTs of an identity provider.
func Example() {
	ctx, stop := context.WithCancel(context.Background()) // or signal.NotifyContext
	defer stop()
	token, hash := access.NewToken()
	file := exampleFile("- {name: ci, sha256: " + hash + ", scope: acme, rights: [read]}\n")
	defer os.RemoveAll(filepath.Dir(file))

	tokens, err := access.LoadTokens(file) // tokens.Reload() on SIGHUP
	if err != nil {
		log.Fatal(err)
	}
	jwt, err := access.NewJWT(ctx, access.JWTOptions{
		Algorithms: []string{"ES256"}, JWKSURL: "http://localhost:1/jwks", Audiences: []string{"pgagui"},
		ScopeClaim: "/org/id", RightsClaim: "scope", Rights: map[string]access.Rights{"chat": access.Read | access.Write | access.Stop},
	})
	if err != nil {
		log.Fatal(err)
	}
	guard := access.Guard{
		Authenticator: access.Both(tokens, jwt),
		Limits:        access.NewLimits(access.LimitOptions{RequestsPerSecond: 20}),
	}
	mux := http.NewServeMux()
	mux.Handle("GET /threads/{id}", guard.Require(access.Read, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		identity, _ := access.IdentityFrom(r.Context())
		fmt.Fprintf(w, "%s reads %s of %s", identity.Subject, r.PathValue("id"), identity.Scope) // store.InScope(identity.Scope)
	})))
	mux.Handle("DELETE /threads/{id}", guard.Require(access.Delete, http.NotFoundHandler()))
	cors, err := access.CORS([]string{"https://app.example.com"})
	if err != nil {
		log.Fatal(err)
	}
	handler := cors(mux) // for http.Server

	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		request := httptest.NewRequest(method, "/threads/t-1", nil)
		request.Header.Set("Authorization", "Bearer "+token)
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		fmt.Println(answer.Code, strings.TrimSpace(answer.Body.String()))
	}
	// Output:
	// 200 ci reads t-1 of acme
	// 403 {"detail":"missing right: delete","status":403,"title":"Forbidden"}
}

func exampleFile(text string) string {
	folder, err := os.MkdirTemp("", "access")
	if err != nil {
		log.Fatal(err)
	}
	file := filepath.Join(folder, "tokens.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		log.Fatal(err)
	}
	return file
}
