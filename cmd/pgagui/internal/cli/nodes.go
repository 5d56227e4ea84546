package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cluster"
)

// onOneDatabase is the annotation of commands that work on one database.
const onOneDatabase = "works on one database"

// OnOneDatabase says of commands that they work on one database: of a cluster they need --node.
func OnOneDatabase(commands ...*cobra.Command) []*cobra.Command {
	for _, command := range commands {
		if command.Annotations == nil {
			command.Annotations = map[string]string{}
		}
		command.Annotations[onOneDatabase] = "yes"
	}
	return commands
}

// ChooseDatabase finds out what a command works on: one database, that of a node, or all nodes of a
// cluster.
func (p *Program) ChooseDatabase(command *cobra.Command) error {
	flags := command.Flags()
	isAsked, hasURL := flags.Changed("nodes"), flags.Changed("database-url") || flags.Changed("database-url-file")
	p.command = command.CommandPath()
	if !isAsked && hasURL {
		p.Nodes = "" // of the environment
	}
	switch {
	case isAsked && hasURL:
		return p.usage("--nodes and --database-url exclude each other")
	case p.Node != "" && p.Nodes == "":
		return p.usage("--node needs --nodes or $PGAGUI_NODES, which describe the nodes")
	case p.Node != "":
		nodes, err := cluster.ReadFile(p.Nodes)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(nodes, func(node cluster.Node) bool { return node.Name == p.Node })
		if i < 0 {
			return p.usage(fmt.Sprintf("%s describes no node %q", p.Nodes, p.Node))
		}
		p.DatabaseURL, p.Standbys, p.Nodes = nodes[i].URL, nodes[i].Standbys, ""
	case p.Nodes == "" || command.Annotations[onOneDatabase] == "":
	case isAsked || p.DatabaseURL == "":
		return p.needsNode()
	default:
		p.Nodes = ""
	}
	return nil
}

func (p *Program) usage(problem string) error {
	return &UsageError{Problem: problem, Command: p.command}
}

// needsNode is the error of a command that works on one database, and got a cluster.
func (p *Program) needsNode() error {
	nodes, err := p.Databases()
	if err != nil {
		return err
	}
	var names []string
	for _, node := range nodes {
		names = append(names, node.Name)
	}
	return p.usage("this works on one node: --node " + strings.Join(names, "|"))
}

// Databases returns the nodes of the cluster, or the one database, which has a name if it is that of
// --node.
func (p *Program) Databases() ([]cluster.Node, error) {
	if p.Nodes == "" {
		return []cluster.Node{{Name: p.Node, URL: p.DatabaseURL, Standbys: p.Standbys}}, nil
	}
	return cluster.ReadFile(p.Nodes)
}

// EachNode calls work for the database, or for each node of the cluster, one after the other. While it
// works on a node, DatabaseURL is the address of the node, and what is printed names the node: results
// come below its name, or have the member node in JSON. Behind a node that fails it goes on with the
// next one, and returns a *NodesError in the end.
func (p *Program) EachNode(ctx context.Context, work func(context.Context) error) error {
	if p.Nodes == "" {
		return work(ctx)
	}
	nodes, err := p.Databases()
	if err != nil {
		return err
	}
	failed := &NodesError{}
	for _, node := range nodes {
		if err := p.onNode(ctx, node, work); errors.Is(err, ErrInterrupted) || ctx.Err() != nil {
			return ErrInterrupted
		} else if err != nil {
			failed.Nodes = append(failed.Nodes, NodeError{node, err})
		}
	}
	return failed.OrNil()
}

func (p *Program) onNode(ctx context.Context, node cluster.Node, work func(context.Context) error) error {
	whole := *p
	defer func() { *p = whole }()
	p.DatabaseURL, p.Standbys, p.Nodes, p.Node, p.namesNode = node.URL, node.Standbys, "", node.Name, true
	p.Messages = prefixed{whole.Messages, "node " + node.Name + ": "}
	if !p.JSON {
		p.Out = &headed{to: whole.Out, heading: "node " + node.Name + ":\n"}
	}
	return work(ctx)
}

// EachPool is EachNode with a pool of up to this many connections.
func (p *Program) EachPool(ctx context.Context, connections int, work func(context.Context, *pgxpool.Pool) error) error {
	return p.EachNode(ctx, func(ctx context.Context) error {
		pool, err := p.Connect(ctx, connections)
		if err != nil {
			return err
		}
		defer pool.Close()
		return work(ctx, pool)
	})
}

// OnPools returns the RunE of a command that is work on each database, as in EachPool, with one connection.
func (p *Program) OnPools(work func(ctx context.Context, pool *pgxpool.Pool, arguments []string) error) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, arguments []string) error {
		return p.EachPool(command.Context(), 1, func(ctx context.Context, pool *pgxpool.Pool) error { return work(ctx, pool, arguments) })
	}
}

// EachPoolOf is EachPool for threads of the scope: work gets those that the node has. Nodes that have
// none are left out. Without threads it is called for all nodes.
func (p *Program) EachPoolOf(
	ctx context.Context, connections int, threads []string, work func(ctx context.Context, pool *pgxpool.Pool, threads []string) error,
) error {
	if p.Nodes == "" || len(threads) == 0 {
		return p.EachPool(ctx, connections, func(ctx context.Context, pool *pgxpool.Pool) error { return work(ctx, pool, threads) })
	}
	threadsOf := map[string][]string{}
	err := p.WithStore(ctx, func(store *pgagui.Store) error {
		for _, threadID := range threads {
			node, err := store.NodeOf(ctx, threadID)
			if node == "" {
				return err
			}
			threadsOf[node] = append(threadsOf[node], threadID) // if the node does not answer, it will say so once more
		}
		return nil
	})
	if err != nil {
		return err
	}
	return p.EachNode(ctx, func(ctx context.Context) error {
		if threads := threadsOf[p.Node]; len(threads) > 0 {
			return p.EachPool(ctx, connections, func(ctx context.Context, pool *pgxpool.Pool) error { return work(ctx, pool, threads) })
		}
		return nil
	})
}

// Partly keeps the error of nodes that did not answer a list, if others did: the command prints what
// these have, and fails in the end (WithStore). It returns any other error.
func (p *Program) Partly(err error) error {
	if unanswered, ok := errors.AsType[*pgagui.UnansweredError](err); !ok || len(unanswered.Nodes) == p.members {
		return err
	}
	p.missing = err
	return nil
}

// TakeMissing returns the last error that Partly kept, and forgets it.
func (p *Program) TakeMissing() error {
	missing := p.missing
	p.missing = nil
	return missing
}

// DatabaseOf returns a pool to the database that has a thread, or would have it. The pool has two
// connections. If a node of a cluster does not answer, the error is a *NodesError.
type DatabaseOf func(ctx context.Context, scope, threadID string) (*pgxpool.Pool, error)

// OneDatabase is the DatabaseOf of all threads of a database.
func OneDatabase(pool *pgxpool.Pool) DatabaseOf {
	return func(context.Context, string, string) (*pgxpool.Pool, error) { return pool, nil }
}

// WithDatabases calls work for threads of the database, or of all nodes of the cluster.
func (p *Program) WithDatabases(ctx context.Context, work func(DatabaseOf) error) error {
	const connections = 2 // one for a transaction, one to look for another thread
	if p.Nodes == "" {
		pool, err := p.Connect(ctx, connections)
		if err != nil {
			return err
		}
		defer pool.Close()
		return work(OneDatabase(pool))
	}
	nodes, err := p.OpenNodes(ctx, connections)
	if err != nil {
		return err
	}
	defer nodes.Close()
	store := pgagui.NewCluster(nodes.Members(), nil)
	return work(func(ctx context.Context, scope, threadID string) (*pgxpool.Pool, error) {
		node, err := store.InScope(scope).NodeOf(ctx, threadID)
		if err != nil && node != "" {
			err = &NodesError{[]NodeError{{cluster.Node{Name: node, URL: nodes[node].Config().ConnString()}, err}}}
		}
		return nodes[node], err
	})
}

// NodeError is the error of a node.
type NodeError struct {
	Node cluster.Node
	Err  error
}

// NodesError are the errors of the nodes at which a command failed. The command has gone on behind them.
type NodesError struct{ Nodes []NodeError }

func (e *NodesError) Error() string {
	return e.text(error.Error)
}

// text joins the texts of the errors. One that is empty is left out.
func (e *NodesError) text(of func(error) string) string {
	var texts []string
	for _, failed := range e.Nodes {
		if text := of(failed.Err); text != "" {
			texts = append(texts, fmt.Sprintf("node %q: %s", failed.Node.Name, text))
		}
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns the errors of the nodes.
func (e *NodesError) Unwrap() (errs []error) {
	for _, failed := range e.Nodes {
		errs = append(errs, failed.Err)
	}
	return errs
}

// Add adds the errors of nodes that have none yet.
func (e *NodesError) Add(others *NodesError) {
	for _, other := range others.Nodes {
		if !slices.ContainsFunc(e.Nodes, func(known NodeError) bool { return known.Node.Name == other.Node.Name }) {
			e.Nodes = append(e.Nodes, other)
		}
	}
}

// OrNil returns the error if it has nodes.
func (e *NodesError) OrNil() error {
	if len(e.Nodes) == 0 {
		return nil
	}
	return e
}

// headed writes a heading before the first text.
type headed struct {
	to      io.Writer
	heading string
}

func (h *headed) Write(text []byte) (int, error) {
	if h.heading != "" {
		if _, err := io.WriteString(h.to, h.heading); err != nil {
			return 0, err
		}
		h.heading = ""
	}
	return h.to.Write(text)
}

// prefixed writes a prefix before each message, which is a call of Write.
type prefixed struct {
	to     io.Writer
	prefix string
}

func (m prefixed) Write(message []byte) (int, error) {
	_, err := m.to.Write(append([]byte(m.prefix), message...))
	return len(message), err
}

// withNode adds the member node to an object, or to each object of a list.
func withNode(node string, document []byte) ([]byte, error) {
	if document[0] == '[' {
		var items []json.RawMessage
		if err := json.Unmarshal(document, &items); err != nil {
			return nil, err
		}
		list := []byte{'['}
		for i, item := range items {
			named, err := withNode(node, item)
			if err != nil {
				return nil, err
			}
			if i > 0 {
				list = append(list, ',')
			}
			list = append(list, named...)
		}
		return append(list, ']'), nil
	}
	members, isObject := bytes.CutPrefix(document, []byte("{"))
	if !isObject {
		return nil, fmt.Errorf("a result of node %q is no object", node)
	}
	begin := fmt.Sprintf(`{"node":%q`, node)
	if members[0] != '}' {
		begin += ","
	}
	return append([]byte(begin), members...), nil
}
