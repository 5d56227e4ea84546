package serve

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/server/access"
)

func (p *program) tokenCommand() *cobra.Command {
	var name, rights, file string
	var lifetime time.Duration
	command := &cobra.Command{
		Use:   "token",
		Short: "Make a token for clients of pgagui serve",
		Long: `Makes a random token and prints it once. pgagui serve keeps only its hash, in the file of
--token-file. With --file the command adds the entry to that file, and creates it if necessary, for
its owner alone (0600). Otherwise it prints the entry, too.

A token is for the threads of one scope, that of --scope. Its rights are some of read, write (run
agents, append, change titles), stop, delete, diagnose (see what agents answered that failed), and
admin (all of them). A running server reloads the file on SIGHUP. To withdraw a token, remove its
entry.`,
		Example: `  pgagui token --name support --scope acme --rights read,stop
  TOKEN=$(pgagui token --name web --rights write,read,stop --expires 90d --file tokens.yaml)`,
		Args: cli.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			token, err := newStaticToken(name, p.Scope, rights, lifetime)
			if err != nil {
				return cli.WrongUsage(command, err.Error())
			}
			return p.printToken(token, file)
		},
	}
	flags := command.Flags()
	flags.StringVar(&name, "name", "", "`name` of the token, which logs show; unique in the file")
	flags.StringVar(&rights, "rights", "", "`rights`, separated by commas: read, write, stop, delete, admin, diagnose")
	flags.Var((*cli.Age)(&lifetime), "expires", "how long the token is valid, for example 12h or 90d (default: forever)")
	flags.StringVar(&file, "file", "", "`file` of tokens to add the entry to")
	return command
}

// staticToken is a new token, and its entry in the file of tokens. Its JSON is the output of token.
type staticToken struct {
	Token   string   `json:"token" yaml:"-"`
	Name    string   `json:"name" yaml:"name"`
	SHA256  string   `json:"sha256" yaml:"sha256"`
	Scope   string   `json:"scope" yaml:"scope"`
	Rights  []string `json:"rights" yaml:"rights,flow"`
	Expires string   `json:"expires,omitempty" yaml:"expires,omitempty"`
}

func newStaticToken(name, scope, rights string, lifetime time.Duration) (*staticToken, error) {
	parsed, err := access.ParseRights(rights)
	switch {
	case err != nil:
		return nil, err
	case name == "":
		return nil, errors.New("a token needs a name (--name)")
	case parsed == 0:
		return nil, errors.New("a token needs rights (--rights read,write,stop,delete,admin: some of them)")
	case lifetime < 0:
		return nil, errors.New("--expires must be positive")
	}
	token := &staticToken{Name: name, Scope: scope, Rights: strings.Fields(parsed.String())}
	token.Token, token.SHA256 = access.NewToken()
	if lifetime > 0 {
		token.Expires = time.Now().Add(lifetime).UTC().Format(time.RFC3339)
	}
	return token, nil
}

// entry returns the token as the file has it.
func (t *staticToken) entry() ([]byte, error) { return yaml.Marshal([]*staticToken{t}) }

func (p *program) printToken(token *staticToken, file string) error {
	entry, err := token.entry()
	if err != nil {
		return err
	}
	if file != "" {
		if err := addToken(file, entry); err != nil {
			return err
		}
	}
	if p.JSON {
		return p.PrintJSON(token)
	}
	fmt.Fprintln(p.Out, token.Token)
	if file != "" {
		fmt.Fprintf(p.Messages, "The file %s now has the hash of the token %q. A running server reloads the file on SIGHUP.\n", file, token.Name)
		return nil
	}
	_, err = fmt.Fprintf(p.Out, "\n# The entry for the file of --token-file:\n%s", entry)
	return err
}

// addToken adds an entry to a file of tokens. It changes the file only if the result can be read.
func addToken(file string, entry []byte) error {
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	isNew := err != nil
	added := entry
	switch trimmed := bytes.TrimSpace(text); {
	case len(trimmed) == 0 || string(trimmed) == "[]":
		text = nil
	case !bytes.HasSuffix(text, []byte("\n")):
		added = append([]byte("\n"), entry...)
	}
	folder, err := os.MkdirTemp(filepath.Dir(file), ".pgagui-token-") // beside the file, so that a rename works
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	changed := filepath.Join(folder, filepath.Base(file))
	if err := os.WriteFile(changed, append(text, added...), 0o600); err != nil {
		return err
	}
	if _, err := access.LoadTokens(changed); err != nil {
		problem := strings.ReplaceAll(err.Error(), changed, file)
		return &fs.PathError{Op: "add the token to", Path: file, Err: errors.New(strings.TrimPrefix(problem, "tokens: "))}
	}
	if isNew {
		return os.Rename(changed, file)
	}
	// The file keeps its owner and its mode.
	existing, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = existing.WriteAt(added, int64(len(text)))
	if err == nil {
		err = existing.Truncate(int64(len(text) + len(added)))
	}
	return errors.Join(err, existing.Close())
}
