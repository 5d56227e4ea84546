package access

import (
	"net/http"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/internal/must"
)

func TestRights(t *testing.T) {
	for text, want := range map[string]Rights{
		"": 0, "read": Read, "read write": Read | Write, "stop,delete": Stop | Delete, " admin,  read ": Admin | Read,
	} {
		rights, err := ParseRights(text)
		if err != nil || rights != want {
			t.Errorf("%q: got %v, %v, want %v", text, rights, err, want)
		}
		var same Rights
		if err := same.UnmarshalText([]byte(rights.String())); err != nil || same != rights {
			t.Errorf("%q: read as %v, %v", rights, same, err)
		}
	}
	for _, text := range []string{"Read", "reads", "read;write", "all", "read\nwrite"} {
		if rights, err := ParseRights(text); err == nil || rights != 0 || !strings.Contains(err.Error(), "delete, admin") {
			t.Errorf("%q: got %v, %v", text, rights, err)
		}
	}
}

func TestAdminMayDoEverything(t *testing.T) {
	all := Read | Write | Stop | Delete | Admin
	if !(Identity{Rights: Admin}).Can(all) {
		t.Error("an administrator lacks a right")
	}
	reader := Identity{Rights: Read | Stop}
	if !reader.Can(Read) || !reader.Can(Read|Stop) || !reader.Can(0) || reader.Can(Read|Write) || reader.Can(Admin) {
		t.Error("read and stop mean other rights")
	}
	if (Identity{}).Can(Read) {
		t.Error("the zero identity may read")
	}
}

func TestAuthorizationHeader(t *testing.T) {
	for _, tc := range []struct {
		name    string
		headers []string
		kind    error
		reason  string
	}{
		{"none", nil, ErrNoToken, "the request has no Authorization header"},
		{"empty", []string{""}, ErrNoToken, "the Authorization header has another scheme than Bearer"},
		{"another scheme", []string{"Basic dXNlcjpwYXNz"}, ErrNoToken, "the Authorization header has another scheme than Bearer"},
		{"no scheme", []string{"abc.def.ghi"}, ErrNoToken, "the Authorization header has another scheme than Bearer"},
		{"scheme alone", []string{"Bearer"}, ErrBadToken, "the Authorization header has no token"},
		{"spaces", []string{"Bearer    "}, ErrBadToken, "the Authorization header has no token"},
		{"two", []string{"Bearer a", "Bearer b"}, ErrBadToken, "more than one Authorization header"},
		{"two tokens", []string{"Bearer a b"}, ErrBadToken, "malformed Authorization header"},
		{"list", []string{"Bearer a, Bearer b"}, ErrBadToken, "malformed Authorization header"},
		{"quotes", []string{`Bearer "a"`}, ErrBadToken, "malformed Authorization header"},
		{"tab", []string{"Bearer a\tb"}, ErrBadToken, "malformed Authorization header"},
		{"not ASCII", []string{"Bearer ä"}, ErrBadToken, "malformed Authorization header"},
		{"long", []string{"Bearer " + strings.Repeat("a", maxTokenBytes+1)}, ErrBadToken, "the token is longer than 16384 bytes"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := bearerToken(requestWith(tc.headers...))
			wantRefusal(t, err, tc.kind, tc.reason)
		})
	}
	for _, header := range []string{"Bearer a.b-c_d~e+f/g==", "bearer a.b-c_d~e+f/g==", "BEARER   a.b-c_d~e+f/g=="} {
		if token, err := bearerToken(requestWith(header)); err != nil || token != "a.b-c_d~e+f/g==" {
			t.Errorf("%q: got %q, %v", header, token, err)
		}
	}
}

func FuzzAuthorizationHeader(f *testing.F) {
	for _, seed := range []string{"", "Bearer", "Bearer a", "bearer  a=", "Basic a", "Bearer a b", "Bearer \x00", "Bearer \xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		token, err := bearerToken(requestWith(header))
		if err == nil {
			scheme, rest, _ := strings.Cut(header, " ")
			if token == "" || strings.ToLower(scheme) != "bearer" || strings.Trim(rest, " ") != token || strings.ContainsAny(token, " \"\\\r\n\x00") {
				t.Fatalf("%q: token %q", header, token)
			}
			return
		}
		answer := http.Header{}
		refusal := err.(*Refusal)
		refusal.SetHeaders(answer)
		if refusal.Status() != http.StatusUnauthorized || answer.Get("WWW-Authenticate") == "" {
			t.Fatalf("%q: status %d, %v", header, refusal.Status(), answer)
		}
	})
}

func TestBothChooseByPrefix(t *testing.T) {
	token, hash := NewToken()
	tokens, err := LoadTokens(writeFile(t, `[{name: cli, sha256: `+hash+`, scope: acme, rights: [read]}]`))
	must.Do(t, err)
	together := Both(tokens, Anonymous("from jwt", Write))
	if identity := mustAuthenticate(t, together, bearer(token)); identity.Scope != "acme" {
		t.Errorf("a static token: %+v", identity)
	}
	if identity := mustAuthenticate(t, together, bearer("a.b.c")); identity.Scope != "from jwt" {
		t.Errorf("a JWT: %+v", identity)
	}
	other, _ := NewToken()
	_, err = together.Authenticate(bearer(other))
	wantRefusal(t, err, ErrBadToken, "unknown token")
	_, err = together.Authenticate(requestWith())
	wantRefusal(t, err, ErrNoToken, "the request has no Authorization header")
}
