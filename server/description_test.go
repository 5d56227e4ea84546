package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testneeds"
	"github.com/pgagui/pgagui/server"
	"github.com/pgagui/pgagui/server/access"
)

// The server takes what openapi.yaml allows, answers as it says, and never fails: thousands of requests
// that schemathesis makes from it, to all operations.
func TestTheDescriptionIsTrue(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes minutes")
	}
	root := must.Have(os.Getwd())(t)
	folder := filepath.Join(root, "testdata", "description")
	program := filepath.Join(folder, "venv", "bin", "schemathesis")
	if _, err := os.Stat(program); err != nil {
		testneeds.Skip(t, testneeds.Python, "schemathesis is not installed (make test-costly installs it)")
	}
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var input struct{ ThreadID, RunID string }
		must.Report(t, json.NewDecoder(r.Body).Decode(&input))
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "data: %s\n\ndata: %s\n\n", started(input.ThreadID, input.RunID), finished(input.ThreadID, input.RunID))
	}))
	t.Cleanup(agent.Close)
	token, hash := access.NewToken()
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	entry := fmt.Sprintf("- {name: tester, sha256: %s, scope: tenant, rights: [read, write, stop, delete, admin]}\n", hash)
	must.Do(t, os.WriteFile(file, []byte(entry), 0o600))
	tokens := must.Have(access.LoadTokens(file))(t)
	p := serve(t, testdb.Pool(t), server.Options{Access: tokens, Agents: []server.Agent{{Name: "assistant", URL: agent.URL}}})
	// Not asDocumented, which would report what is not as documented and accepted, too. A stream that waits for events would last until
	// schemathesis stops to read it.
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		if r.Method == "GET" {
			defer func() {
				if cause := recover(); cause != nil && cause != http.ErrAbortHandler {
					panic(cause)
				}
			}()
			w = &shortStream{ResponseWriter: w, cancel: cancel}
		}
		p.server.ServeHTTP(w, r.WithContext(ctx))
	}))
	t.Cleanup(func() {
		plain.CloseClientConnections()
		plain.Close()
	})
	command := exec.CommandContext(t.Context(), program, "--config-file", filepath.Join(folder, "schemathesis.toml"), "run", filepath.Join(root, "openapi.yaml"),
		"--url", plain.URL, "--header", "Authorization: Bearer "+token, "--phases", "examples,coverage,fuzzing", "--max-examples", "5",
		"--request-timeout", "10", "--continue-on-failure", "--no-color", "--checks",
		"not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,positive_data_acceptance")
	command.Dir = t.TempDir() // it keeps what it found beside it
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("schemathesis: %v\n%s", err, output)
	}
}
