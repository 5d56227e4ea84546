package serve

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/sampleagent"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/schedule"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testfile"
	"github.com/pgagui/pgagui/server"
	"github.com/pgagui/pgagui/server/access"
)

// given parses a command line of serve.
func given(t *testing.T, arguments ...string) *pflag.FlagSet {
	t.Helper()
	flags := (&serveConfig{}).settings()
	must.Do(t, flags.Parse(arguments))
	return flags
}

func TestServeConfigOfFileEnvironmentAndFlags(t *testing.T) {
	file := clitest.WriteFile(t, "serve.yaml",
		"# a comment",
		"listen: 127.0.0.1:1",
		"heartbeat: 1s",
		"writeTimeout: 5s",
		"origins: [https://a.example.com, https://b.example.com]",
		"limits:",
		"  streams: 3",
		"  requestsPerSecond: -1",
		"jwt:",
		"  algorithms: [RS256]",
		"  jwksUrl: https://id.example.com/keys",
		"  anyAudience: true",
		"  rights: {agent user: [read, write], admins: admin}",
		"  defaultRights: [read]",
		"liveDatabase: {connections: 3}",
		"readDatabase: {connections: 4, maxLag: 3s}",
		"log: {level: warn}",
		"worker: {compact: '@every 30s', verify: off, eraseAfter: 90d, databaseUrl: postgres://jobs@h/d}",
		"agents:",
		"  - name: a",
		"    url: https://a.example.com/",
		"    history: full",
		"    parallel: true",
		"    idempotent: true",
		"    forwardHeaders: [X-One, X-Two]",
		"    headers: {X-Team: red}",
		"    headersFromEnv: {Authorization: TEST_AGENT_AUTHORIZATION}",
		"    maxEventBytes: 1000",
		"    idleTimeout: 1m",
		"    endTimeout: 5s",
		"    runTimeout: 2m",
		"    description: An agent",
		"    capabilities: {humanInTheLoop: {interrupts: true}, multiAgent: {subagents: [{name: reader}]}, execution: {maxIterations: 5}}",
		"  - {name: b, url: 'https://b.example.com/'}",
	)
	t.Setenv("TEST_AGENT_AUTHORIZATION", "Bearer s3cret")
	t.Setenv("PGAGUI_HEARTBEAT", "2s")
	t.Setenv("PGAGUI_WRITE_TIMEOUT", "6s")
	t.Setenv("PGAGUI_ORIGINS", "https://c.example.com,https://d.example.com")
	t.Setenv("PGAGUI_AGENT", "b=https://env.example.com/ c=https://c.example.com/")
	t.Setenv("PGAGUI_WORKER_REPACK", "@every 5m")
	config := must.Have(readServeConfig(file, given(t, "--write-timeout", "7s", "--agent", "c=https://flag.example.com/", "--limits-burst=9", "--jwt-audiences", "x,y")))(t)
	if config.listen != "127.0.0.1:1" || config.heartbeat != 2*time.Second || config.writeTimeout != 7*time.Second || config.idleTimeout != 2*time.Minute ||
		!slices.Equal(config.origins, []string{"https://c.example.com", "https://d.example.com"}) || config.logLevel != slog.LevelWarn || config.liveConnections != 3 ||
		config.readConnections != 4 || config.maxReadLag != 3*time.Second {
		t.Errorf("%+v", config)
	}
	if config.limits != (access.LimitOptions{RequestsPerSecond: -1, Burst: 9, Streams: 3, MaxBodyBytes: 64 << 20, MaxIdentities: 100_000}) {
		t.Errorf("limits %+v", config.limits)
	}
	if worker := config.upkeep; !config.isWorker || *worker.Schedules["compact"] != "@every 30s" || *worker.Schedules["verify"] != schedule.Off || *worker.Schedules["reap"] != "@every 1m" ||
		*worker.Schedules["repack"] != "@every 5m" || worker.EraseAfter != 90*24*time.Hour || !worker.Compaction.Running || config.workerDatabaseURL != "postgres://jobs@h/d" {
		t.Errorf("worker %+v", config)
	}
	jwt := config.jwt
	if jwt.JWKSURL != "https://id.example.com/keys" || !jwt.AnyAudience || !slices.Equal(jwt.Audiences, []string{"x", "y"}) || jwt.DefaultRights != access.Read ||
		jwt.Rights["agent user"] != access.Read|access.Write || jwt.Rights["admins"] != access.Admin || !slices.Equal(jwt.Algorithms, []string{"RS256"}) {
		t.Errorf("jwt %+v", jwt)
	}
	want := []server.Agent{
		{
			Name: "a", URL: "https://a.example.com/", History: server.FullHistory, Parallel: true, Idempotent: true, ForwardHeaders: []string{"X-One", "X-Two"},
			Headers: http.Header{"X-Team": {"red"}, "Authorization": {"Bearer s3cret"}}, MaxEventBytes: 1000, IdleTimeout: time.Minute, EndTimeout: 5 * time.Second, RunTimeout: 2 * time.Minute,
			Description:  "An agent",
			Capabilities: json.RawMessage(`{"execution":{"maxIterations":5},"humanInTheLoop":{"interrupts":true},"multiAgent":{"subagents":[{"name":"reader"}]}}`),
		},
		{Name: "b", URL: "https://env.example.com/"},
		{Name: "c", URL: "https://flag.example.com/"},
	}
	if got, _ := json.Marshal(config.agents); string(got) != func() string { text, _ := json.Marshal(want); return string(text) }() {
		t.Errorf("agents %s", got)
	}
	t.Setenv("PGAGUI_HEARTBEAT", "soon")
	if _, err := readServeConfig(file, given(t)); err == nil || !strings.Contains(err.Error(), "$PGAGUI_HEARTBEAT") {
		t.Error(err)
	}
}

// Every setting has a key of its own in the file, and the file takes its default.
func TestServeConfigFileHasEverySetting(t *testing.T) {
	t.Parallel()
	config := &serveConfig{}
	keys := map[string]bool{}
	config.settings().VisitAll(func(flag *pflag.Flag) {
		key := keyOf(flag.Name)
		if keys[key] || !regexp.MustCompile(`^[a-z][A-Za-z]*(\.[a-z][A-Za-z]*)?$`).MatchString(key) {
			t.Errorf("the key of --%s is %q", flag.Name, key)
		}
		keys[key] = true
		if list, isList := flag.Value.(pflag.SliceValue); isList && len(list.GetSlice()) == 0 || flag.Name == "agent" || flag.DefValue == "" {
			return
		}
		line := fmt.Sprintf("%s: %q", key, flag.DefValue)
		if group, name, isGrouped := strings.Cut(key, "."); isGrouped {
			line = fmt.Sprintf("%s: {%s: %q}", group, name, flag.DefValue)
		}
		if err := readConfigFile(clitest.WriteFile(t, "one.yaml", line), (&serveConfig{}).settings()); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	})
}

func TestServeConfigErrorsNameTheLine(t *testing.T) {
	t.Parallel()
	commands := clitest.On(t, "postgres://nobody@127.0.0.1:1/nothing")
	for text, want := range map[string]string{
		"insecure: true\nlistn: x":                                                `:2: unknown key "listn" (expected some of: `,
		"insecure: true\nlimits:\n  stream: 3":                                    `:3: unknown key "limits.stream" (expected some of: burst, `,
		"insecure: true\nheartbeat: soon":                                         `:2: heartbeat: "soon" is not valid: expected a duration such as 50s or 2h`,
		"insecure: true\nheartbeat: 1s\nheartbeat: 1s":                            `:3: the key "heartbeat" stands twice`,
		"insecure: true\nheartbeat:":                                              `:2: the key "heartbeat" has no value`,
		"insecure: true\nheartbeat: [1s, 2s]":                                     `:2: heartbeat: expected one value, not a list`,
		"insecure: true\nheartbeat: {a: 1s}":                                      `:2: heartbeat: expected a value or a list`,
		"insecure: true\nworker: {compat: off}":                                   `:2: unknown key "worker.compat" (expected some of: allScopes, compact, `,
		"insecure: true\nworker: [a, b]":                                          `:2: worker: expected one value, not a list`,
		"insecure: true\nlimits: 3":                                               `:2: expected a mapping of settings`,
		"- insecure":                                                              `:1: expected a mapping of settings`,
		"insecure: true\n\tlisten: x":                                             `:2: `,
		"insecure: true\n---\nlisten: x":                                          `a second document`,
		"insecure: true\nagents: {name: a}":                                       `:2: agents: expected a list of agents`,
		"insecure: true\nagents:\n  - name: a":                                    `:3: an agent needs a name and a url`,
		"insecure: true\nagents:\n  - name: a\n    link: b":                       `:4: unknown key "link" (expected some of: branchState, capabilities, description, endTimeout, forwardHeaders, `,
		"agents:\n  - {name: a, url: 'http://a'}\n  - {name: a, url: 'http://b'}": `:3: another agent has the name "a"`,
		"agents:\n  - name: a\n    url: http://a\n    headersFromEnv:\n      Authorization: PGAGUI_TEST_UNSET": `:5: headers-from-env: "Authorization": the environment variable PGAGUI_TEST_UNSET is not set`,
		"agents:\n  - name: a\n    url: http://a\n    capabilities: [interrupts]":                              `:4: capabilities: `,
		"jwt:\n  rights:\n    users: [fly]":                                                                    `:3: jwt-rights: "users": unknown right "fly"`,
	} {
		file := clitest.WriteFile(t, "serve.yaml", text)
		if message := commands.MustFail(cli.ExitInput, "serve", "--check", "--config", file); !strings.HasPrefix(message, file) || !strings.Contains(message, want) {
			t.Errorf("%q: %s", text, message)
		}
	}
	commands.MustFail(cli.ExitInput, "serve", "--check", "--config", "nowhere.yaml")

	file := clitest.WriteFile(t, "serve.yaml", "insecure: true\nagents:\n  - {name: a, url: 'http://a', onConcurrentRun: wait, queueTimeout: 1s, repairToolCalls: true}")
	if message := commands.MustFail(cli.ExitUsage, "serve", "--check", "--config", file); !strings.Contains(message, `agent "a": its onConcurrentRun is "wait"`) {
		t.Error(message)
	}
}

func TestServeSettingsThatCannotBe(t *testing.T) {
	t.Parallel()
	commands := clitest.On(t, "postgres://nobody@127.0.0.1:1/nothing")
	empty := clitest.WriteFile(t, "tokens.yaml", "[]")
	for line, want := range map[string]string{
		"":                                     "--token-file",
		"--insecure --listen :8080":            `listen address ":8080" can be reached from other machines`,
		"--insecure --listen 192.0.2.1:80":     "can be reached from other machines",
		"--insecure --token-file x":            "--insecure takes requests without a token",
		"--token-file " + empty + " --scope a": "--scope is for --insecure",
		"--insecure --agent x":                 "NAME=URL",
		"--insecure --agent x=ftp://x":         `agent "x"`,
		"--insecure --origins http://a/":       "is not an origin",
		"--insecure --tls-key x":               "go together",
		"--insecure --log-format xml":          "--log-format",
		"--insecure --grace 1m":                "--shutdown-timeout",
		"--insecure --heartbeat -1s":           "is not positive",
		"--insecure --max-header-bytes 0":      "must be 1 or more",
		"--insecure --live-database-url a --live-database-url-file b":              "exclude each other",
		"--insecure --database-connections 0":                                      "must be 1 or more",
		"--insecure --worker-compact off":                                          "--worker-compact needs --worker (in the file: worker.compact)",
		"--insecure --worker --worker-compact nonsense":                            `--worker-compact: schedule "nonsense"`,
		"--insecure --worker --worker-workers 0":                                   "--worker-workers and --worker-every must be 1 or more",
		"--insecure --worker --worker-erase @daily":                                "--worker-erase and --worker-erase-after go together",
		"--insecure --worker --worker-erase @daily --worker-erase-after 9d":        "--worker-erase needs --worker-all-scopes",
		"--insecure --worker --worker-all-scopes":                                  "--worker-all-scopes is for --worker-erase",
		"--insecure --worker --worker-grace 30s":                                   "longer than --worker-grace, 30s",
		"--insecure --worker --worker-database-url a --worker-database-url-file b": "exclude each other",
		"--jwt-issuer x": "jwt: ",
		"--insecure --read-database-url a --read-database-url-file b":       "exclude each other",
		"--insecure --read-database-connections 0":                          "must be 1 or more",
		"--insecure --read-database-max-lag 0s":                             "is not positive",
		"--jwt-jwks-url http://a --jwt-algorithms RS256 --jwt-any-audience": "not https",
	} {
		if message := commands.MustFail(cli.ExitUsage, append([]string{"serve", "--check"}, strings.Fields(line)...)...); !strings.Contains(message, want) {
			t.Errorf("serve %s: %s", line, message)
		}
	}
	commands.MustFail(cli.ExitInput, "serve", "--check", "--token-file", "nowhere")
	commands.MustFail(cli.ExitInput, "serve", "--check", "--insecure", "--tls-key", "nowhere", "--tls-certificate", "nowhere")
	commands.MustFail(cli.ExitUnavailable, "serve", "--insecure") // no database
	taken := must.Have(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer taken.Close()
	message := clitest.NewCommandLine(t).MustFail(cli.ExitUnavailable, "serve", "--insecure", "--listen", taken.Addr().String())
	if !strings.Contains(message, "cannot listen: listen tcp "+taken.Addr().String()) || strings.Contains(message, "--database-url") {
		t.Errorf("the address is taken: %s", message)
	}
	if out := commands.Must("serve", "--check", "--insecure", "--agent", "a=http://a"); out != "the configuration is valid: 1 agent\n" {
		t.Error(out)
	}
}

func TestServeWithTokensUntilSIGTERM(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	token := commands.Token(file, "web", "acme", "read,write")
	agents := clitest.WriteFile(t, "serve.yaml", "agents: [{name: assistant, url: '"+clitest.NewSample(t)+"'}]")
	s := commands.Serve("--token-file", file, "--config", agents, "--metrics-listen", "127.0.0.1:0", "--grace", "50ms")
	metricsURL := regexp.MustCompile(`"msg":"serving metrics","url":"([^"]+)"`).FindStringSubmatch(s.Log)[1]

	for protocol, client := range map[string]*http.Client{"HTTP/1.1": {}, "HTTP/2.0": unencryptedHTTP2()} {
		answer, text := s.Request(client, token, "POST", "/agent/assistant/run", clitest.RunInput("t", "run-"+protocol, "Hello"))
		if answer.StatusCode != http.StatusOK || answer.Proto != protocol || !strings.Contains(text, "RUN_FINISHED") {
			t.Fatalf("%s: %s %s: %s", protocol, answer.Proto, answer.Status, text)
		}
	}
	for path, status := range map[string]int{"/healthz": 200, "/readyz": 200, "/threads/t/events": 401} {
		if answer, text := s.Request(http.DefaultClient, "", "GET", path, ""); answer.StatusCode != status {
			t.Errorf("%s: %s %s", path, answer.Status, text)
		}
	}
	if answer, text := s.Request(http.DefaultClient, token, "POST", "/threads/t/stop", `{}`); answer.StatusCode != http.StatusForbidden {
		t.Errorf("without the right: %s %s", answer.Status, text)
	}
	if answer, err := http.Get(metricsURL); err != nil {
		t.Error(err)
	} else {
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		for _, want := range []string{`pgagui_server_runs_total{agent="assistant",outcome="finished"} 2`, "go_goroutines", "process_open_fds"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("the metrics have no %s", want)
			}
		}
	}
	if got := clitest.Parse[pgagui.RunStatus](commands, "show", "--status", "t", "--scope", "acme"); got.Status != pgagui.Finished {
		t.Errorf("%+v", got)
	}

	// A token that is added counts after SIGHUP. A file that cannot be read changes nothing.
	stopper := commands.Token(file, "stopper", "acme", "stop")
	if answer, _ := s.Request(http.DefaultClient, stopper, "POST", "/threads/t/stop", `{}`); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("before SIGHUP: %s", answer.Status)
	}
	s.Signal(syscall.SIGHUP)
	s.WaitForLine(t, `"msg":"reload: the tokens read"`, `"tokens":2`)
	if answer, text := s.Request(http.DefaultClient, stopper, "POST", "/threads/t/stop", `{}`); answer.StatusCode != http.StatusOK {
		t.Errorf("after SIGHUP: %s %s", answer.Status, text)
	}
	testfile.Write(t, file, []byte("- name: x"))
	s.Signal(syscall.SIGHUP)
	s.WaitForLine(t, `"msg":"reload: the tokens cannot be used, the server keeps the old ones"`)
	if answer, text := s.Request(http.DefaultClient, token, "GET", "/threads/t/events", ""); answer.StatusCode != http.StatusOK {
		t.Errorf("after a bad file: %s %s", answer.Status, text)
	}

	// So do agents.
	two := "agents: [{name: assistant, url: '" + clitest.NewSample(t) + "'}, {name: second, url: '" + clitest.NewSample(t) + "'}]"
	for _, step := range []struct{ text, line string }{
		{two, `"msg":"reload: the agents read","agents":["assistant","second"]`},
		{"agents: [{name: second, url: 'ftp://x'}]", `"msg":"reload: the agents cannot be used, the server keeps the old ones"`},
		{"agents: [{", `"msg":"reload: the agents cannot be used, the server keeps the old ones"`},
	} {
		testfile.Write(t, agents, []byte(step.text))
		s.Signal(syscall.SIGHUP)
		s.WaitForLine(t, step.line)
	}
	if answer, text := s.Request(http.DefaultClient, token, "POST", "/agent/second/run", clitest.RunInput("t2", "r", "Hello")); answer.StatusCode != http.StatusOK {
		t.Errorf("the second agent: %s %s", answer.Status, text)
	}

	// SIGTERM aborts streams and ends runs.
	request, _ := http.NewRequestWithContext(t.Context(), "POST", s.URL+"/agent/assistant/run", strings.NewReader(clitest.RunInput("t", "long", "A long answer, please")))
	request.Header.Set("Authorization", "Bearer "+token)
	answer := must.Have(http.DefaultClient.Do(request))(t)
	defer answer.Body.Close()
	must.Have(io.ReadFull(answer.Body, make([]byte, 1000)))(t)
	s.Terminate(t)
	if _, err := io.Copy(io.Discard, answer.Body); err == nil {
		t.Error("the stream ended cleanly inside of its run")
	}
	if code := s.End(t); code != cli.ExitOK || !strings.Contains(s.Log, `"msg":"the server stopped"`) {
		t.Errorf("exit code %d:\n%s", code, s.Log)
	}
	if got := clitest.Parse[pgagui.RunStatus](commands, "show", "--status", "t", "--scope", "acme"); got.RunID != "long" || got.Status != pgagui.Failed {
		t.Errorf("%+v", got)
	}
	if strings.Contains(s.Log, token) {
		t.Error("the log has the token")
	}
}

func TestServeWithJWTsAndTokens(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	const secret = "a secret that nobody guesses, of 40 bytes"
	tokens := filepath.Join(t.TempDir(), "tokens.yaml")
	static := commands.Token(tokens, "web", "acme", "read")
	s := commands.Serve("--agent", "assistant="+clitest.NewSample(t), "--token-file", tokens, "--jwt-algorithms", "HS256", "--jwt-key-file", clitest.WriteFile(t, "key", secret),
		"--jwt-audiences", "pgagui", "--jwt-scope-claim", "/org/id", "--jwt-rights-claim", "roles", "--jwt-rights", "user=read write", "--jwt-rights", "guest=read")
	sign := func(role string) string {
		encode := base64.RawURLEncoding.EncodeToString
		text := encode([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." +
			encode(fmt.Appendf(nil, `{"aud":"pgagui","sub":"ada","org":{"id":"acme"},"roles":[%q],"exp":%d}`, role, time.Now().Add(time.Hour).Unix()))
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte(text))
		return text + "." + encode(mac.Sum(nil))
	}
	for _, test := range []struct {
		token  string
		status int
	}{{sign("user"), http.StatusOK}, {sign("guest"), http.StatusForbidden}, {sign("stranger"), http.StatusForbidden}, {static, http.StatusForbidden}, {"x", http.StatusUnauthorized}} {
		if answer, text := s.Request(http.DefaultClient, test.token, "POST", "/agent/assistant/run", clitest.RunInput("t", "r", "Hello")); answer.StatusCode != test.status {
			t.Errorf("%s, want %d: %s", answer.Status, test.status, text)
		}
	}
	if answer, text := s.Request(http.DefaultClient, static, "GET", "/threads/t/events", ""); answer.StatusCode != http.StatusOK {
		t.Errorf("the static token of the scope: %s %s", answer.Status, text)
	}
	s.Terminate(t)
	if code := s.End(t); code != cli.ExitOK {
		t.Errorf("exit code %d:\n%s", code, s.Log)
	}
}

func unencryptedHTTP2() *http.Client {
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	return &http.Client{Transport: transport}
}

// The jobs need not be healthy for the server to be, and stop with it.
func TestServeWithAWorker(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	owner := testdb.Connect(t, commands.DatabaseURL)
	role := testdb.Role(t, owner, "jobs", "agui_reader")
	as := testdb.As(t, commands.DatabaseURL, role)
	s := commands.Serve("--insecure", "--agent", "assistant="+clitest.NewSample(t), "--worker", "--worker-compact", "@every 1s", "--worker-reap", "@every 1s", "--worker-database-url", as)
	s.WaitForLine(t, `"msg":"job scheduled","job":"compact","schedule":"@every 1s"`)
	s.WaitForLine(t, `"msg":"job failed","job":"`, "permission denied", `"advice":"grant agui_worker`) // its role, not that of requests
	if answer, text := s.Request(http.DefaultClient, "", "POST", "/agent/assistant/run", clitest.RunInput("t", "r", "Hello")); answer.StatusCode != http.StatusOK {
		t.Fatalf("%s %s", answer.Status, text)
	}
	testdb.Exec(t, owner, `grant agui_worker to `+role)
	s.WaitForLine(t, `"msg":"job done","job":"compact"`, `"runs":1`)

	// A job in progress ends before the process.
	waits, open := clitest.Gate(t, owner)
	if answer, text := s.Request(http.DefaultClient, "", "POST", "/agent/assistant/run", clitest.RunInput("t2", "r", "Hello")); answer.StatusCode != http.StatusOK {
		t.Fatalf("%s %s", answer.Status, text)
	}
	clitest.WaitFor(t, waits)
	s.Terminate(t)
	s.WaitForLine(t, `"msg":"worker stops"`)
	open()
	s.WaitForLine(t, `"msg":"job done","job":"compact"`, `"runs":1`)
	if code := s.End(t); code != cli.ExitOK || !strings.Contains(s.Log, `"msg":"the server stopped"`) {
		t.Errorf("exit code %d:\n%s", code, s.Log)
	}
}

func TestServeInsecureServesThisMachineAlone(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	s := commands.Serve("--insecure", "--scope", "me", "--agent", "assistant="+clitest.NewSample(t), "--max-concurrent-streams", "77",
		"--live-database-url-file", clitest.WriteFile(t, "address", commands.DatabaseURL+"&application_name=live"),
		"--read-database-url-file", clitest.WriteFile(t, "address", commands.DatabaseURL+"&application_name=reads"))
	s.WaitForLine(t, "reads go to the replica") // the same server is taken for a replica without lag
	if got := concurrentStreams(t, s.URL); got != 77 {
		t.Errorf("%d concurrent streams", got)
	}
	if answer, text := s.Request(http.DefaultClient, "", "POST", "/agent/assistant/run", clitest.RunInput("t", "r", "Hello")); answer.StatusCode != http.StatusOK {
		t.Fatalf("%s %s", answer.Status, text)
	}
	if got := clitest.Parse[pgagui.RunStatus](commands, "show", "--status", "t", "--scope", "me"); got.Status != pgagui.Finished {
		t.Errorf("%+v", got)
	}
	for header, value := range map[string]string{"Host": "evil.example.com", "Origin": "https://evil.example.com"} {
		request, _ := http.NewRequestWithContext(t.Context(), "GET", s.URL+"/threads/t/events", nil)
		request.Header.Set(header, value)
		if header == "Host" {
			request.Host = value
		}
		answer := must.Have(http.DefaultClient.Do(request))(t)
		answer.Body.Close()
		if answer.StatusCode != http.StatusForbidden {
			t.Errorf("%s %s: %s", header, value, answer.Status)
		}
	}
	s.Terminate(t)
	if code := s.End(t); code != cli.ExitOK {
		t.Errorf("exit code %d:\n%s", code, s.Log)
	}
}

// concurrentStreams returns SETTINGS_MAX_CONCURRENT_STREAMS of an HTTP/2 server without TLS.
func concurrentStreams(t *testing.T, url string) uint32 {
	t.Helper()
	connection := must.Have(net.Dial("tcp", strings.TrimPrefix(url, "http://")))(t)
	defer connection.Close()
	// The preface of a client, and its SETTINGS without an entry.
	must.Have(io.WriteString(connection, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"))(t)
	head := make([]byte, 9)
	if _, err := io.ReadFull(connection, head); err != nil || head[3] != 4 {
		t.Fatalf("the first frame of the server begins with %v, %v", head, err)
	}
	settings := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
	must.Have(io.ReadFull(connection, settings))(t)
	for entry := range slices.Chunk(settings, 6) {
		if binary.BigEndian.Uint16(entry) == 3 {
			return binary.BigEndian.Uint32(entry[2:])
		}
	}
	return 0
}

func TestServeTLSReadsTheCertificateOnSIGHUP(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	folder := t.TempDir()
	certificate, key := filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	clitest.WriteCertificate(t, certificate, key, 1)
	s := commands.Serve("--insecure", "--tls-certificate", certificate, "--tls-key", key)
	serial := func() int64 {
		t.Helper()
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}}
		answer := must.Have(client.Get(s.URL + "/readyz"))(t)
		answer.Body.Close()
		client.CloseIdleConnections()
		if answer.StatusCode != http.StatusOK || answer.ProtoMajor != 2 {
			t.Errorf("%s %s", answer.Proto, answer.Status)
		}
		return answer.TLS.PeerCertificates[0].SerialNumber.Int64()
	}
	if got := serial(); got != 1 {
		t.Errorf("certificate %d", got)
	}
	clitest.WriteCertificate(t, certificate, key, 2)
	s.Signal(syscall.SIGHUP)
	s.WaitForLine(t, `"msg":"reload: the certificate read"`)
	if got := serial(); got != 2 {
		t.Errorf("certificate %d", got)
	}
	must.Do(t, os.Remove(key))
	s.Signal(syscall.SIGHUP)
	s.WaitForLine(t, `"msg":"reload: the certificate cannot be used, the server keeps the old ones"`)
	if got := serial(); got != 2 {
		t.Errorf("certificate %d", got)
	}
	s.Terminate(t)
	if code := s.End(t); code != cli.ExitOK {
		t.Errorf("exit code %d:\n%s", code, s.Log)
	}
}

// The traces of a request, its run and the request to the agent are one, which the client began.
func TestServeTracesFromRequestToCommit(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	received := make(chan string, 1)
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		received <- r.Header.Get("Traceparent")
		sampleagent.Agent{WordEvery: time.Millisecond}.ServeHTTP(w, r)
	}))
	defer agent.Close()
	exporter := tracetest.NewInMemoryExporter()
	config := must.Have(readServeConfig("", given(t, "--insecure", "--listen", "127.0.0.1:0", "--agent", "assistant="+agent.URL)))(t)
	p := &program{&cli.Program{DatabaseURL: commands.DatabaseURL}}
	s, err := p.newService(t.Context(), config, slog.New(slog.DiscardHandler), newTracing(sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))))
	if err == nil {
		err = s.listen()
	}
	must.Do(t, err)
	defer s.close()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.run(ctx) }()

	const traceID, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	request, _ := http.NewRequestWithContext(t.Context(), "POST", s.url()+"/agent/assistant/run", strings.NewReader(clitest.RunInput("t", "r", "Hello")))
	request.Header.Set("Traceparent", "00-"+traceID+"-"+parent+"-01")
	answer := must.Have(http.DefaultClient.Do(request))(t)
	defer answer.Body.Close()
	must.Have(io.Copy(io.Discard, answer.Body))(t)
	stop()
	must.Do(t, <-ended)
	spans := map[string]tracetest.SpanStub{}
	for _, span := range exporter.GetSpans() {
		spans[span.Name] = span
		if span.SpanContext.TraceID().String() != traceID {
			t.Errorf("%s is of trace %s", span.Name, span.SpanContext.TraceID())
		}
	}
	posted, run, called := spans["POST /agent/{agent}/run"], spans["run assistant"], spans["HTTP POST"]
	if posted.Parent.SpanID().String() != parent || run.Parent.SpanID() != posted.SpanContext.SpanID() || called.Parent.SpanID() != run.SpanContext.SpanID() {
		t.Errorf("the spans are not parents of each other: %v", spans)
	}
	if len(posted.Links) != 1 || posted.Links[0].SpanContext.SpanID() != run.SpanContext.SpanID() {
		t.Errorf("links of the request: %v", posted.Links)
	}
	if got, want := <-received, "00-"+traceID+"-"+called.SpanContext.SpanID().String()+"-01"; got != want {
		t.Errorf("the agent received %s, want %s", got, want)
	}
	status := clitest.Parse[pgagui.RunStatus](commands, "show", "--status", "t")
	if attributes := fmt.Sprint(run.Attributes); !strings.Contains(attributes, "finished") || status.Status != pgagui.Finished {
		t.Errorf("%s, %+v", attributes, status)
	}
}

func TestServeExportsTraces(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	exported := make(chan string, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		exported <- r.URL.Path + " " + string(body)
	}))
	defer collector.Close()
	command := commands.Program(os.Args[0], "serve", "--listen", "127.0.0.1:0", "--json", "--insecure", "--agent", "assistant="+clitest.NewSample(t))
	command.Env = append(command.Env, "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL)
	s := clitest.Serving(t, clitest.StartProcess(t, command))
	s.Request(http.DefaultClient, "", "POST", "/agent/assistant/run", clitest.RunInput("t", "r", "Hello"))
	s.Terminate(t)
	if code := s.End(t); code != cli.ExitOK {
		t.Errorf("exit code %d:\n%s", code, s.Log)
	}
	select {
	case text := <-exported:
		if !strings.HasPrefix(text, "/v1/traces ") || !strings.Contains(text, "run assistant") || !strings.Contains(text, "service.version") {
			t.Errorf("exported: %.300q", text)
		}
	default:
		t.Error("no traces were exported")
	}
}

func TestReadinessIsCached(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	pool := must.Have(cli.OpenPool(t.Context(), commands.DatabaseURL, 1))(t)
	ready := &readiness{pool: pool}
	must.Report(t, ready.check(t.Context()))
	pool.Close()
	if err := ready.check(t.Context()); err != nil {
		t.Errorf("within the interval: %v", err)
	}
	ready.checked = time.Now().Add(-readyInterval)
	if err := ready.check(t.Context()); err == nil {
		t.Error("a database that is gone is ready")
	}
}

func TestTokenAddsToTheFile(t *testing.T) {
	t.Parallel()
	commands := clitest.On(t, "")
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	must.Do(t, os.WriteFile(file, []byte("# ours\n- {name: a, sha256: "+strings.Repeat("0", 64)+", scope: '', rights: [read]} # last"), 0o640))
	token := commands.Token(file, "b", "acme", "read stop")
	loaded, err := access.LoadTokens(file)
	if err != nil || loaded.Len() != 2 {
		t.Fatalf("%v, %v", loaded, err)
	}
	request := httptest.NewRequest("GET", "/", nil)
	request.Header.Set("Authorization", "Bearer "+token)
	if who, err := loaded.Authenticate(request); err != nil || who.Scope != "acme" || who.Rights != access.Read|access.Stop || who.Subject != "b" {
		t.Errorf("%+v, %v", who, err)
	}
	before, _ := os.ReadFile(file)
	if info, _ := os.Stat(file); !bytes.HasPrefix(before, []byte("# ours\n")) || info.Mode().Perm() != 0o640 || bytes.Contains(before, []byte(token)) {
		t.Errorf("%s: %s", info.Mode(), before)
	}

	// A second token with the name, or a file that is no list, changes nothing.
	code := clitest.Run(t.Context(), []string{"token", "--file", file, "--name", "b", "--rights", "read"}, strings.NewReader(""), io.Discard, io.Discard)
	if after, _ := os.ReadFile(file); code != cli.ExitInput || !bytes.Equal(before, after) {
		t.Errorf("exit code %d: %s", code, after)
	}
	list := clitest.WriteFile(t, "list.yaml", `[{"name": "a", "sha256": "`+strings.Repeat("0", 64)+`", "scope": "", "rights": ["read"]}]`)
	if code := clitest.Run(t.Context(), []string{"token", "--file", list, "--name", "b", "--rights", "read"}, strings.NewReader(""), io.Discard, io.Discard); code != cli.ExitInput {
		t.Errorf("a flow list: exit code %d", code)
	}
	if rest, _ := os.ReadDir(filepath.Dir(file)); len(rest) != 1 {
		t.Errorf("left in the folder: %v", rest)
	}

	created := filepath.Join(t.TempDir(), "new.yaml")
	commands.Token(created, "a", "", "admin")
	if info, err := os.Stat(created); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	for _, line := range []string{"--rights read", "--name a", "--name a --rights fly"} {
		if code := clitest.Run(t.Context(), append([]string{"token"}, strings.Fields(line)...), strings.NewReader(""), io.Discard, io.Discard); code != cli.ExitUsage {
			t.Errorf("token %s: exit code %d", line, code)
		}
	}
	var out bytes.Buffer
	if code := clitest.Run(t.Context(), []string{"token", "--name", "a", "--rights", "read", "--expires", "90d"}, strings.NewReader(""), &out, io.Discard); code != cli.ExitOK {
		t.Errorf("exit code %d", code)
	}
	printed, entry, _ := strings.Cut(out.String(), "\n\n")
	if printedFile := clitest.WriteFile(t, "printed.yaml", entry); !strings.HasPrefix(printed, access.TokenPrefix) || !strings.Contains(entry, "expires: ") {
		t.Error(out.String())
	} else if _, err := access.LoadTokens(printedFile); err != nil {
		t.Error(err)
	}
}
