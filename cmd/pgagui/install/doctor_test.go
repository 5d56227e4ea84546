package install

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/doctor"
	"github.com/pgagui/pgagui/internal/must"
)

// diagnose runs pgagui doctor --server, and returns what it finds in each check.
func diagnose(t *testing.T, url, token string, arguments ...string) (found map[string]doctor.Finding, code int) {
	t.Helper()
	if token != "" {
		arguments = append(arguments, "--token-file", clitest.WriteFile(t, "token", token))
	}
	var out, messages bytes.Buffer
	code = clitest.Run(t.Context(), append([]string{"doctor", "--json", "--server", url}, arguments...), strings.NewReader(""), &out, &messages)
	var findings []doctor.Finding
	if err := json.Unmarshal(out.Bytes(), &findings); err != nil {
		t.Fatalf("%v: %s%s", err, &out, &messages)
	}
	return byCheck(t, findings), code
}

func byCheck(t *testing.T, findings []doctor.Finding) map[string]doctor.Finding {
	t.Helper()
	found := map[string]doctor.Finding{}
	for _, finding := range findings {
		if _, isTwice := found[finding.Check]; isTwice {
			t.Errorf("two findings of one check: %+v", findings)
		}
		if finding.Severity != doctor.OK && finding.Severity != doctor.Note && finding.Advice == "" {
			t.Errorf("no advice: %+v", finding)
		}
		found[finding.Check] = finding
	}
	return found
}

// wantFindings compares the checks that are not OK, with parts of their texts.
func wantFindings(t *testing.T, what string, found map[string]doctor.Finding, want map[string]string) {
	t.Helper()
	for check, finding := range found {
		if finding.Severity != doctor.OK && want[check] == "" {
			t.Errorf("%s: %+v", what, finding)
		}
	}
	for check, text := range want {
		if severity, problem, _ := strings.Cut(text, " "); string(found[check].Severity) != severity || !strings.Contains(found[check].Problem, problem) {
			t.Errorf("%s: %s is %+v, want %s", what, check, found[check], text)
		}
	}
}

func TestDoctorExaminesAServer(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	token := commands.Token(file, "web", "acme", "read,stop")
	s := commands.Serve("--token-file", file, "--origins", "https://app.example.com", "--heartbeat", "100ms", "--agent", "assistant=http://localhost:1/")
	local := map[string]string{"tls": "note no TLS", "protocol": "note HTTP/1.1"}
	with := func(more map[string]string) map[string]string {
		all := map[string]string{}
		for _, one := range []map[string]string{local, more} {
			maps.Copy(all, one)
		}
		return all
	}

	found, code := diagnose(t, s.URL, token, "--origin", "https://app.example.com", "--heartbeats", "2")
	wantFindings(t, "a healthy server", found, local)
	var checks []string
	for check := range found {
		checks = append(checks, check)
	}
	slices.Sort(checks)
	if want := "clock heartbeat metrics origin protocol reachable streams tls token version"; strings.Join(checks, " ") != want || code != cli.ExitOK {
		t.Errorf("exit code %d, checks %s", code, checks)
	}
	if text := found["token"].Problem; text != `"web" may use the scope "acme" with the rights: read stop` {
		t.Error(text)
	}

	for _, test := range []struct {
		what, token string
		arguments   []string
		want        map[string]string
		code        int
	}{
		{"another origin", token, []string{"--origin", "https://evil.example.com"}, with(map[string]string{"origin": "error browsers refuse"}), cli.ExitProblems},
		{"no token", "", nil, map[string]string{"tls": "note no TLS", "token": "note no token was given"}, cli.ExitOK},
		{"a wrong token", "x", nil, map[string]string{"tls": "note no TLS", "token": "error the token is refused (401"}, cli.ExitProblems},
		{"--ready", "", []string{"--ready"}, map[string]string{}, cli.ExitOK},
	} {
		found, code := diagnose(t, s.URL, test.token, test.arguments...)
		wantFindings(t, test.what, found, test.want)
		if code != test.code {
			t.Errorf("%s: exit code %d", test.what, code)
		}
	}

	t.Run("behind proxies", func(t *testing.T) {
		for _, test := range []struct {
			what  string
			proxy func(*httputil.ReverseProxy) http.Handler
			want  map[string]string
		}{
			{"a good proxy", func(proxy *httputil.ReverseProxy) http.Handler { return proxy }, nil},
			{"a proxy with a path", func(proxy *httputil.ReverseProxy) http.Handler { return http.StripPrefix("/agents", proxy) }, nil},
			{"a buffering proxy", buffering, map[string]string{"streams": "error a proxy buffers streams"}},
			{"a compressing proxy", compressing, map[string]string{"compression": "warning a proxy compresses"}},
			{"a proxy that closes idle connections", closing, map[string]string{"heartbeat": "error an idle stream breaks"}},
			{"a proxy that sets CORS too", func(proxy *httputil.ReverseProxy) http.Handler {
				proxy.ModifyResponse = func(answer *http.Response) error {
					answer.Header.Add("Access-Control-Allow-Origin", "*")
					return nil
				}
				return proxy
			}, map[string]string{"origin": "error their preflight request"}},
			{"a proxy that sets CORS too, but for preflight requests", func(proxy *httputil.ReverseProxy) http.Handler {
				proxy.ModifyResponse = func(answer *http.Response) error {
					if answer.Request.Method != http.MethodOptions {
						answer.Header.Add("Access-Control-Allow-Origin", "*")
					}
					return nil
				}
				return proxy
			}, map[string]string{"origin": "error browsers refuse answers"}},
			{"a proxy that shows the metrics", func(proxy *httputil.ReverseProxy) http.Handler {
				mux := http.NewServeMux()
				mux.Handle("/", proxy)
				mux.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "# HELP go_goroutines x\n") })
				return mux
			}, map[string]string{"metrics": "warning everyone can read"}},
			{"a proxy without the path of the probe", func(proxy *httputil.ReverseProxy) http.Handler {
				mux := http.NewServeMux()
				mux.Handle("/", proxy)
				mux.Handle("/probe", http.NotFoundHandler())
				return mux
			}, map[string]string{"version": "error does not have GET /probe", "protocol": ""}},
		} {
			t.Run(test.what, func(t *testing.T) {
				t.Parallel()
				address := reverseProxy(t, s.URL, test.proxy)
				if strings.HasSuffix(test.what, "with a path") {
					address += "/agents/"
				}
				found, _ := diagnose(t, address, token, "--origin", "https://app.example.com", "--heartbeats", "1")
				want := with(test.want)
				if want["protocol"] == "" {
					delete(want, "protocol")
				}
				wantFindings(t, test.what, found, want)
			})
		}
	})
	s.Terminate(t)
	s.End(t)
	found, code = diagnose(t, s.URL, token)
	wantFindings(t, "no server", found, map[string]string{"reachable": "error no answer"})
	if code != cli.ExitProblems {
		t.Errorf("exit code %d", code)
	}
}

// reverseProxy starts a proxy in front of a server.
func reverseProxy(t *testing.T, target string, wrap func(*httputil.ReverseProxy) http.Handler) string {
	t.Helper()
	to := must.Have(url.Parse(target))(t)
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, FlushInterval: -1}
	front := httptest.NewServer(wrap(proxy))
	t.Cleanup(front.Close)
	return front.URL
}

// buffering waits for the end of an answer.
func buffering(proxy *httputil.ReverseProxy) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		proxy.ServeHTTP(answer, r)
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	})
}

// compressing compresses each part of an answer as it comes.
func compressing(proxy *httputil.ReverseProxy) http.Handler {
	proxy.ModifyResponse = func(answer *http.Response) error {
		if !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream") {
			return nil
		}
		from := answer.Body
		read, write := io.Pipe()
		answer.Body = read
		answer.Header.Set("Content-Encoding", "gzip")
		go func() {
			defer from.Close()
			compressor := gzip.NewWriter(write)
			part := make([]byte, 1<<10)
			for {
				n, err := from.Read(part)
				_, _ = compressor.Write(part[:n])
				_ = compressor.Flush()
				if err != nil {
					_ = compressor.Close()
					_ = write.CloseWithError(err)
					return
				}
			}
		}()
		return nil
	}
	return proxy
}

// closing closes the connection of a probe behind its second event, as if the stream had been idle for too long.
func closing(proxy *httputil.ReverseProxy) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proxy.ServeHTTP(&closingWriter{ResponseWriter: w}, r)
	})
}

type closingWriter struct {
	http.ResponseWriter
	isIdle bool
}

func (w *closingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *closingWriter) Write(text []byte) (int, error) {
	if w.isIdle {
		return 0, errors.New("the connection was idle")
	}
	w.isIdle = bytes.Contains(text, []byte(`"part":2`))
	return w.ResponseWriter.Write(text)
}

func TestDoctorExaminesTLS(t *testing.T) {
	t.Parallel()
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/readyz":
			_, _ = io.WriteString(w, `{"status":"ready"}`)
		case "/probe":
			_, _ = io.WriteString(w, "data: {\"version\":\"v9\",\"time\":\"2001-02-03T04:05:06Z\",\"rights\":\"\",\"scope\":\"s\",\"heartbeatSeconds\":90}\n\ndata: {}\n\n")
		default:
			http.NotFound(w, r)
		}
	})
	for name, isHTTP2 := range map[string]bool{"HTTP/2": true, "HTTP/1.1": false} {
		server := httptest.NewUnstartedServer(handler)
		server.EnableHTTP2 = isHTTP2
		server.StartTLS()
		t.Cleanup(server.Close)
		trusted := server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
		findings := must.Have(doctor.ExamineServer(t.Context(), doctor.ServerOptions{URL: server.URL, Token: "t", Version: "v1", TLS: &tls.Config{RootCAs: trusted}}))(t)
		want := map[string]string{
			"clock": "warning the clock of the server differs", "heartbeat": "warning a stream is silent for 1m30s", "token": "warning with the rights: none",
			"version": "note the server is v9, this program is v1",
		}
		if !isHTTP2 {
			want["protocol"] = "warning HTTP/1.1: a browser opens six"
		}
		wantFindings(t, name, byCheck(t, findings), want)

		findings, _ = doctor.ExamineServer(t.Context(), doctor.ServerOptions{URL: server.URL})
		wantFindings(t, "an unknown authority", byCheck(t, findings), map[string]string{"reachable": "error certificate"})
	}
	folder := t.TempDir()
	clitest.WriteCertificate(t, filepath.Join(folder, "crt"), filepath.Join(folder, "key"), 1) // for an hour
	pair := must.Have(tls.LoadX509KeyPair(filepath.Join(folder, "crt"), filepath.Join(folder, "key")))(t)
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	server.StartTLS()
	t.Cleanup(server.Close)
	findings, _ := doctor.ExamineServer(t.Context(), doctor.ServerOptions{URL: server.URL, TLS: &tls.Config{InsecureSkipVerify: true}})
	if got := byCheck(t, findings)["tls"]; got.Severity != doctor.Warning || !strings.HasPrefix(got.Problem, "the certificate expires at ") {
		t.Errorf("%+v", got)
	}
}

func TestDoctorExaminesOtherAnswers(t *testing.T) {
	t.Parallel()
	for want, handler := range map[string]http.HandlerFunc{
		"redirects to": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://example.com/readyz", http.StatusMovedPermanently)
		},
		"not that of pgagui": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") },
		"the server is not ready (": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"status":"not ready"}`)
		},
	} {
		server := httptest.NewServer(handler)
		defer server.Close()
		findings, err := doctor.ExamineServer(t.Context(), doctor.ServerOptions{URL: server.URL, ReadyOnly: true})
		if err != nil || len(findings) != 1 || findings[0].Severity != doctor.Error || !strings.Contains(findings[0].Problem, want) {
			t.Errorf("%s: %+v %v", want, findings, err)
		}
	}
	listener := must.Have(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	commands := clitest.On(t, "")
	for line, want := range map[string]string{
		"--server localhost:8080":          "is not one of a server",
		"--server http://x --heartbeats 9": "--heartbeats must be",
		"--ready":                          "--ready is for --server",
		"--origin x":                       "--origin is for --server",
		"--server http://x --scope y":      "--scope",
		"--server ftp://" + listener.Addr().String() + " --ready": "is not one of a server",
	} {
		if message := commands.MustFail(cli.ExitUsage, append([]string{"doctor"}, strings.Fields(line)...)...); !strings.Contains(message, want) {
			t.Errorf("doctor %s: %s", line, message)
		}
	}
}
