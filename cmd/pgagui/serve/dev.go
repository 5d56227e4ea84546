package serve

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"text/template"
	"time"

	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/sampleagent"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/schedule"
	"github.com/pgagui/pgagui/devpg/cluster"
	"github.com/pgagui/pgagui/devpg/daemon"
	"github.com/pgagui/pgagui/explorer"
	"github.com/pgagui/pgagui/server/access"
	"github.com/pgagui/pgagui/sql/schema"
)

// devFlags are the flags of dev.
type devFlags struct {
	agents     agentList
	listen     string
	reset, yes bool
}

func (p *program) devCommand() *cobra.Command {
	var how devFlags
	command := &cobra.Command{
		Use:   "dev",
		Short: "Start a database, a server and a sample agent for development",
		Long: `Starts everything that a front end needs, until Ctrl-C: a private PostgreSQL server, the schema, the
server of "pgagui serve" on this machine alone, the upkeep of "pgagui worker", and a scripted agent,
unless --agent names others. It prints the commands and the JavaScript to use them, and a link to
the explorer, which shows the conversations in a browser. Pages of any port of localhost may call
the server, with the token that is printed.

The database and the token stay, in $XDG_DATA_HOME/pgagui/dev (~/.local/share/pgagui/dev, on Windows
%LOCALAPPDATA%\pgagui\dev). One process at a time uses them. --reset deletes them first.

The database needs the programs of PostgreSQL. If this machine has none, the command offers to
download them, and checks their hash. With --database-url it uses that database instead, and
installs the schema agui there; $DATABASE_URL is not used.`,
		Example: `  pgagui dev
  pgagui dev --agent assistant=http://localhost:9000/
  pgagui dev --reset --yes`,
		Args: cli.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error { return p.dev(command, how) },
	}
	flags := command.Flags()
	flags.Var(&how.agents, "agent", "an agent, `NAME=URL`, instead of the sample; can be repeated")
	flags.StringVar(&how.listen, "listen", "127.0.0.1:8080", "`address` of the server, HOST:PORT, on this machine; port 0: a free one")
	flags.BoolVar(&how.reset, "reset", false, "delete the database and the token first")
	flags.BoolVar(&how.yes, "yes", false, "do not ask: delete with --reset, and download PostgreSQL if it is missing")
	return command
}

func (p *program) dev(command *cobra.Command, how devFlags) (err error) {
	ctx := command.Context()
	if err := access.CheckLoopback(how.listen); err != nil {
		return cli.WrongUsage(command, "--listen: "+err.Error())
	}
	home, err := openDevHome()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, home.unlock()) }()
	if how.reset {
		if err := p.resetDev(command, home, how.yes); err != nil {
			return err
		}
	}

	const yours = "yours"
	database := yours
	if !command.Flags().Changed("database-url") && !command.Flags().Changed("database-url-file") {
		server, err := p.startDevDatabase(command, home, how.yes)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, server.Stop()) }()
		p.DatabaseURL = server.URL("postgres")
		database = fmt.Sprintf("PostgreSQL %d, data in %s", server.Major(), home.server())
	}
	if err := schema.Up(ctx, p.DatabaseURL, schema.OnNotice(p.Notice)); err != nil {
		if cli.IsUnfit(err) && database != yours {
			err = fmt.Errorf("%w; or start from scratch: pgagui dev --reset", err)
		}
		return err
	}
	sample := &http.Server{Handler: sampleagent.Agent{WordEvery: 40 * time.Millisecond}, ReadHeaderTimeout: 10 * time.Second}
	defer sample.Close()
	if len(how.agents) == 0 {
		listener, err := net.Listen("tcp", net.JoinHostPort(daemon.Host, "0"))
		if err != nil {
			return err
		}
		go func() { _ = sample.Serve(listener) }()
		if err := how.agents.Set(sampleagent.Name + "=http://" + listener.Addr().String() + "/"); err != nil {
			return err
		}
	}
	token, tokenFile, err := home.token(p.Scope)
	if err != nil {
		return err
	}
	config := devConfig(how, tokenFile)
	logger := p.serveLogger(config)
	s, err := p.newService(ctx, config, logger, nil)
	if err != nil {
		return configError(command, err)
	}
	defer s.close()
	if err := s.listen(); err != nil {
		return cli.WrongUsage(command, err.Error()+" (--listen 127.0.0.1:0 takes a free port)")
	}
	if err := p.printDev(devGuide{URL: s.url(), Token: token, Agent: how.agents[0].Name, Agents: how.agents.String(), Explorer: s.explorerLink(p.Scope, explorer.Place{}), Address: p.DatabaseURL, Database: database}); err != nil {
		return err
	}
	return s.run(ctx)
}

// devConfig is the configuration of the server.
func devConfig(how devFlags, tokenFile string) *serveConfig {
	config := &serveConfig{}
	config.settings() // the defaults
	config.listen, config.agents, config.tokenFile = how.listen, how.agents, tokenFile
	config.origins = []string{"http://localhost:*", "https://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"}
	config.grace, config.shutdownTimeout = time.Second, 10*time.Second
	config.logLevel = slog.LevelWarn
	config.isDevelopment = true
	config.isWorker, config.upkeep.Compaction.Workers, config.upkeep.Grace = true, 1, config.grace
	*config.upkeep.Schedules["compact"], *config.upkeep.Schedules["verify"] = "@every 15s", schedule.Off
	return config
}

// devHome is the folder that keeps what dev needs.
type devHome struct {
	path   string
	unlock func() error
}

// openDevHome makes the folder and takes its lock.
func openDevHome() (devHome, error) {
	data := os.Getenv("XDG_DATA_HOME")
	if !filepath.IsAbs(data) { // the standard ignores relative ones
		var err error
		if data, err = userDataFolder(); err != nil {
			return devHome{}, fmt.Errorf("there is no folder for the data: %w (set XDG_DATA_HOME)", err)
		}
	}
	h := devHome{path: filepath.Join(data, "pgagui", "dev")}
	// If this process is root, the server has another account, which must get to its own folder.
	if err := os.MkdirAll(h.path, 0o711); err != nil {
		return devHome{}, err
	}
	var err error
	if h.unlock, err = daemon.TakeLock(filepath.Join(h.path, "lock")); err != nil {
		return devHome{}, fmt.Errorf("pgagui dev runs already: %w", err)
	}
	return h, nil
}

func userDataFolder() (string, error) {
	if runtime.GOOS == "windows" {
		return os.UserCacheDir() // %LOCALAPPDATA%, which is for data too
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".local", "share"), err
}

// server is the folder of the database server.
func (h devHome) server() string { return filepath.Join(h.path, "server") }

// secret returns the content of a file. If the file does not exist, secret creates it.
func (h devHome) secret(name string, make func() string) (string, error) {
	path := filepath.Join(h.path, name)
	text, err := os.ReadFile(path)
	if err == nil && len(text) > 0 {
		return string(bytes.TrimSpace(text)), nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	value := make()
	return value, os.WriteFile(path, []byte(value+"\n"), 0o600)
}

// token returns the token of the server, and the file with its hash.
func (h devHome) token(scope string) (token, file string, err error) {
	token, err = h.secret("token", func() string {
		made, _ := access.NewToken()
		return made
	})
	if err != nil {
		return "", "", err
	}
	hash := sha256.Sum256([]byte(token))
	entry, err := (&staticToken{Name: "dev", SHA256: hex.EncodeToString(hash[:]), Scope: scope, Rights: []string{access.Admin.String()}}).entry()
	if err != nil {
		return "", "", err
	}
	file = filepath.Join(h.path, "tokens.yaml")
	return token, file, os.WriteFile(file, entry, 0o600)
}

// resetDev deletes the database and the token.
func (p *program) resetDev(command *cobra.Command, home devHome, yes bool) error {
	if !yes {
		fmt.Fprintf(p.Messages, "This permanently deletes the database in %s.\n", home.server())
		if err := p.Confirm(command, "nothing was deleted"); err != nil {
			return err
		}
	}
	for _, name := range []string{"server", "password", "token", "tokens.yaml"} {
		if err := os.RemoveAll(filepath.Join(home.path, name)); err != nil {
			return err
		}
	}
	return nil
}

// startDevDatabase starts the private server. If the machine lacks its programs, it offers to
// download them.
func (p *program) startDevDatabase(command *cobra.Command, home devHome, yes bool) (*cluster.Cluster, error) {
	password, err := home.secret("password", rand.Text)
	if err != nil {
		return nil, err
	}
	download, isDownloadable := cluster.DownloadFor(runtime.GOOS, runtime.GOARCH)
	if !isDownloadable {
		download = cluster.Download{}
	}
	server, err := p.withPrograms(command, download, filepath.Dir(home.path), yes, func(programs string) (*cluster.Cluster, error) {
		return cluster.Open(command.Context(), cluster.OpenOptions{Folder: home.server(), Password: password, Programs: []string{programs}})
	})
	if missing, ok := errors.AsType[*cluster.NoProgramsError](err); ok && missing.Major != 0 {
		err = fmt.Errorf("the data in %s is of PostgreSQL %d, and this machine has other versions only (%s): install that version beside them, "+
			"or delete the data with pgagui dev --reset, after a dump if you need it", home.server(), missing.Major, strings.Trim(fmt.Sprint(missing.Found), "[]"))
	}
	if err != nil {
		return nil, &cli.UnavailableError{Err: err, IsComplete: true}
	}
	return server, nil
}

// withPrograms calls open with the folder of downloaded programs. If programs are missing that the
// download has, and the user agrees, it downloads them and calls open a second time.
func (p *program) withPrograms(command *cobra.Command, download cluster.Download, folder string, yes bool, open func(programs string) (*cluster.Cluster, error)) (*cluster.Cluster, error) {
	programs := download.Programs(folder)
	server, err := open(programs)
	if missing, ok := errors.AsType[*cluster.NoProgramsError](err); !ok || download.URL == "" || missing.Major != 0 && missing.Major != download.Major {
		return server, err
	}
	if !yes && cli.TerminalOf(p.In) == nil {
		return nil, fmt.Errorf("%w; or run pgagui dev --yes, which downloads PostgreSQL %s from %s", err, download.Version, download.URL)
	}
	fmt.Fprintf(p.Messages, "This machine has no programs of PostgreSQL. They can be downloaded (25 to 40 MB):\n\n  from    %s\n  sha512  %s\n  to      %s\n\n",
		download.URL, download.SHA512, filepath.Dir(programs))
	if !yes {
		if err := p.Confirm(command, "nothing was downloaded"); err != nil {
			return nil, err
		}
	}
	if err := download.Install(command.Context(), folder); err != nil {
		return nil, err
	}
	return open(programs)
}

// devGuide is what dev prints.
type devGuide struct {
	URL      string `json:"url"`
	Token    string `json:"token"`
	Agent    string `json:"agent"` // the first
	Agents   string `json:"agents"`
	Explorer string `json:"explorer"` // a link that signs in, once
	Address  string `json:"databaseUrl"`
	Database string `json:"database"`
}

// IsWindows reports whether the commands need a word about shells.
func (devGuide) IsWindows() bool { return runtime.GOOS == "windows" }

var devText = template.Must(template.New("dev").Parse(`
  server    {{.URL}}
  token     {{.Token}}
  agents    {{.Agents}}
  explorer  {{.Explorer}}
            signs in once, within a minute; afterwards {{.URL}}/explorer/ takes the token
  database  {{.Address}}
            {{.Database}}

{{if .IsWindows}}The commands are for the shell of Git for Windows. Another shell has other quotes.

{{end}}Run an agent. Its events come as they are stored:

  export PGAGUI_TOKEN={{.Token}}
  curl -N {{.URL}}/agent/{{.Agent}}/run \
    -H "Authorization: Bearer $PGAGUI_TOKEN" -H "Content-Type: application/json" \
    -d '{"threadId":"hello","runId":"'run-$(date +%s)'","state":{},"tools":[],"context":[],"forwardedProps":{},
         "messages":[{"id":"'user-$(date +%s)'","role":"user","content":"Hello"}]}'

Reload the page: the history, then what follows if a run is in progress:

  curl -N {{.URL}}/threads/hello/events -H "Authorization: Bearer $PGAGUI_TOKEN"

Stop the run, from anywhere (ask the sample for a long answer first):

  curl {{.URL}}/threads/hello/stop -H "Authorization: Bearer $PGAGUI_TOKEN" -d '{}'

List the threads, as the runtime of CopilotKit ({{.URL}}/copilotkit):

  curl {{.URL}}/copilotkit/threads -H "Authorization: Bearer $PGAGUI_TOKEN"

In JavaScript (npm install @ag-ui/client):

  import { HttpAgent } from "@ag-ui/client";

  const agent = new HttpAgent({
    url: "{{.URL}}/agent/{{.Agent}}/run",
    headers: { Authorization: "Bearer {{.Token}}" },
    threadId: "hello",
  });
  agent.addMessage({ id: crypto.randomUUID(), role: "user", content: "Hello" });
  await agent.runAgent({}, { onTextMessageContentEvent: ({ event }) => console.log(event.delta) });
  console.log(agent.state);

Ctrl-C ends all of it.
`))

func (p *program) printDev(guide devGuide) error {
	if p.JSON {
		return p.PrintJSON(guide)
	}
	return devText.Execute(p.Out, guide)
}
