package doctor

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"
)

// ServerOptions say how ExamineServer examines a server.
type ServerOptions struct {
	// URL is the address that clients use, with the path that a proxy puts before it.
	URL string
	// Token is sent as the bearer token. Empty: none.
	Token string
	// Origin is a web origin whose pages should be able to call the server. Empty: not examined.
	Origin string
	// Heartbeats is how many heartbeats to wait for on an idle stream, up to 3.
	Heartbeats int
	// ReadyOnly examines only whether the server is reachable and ready.
	ReadyOnly bool
	// Version is that of this program.
	Version string
	// TLS is the configuration of the client. Nil: the certificates of the system.
	TLS *tls.Config
}

const (
	requestTimeout = 10 * time.Second
	// A certificate is renewed a month before its end at the latest.
	certificateWarning = 21 * 24 * time.Hour
	// Tokens and positions are compared with clocks; a JWT may be a minute off.
	clockWarning = 30 * time.Second
	// Load balancers close a connection that is idle for a minute.
	commonIdleTimeout = 60 * time.Second
)

// ExamineServer examines a running server as its clients see it, through the proxies in front. It
// changes nothing there.
func ExamineServer(ctx context.Context, options ServerOptions) ([]Finding, error) {
	base, err := url.Parse(options.URL)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, fmt.Errorf("the address %.100q is not one of a server (expected https://… or http://…)", options.URL)
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: options.TLS, ForceAttemptHTTP2: true, TLSHandshakeTimeout: requestTimeout,
		DisableCompression: true, // it asks for it itself, as browsers do
	}
	defer transport.CloseIdleConnections()
	e := &examination{options: options, base: base, client: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if e.reachable(ctx) && !options.ReadyOnly {
		e.certificate()
		e.metrics(ctx)
		if options.Origin != "" {
			e.preflight(ctx)
		}
		e.probe(ctx)
	}
	return e.findings, ctx.Err()
}

// examination collects what is found.
type examination struct {
	options  ServerOptions
	base     *url.URL
	client   *http.Client
	findings []Finding
	tls      *tls.ConnectionState // nil: no TLS
}

func (e *examination) add(check string, severity Severity, advice, problem string, arguments ...any) {
	e.findings = append(e.findings, Finding{Check: check, Severity: severity, Problem: fmt.Sprintf(problem, arguments...), Advice: advice})
}

func (e *examination) request(ctx context.Context, method, endpoint string) *http.Request {
	address := *e.base
	endpoint, address.RawQuery, _ = strings.Cut(endpoint, "?")
	address.Path = path.Join("/", address.Path, endpoint)
	request, _ := http.NewRequestWithContext(ctx, method, address.String(), nil) // both are known to be valid
	return request
}

// get sends a request and returns the answer with the beginning of its body.
func (e *examination) get(ctx context.Context, request *http.Request) (*http.Response, string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	answer, err := e.client.Do(request.WithContext(ctx))
	if err != nil {
		return nil, "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	return answer, string(text), err
}

// reachable examines whether the server answers, and is ready.
func (e *examination) reachable(ctx context.Context) bool {
	answer, text, err := e.get(ctx, e.request(ctx, http.MethodGet, "/readyz"))
	if err != nil {
		e.add("reachable", Error, adviceOn(err), "no answer: %v", err)
		return false
	}
	e.tls = answer.TLS
	var ready struct{ Status string }
	isOurs := json.Unmarshal([]byte(text), &ready) == nil && ready.Status != ""
	switch location := answer.Header.Get("Location"); {
	case location != "":
		e.add("reachable", Error, "give clients the address that it leads to: a redirect changes POST into GET", "%s redirects to %s", e.base, location)
	case isOurs && answer.StatusCode == http.StatusOK:
		e.add("reachable", OK, "", "it answers, and its database has the schema that it expects")
		return true
	case isOurs:
		e.add("ready", Error, "look at its log: its database is not reachable or has another schema, or it is stopping", "the server is not ready (%s)", answer.Status)
		return !e.options.ReadyOnly
	default:
		e.add("reachable", Error, "check the address, the path before it, and the route of the proxy", "%s, and the answer to GET /readyz is not that of pgagui serve", answer.Status)
	}
	return false
}

func adviceOn(err error) string {
	var certificate *tls.CertificateVerificationError
	var name *net.DNSError
	switch {
	case errors.As(err, &certificate):
		return "install a certificate for this name with its whole chain; clients refuse this one"
	case errors.As(err, &name):
		return "check the name"
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return "use http://, or turn on TLS (--tls-certificate, or a proxy in front)"
	case strings.Contains(err.Error(), "malformed HTTP response"):
		return "use https://"
	default:
		return "check that the server runs, the address, and firewalls between"
	}
}

func (e *examination) isLocal() bool {
	ip := net.ParseIP(e.base.Hostname())
	return e.base.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// certificate examines the encryption of the connection.
func (e *examination) certificate() {
	if e.tls == nil {
		if !e.isLocal() {
			e.add("tls", Warning, "use TLS (--tls-certificate, or a proxy in front)", "tokens and conversations cross the network in clear text")
			return
		}
		e.add("tls", Note, "", "no TLS, on this machine alone")
		return
	}
	expires := e.tls.PeerCertificates[0].NotAfter
	switch left := time.Until(expires); {
	case left < certificateWarning:
		e.add("tls", Warning, "renew it; pgagui serve reads a new one on SIGHUP", "the certificate expires at %s", expires.UTC().Format(time.DateTime))
	default:
		e.add("tls", OK, "", "%s, the certificate expires in %d days", tls.VersionName(e.tls.Version), int(left.Hours()/24))
	}
}

// metrics examines whether clients can read the metrics.
func (e *examination) metrics(ctx context.Context) {
	answer, text, err := e.get(ctx, e.request(ctx, http.MethodGet, "/metrics"))
	if err == nil && answer.StatusCode == http.StatusOK && (strings.Contains(text, "# HELP ") || strings.Contains(text, "pgagui_")) {
		e.add("metrics", Warning, "serve them on an address that only Prometheus reaches (--metrics-listen), without a route of the proxy",
			"everyone can read the metrics at /metrics")
		return
	}
	e.add("metrics", OK, "", "/metrics is not public")
}

// preflight examines whether pages of an origin may call the server.
func (e *examination) preflight(ctx context.Context) {
	request := e.request(ctx, http.MethodOptions, "/agent/x/run")
	request.Header.Set("Origin", e.options.Origin)
	request.Header.Set("Access-Control-Request-Method", http.MethodPost)
	request.Header.Set("Access-Control-Request-Headers", "authorization,content-type")
	answer, _, err := e.get(ctx, request)
	advice := "add it to --origins; a proxy in front must pass on OPTIONS and the header Origin"
	switch {
	case err != nil:
		e.add("origin", Error, advice, "the preflight request of a browser fails: %v", err)
	case answer.StatusCode >= 300 || !allows(answer.Header, e.options.Origin):
		e.add("origin", Error, advice, "browsers refuse pages of %s: the answer to their preflight request is %s, and allows the origins %q", e.options.Origin,
			answer.Status, answer.Header.Values("Access-Control-Allow-Origin"))
	case !strings.Contains(strings.ToLower(answer.Header.Get("Access-Control-Allow-Headers")), "authorization"):
		e.add("origin", Error, "a proxy in front must pass on OPTIONS", "browsers do not send the token from pages of %s", e.options.Origin)
	}
}

// allows reports whether a browser takes the answer for an origin. It refuses two headers.
func allows(header http.Header, origin string) bool {
	values := header.Values("Access-Control-Allow-Origin")
	return len(values) == 1 && (values[0] == origin || values[0] == "*")
}

// probe examines what only a stream shows.
func (e *examination) probe(ctx context.Context) {
	request := e.request(ctx, http.MethodGet, fmt.Sprintf("/probe?heartbeats=%d", e.options.Heartbeats))
	request.Header.Set("Accept", "text/event-stream")
	request.Header.Set("Accept-Encoding", "gzip") // as browsers do
	if e.options.Token != "" {
		request.Header.Set("Authorization", "Bearer "+e.options.Token)
	}
	if e.options.Origin != "" {
		request.Header.Set("Origin", e.options.Origin)
	}
	// Without a deadline: an idle stream may last.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silence := time.AfterFunc(requestTimeout, cancel)
	defer silence.Stop()
	sent := time.Now() // on the connection of the requests before
	answer, err := e.client.Do(request.WithContext(ctx))
	if err != nil {
		e.add("streams", Error, "see whether the proxy in front waits for the end of an answer", "a stream does not begin within %s: %v", requestTimeout, err)
		return
	}
	defer answer.Body.Close()
	if !e.accepted(answer) {
		return
	}
	e.protocol(answer)
	if origin := e.options.Origin; origin != "" && !e.has("origin") { // the preflight request was answered well
		if allows(answer.Header, origin) {
			e.add("origin", OK, "", "pages of %s may call the server", origin)
		} else {
			e.add("origin", Error, "let one of server and proxy set the header, not both", "browsers refuse answers to pages of %s: Access-Control-Allow-Origin is %q", origin,
				answer.Header.Values("Access-Control-Allow-Origin"))
		}
	}
	var body io.Reader = answer.Body
	if answer.Header.Get("Content-Encoding") == "gzip" {
		e.add("compression", Warning, "do not compress text/event-stream", "a proxy compresses streams, which delays their events")
		if body, err = gzip.NewReader(body); err != nil {
			e.add("streams", Error, "", "the stream cannot be read: %v", err)
			return
		}
	}
	e.stream(&frames{lines: bufio.NewScanner(body)}, sent, silence)
}

func (e *examination) has(check string) bool {
	for _, finding := range e.findings {
		if finding.Check == check {
			return true
		}
	}
	return false
}

// accepted examines how the server answers to the token.
func (e *examination) accepted(answer *http.Response) bool {
	if answer.StatusCode == http.StatusOK {
		return true
	}
	var problem struct{ Detail string }
	_ = json.NewDecoder(io.LimitReader(answer.Body, 64<<10)).Decode(&problem)
	why := answer.Status
	if problem.Detail != "" {
		why += ", " + problem.Detail
	}
	switch answer.StatusCode {
	case http.StatusUnauthorized:
		if e.options.Token == "" {
			e.add("token", Note, "give one with --token-file or $PGAGUI_TOKEN, to examine streams too", "no token was given, and the server takes no request without one")
			return false
		}
		e.add("token", Error, "see the log of the server for the reason; pgagui token makes a new one, and SIGHUP makes the server read its file", "the token is refused (%s)", why)
	case http.StatusNotFound:
		e.add("version", Error, "upgrade it, or let the proxy route the path", "the server does not have GET /probe: it is older than this program, or a proxy hides it")
	case http.StatusTooManyRequests:
		e.add("token", Warning, "raise --limits-streams or --limits-requests-per-second if clients meet them too", "the token is at its limits (%s)", why)
	default:
		e.add("streams", Error, "see the log of the server", "a stream was refused (%s)", why)
	}
	return false
}

func (e *examination) protocol(answer *http.Response) {
	switch {
	case answer.ProtoMajor >= 2:
		e.add("protocol", OK, "", "%s", answer.Proto)
	case e.tls != nil:
		e.add("protocol", Warning, "turn on HTTP/2 in the proxy", "%s: a browser opens six connections to a host, so six streams of all tabs", answer.Proto)
	default:
		e.add("protocol", Note, "", "%s: without TLS a browser opens six connections to a host, so six streams of all tabs", answer.Proto)
	}
}

// probed is the first event of the probe.
type probed struct {
	Version          string
	Time             time.Time
	Scope, Subject   string
	Rights           string
	Expires          *time.Time
	HeartbeatSeconds float64
	PauseSeconds     float64
}

// stream reads the probe. silence ends it if nothing comes.
func (e *examination) stream(frames *frames, sent time.Time, silence *time.Timer) {
	text, err := frames.next()
	first := time.Now()
	var about probed
	if err == nil {
		err = json.Unmarshal([]byte(strings.TrimPrefix(text, "data:")), &about)
	}
	if err != nil {
		e.add("streams", Error, "see whether a proxy changes or holds back text/event-stream", "the stream cannot be read: %v", err)
		return
	}
	e.about(about, sent, first)

	heartbeat := time.Duration(about.HeartbeatSeconds * float64(time.Second))
	silence.Reset(heartbeat + requestTimeout)
	pause := time.Duration(about.PauseSeconds * float64(time.Second))
	if _, err = frames.next(); err != nil {
		e.add("streams", Error, "see the log of the proxy", "the stream broke after its first event: %v", err)
		return
	}
	if between := time.Since(first); between < pause/2 {
		e.add("streams", Error, "turn off buffering (nginx: proxy_buffering off; see docs/server.md, Proxies in front)",
			"a proxy buffers streams: events that were sent %s apart arrived within %s", pause, between.Round(time.Millisecond))
		return
	}
	e.add("streams", OK, "", "each event arrives when it is sent")

	if e.options.Heartbeats == 0 {
		if heartbeat >= commonIdleTimeout {
			e.add("heartbeat", Warning, "set --heartbeat to half of the shortest idle timeout of the proxies", "a stream is silent for %s, and many proxies close connections that are idle for %s", heartbeat, commonIdleTimeout)
		} else {
			e.add("heartbeat", OK, "", "every %s; --heartbeats 1 waits for one", heartbeat)
		}
		return
	}
	for range e.options.Heartbeats + 1 { // and the last event
		silence.Reset(heartbeat + requestTimeout)
		if _, err := frames.next(); err != nil {
			e.add("heartbeat", Error, "set --heartbeat to half of the idle timeout of the proxies, or let these wait longer", "an idle stream breaks before its heartbeat of %s: %v", heartbeat, err)
			return
		}
	}
	e.add("heartbeat", OK, "", "an idle stream lives through the heartbeat of %s", heartbeat)
}

// about reports what the server says of itself and of the token.
func (e *examination) about(about probed, sent, received time.Time) {
	switch {
	case about.Version == e.options.Version:
		e.add("version", OK, "", "%s, as this program", about.Version)
	default:
		e.add("version", Note, "use commands of the server's version: others may need another schema", "the server is %s, this program is %s", about.Version, e.options.Version)
	}
	rights := cmp.Or(about.Rights, "none")
	who := fmt.Sprintf("%q may use the scope %q with the rights: %s", about.Subject, about.Scope, rights)
	if about.Expires != nil {
		who += ", until " + about.Expires.UTC().Format(time.DateTime)
	}
	switch {
	case e.options.Token == "" && !e.isLocal():
		e.add("token", Error, "run it without --insecure: a proxy in front passes requests of everyone as those of this machine", "the server takes requests without a token: %s", who)
	case e.options.Token == "":
		e.add("token", Note, "", "the server takes requests without a token: %s", who)
	case about.Rights == "":
		e.add("token", Warning, "give it rights: pgagui token --rights", "%s", who)
	default:
		e.add("token", OK, "", "%s", who)
	}
	middle := sent.Add(received.Sub(sent) / 2)
	difference := about.Time.Sub(middle)
	if difference.Abs() > clockWarning+received.Sub(sent)/2 {
		e.add("clock", Warning, "synchronize the clocks (NTP): tokens expire by them", "the clock of the server differs from that of this machine by %s", difference.Round(time.Second))
		return
	}
	e.add("clock", OK, "", "the clocks differ by %s", difference.Abs().Round(10*time.Millisecond))
}

// frames reads server-sent events.
type frames struct{ lines *bufio.Scanner }

// next returns the first line of the next event or comment.
func (f *frames) next() (string, error) {
	first := ""
	for f.lines.Scan() {
		switch line := f.lines.Text(); {
		case line == "" && first != "":
			return first, nil
		case first == "":
			first = line
		}
	}
	if err := f.lines.Err(); err != nil {
		return "", err
	}
	return "", io.ErrUnexpectedEOF
}
