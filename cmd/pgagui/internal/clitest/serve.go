package clitest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/sampleagent"
)

// Served is a process of pgagui serve.
type Served struct {
	*Running
	t   *testing.T
	URL string
}

var servingURL = regexp.MustCompile(`"msg":"serving","url":"([^"]+)"`)

// Serve starts pgagui serve.
func (c CommandLine) Serve(arguments ...string) *Served {
	c.T.Helper()
	return Serving(c.T, c.Start(append([]string{"serve", "--listen", "127.0.0.1:0", "--json"}, arguments...)...))
}

// Serving waits until a process serves.
func Serving(t *testing.T, p *Running) *Served {
	t.Helper()
	p.WaitForLine(t, `"msg":"serving"`)
	return &Served{p, t, servingURL.FindStringSubmatch(p.Log)[1]}
}

// Signal sends a signal.
func (s *Served) Signal(signal syscall.Signal) {
	s.t.Helper()
	if err := s.Process.Signal(signal); err != nil {
		s.t.Fatal(err)
	}
}

// Request sends a request with a token.
func (s *Served) Request(client *http.Client, token, method, path, body string) (*http.Response, string) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := client.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer, string(text)
}

// RunInput returns the body of a request that begins a run.
func RunInput(thread, run, question string) string {
	return fmt.Sprintf(`{"threadId":%q,"runId":%q,"messages":[{"id":"u-%s","role":"user","content":%q}],"state":{},"tools":[],"context":[],"forwardedProps":{}}`,
		thread, run, run, question)
}

// NewSample starts the sample agent.
func NewSample(t *testing.T) string {
	t.Helper()
	agent := httptest.NewServer(sampleagent.Agent{WordEvery: time.Millisecond})
	t.Cleanup(func() {
		agent.CloseClientConnections()
		agent.Close()
	})
	return agent.URL
}

// Token adds a token to a file, and returns it.
func (c CommandLine) Token(file, name, scope, rights string) string {
	c.T.Helper()
	var out, messages bytes.Buffer
	if code := Run(c.T.Context(), []string{"token", "--file", file, "--name", name, "--scope", scope, "--rights", rights}, strings.NewReader(""), &out, &messages); code != cli.ExitOK {
		c.T.Fatal(messages.String())
	}
	return strings.TrimSpace(out.String())
}

// WriteCertificate writes a certificate for 127.0.0.1 with a serial number, and its key.
func WriteCertificate(t *testing.T, certificate, key string, serial int64) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	public, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{certificate: {Type: "CERTIFICATE", Bytes: public}, key: {Type: "PRIVATE KEY", Bytes: encoded}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
