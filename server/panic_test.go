package server_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/server"
)

// panickyTransport panics when the answer of an agent has a text.
type panickyTransport struct{ http.RoundTripper }

type panickyBody struct{ io.ReadCloser }

func (p panickyTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := p.RoundTripper.RoundTrip(request)
	if err == nil {
		answer.Body = panickyBody{answer.Body}
	}
	return answer, err
}

func (b panickyBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if strings.Contains(string(into[:n]), "to the dismay of the reader") {
		panic("a text")
	}
	return n, err
}

func TestAPanicFailsOneRunAndKeepsItsEvents(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := serve(t, testdb.Pool(t), server.Options{
		Agents:        []server.Agent{{Name: "test", URL: a.URL}},
		WrapTransport: func(plain http.RoundTripper) http.RoundTripper { return panickyTransport{plain} },
	})
	bad := p.stream("POST", "/agent/test/run", input("bad", "r", "u1 user Hello"))
	c := a.called(t)
	c.send(started("bad", "r"), start("a1"), content("a1", "Hi"))
	bad.until("TEXT_MESSAGE_CONTENT")
	good := p.stream("POST", "/agent/test/run", input("good", "r", "u1 user Hello"))
	other := a.called(t)
	c.send(content("a1", "to the dismay of the reader"))
	if types := bad.rest(); types[len(types)-1] != "RUN_ERROR" {
		t.Errorf("the client got %v", types)
	}
	run := mustRun(t, p, "bad", "r")
	if run.Status != "failed" || run.ErrorCode != "SERVER_ERROR" || run.LastSeq < 4 {
		t.Errorf("the run: %+v", run)
	}
	other.finish("a2", "fine")
	good.until("RUN_FINISHED")
}
