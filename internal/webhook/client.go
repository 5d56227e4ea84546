package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	// Timeout is how long a request may take, with its connection and its answer.
	Timeout = 15 * time.Second
	// longestRetryAfter bounds what an endpoint asks for.
	longestRetryAfter = 24 * time.Hour
	// mostBody is how much of an answer is read, so that the connection can be used for the next request.
	mostBody = 64 << 10
	// longestOutcome bounds the text of an outcome, in bytes.
	longestOutcome = 200
)

// Client sends requests. It follows no redirects and uses no proxy.
type Client struct {
	http      *http.Client
	allowHTTP bool
}

// NewClient returns a client for endpoints with public addresses, and with those of the networks. allowHTTP permits URLs that begin with
// http://.
func NewClient(networks []netip.Prefix, allowHTTP bool) *Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = nil // it would connect instead, to addresses that are not checked
	transport.DialContext = (&net.Dialer{Timeout: Timeout, Control: checked(networks)}).DialContext
	transport.MaxResponseHeaderBytes = mostBody
	return &Client{allowHTTP: allowHTTP, http: &http.Client{
		Transport: transport, Timeout: Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close closes the connections that are not in use.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Request is what is sent to an endpoint.
type Request struct {
	URL string
	// Secrets sign it, each with a signature of its own.
	Secrets []string
	ID      string
	At      time.Time // of the attempt
	Body    []byte
}

// Answer is what came of a request.
type Answer struct {
	// Outcome is a line about it: "204 No Content", or what went wrong.
	Outcome string
	// IsTaken reports that the endpoint took the request.
	IsTaken bool
	// IsGone reports that the endpoint wants no more requests.
	IsGone bool
	// HasNone reports that there was no answer.
	HasNone bool
	// RetryAfter is how long the endpoint asks to wait; 0: it does not.
	RetryAfter time.Duration
}

// Post sends a request once.
func (c *Client) Post(ctx context.Context, r Request) Answer {
	var signatures []string
	for _, secret := range r.Secrets {
		signature, err := Sign(secret, r.ID, r.At, r.Body)
		if err != nil {
			return failed(err)
		}
		signatures = append(signatures, signature)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return failed(err)
	}
	if request.URL.Scheme != "https" && !c.allowHTTP {
		return failed(errors.New("the URL does not begin with https://, and http:// is not allowed"))
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "User-Agent": "pgagui",
		"webhook-id": r.ID, "webhook-timestamp": strconv.FormatInt(r.At.Unix(), 10), "webhook-signature": strings.Join(signatures, " "),
	} {
		request.Header.Set(name, value)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return failed(err)
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, mostBody) // the answer is in the status
	answer := Answer{
		Outcome: strings.TrimSpace(fmt.Sprint(response.StatusCode, " ", http.StatusText(response.StatusCode))),
		IsTaken: response.StatusCode/100 == 2, IsGone: response.StatusCode == http.StatusGone,
	}
	if response.StatusCode/100 == 3 {
		answer.Outcome += " (redirects are not followed)"
	}
	if !answer.IsTaken {
		answer.RetryAfter = retryAfter(response.Header.Get("Retry-After"), r.At)
	}
	return answer
}

// failed is the answer of a request that got none. The error of the client has the URL, which may hold a secret.
func failed(err error) Answer {
	if outer, ok := errors.AsType[*url.Error](err); ok {
		switch {
		case outer.Timeout():
			err = fmt.Errorf("no answer within %s", Timeout)
		case outer.Op == "parse":
			err = errors.New("the URL is not valid")
		default:
			err = outer.Err
		}
	}
	text := strings.Join(strings.Fields(err.Error()), " ")
	return Answer{Outcome: strings.ToValidUTF8(text[:min(len(text), longestOutcome)], ""), HasNone: true}
}

// retryAfter reads a header: seconds, or a time.
func retryAfter(text string, now time.Time) time.Duration {
	var wait time.Duration
	if seconds, err := strconv.Atoi(text); err == nil {
		wait = time.Duration(min(seconds, int(longestRetryAfter/time.Second))) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		wait = at.Sub(now)
	}
	return max(0, min(wait, longestRetryAfter))
}
