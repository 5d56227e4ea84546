package serve

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/schedule"
	"github.com/pgagui/pgagui/internal/eventfile"
	"github.com/pgagui/pgagui/server"
	"github.com/pgagui/pgagui/server/access"
)

// serveConfig is what the server is configured with.
type serveConfig struct {
	listen, metricsListen string
	agents                agentList
	agentNetworks         []string
	networks              []netip.Prefix // those
	origins               []string

	insecure bool
	explorer bool
	// isDevelopment: all who have the token may know how the database is.
	isDevelopment bool
	tokenFile     string
	jwt           access.JWTOptions
	limits        access.LimitOptions

	connections, liveConnections, readConnections int
	liveDatabaseURL, liveDatabaseURLFile          string
	readDatabaseURL, readDatabaseURLFile          string
	maxReadLag                                    time.Duration
	rowSecurity                                   bool

	tlsCertificate, tlsKey                                    string
	maxBufferedBytes                                          int64
	maxAppends                                                int
	maxConcurrentStreams, maxHeaderBytes                      int
	readHeaderTimeout, idleTimeout, writeTimeout, readTimeout time.Duration
	heartbeat, grace, shutdownTimeout                         time.Duration

	logFormat string
	logLevel  slog.Level

	// isWorker says that the process also does the jobs of upkeep.
	isWorker                                 bool
	upkeep                                   schedule.Jobs
	workerDatabaseURL, workerDatabaseURLFile string

	// reread reads the configuration from the same sources, for a reload. nil: it has none.
	reread func() (*serveConfig, error)
}

// settings returns a flag for each setting. The name of a flag also names the setting in the
// environment and in the file, see variableOf and keyOf.
func (c *serveConfig) settings() *pflag.FlagSet {
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	flags.StringVar(&c.listen, "listen", "127.0.0.1:8080", "`address` to listen on, HOST:PORT")
	flags.StringVar(&c.metricsListen, "metrics-listen", "", "`address` that serves Prometheus metrics at /metrics, without a token (default: none)")
	flags.Var(&c.agents, "agent", "an agent, `NAME=URL`; can be repeated. In the file: agents, with more settings")
	flags.StringSliceVar(&c.agentNetworks, "agent-networks", nil, "`networks` in which agents may be, as 10.0.0.0/8 (default: all but link-local addresses and metadata services)")
	flags.StringSliceVar(&c.origins, "origins", nil, "web `origins` whose pages may call the server, separated by commas")

	flags.BoolVar(&c.explorer, "explorer", true, "show conversations in the browser at /explorer/, to those with a token")
	flags.StringVar(&c.tokenFile, "token-file", "", "`file` with the hashes of static tokens (see: pgagui token --help)")
	flags.BoolVar(&c.insecure, "insecure", false, "take requests without a token, from this machine alone, for the threads of --scope")
	flags.StringSliceVar(&c.jwt.Algorithms, "jwt-algorithms", nil, "`algorithms` that tokens may be signed with: RS256, ES256, …")
	flags.StringVar(&c.jwt.JWKSURL, "jwt-jwks-url", "", "`URL` of the public keys of the identity provider")
	flags.DurationVar(&c.jwt.RefreshInterval, "jwt-refresh-interval", 10*time.Minute, "`interval` at which the keys are fetched")
	flags.StringVar(&c.jwt.KeyFile, "jwt-key-file", "", "`file` with the key, instead of --jwt-jwks-url: PEM, or the secret of HS256")
	flags.StringVar(&c.jwt.Issuer, "jwt-issuer", "", "what the claim iss must be (default: not checked)")
	flags.StringSliceVar(&c.jwt.Audiences, "jwt-audiences", nil, "`names` of this server, one of which the claim aud must have")
	flags.BoolVar(&c.jwt.AnyAudience, "jwt-any-audience", false, "take tokens for any audience")
	flags.StringVar(&c.jwt.ScopeClaim, "jwt-scope-claim", "sub", "`claim` with the scope, a name or a JSON Pointer such as /org/id")
	flags.StringVar(&c.jwt.RightsClaim, "jwt-rights-claim", "", "`claim` with the rights, a name or a JSON Pointer (default: every token has the default rights)")
	flags.Var((*rightsMap)(&c.jwt.Rights), "jwt-rights", "rights for values of the claim, `VALUE=RIGHTS`; can be repeated (default: the values are names of rights)")
	flags.Var((*rightsText)(&c.jwt.DefaultRights), "jwt-default-rights", "`rights` of tokens without the claim: read, write, stop, delete, admin, diagnose")

	flags.Float64Var(&c.limits.RequestsPerSecond, "limits-requests-per-second", 50, "requests per second of an identity (a static token, or the subject of JWTs), in this process; -1: no limit")
	flags.IntVar(&c.limits.Burst, "limits-burst", 0, "requests of an identity that may come at once (default: those of two seconds)")
	flags.IntVar(&c.limits.Streams, "limits-streams", 100, "open streams of an identity, in this process; -1: no limit")
	flags.Int64Var(&c.limits.MaxBodyBytes, "limits-max-body-bytes", 64<<20, "size of the body of a request")
	flags.IntVar(&c.limits.MaxIdentities, "limits-max-identities", 100_000, "identities to keep limits for")

	flags.IntVar(&c.connections, "database-connections", 10, "connections to the database for requests")
	flags.BoolVar(&c.rowSecurity, "database-row-security", false, "set agui.scope in each transaction of a request, for row-level security")
	flags.StringVar(&c.liveDatabaseURL, "live-database-url", "", "`address` for a second pool, which records and follows runs of all scopes (default: one pool for all)")
	flags.StringVar(&c.liveDatabaseURLFile, "live-database-url-file", "", "`file` with that address, which may contain a password")
	flags.IntVar(&c.liveConnections, "live-database-connections", 10, "connections of the second pool")
	flags.StringVar(&c.readDatabaseURL, "read-database-url", "", "`address` of a streaming standby, which answers reads and followers while it is usable (default: none)")
	flags.StringVar(&c.readDatabaseURLFile, "read-database-url-file", "", "`file` with that address, which may contain a password")
	flags.IntVar(&c.readConnections, "read-database-connections", 10, "connections to the standby")
	flags.DurationVar(&c.maxReadLag, "read-database-max-lag", 10*time.Second, "maximum `time` that the standby may be behind; if it is further behind, it is not used")

	flags.StringVar(&c.tlsCertificate, "tls-certificate", "", "`file` with the certificate and its chain, in PEM")
	flags.StringVar(&c.tlsKey, "tls-key", "", "`file` with the key of the certificate")
	flags.IntVar(&c.maxConcurrentStreams, "max-concurrent-streams", 1000, "concurrent requests on a connection of HTTP/2")
	flags.Int64Var(&c.maxBufferedBytes, "max-buffered-bytes", 256<<20, "memory for large requests, their copies, and large answers of slow clients")
	flags.IntVar(&c.maxAppends, "max-appends", 64, "appends over HTTP that are in progress at once")
	flags.IntVar(&c.maxHeaderBytes, "max-header-bytes", 64<<10, "size of the headers of a request")
	flags.DurationVar(&c.readHeaderTimeout, "read-header-timeout", 10*time.Second, "`time` for the headers of a request to arrive")
	flags.DurationVar(&c.idleTimeout, "idle-timeout", 2*time.Minute, "`time` after which a connection without requests is closed")
	flags.DurationVar(&c.writeTimeout, "write-timeout", 30*time.Second, "`time` a client may take to accept what is written to it")
	flags.DurationVar(&c.readTimeout, "read-timeout", 30*time.Second, "`time` a statement of a request that reads may take; then it is cancelled (422)")
	flags.DurationVar(&c.heartbeat, "heartbeat", 15*time.Second, "`interval` of comments on streams without events")
	flags.DurationVar(&c.grace, "grace", 10*time.Second, "at shutdown, `time` for agents to finish their runs")
	flags.DurationVar(&c.shutdownTimeout, "shutdown-timeout", 25*time.Second, "at shutdown, maximum `time` until the process ends, even if work is left")

	flags.BoolVar(&c.isWorker, "worker", false, "also run the jobs of pgagui worker in this process. In the file: worker, with the settings --worker-…")
	flags.StringVar(&c.workerDatabaseURL, "worker-database-url", "", "`address` for the jobs, whose role needs other rights (default: that of requests)")
	flags.StringVar(&c.workerDatabaseURLFile, "worker-database-url-file", "", "`file` with that address, which may contain a password")
	c.upkeep.Flags().VisitAll(func(flag *pflag.Flag) {
		prefixed := *flag
		prefixed.Name, prefixed.Usage = workerPrefix+flag.Name, schedule.WithPrefix(workerPrefix, flag.Usage)
		flags.AddFlag(&prefixed)
	})

	flags.StringVar(&c.logFormat, "log-format", "text", "`format` of the log on stderr: text or json")
	flags.TextVar(&c.logLevel, "log-level", slog.LevelInfo, "least `level` of what is logged: debug, info, warn, error")
	flags.VisitAll(func(flag *pflag.Flag) {
		flag.Hidden = slices.Contains(setOnce, flag.Name) || strings.HasPrefix(flag.Name, workerPrefix)
	})
	return flags
}

// setOnce are the settings, beside those of jobs, that one sets once, in the file. The help of serve leaves them out, that of settingsTopic
// has them.
var setOnce = []string{
	"jwt-any-audience", "jwt-default-rights", "jwt-refresh-interval", "jwt-rights", "jwt-rights-claim", "limits-burst", "limits-max-identities",
	"live-database-connections", "read-database-connections", "read-database-max-lag", "max-appends", "max-concurrent-streams", "max-header-bytes",
	"read-header-timeout", "idle-timeout", "write-timeout", "shutdown-timeout",
}

// settingsTopic is the help about the settings that the help of serve leaves out. It lists them when it is asked.
func settingsTopic() *cobra.Command {
	topic := &cobra.Command{
		Use:   "serve-settings",
		Short: "Settings of pgagui serve that one sets once, in its file",
		Long: `Keys of the file of "pgagui serve" that its own help leaves out. As all others, each is also a
variable of the environment and a flag: limits.burst is PGAGUI_LIMITS_BURST and --limits-burst.`,
	}
	topic.SetHelpFunc(func(topic *cobra.Command, _ []string) {
		fmt.Fprintf(topic.OutOrStdout(), "%s\n%s", topic.Long, keysSetOnce())
	})
	return topic
}

// keysSetOnce lists the settings that the help of serve leaves out by their keys in the file.
func keysSetOnce() string {
	keys := pflag.NewFlagSet("", pflag.ContinueOnError)
	(&serveConfig{}).settings().VisitAll(func(flag *pflag.Flag) {
		if flag.Hidden {
			flag.Name, flag.Hidden = keyOf(flag.Name), false
			keys.AddFlag(flag)
		}
	})
	usages := strings.ReplaceAll("\n"+keys.FlagUsagesWrapped(cli.HelpWidth), "\n      --", "\n        ")
	return strings.ReplaceAll(usages, "\n      ", "\n")
}

// workerPrefix is that of the flags of pgagui worker.
const workerPrefix = "worker-"

// groups are the settings that the file has in a mapping of their own.
var groups = []string{"jwt", "limits", "live-database", "read-database", "database", "tls", "worker", "log"}

// keyOf returns where the file has the setting of a flag: "limits.requestsPerSecond".
func keyOf(flag string) string {
	if flag == "agent" {
		return "agents"
	}
	for _, group := range groups {
		if rest, isIn := strings.CutPrefix(flag, group+"-"); isIn {
			return camelCase(group) + "." + camelCase(rest)
		}
	}
	return camelCase(flag)
}

func camelCase(name string) string {
	words := strings.Split(name, "-")
	for i, word := range words[1:] {
		words[i+1] = string(unicode.ToUpper(rune(word[0]))) + word[1:]
	}
	return strings.Join(words, "")
}

// variableOf returns the environment variable of a flag: PGAGUI_LIMITS_REQUESTS_PER_SECOND.
func variableOf(flag string) string {
	return "PGAGUI_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// configVariable names the file.
const configVariable = "PGAGUI_CONFIG"

// readServeConfig returns the configuration: that of the file, over it that of the environment, and
// over both the flags that were given.
func readServeConfig(file string, given *pflag.FlagSet) (*serveConfig, error) {
	config := &serveConfig{}
	settings := config.settings()
	file = cmp.Or(file, os.Getenv(configVariable))
	if file != "" {
		if err := readConfigFile(file, settings); err != nil {
			return nil, err
		}
	}
	var err error
	settings.VisitAll(func(flag *pflag.Flag) {
		if text := os.Getenv(variableOf(flag.Name)); text != "" && err == nil {
			if problem := set(flag, text); problem != nil {
				err = fmt.Errorf("$%s: %w", variableOf(flag.Name), problem)
			}
		}
		if changed := given.Lookup(flag.Name); changed != nil && changed.Changed && err == nil {
			err = set(flag, valuesOf(changed)...)
		}
		if strings.HasPrefix(flag.Name, workerPrefix) && flag.Value.String() != flag.DefValue && !config.isWorker && err == nil {
			err = fmt.Errorf("--%s needs --worker (in the file: %s)", flag.Name, keyOf(flag.Name))
		}
	})
	return config, err
}

func valuesOf(flag *pflag.Flag) []string {
	if list, isList := flag.Value.(pflag.SliceValue); isList {
		return list.GetSlice()
	}
	return []string{flag.Value.String()}
}

// set sets a flag to a value, or a list to values. It replaces what the flag had.
func set(flag *pflag.Flag, values ...string) error {
	if list, isList := flag.Value.(pflag.SliceValue); isList {
		if len(values) == 1 && flag.Value.Type() == "stringSlice" {
			values = strings.Split(values[0], ",")
		}
		return list.Replace(values)
	}
	if len(values) != 1 {
		return errors.New("expected one value, not a list")
	}
	if err := flag.Value.Set(values[0]); err != nil {
		if expected := cli.ExpectedOf(flag); expected != "" {
			err = errors.New("expected " + expected)
		}
		return fmt.Errorf("%.60q is not valid: %w", values[0], err)
	}
	return nil
}

// fileError is an error of a configuration file, with its line.
func fileError(file string, line int, format string, arguments ...any) error {
	return &eventfile.Error{File: file, Line: line, Err: fmt.Errorf(format, arguments...)}
}

var yamlLine = regexp.MustCompile(`^yaml: line (\d+): (.*)$`)

// readConfigFile reads a file in YAML.
func readConfigFile(file string, settings *pflag.FlagSet) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var document, next yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	err = decoder.Decode(&document)
	switch {
	case errors.Is(err, io.EOF):
		return nil // only comments
	case err != nil:
		if match := yamlLine.FindStringSubmatch(err.Error()); match != nil {
			line, _ := strconv.Atoi(match[1])
			return fileError(file, line, "%s", match[2])
		}
		return fileError(file, 1, "%s", strings.TrimPrefix(err.Error(), "yaml: "))
	case decoder.Decode(&next) != io.EOF:
		return fileError(file, next.Line, "a second document (expected one)")
	}
	byKey := map[string]*pflag.Flag{}
	settings.VisitAll(func(flag *pflag.Flag) { byKey[keyOf(flag.Name)] = flag })
	return configFile{file}.readMapping(document.Content[0], "", byKey)
}

type configFile struct{ name string }

// readMapping sets the flags of the keys of a mapping, and of the mappings in it.
func (f configFile) readMapping(node *yaml.Node, prefix string, flags map[string]*pflag.Flag) error {
	if node.Kind != yaml.MappingNode {
		return fileError(f.name, node.Line, "expected a mapping of settings (key: value)")
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], resolved(node.Content[i+1])
		path := prefix + key.Value
		flag := flags[path]
		var err error
		switch {
		case seen[key.Value]:
			return fileError(f.name, key.Line, "the key %q stands twice", path)
		case len(knownKeys(flags, path+".")) > 0 && (flag == nil || value.Kind == yaml.MappingNode):
			if flag != nil { // a switch: its section turns it on
				err = set(flag, "true")
			}
			if err == nil {
				err = f.readMapping(value, path+".", flags)
			}
		case flag == nil:
			return fileError(f.name, key.Line, "unknown key %.60q (expected some of: %s)", path, strings.Join(knownKeys(flags, prefix), ", "))
		case value.ShortTag() == "!!null":
			return fileError(f.name, key.Line, "the key %q has no value", path)
		default:
			err = f.setFlag(flag, value)
		}
		seen[key.Value] = true
		var known *eventfile.Error
		if err != nil && !errors.As(err, &known) {
			err = fileError(f.name, value.Line, "%s: %w", path, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// resolved returns the node that an alias stands for.
func resolved(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

// knownKeys are the keys that a mapping may have.
func knownKeys(flags map[string]*pflag.Flag, prefix string) (keys []string) {
	for key := range flags {
		if rest, isIn := strings.CutPrefix(key, prefix); isIn {
			name, _, _ := strings.Cut(rest, ".")
			keys = append(keys, name)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// setFlag sets a flag to a value of the file: a scalar, a list, a mapping of texts, or agents.
func (f configFile) setFlag(flag *pflag.Flag, value *yaml.Node) error {
	if agents, isAgents := flag.Value.(*agentList); isAgents {
		return f.readAgents(agents, value)
	}
	if document, isDocument := flag.Value.(*jsonValue); isDocument {
		return document.setNode(value)
	}
	if pairs, isMap := flag.Value.(pairValue); isMap {
		if value.Kind != yaml.MappingNode {
			return errors.New("expected a mapping")
		}
		for i := 0; i+1 < len(value.Content); i += 2 {
			texts, err := textsOf(resolved(value.Content[i+1]))
			if err == nil {
				err = pairs.setPair(value.Content[i].Value, strings.Join(texts, " "))
			}
			if err != nil {
				return fileError(f.name, value.Content[i].Line, "%s: %.60q: %w", flag.Name, value.Content[i].Value, err)
			}
		}
		return nil
	}
	texts, err := textsOf(value)
	if err != nil {
		return err
	}
	if list, isList := flag.Value.(pflag.SliceValue); isList {
		return list.Replace(texts)
	}
	if value.Kind == yaml.SequenceNode && flag.Value.Type() == rightsType {
		texts = []string{strings.Join(texts, " ")}
	}
	return set(flag, texts...)
}

// textsOf returns a scalar, or the scalars of a list.
func textsOf(node *yaml.Node) (texts []string, err error) {
	switch node.Kind {
	case yaml.ScalarNode:
		return []string{node.Value}, nil
	case yaml.SequenceNode:
		for _, item := range node.Content {
			if resolved(item).Kind != yaml.ScalarNode {
				return nil, errors.New("expected a list of texts")
			}
			texts = append(texts, resolved(item).Value)
		}
		return texts, nil
	default:
		return nil, errors.New("expected a value or a list, not a mapping")
	}
}

// agentList is the value of --agent.
type agentList []server.Agent

// Set implements pflag.Value. Environment variables have several agents, separated by white space.
func (l *agentList) Set(text string) error {
	for one := range strings.FieldsSeq(text) {
		name, address, isPair := strings.Cut(one, "=")
		if !isPair || name == "" || address == "" {
			return fmt.Errorf("%q is not NAME=URL", one)
		}
		l.put(server.Agent{Name: name, URL: address})
	}
	return nil
}

// put adds an agent, in place of one with the same name.
func (l *agentList) put(agent server.Agent) {
	if i := slices.IndexFunc(*l, func(known server.Agent) bool { return known.Name == agent.Name }); i >= 0 {
		(*l)[i] = agent
		return
	}
	*l = append(*l, agent)
}

// String implements pflag.Value.
func (l *agentList) String() string {
	var texts []string
	for _, agent := range *l {
		texts = append(texts, agent.Name+"="+agent.URL)
	}
	return strings.Join(texts, " ")
}

// Type implements pflag.Value.
func (l *agentList) Type() string { return "agents" }

// readAgents reads the list agents of the file.
func (f configFile) readAgents(agents *agentList, list *yaml.Node) error {
	if list.Kind != yaml.SequenceNode {
		return errors.New("expected a list of agents (- name: …)")
	}
	for _, item := range list.Content {
		item = resolved(item)
		agent := server.Agent{Headers: http.Header{}}
		settings := pflag.NewFlagSet("agent", pflag.ContinueOnError)
		settings.StringVar(&agent.Name, "name", "", "")
		settings.StringVar(&agent.URL, "url", "", "")
		settings.StringVar(&agent.Description, "description", "", "")
		settings.StringVar((*string)(&agent.History), "history", "", "")
		settings.BoolVar(&agent.BranchState, "branch-state", false, "")
		settings.BoolVar(&agent.Parallel, "parallel", false, "")
		settings.StringVar((*string)(&agent.OnConcurrentRun), "on-concurrent-run", "", "")
		settings.DurationVar(&agent.QueueTimeout, "queue-timeout", 0, "")
		settings.BoolVar(&agent.RepairToolCalls, "repair-tool-calls", false, "")
		settings.BoolVar(&agent.Idempotent, "idempotent", false, "")
		settings.StringSliceVar(&agent.ForwardHeaders, "forward-headers", nil, "")
		settings.Var(headerValues{agent.Headers, func(text string) (string, error) { return text, nil }}, "headers", "")
		settings.Var(headerValues{agent.Headers, fromEnvironment}, "headers-from-env", "")
		settings.IntVar(&agent.MaxEventBytes, "max-event-bytes", 0, "")
		settings.DurationVar(&agent.IdleTimeout, "idle-timeout", 0, "")
		settings.DurationVar(&agent.EndTimeout, "end-timeout", 0, "")
		settings.DurationVar(&agent.RunTimeout, "run-timeout", 0, "")
		settings.Var((*jsonValue)(&agent.Capabilities), "capabilities", "")
		byKey := map[string]*pflag.Flag{}
		settings.VisitAll(func(flag *pflag.Flag) { byKey[camelCase(flag.Name)] = flag })
		if err := f.readMapping(item, "", byKey); err != nil {
			return err
		}
		if agent.Name == "" || agent.URL == "" {
			return fileError(f.name, item.Line, "an agent needs a name and a url")
		}
		if slices.ContainsFunc(*agents, func(known server.Agent) bool { return known.Name == agent.Name }) {
			return fileError(f.name, item.Line, "another agent has the name %q", agent.Name)
		}
		agents.put(agent)
	}
	return nil
}

// fromEnvironment returns a variable, which must not be empty.
func fromEnvironment(name string) (string, error) {
	if value := os.Getenv(name); value != "" {
		return value, nil
	}
	return "", fmt.Errorf("the environment variable %s is not set", name)
}

// pairValue is a setting that is a mapping in the file.
type pairValue interface {
	setPair(name, value string) error
}

// jsonValue is a mapping in the file, of any depth, as JSON.
type jsonValue json.RawMessage

func (v *jsonValue) setNode(node *yaml.Node) error {
	var members map[string]any
	err := node.Decode(&members)
	if err == nil {
		*v, err = json.Marshal(members)
	}
	return err
}

func (v *jsonValue) Set(string) error { return errors.New("expected a mapping") }
func (v *jsonValue) String() string   { return string(*v) }
func (v *jsonValue) Type() string     { return "json" }

// headerValues are headers of requests to an agent.
type headerValues struct {
	headers http.Header
	value   func(string) (string, error)
}

func (h headerValues) setPair(name, text string) error {
	value, err := h.value(text)
	if err == nil {
		h.headers.Set(name, value)
	}
	return err
}

func (h headerValues) Set(string) error { return errors.New("expected a mapping") }
func (h headerValues) String() string   { return "" }
func (h headerValues) Type() string     { return "headers" }

// rightsMap is the value of --jwt-rights: rights by values of a claim.
type rightsMap map[string]access.Rights

func (m *rightsMap) setPair(value, text string) error {
	rights, err := access.ParseRights(text)
	if err != nil {
		return err
	}
	if *m == nil {
		*m = rightsMap{}
	}
	(*m)[value] = rights
	return nil
}

// Set implements pflag.Value. Environment variables have several pairs, separated by semicolons.
func (m *rightsMap) Set(text string) error {
	for pair := range strings.SplitSeq(text, ";") {
		at := strings.LastIndex(pair, "=")
		if at < 1 {
			return fmt.Errorf("%q is not VALUE=RIGHTS", pair)
		}
		if err := m.setPair(strings.TrimSpace(pair[:at]), pair[at+1:]); err != nil {
			return err
		}
	}
	return nil
}

// String implements pflag.Value.
func (m *rightsMap) String() string {
	var pairs []string
	for value, rights := range *m {
		pairs = append(pairs, value+"="+rights.String())
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ";")
}

// Type implements pflag.Value.
func (m *rightsMap) Type() string { return "pairs" }

// rightsText is a set of rights as a flag.
type rightsText access.Rights

const rightsType = "rights"

// Set implements pflag.Value.
func (r *rightsText) Set(text string) error { return (*access.Rights)(r).UnmarshalText([]byte(text)) }

// String implements pflag.Value.
func (r *rightsText) String() string { return access.Rights(*r).String() }

// Type implements pflag.Value.
func (r *rightsText) Type() string { return rightsType }
