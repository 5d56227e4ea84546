package core

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/cenkalti/backoff/v5"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/panics"
	"github.com/pgagui/pgagui/server/internal/sse"
)

// Codes of the RUN_ERROR events that the server writes itself.
const (
	codeUnreachable = "AGENT_UNREACHABLE" // no connection
	codeStatus      = "AGENT_STATUS"      // another answer than 200 with server-sent events
	codeProtocol    = "AGENT_PROTOCOL"    // an event that is no JSON object, or too large
	codeIncomplete  = "AGENT_INCOMPLETE"  // the answer ended, or broke off, before the end of the run
	codeTimeout     = "AGENT_TIMEOUT"     // a limit of time
	codeInternal    = "SERVER_ERROR"      // the server failed while it recorded the run
	codeShutdown    = "SERVER_SHUTDOWN"   // the server ended
)

// agentError is a failure of an agent, which ends its run.
type agentError struct {
	// code and message are what clients receive. They say nothing of addresses, nor of what was answered.
	code, message string
	// detail is for the log.
	detail string
	// answered is what the agent answered in place of a stream; nil: nothing. Only operators may read it, and no log has it.
	answered *pgagui.AgentError
}

func (e *agentError) Error() string {
	if e.detail == "" {
		return e.message
	}
	return e.message + ": " + e.detail
}

func failure(code, format string, arguments ...any) *agentError {
	return &agentError{code: code, message: fmt.Sprintf(format, arguments...)}
}

// because adds what only operators should read.
func (e *agentError) because(format string, arguments ...any) *agentError {
	e.detail = fmt.Sprintf(format, arguments...)
	return e
}

// The causes of the end of the context of a call.
var (
	errIdle    = errors.New("nothing came within the idle timeout")
	errTooLong = errors.New("the run took longer than the run timeout")
)

const (
	// maxAttempts bounds the attempts to connect to an agent.
	maxAttempts = 4
	// maxExcerpt is how much is kept of the body of an answer that is no stream.
	maxExcerpt = 4096
	// excerptTimeout bounds how long the run waits for that.
	excerptTimeout = 2 * time.Second
)

// call posts an input to the agent and yields its events, as it wrote them. An error ends the
// iteration. The context's cause says why it ended. When the agent has the input, call lets it go: it
// may be large, and a run may last long.
func (a *Agent) call(ctx context.Context, client *http.Client, input *json.RawMessage, headers http.Header) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		limit := time.AfterFunc(a.RunTimeout, panics.Task(nil, func() { cancel(errTooLong) }, nil))
		defer limit.Stop()
		waiting := &idleTimer{timeout: a.IdleTimeout}
		waiting.isActive.Store(true)
		waiting.timer = time.AfterFunc(a.IdleTimeout, panics.Task(nil, func() {
			if waiting.isActive.Load() {
				cancel(errIdle)
			}
		}, cancel))
		defer waiting.timer.Stop()

		sent := &sentInput{text: *input}
		*input = nil
		answer, err := a.post(ctx, client, sent, headers)
		sent.answered()
		if err != nil {
			yield(nil, a.explain(ctx, err))
			return
		}
		defer answer.Body.Close()
		for event, err := range sse.Read(timedReader{answer.Body, waiting}, a.MaxEventBytes) {
			if err != nil {
				yield(nil, a.explain(ctx, err))
				return
			}
			if !yield(event, nil) {
				return
			}
		}
		if ctx.Err() != nil {
			yield(nil, a.explain(ctx, ctx.Err()))
		}
	}
}

// idleTimer ends a call of an agent that sends nothing. It runs while the server waits for the agent,
// and not while events are recorded, which takes long if the database is slow.
type idleTimer struct {
	timeout  time.Duration
	timer    *time.Timer
	isActive atomic.Bool
}

// timedReader is an answer whose reads are timed.
type timedReader struct {
	io.Reader
	waiting *idleTimer
}

func (r timedReader) Read(into []byte) (int, error) {
	r.waiting.timer.Reset(r.waiting.timeout)
	r.waiting.isActive.Store(true)
	n, err := r.Reader.Read(into)
	r.waiting.isActive.Store(false)
	return n, err
}

// sentInput is an input that is sent, perhaps several times. The transport keeps the request with its
// body until the answer ends, so the body lets the text go.
type sentInput struct {
	mu   sync.Mutex
	text []byte
}

// body returns the body of a request.
func (s *sentInput) body() (io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &sentBody{reader: bytes.NewReader(s.text)}, nil
}

// answered says that no more bodies follow.
func (s *sentInput) answered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = nil
}

type sentBody struct {
	mu     sync.Mutex
	reader *bytes.Reader
}

func (b *sentBody) Read(into []byte) (n int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reader.Read(into)
}

// Close is called by the transport, perhaps during a call of Read.
func (b *sentBody) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reader.Reset(nil)
	return nil
}

// post sends the request. It repeats one that the agent cannot have received, and for an idempotent
// agent also one that a proxy in between has not delivered.
func (a *Agent) post(ctx context.Context, client *http.Client, input *sentInput, headers http.Header) (*http.Response, error) {
	size := int64(len(input.text))
	return backoff.Retry(ctx, func() (*http.Response, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, a.URL, http.NoBody)
		if err != nil {
			return nil, backoff.Permanent(err)
		}
		request.Header, request.ContentLength, request.GetBody = headers, size, input.body
		request.Body, _ = input.body()
		answer, err := client.Do(request)
		if err != nil {
			if isUnsent(err) {
				return nil, err
			}
			return nil, backoff.Permanent(err)
		}
		if isStream(answer) {
			// None is accepted: a few bytes may unpack to any number of them.
			if encoding := answer.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
				answer.Body.Close()
				return nil, backoff.Permanent(failure(codeProtocol, "the agent compressed its answer, although no encoding was accepted"))
			}
			return answer, nil
		}
		limit := time.AfterFunc(excerptTimeout, panics.Task(nil, func() { answer.Body.Close() }, nil))
		body, _ := io.ReadAll(io.LimitReader(answer.Body, maxExcerpt))
		limit.Stop()
		answer.Body.Close()
		refused := failure(codeStatus, "the agent answered with the status %d, and not with a stream of events", answer.StatusCode)
		refused.answered = &pgagui.AgentError{Status: answer.StatusCode, ContentType: answer.Header.Get("Content-Type"), Body: body}
		if len(body) == maxExcerpt {
			refused.answered.Body = wholeRunes(body)
		}
		if to, err := answer.Location(); err == nil {
			refused.detail = "redirects are not followed: set the URL of the agent to " + to.Redacted()
			return nil, backoff.Permanent(refused)
		}
		if a.Idempotent && answer.StatusCode >= http.StatusBadGateway && answer.StatusCode <= http.StatusGatewayTimeout {
			return nil, refused
		}
		return nil, backoff.Permanent(refused)
	}, backoff.WithMaxTries(maxAttempts), backoff.WithBackOff(&backoff.ExponentialBackOff{
		InitialInterval: 100 * time.Millisecond, MaxInterval: 2 * time.Second, Multiplier: 2, RandomizationFactor: 0.5,
	}))
}

// wholeRunes returns a text without the character that its end cuts in two, and what is no text as it is.
func wholeRunes(body []byte) []byte {
	for cut := range min(utf8.UTFMax, len(body)) {
		if utf8.Valid(body[:len(body)-cut]) {
			return body[:len(body)-cut]
		}
	}
	return body
}

// isUnsent reports whether a request failed before any of it was sent.
func isUnsent(err error) bool {
	var failed *net.OpError
	return errors.As(err, &failed) && failed.Op == "dial" && !errors.Is(err, errNotAllowed)
}

func isStream(answer *http.Response) bool {
	media, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	return err == nil && media == "text/event-stream" && answer.StatusCode == http.StatusOK
}

// explain makes an agentError of an error of a call.
func (a *Agent) explain(ctx context.Context, err error) error {
	var known *agentError
	switch cause := context.Cause(ctx); {
	case errors.As(err, &known):
		return known
	case errors.Is(cause, errIdle):
		return failure(codeTimeout, "the agent sent nothing for %s", a.IdleTimeout)
	case errors.Is(cause, errTooLong):
		return failure(codeTimeout, "the run took longer than %s", a.RunTimeout)
	case cause != nil:
		return cause
	case isUnsent(err) || errors.Is(err, errNotAllowed):
		return failure(codeUnreachable, "the agent cannot be reached").because("%v", err)
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return failure(codeIncomplete, "the connection to the agent broke off before the end of the run")
	case errors.Is(err, bufio.ErrTooLong):
		return failure(codeProtocol, "the agent sent an event of more than %d bytes (maxEventBytes of the agent sets this limit)", a.MaxEventBytes)
	default:
		return failure(codeIncomplete, "the connection to the agent failed").because("%v", err)
	}
}

// headers returns the headers of a request to an agent.
func (a *Agent) headers(from http.Header) http.Header {
	headers := http.Header{}
	for _, name := range a.ForwardHeaders {
		if values := from.Values(name); len(values) > 0 {
			headers[http.CanonicalHeaderKey(name)] = values
		}
	}
	for name, values := range a.Headers {
		headers[http.CanonicalHeaderKey(name)] = values
	}
	headers.Set("Content-Type", "application/json")
	headers.Set("Accept", "text/event-stream")
	return headers
}
