package server

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
	"strings"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/tmaxmax/go-sse"
)

// Codes of the RUN_ERROR events that the server writes itself.
const (
	codeUnreachable = "AGENT_UNREACHABLE" // no connection
	codeStatus      = "AGENT_STATUS"      // another answer than 200 with server-sent events
	codeProtocol    = "AGENT_PROTOCOL"    // an event that is no JSON object, or too large
	codeIncomplete  = "AGENT_INCOMPLETE"  // the answer ended, or broke off, before the end of the run
	codeTimeout     = "AGENT_TIMEOUT"     // a limit of time
	codeShutdown    = "SERVER_SHUTDOWN"   // the server ended
	codeErased      = "THREAD_ERASED"     // the id of the thread was erased
)

// agentError is a failure of an agent, which ends its run.
type agentError struct{ code, message string }

func (e *agentError) Error() string { return e.message }

func failure(code, format string, arguments ...any) error {
	return &agentError{code, fmt.Sprintf(format, arguments...)}
}

// The causes of the end of the context of a call.
var (
	errIdle     = errors.New("nothing came within the idle timeout")
	errTooLong  = errors.New("the run took longer than the run timeout")
	errShutdown = errors.New("the server shuts down")
)

const (
	// maxAttempts bounds the attempts to connect to an agent.
	maxAttempts = 4
	// maxExcerpt bounds what is quoted from the answer of an agent that is no stream.
	maxExcerpt = 300
)

// call posts an input to the agent and yields its events, as it wrote them. An error ends the
// iteration. The context's cause says why it ended.
func (a *Agent) call(ctx context.Context, client *http.Client, input json.RawMessage, headers http.Header) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		limit := time.AfterFunc(a.RunTimeout, func() { cancel(errTooLong) })
		defer limit.Stop()
		var isTaken atomic.Bool // an event is being recorded, which takes long if the database is slow
		idle := time.AfterFunc(a.IdleTimeout, func() {
			if !isTaken.Load() {
				cancel(errIdle)
			}
		})
		defer idle.Stop()

		answer, err := a.post(ctx, client, input, headers)
		if err != nil {
			yield(nil, a.explain(ctx, err))
			return
		}
		defer answer.Body.Close()
		var recording time.Duration // not yet added to the idle timeout
		for event, err := range sse.Read(activeReader{answer.Body, func() { idle.Reset(a.IdleTimeout) }}, &sse.ReadConfig{MaxEventSize: a.MaxEventBytes}) {
			if err != nil {
				yield(nil, a.explain(ctx, err))
				return
			}
			if event.Data == "" {
				continue
			}
			begin := time.Now()
			isTaken.Store(true)
			goOn := yield(json.RawMessage(event.Data), nil)
			// Not for each event: a timer that is set wakes the poller of the network.
			if recording += time.Since(begin); recording > a.IdleTimeout/4 {
				idle.Reset(a.IdleTimeout)
				recording = 0
			}
			isTaken.Store(false)
			if !goOn {
				return
			}
		}
		if ctx.Err() != nil {
			yield(nil, a.explain(ctx, ctx.Err()))
		}
	}
}

// activeReader calls a function after each read.
type activeReader struct {
	io.Reader
	active func()
}

func (r activeReader) Read(into []byte) (int, error) {
	n, err := r.Reader.Read(into)
	r.active()
	return n, err
}

// post sends the request. It repeats one that the agent cannot have received, and for an idempotent
// agent also one that a proxy in between has not delivered.
func (a *Agent) post(ctx context.Context, client *http.Client, input json.RawMessage, headers http.Header) (*http.Response, error) {
	return backoff.Retry(ctx, func() (*http.Response, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, a.URL, bytes.NewReader(input))
		if err != nil {
			return nil, backoff.Permanent(err)
		}
		request.Header = headers
		answer, err := client.Do(request)
		if err != nil {
			if isUnsent(err) {
				return nil, err
			}
			return nil, backoff.Permanent(err)
		}
		if isStream(answer) {
			return answer, nil
		}
		excerpt, _ := io.ReadAll(io.LimitReader(answer.Body, maxExcerpt))
		answer.Body.Close()
		err = failure(codeStatus, "the agent answered %s with %q: %s", answer.Status, answer.Header.Get("Content-Type"), strings.ToValidUTF8(string(excerpt), "\uFFFD"))
		if a.Idempotent && answer.StatusCode >= http.StatusBadGateway && answer.StatusCode <= http.StatusGatewayTimeout {
			return nil, err
		}
		return nil, backoff.Permanent(err)
	}, backoff.WithMaxTries(maxAttempts), backoff.WithBackOff(&backoff.ExponentialBackOff{
		InitialInterval: 100 * time.Millisecond, MaxInterval: 2 * time.Second, Multiplier: 2, RandomizationFactor: 0.5,
	}))
}

// isUnsent reports whether a request failed before any of it was sent.
func isUnsent(err error) bool {
	var failed *net.OpError
	return errors.As(err, &failed) && failed.Op == "dial"
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
	case isUnsent(err):
		return failure(codeUnreachable, "the agent cannot be reached: %v", withoutURL(err))
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return failure(codeIncomplete, "the connection to the agent broke off before the end of the run")
	case errors.Is(err, bufio.ErrTooLong):
		return failure(codeProtocol, "the agent sent an event of more than %d bytes", a.MaxEventBytes)
	default:
		return failure(codeIncomplete, "the connection to the agent failed: %v", withoutURL(err))
	}
}

// withoutURL takes the address of the agent out of an error: clients read the error, and the
// address may be internal.
func withoutURL(err error) error {
	var failed interface{ Unwrap() error }
	for errors.As(err, &failed) {
		inner := failed.Unwrap()
		if inner == nil {
			break
		}
		err = inner
		failed = nil
	}
	return err
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
