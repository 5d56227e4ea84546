package access

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testfile"
)

func TestNewTokensDiffer(t *testing.T) {
	token, hash := NewToken()
	other, otherHash := NewToken()
	if token == other || hash == otherHash || len(hash) != 64 {
		t.Fatal(token, hash, other, otherHash)
	}
	random, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(token, "pgagui_"))
	if err != nil || len(random) != 32 {
		t.Errorf("%s has %d random bytes, %v", token, len(random), err)
	}
}

func TestStaticTokens(t *testing.T) {
	token, hash := NewToken()
	_, otherHash := NewToken()
	want := Identity{Scope: "acme", Rights: Read | Stop, Subject: "support", TokenID: "support", Expires: time.Date(2099, 12, 31, 22, 59, 59, 0, time.UTC)}
	yaml := fmt.Sprintf(`# who helps
- name: other
  sha256: %s
  scope: ""
  rights: [admin]
- name: support
  sha256: %s
  scope: acme
  rights:
    - read
    - stop
  expires: 2099-12-31T23:59:59+01:00
`, otherHash, strings.ToUpper(hash))
	inJSON, _ := json.MarshalIndent([]any{
		map[string]any{"name": "other", "sha256": otherHash, "scope": "", "rights": []string{"admin"}},
		map[string]any{"name": "support", "sha256": hash, "scope": "acme", "rights": []string{"read", "stop"}, "expires": "2099-12-31T23:59:59+01:00"},
	}, "", "\t")
	for format, text := range map[string]string{"YAML": yaml, "JSON": string(inJSON)} {
		tokens, err := LoadTokens(writeFile(t, text))
		if err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		if tokens.Len() != 2 {
			t.Errorf("%s: %d tokens", format, tokens.Len())
		}
		if identity := mustAuthenticate(t, tokens, bearer(token)); !identity.Expires.Equal(want.Expires) {
			t.Errorf("%s: expires %s", format, identity.Expires)
		} else if identity.Expires = want.Expires; identity != want {
			t.Errorf("%s: got %+v, want %+v", format, identity, want)
		}
		unknown, _ := NewToken()
		_, err = tokens.Authenticate(bearer(unknown))
		wantRefusal(t, err, ErrBadToken, "unknown token")
		for _, malformed := range []string{
			"pgagui_", "pgagui_short", token + "x", token[:len(token)-1], strings.TrimPrefix(token, "pgagui_"), "PGAGUI_" + token[7:], "a.b.c", hash,
		} {
			_, err = tokens.Authenticate(bearer(malformed))
			wantRefusal(t, err, ErrBadToken, "malformed token")
		}
	}
}

func TestStaticTokenExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // it begins on 2000-01-01
		token, hash := NewToken()
		tokens, err := LoadTokens(writeFile(t, `[{name: ci, sha256: `+hash+`, scope: a, rights: [read], expires: 2000-01-01T01:00:00Z}]`))
		must.Do(t, err)
		time.Sleep(time.Hour - time.Nanosecond)
		mustAuthenticate(t, tokens, bearer(token))
		time.Sleep(time.Nanosecond)
		_, err = tokens.Authenticate(bearer(token))
		if refusal := wantRefusal(t, err, ErrBadToken, "the token has expired"); refusal.Subject != "ci" {
			t.Errorf("the refusal names %q", refusal.Subject)
		}
	})
}

func TestReloadKeepsTheTokensIfTheFileIsBad(t *testing.T) {
	oldToken, oldHash := NewToken()
	newToken, newHash := NewToken()
	entry := func(hash string) string { return `[{name: a, sha256: ` + hash + `, scope: a, rights: [read]}]` }
	file := writeFile(t, entry(oldHash))
	tokens, err := LoadTokens(file)
	must.Do(t, err)
	for _, bad := range []string{"", "# nothing\n", "null", "[{name: a", entry("abc")} {
		testfile.Write(t, file, []byte(bad))
		if err := tokens.Reload(); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%q: %v", bad, err)
		}
		mustAuthenticate(t, tokens, bearer(oldToken))
	}
	testfile.Write(t, file, []byte(entry(newHash)))
	must.Do(t, tokens.Reload())
	mustAuthenticate(t, tokens, bearer(newToken))
	_, err = tokens.Authenticate(bearer(oldToken))
	wantRefusal(t, err, ErrBadToken, "unknown token")
	must.Do(t, os.Remove(file))
	if err := tokens.Reload(); err == nil {
		t.Error("a file that is gone was read")
	}
	mustAuthenticate(t, tokens, bearer(newToken))
}

const someHash = "00000000000000000000000000000000000000000000000000000000000000"

func TestTokenFileErrors(t *testing.T) {
	const a, b = someHash + "0a", someHash + "0b"
	for _, tc := range []struct{ name, text, want string }{
		{"a mapping", "name: a", `f: expected a list of tokens`},
		{"a text", "hello", `f: expected a list of tokens`},
		{"no YAML", "- {name: a\n- b: ]", `f: line 1: did not find expected ',' or '}'`},
		{"two documents", "[]\n---\n[]", `f: more than one document`},
		{"an entry that is a text", "- " + a, `f:1: token 1: expected a mapping with name, sha256, scope and rights`},
		{"an alias", "- &x {name: a, sha256: " + a + ", scope: a, rights: [read]}\n- *x", `f:2: token 2: expected a mapping with name, sha256, scope and rights`},
		{"unknown member", "- name: a\n  right: [read]", `f:2: token 1 ("a"): unknown member "right" (expected name, sha256, scope, rights, expires)`},
		{"a merge", "- <<: {name: a}", `f:1: token 1: unknown member "<<" (expected name, sha256, scope, rights, expires)`},
		{"a member twice", "- name: a\n  name: b", `f:2: token 1 ("a"): member "name" stands twice`},
		{"empty name", `- name: ""`, `f:1: token 1: name must be a string that is not empty`},
		{"a number as the name", `- name: 7`, `f:1: token 1: name must be a string that is not empty`},
		{"short hash", "- name: a\n  sha256: 1234", `f:2: token 1 ("a"): sha256 must be the hash of the token, 64 hex digits`},
		{"the token as its hash", "- name: a\n  sha256: pgagui_abc", `f:2: token 1 ("a"): sha256 must be the hash of the token, 64 hex digits`},
		{"a number as the scope", "- name: a\n  scope: 12", `f:2: token 1 ("a"): scope must be a string (put it in quotes)`},
		{"a boolean as the scope", "- name: a\n  scope: true", `f:2: token 1 ("a"): scope must be a string (put it in quotes)`},
		{"a long scope", "- scope: " + strings.Repeat("x", 1025), `f:1: token 1: scope is longer than 1024 bytes`},
		{"NUL in the scope", `- scope: "a\0b"`, `f:1: token 1: scope is a text with a NUL character`},
		{"unknown right", "- name: a\n  rights: [read, Write]", `f:2: token 1 ("a"): unknown right "Write" (expected some of: read, write, stop, delete, admin, diagnose)`},
		{"no rights", "- name: a\n  rights: []", `f:2: token 1 ("a"): rights must be a list of some of: read, write, stop, delete, admin, diagnose`},
		{"rights as a text", "- name: a\n  rights: read", `f:2: token 1 ("a"): rights must be a list of some of: read, write, stop, delete, admin, diagnose`},
		{"a date alone", "- name: a\n  expires: 2027-01-31", `f:2: token 1 ("a"): expires must be a time such as 2027-01-31T00:00:00Z`},
		{"no scope", "- {name: a, sha256: " + a + ", rights: [read]}", `f:1: token 1 ("a"): the member scope is missing`},
		{"the same name", "- {name: a, sha256: " + a + ", scope: a, rights: [read]}\n- {name: a, sha256: " + b + ", scope: a, rights: [read]}",
			`f:2: token 2 ("a"): another token has the same name`},
		{"the same hash", "- {name: a, sha256: " + a + ", scope: a, rights: [read]}\n\n- {name: b, sha256: " + a + ", scope: a, rights: [read]}",
			`f:3: token 2 ("b"): another token has the same sha256`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tokens, err := parseTokens("f", []byte(tc.text))
			if err == nil || err.Error() != "tokens: "+tc.want {
				t.Errorf("got %v, %v\nwant %s", tokens, err, tc.want)
			}
		})
	}
	if tokens, err := parseTokens("f", []byte("[]")); err != nil || len(tokens) != 0 {
		t.Errorf("no tokens: %v, %v", tokens, err)
	}
}

func FuzzTokenFile(f *testing.F) {
	for _, seed := range []string{
		"", "[]", "- name: a", "- {name: a, sha256: " + someHash + "0a, scope: '', rights: [read], expires: 2027-01-31T00:00:00Z}",
		`[{"name":"a","sha256":"` + someHash + `0a","scope":"s","rights":["admin"]}]`, "- &x a\n- *x", "- ? [a]\n  : b", "!!binary a", "--- \n...",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		tokens, err := parseTokens("f", text)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r\x1b") || len(tokens) > 0 {
				t.Fatalf("%q: %q, %d tokens", text, err, len(tokens))
			}
			return
		}
		names := map[string]bool{}
		for _, token := range tokens {
			if token.Subject == "" || names[token.Subject] || token.Rights == 0 || checkName(token.Scope) != nil {
				t.Fatalf("%q: %+v", text, token)
			}
			names[token.Subject] = true
		}
	})
}

func BenchmarkStaticTokens(b *testing.B) {
	token, hash := NewToken()
	var text strings.Builder
	for i := range 1000 {
		_, other := NewToken()
		fmt.Fprintf(&text, "- {name: n%d, sha256: %s, scope: a, rights: [read]}\n", i, other)
	}
	fmt.Fprintf(&text, "- {name: mine, sha256: %s, scope: a, rights: [read]}\n", hash)
	parsed := must.Have(parseTokens("f", []byte(text.String())))(b)
	tokens := &Tokens{}
	tokens.current.Store(&parsed)
	request := bearer(token)
	for b.Loop() {
		must.Have(tokens.Authenticate(request))(b)
	}
}
