package webhook

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// The example of the specification.
const knownSecret, knownID, knownBody = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", `{"test": 2432232314}`

var knownTime = time.Unix(1614265330, 0)

func TestSignatureIsThatOfTheStandard(t *testing.T) {
	t.Parallel()
	signature, err := Sign(knownSecret, knownID, knownTime, []byte(knownBody))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; err != nil || signature != want {
		t.Errorf("signature %s, want %s (%v)", signature, want, err)
	}
	for _, secret := range []string{"", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_?", "whsec_abc"} {
		if signature, err := Sign(secret, knownID, knownTime, nil); err == nil || strings.Contains(err.Error(), "MfK") {
			t.Errorf("secret %q: %s, %v", secret, signature, err)
		}
	}
}

func TestOnlyPublicAddressesAreAllowed(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"8.8.8.8": true, "1.1.1.1": true, "172.32.0.1": true, "100.63.255.255": true, "223.255.255.255": true,
		"2606:4700::1111": true, "2a00:1450:4001:82a::200e": true, "64:ff9b::808:808": true, "::ffff:8.8.8.8": true,

		"127.0.0.1": false, "127.1.2.3": false, "0.0.0.0": false, "10.0.0.1": false, "172.16.0.1": false, "172.31.255.255": false, "192.168.1.1": false,
		"169.254.169.254": false, "169.254.170.2": false, "100.64.0.1": false, "100.100.100.200": false, "168.63.129.16": false, "192.0.0.192": false,
		"192.0.2.1": false, "198.18.0.1": false, "198.51.100.1": false, "203.0.113.1": false, "224.0.0.1": false, "240.0.0.1": false, "255.255.255.255": false,
		"::": false, "::1": false, "fe80::1": false, "fe80::1%eth0": false, "fc00::1": false, "fd00:ec2::254": false, "ff02::1": false, "fec0::1": false,
		"::ffff:127.0.0.1": false, "::ffff:169.254.169.254": false, "::127.0.0.1": false, "64:ff9b::7f00:1": false, "64:ff9b::a9fe:a9fe": false,
		"64:ff9b:1::808:808": false, "2001:db8::1": false, "2001::1": false, "2002:7f00:1::": false, "3fff::1": false,
	} {
		err := checked(nil)("tcp", net.JoinHostPort(address, "443"), nil)
		if (err == nil) != want {
			t.Errorf("%s: %v", address, err)
		}
	}
	networks := prefixes("10.1.0.0/16", "fd00::/8")
	for address, want := range map[string]bool{"10.1.2.3": true, "::ffff:10.1.2.3": true, "10.2.0.1": false, "fd00::1": true, "8.8.8.8": true, "127.0.0.1": false} {
		if err := checked(networks)("tcp", net.JoinHostPort(address, "443"), nil); (err == nil) != want {
			t.Errorf("%s with networks: %v", address, err)
		}
	}
}

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// post sends the example to a server with a handler.
func post(t *testing.T, client *Client, handler http.HandlerFunc) Answer {
	t.Helper()
	server := httptest.NewServer(handler)
	defer server.Close()
	return client.Post(t.Context(), Request{URL: server.URL + "/hook?token=s3cret", Secrets: []string{knownSecret}, ID: knownID, At: knownTime, Body: []byte(knownBody)})
}

func TestRequestsHaveTheFormOfTheStandard(t *testing.T) {
	t.Parallel()
	answer := post(t, NewClient(loopback, true), func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got := fmt.Sprintln(r.Method, r.URL, r.Header.Get("Content-Type"), r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp"),
			r.Header.Get("webhook-signature"), r.ContentLength, string(body))
		if want := "POST /hook?token=s3cret application/json " + knownID + " 1614265330 v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE= 20 " + knownBody + "\n"; got != want {
			t.Errorf("got %s want %s", got, want)
		}
		w.WriteHeader(http.StatusNoContent)
	})
	if want := (Answer{Outcome: "204 No Content", IsTaken: true}); answer != want {
		t.Errorf("answer %+v, want %+v", answer, want)
	}
}

func TestAnswersAreRead(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status     int
		retryAfter string
		want       Answer
	}{
		"taken":         {200, "", Answer{Outcome: "200 OK", IsTaken: true}},
		"accepted":      {202, "9", Answer{Outcome: "202 Accepted", IsTaken: true}},
		"refused":       {400, "", Answer{Outcome: "400 Bad Request"}},
		"gone":          {410, "", Answer{Outcome: "410 Gone", IsGone: true}},
		"busy":          {429, "120", Answer{Outcome: "429 Too Many Requests", RetryAfter: 2 * time.Minute}},
		"down":          {503, knownTime.Add(time.Hour).UTC().Format(http.TimeFormat), Answer{Outcome: "503 Service Unavailable", RetryAfter: time.Hour}},
		"down for long": {503, "99999999999", Answer{Outcome: "503 Service Unavailable", RetryAfter: 24 * time.Hour}},
		"long ago":      {503, knownTime.Add(-time.Hour).UTC().Format(http.TimeFormat), Answer{Outcome: "503 Service Unavailable"}},
		"negative":      {503, "-5", Answer{Outcome: "503 Service Unavailable"}},
		"no time":       {503, "soon", Answer{Outcome: "503 Service Unavailable"}},
		"unknown":       {599, "", Answer{Outcome: "599"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer := post(t, NewClient(loopback, true), func(w http.ResponseWriter, _ *http.Request) {
				if test.retryAfter != "" {
					w.Header().Set("Retry-After", test.retryAfter)
				}
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, "a body that nobody keeps")
			})
			if answer != test.want {
				t.Errorf("answer %+v, want %+v", answer, test.want)
			}
		})
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	for _, status := range []int{301, 302, 303, 307, 308} {
		requests := 0
		answer := post(t, NewClient(loopback, true), func(w http.ResponseWriter, r *http.Request) {
			requests++
			http.Redirect(w, r, "/elsewhere", status)
		})
		if requests != 1 || answer.IsTaken || !strings.HasSuffix(answer.Outcome, "(redirects are not followed)") {
			t.Errorf("%d: %d requests, %+v", status, requests, answer)
		}
	}
}

// Over https the certificate must be that of the name.
func TestCertificatesAreChecked(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	request := Request{URL: server.URL, Secrets: []string{knownSecret}, ID: knownID, At: knownTime}
	client := NewClient(loopback, false)
	if answer := client.Post(t.Context(), request); !answer.HasNone || !strings.Contains(answer.Outcome, "certificate") {
		t.Errorf("an unknown certificate: %+v", answer)
	}
	client.http.Transport.(*http.Transport).TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig
	if answer := client.Post(t.Context(), request); !answer.IsTaken {
		t.Errorf("a known certificate: %+v", answer)
	}
}

// An endless answer is not read to its end.
func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	answer := post(t, NewClient(loopback, true), func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 32<<10)); err != nil {
				return
			}
		}
	})
	if !answer.IsTaken {
		t.Errorf("answer: %+v", answer)
	}
}

func TestRefusedRequestsAreNotSent(t *testing.T) {
	t.Parallel()
	refuse := func(client *Client, because string) {
		t.Helper()
		answer := post(t, client, func(http.ResponseWriter, *http.Request) { t.Error("the request was sent") })
		if !answer.HasNone || answer.IsTaken || !strings.Contains(answer.Outcome, because) || strings.Contains(answer.Outcome, "s3cret") {
			t.Errorf("answer %+v, want %q", answer, because)
		}
	}
	refuse(NewClient(nil, true), "127.0.0.1: the address is not public")
	refuse(NewClient(loopback, false), "http:// is not allowed")
	// A name that leads to this machine, and URLs that are none.
	for address, because := range map[string]string{
		"http://localhost:1/?s3cret": "the address is not public", "http://[::1]:1/?s3cret": "the address is not public", "http://0x7f.1:1/?s3cret": "",
		"http://host:port/?s3cret": "the URL is not valid", "ftp://8.8.8.8/?s3cret": "unsupported protocol", "http:///?s3cret": "no Host",
	} {
		answer := NewClient(nil, true).Post(t.Context(), Request{URL: address, Secrets: []string{knownSecret}})
		if !answer.HasNone || !strings.Contains(answer.Outcome, because) || strings.Contains(answer.Outcome, "s3cret") {
			t.Errorf("%s: %+v", address, answer)
		}
	}
	if answer := NewClient(nil, true).Post(t.Context(), Request{URL: "https://example.com", Secrets: []string{"whsec_?"}}); answer.IsTaken || !strings.Contains(answer.Outcome, "the secret is not valid") {
		t.Errorf("without a key: %+v", answer)
	}
}

// A server that takes the connection and says nothing is left after a time.
func TestSilenceIsNoAnswer(t *testing.T) {
	t.Parallel()
	client := NewClient(loopback, true)
	client.http.Timeout = 50 * time.Millisecond
	answer := post(t, client, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // so that the server notices the end of the connection
		<-r.Context().Done()
	})
	if !answer.HasNone || answer.Outcome != "no answer within 15s" {
		t.Errorf("answer: %+v", answer)
	}
}
