package server_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testfile"
	"github.com/pgagui/pgagui/server"
)

func init() {
	openapi3filter.RegisterBodyDecoder("text/event-stream", openapi3filter.PlainBodyDecoder)
	openapi3filter.RegisterBodyDecoder("application/x-ndjson", openapi3filter.PlainBodyDecoder)
}

// document is openapi.yaml, for tests: an object has no other members than those that it names,
// unless it says so.
var document = sync.OnceValues(func() (*openapi3.T, error) {
	doc, err := openapi3.NewLoader().LoadFromFile("openapi.yaml")
	if err != nil {
		return nil, err
	}
	if err := doc.Validate(context.Background()); err != nil {
		return nil, err
	}
	seen := map[*openapi3.Schema]bool{}
	for _, schema := range doc.Components.Schemas {
		closeObjects(schema, seen)
	}
	for _, response := range doc.Components.Responses {
		closeContent(response.Value.Content, seen)
	}
	for _, item := range doc.Paths.Map() {
		for _, operation := range item.Operations() {
			if operation.RequestBody != nil {
				closeContent(operation.RequestBody.Value.Content, seen)
			}
			for _, response := range operation.Responses.Map() {
				closeContent(response.Value.Content, seen)
			}
		}
	}
	return doc, nil
})

func closeContent(content openapi3.Content, seen map[*openapi3.Schema]bool) {
	for _, media := range content {
		closeObjects(media.Schema, seen)
	}
}

func closeObjects(reference *openapi3.SchemaRef, seen map[*openapi3.Schema]bool) {
	if reference == nil || reference.Value == nil || seen[reference.Value] {
		return
	}
	schema := reference.Value
	seen[schema] = true
	if len(schema.Properties) > 0 && schema.AdditionalProperties.Has == nil && schema.AdditionalProperties.Schema == nil {
		schema.AdditionalProperties.Has = new(false)
	}
	for _, property := range schema.Properties {
		closeObjects(property, seen)
	}
	closeObjects(schema.Items, seen)
}

var documentRouter = sync.OnceValues(func() (routers.Router, error) {
	doc, err := document()
	if err != nil {
		return nil, err
	}
	return gorillamux.NewRouter(doc)
})

// asDocumented passes requests on to a server, and reports what is not as openapi.yaml says: requests
// that succeed, and all answers.
func asDocumented(t testing.TB, next http.Handler) http.Handler {
	t.Helper()
	router := must.Have(documentRouter())(t)
	options := &openapi3filter.Options{MultiError: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		documented := r
		if strings.HasSuffix(r.URL.Path, "/") { // the same endpoint
			documented = r.Clone(r.Context())
			documented.URL.Path = strings.TrimSuffix(r.URL.Path, "/")
		}
		route, parameters, err := router.FindRoute(documented)
		if err != nil {
			seen := &seenStatus{ResponseWriter: w}
			next.ServeHTTP(seen, r)
			if seen.status < 400 && r.Method != http.MethodOptions && r.Method != http.MethodHead {
				t.Errorf("%s %s: status %d, but openapi.yaml: %v", r.Method, r.URL.Path, seen.status, err)
			}
			return
		}
		var sent bytes.Buffer
		checked := r.Clone(r.Context())
		if media := r.Header.Get("Content-Type"); media != "text/event-stream" && media != "application/x-ndjson" {
			r.Body = struct {
				io.Reader
				io.Closer
			}{io.TeeReader(r.Body, &sent), r.Body}
			if r.ContentLength != 0 {
				checked.Header.Set("Content-Type", "application/json")
			}
		}
		answer := &kept{seenStatus: seenStatus{ResponseWriter: w}}
		next.ServeHTTP(answer, r)

		checked.Body = io.NopCloser(&sent)
		request := &openapi3filter.RequestValidationInput{Request: checked, PathParams: parameters, Route: route, Options: options}
		if media := checked.Header.Get("Content-Type"); answer.status < 300 && (media == "" || media == "application/json") {
			if err := openapi3filter.ValidateRequest(context.Background(), request); err != nil {
				t.Errorf("%s %s was accepted with %d, although it is not as openapi.yaml says: %v", r.Method, r.URL, answer.status, err)
			}
		}
		response := &openapi3filter.ResponseValidationInput{
			RequestValidationInput: request, Status: answer.status, Header: w.Header(), Body: io.NopCloser(&answer.body), Options: options,
		}
		if w.Header().Get("Content-Encoding") == "gzip" {
			if response.Body, err = gzip.NewReader(&answer.body); err != nil {
				t.Error(err)
				return
			}
		}
		if strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
			response.Body = io.NopCloser(strings.NewReader("frames"))
		}
		if r.Method == http.MethodHead || answer.status == 0 {
			return
		}
		if err := openapi3filter.ValidateResponse(context.Background(), response); err != nil {
			t.Errorf("%s %s: the answer %d %.500s is not as openapi.yaml says: %v", r.Method, r.URL, answer.status, answer.body.String(), err)
		}
	})
}

// seenStatus is a ResponseWriter that knows the status of the answer.
type seenStatus struct {
	http.ResponseWriter
	status int
}

func (w *seenStatus) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *seenStatus) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *seenStatus) Write(text []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(text)
}

// kept is one that keeps the answer, unless it is a stream.
type kept struct {
	seenStatus
	body bytes.Buffer
}

func (w *kept) Write(text []byte) (int, error) {
	if !strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
		w.body.Write(text)
	}
	return w.seenStatus.Write(text)
}

// Every endpoint of the server is in openapi.yaml, and every operation there is an endpoint.
func TestOpenAPIHasEveryEndpoint(t *testing.T) {
	t.Parallel()
	doc := must.Have(document())(t)
	var documented []string
	ids := map[string]bool{}
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			documented = append(documented, method+" "+path)
			if operation.OperationID == "" || ids[operation.OperationID] || operation.Summary == "" || len(operation.Tags) != 1 {
				t.Errorf("%s %s needs an operationId of its own, a summary and a tag", method, path)
			}
			ids[operation.OperationID] = true
		}
	}
	slices.Sort(documented)
	p := serve(t, testdb.Pool(t), server.Options{})
	endpoints := registeredEndpoints(t)
	for _, endpoint := range endpoints {
		if !slices.Contains(documented, endpoint) {
			t.Errorf("openapi.yaml lacks %s", endpoint)
		}
	}
	for _, endpoint := range documented {
		if !slices.Contains(endpoints, endpoint) {
			t.Errorf("openapi.yaml has %s, which is no endpoint", endpoint)
		}
	}
	file := testfile.Read(t, "openapi.yaml")
	served, err := io.ReadAll(p.request("GET", "/openapi.yaml", "").Body)
	if err != nil || !bytes.Equal(served, file) {
		t.Errorf("GET /openapi.yaml: %v, %d bytes, want %d", err, len(served), len(file))
	}
}

// registeredEndpoints returns the patterns in the source of the server, which has each as a text.
func registeredEndpoints(t *testing.T) (endpoints []string) {
	t.Helper()
	pattern := regexp.MustCompile(`"(GET|POST|PUT|PATCH|DELETE) ((?:/[^" ]*)?)"`)
	prefixes := map[string]string{"copilotkit": "/copilotkit", "ambient": "/api/ambient/v1/sessions/{thread}"}
	own, _ := filepath.Glob("*.go")
	ofFaces, _ := filepath.Glob("face/*/*.go")
	for _, file := range append(own, ofFaces...) {
		source := testfile.Read(t, file)
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, found := range pattern.FindAllSubmatch(source, -1) {
			endpoints = append(endpoints, string(found[1])+" "+prefixes[filepath.Base(filepath.Dir(file))]+string(found[2]))
		}
	}
	slices.Sort(endpoints)
	return slices.Compact(endpoints)
}
