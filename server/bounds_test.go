package server_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/wait"
	"github.com/pgagui/pgagui/server/access"
)

// Each endpoint that reads, with the largest limits, answers with a part or refuses, and receives no more from the database than
// an answer may take.
func TestReadsOfLargeDocumentsAreBounded(t *testing.T) {
	t.Parallel()
	const rows, size, budget = 12, 256 << 10, 4 << 20
	database := testdb.Pool(t)
	testdb.FillLarge(t, database, rows, size)
	testdb.Exec(t, database, `select agui.set_setting('fold_bytes', ($1::int / 4)::text)`, budget) // as the two are unless set
	var received *atomic.Int64
	pool := testdb.ConnectWith(t, database.Config().ConnString(), func(config *pgxpool.Config) { received = testdb.CountBytes(config) })
	options := withAgent(newAgent(t))
	options.MaxBufferedBytes, options.Access = budget, access.Anonymous("", access.Admin)
	p := serve(t, pool, options)

	values := map[string]string{"thread": "large", "run": "run-12", "message": "m12", "n": "1", "key": "key", "checkpoint": "c12"}
	asked := map[string]string{
		"limit": "1000", "last": "1000", "raw": "true", "q": "aW1n", "run": "run-12", "other_run": "run-11", "from_run": "run-1", "to_run": "run-12", "whole_thread": "true", "page_size": "1000", "size": "1000",
	}
	// Those that can be read on: a refusal is no answer.
	pages := []string{
		"/threads/large/history", "/threads/large/last-events", "/threads/large/session-state", "/threads/large/session-state/key/versions",
		"/threads/large/checkpoints", "/threads/large/checkpoints/c12/lineage",
	}
	document := must.Have(document())(t)
	for _, pattern := range p.server.Patterns() {
		method, path, _ := strings.Cut(pattern, " ")
		if method != http.MethodGet {
			continue
		}
		item := document.Paths.Find(path)
		if item == nil {
			t.Errorf("%s is not in openapi.yaml", pattern)
			continue
		}
		query := url.Values{}
		for _, parameter := range slices.Concat(item.Parameters, item.Get.Parameters) {
			value := parameter.Value
			switch {
			case value.In == "query" && asked[value.Name] != "" && (value.Name != "run" || value.Required):
				query.Set(value.Name, asked[value.Name])
			case value.In == "path":
				known, isKnown := values[value.Name]
				if !isKnown {
					t.Fatalf("%s: there is no value for {%s}", pattern, value.Name)
				}
				path = strings.ReplaceAll(path, "{"+value.Name+"}", known)
			}
		}
		before := received.Load()
		answer, isStream := p.readPart(t, path+"?"+query.Encode())
		got := received.Load() - before
		text := answer.String()
		t.Logf("%-60s %7d KB of the database, %7d KB answered, %.90s", strings.TrimPrefix(pattern, "GET "), got>>10, len(text)>>10, text)
		if isStream { // it is read in parts
			continue
		}
		if slices.Contains(pages, path) && !strings.Contains(text, `"hasMore":true`) {
			t.Errorf("%s gives no page: %.300s", path, text)
		}
		if most := int64(budget/2 + size + size/4); got > most {
			t.Errorf("%s: %d KB came from the database, want %d at most", pattern, got>>10, most>>10)
		}
	}
	wait.For(t, "no memory is in use", func() bool { return p.server.MemoryUsed() == 0 })
}

// readPart reads an answer; of a stream, what comes first. It must be a success, or a refusal that says why.
func (p *process) readPart(t *testing.T, path string) (text *bytes.Buffer, isStream bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	request := must.Have(http.NewRequestWithContext(ctx, http.MethodGet, p.URL+path, nil))(t)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	defer answer.Body.Close()
	text = &bytes.Buffer{}
	if isStream = answer.Header.Get("Content-Type") == "text/event-stream"; isStream {
		_, err = io.CopyN(text, answer.Body, 8)
	} else {
		_, err = io.Copy(text, answer.Body)
	}
	if err != nil {
		t.Errorf("%s: %v", path, err)
	}
	switch answer.StatusCode {
	case http.StatusOK, http.StatusUnprocessableEntity, http.StatusNotImplemented: // the last one: the search is off
	default:
		t.Errorf("%s: %s %.300s", path, answer.Status, text)
	}
	return text, isStream
}
