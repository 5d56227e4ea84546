// Package cluster makes several databases one store: each is a node, which has the threads of some
// of 1,024 buckets. It makes databases nodes, and moves buckets and threads from one to another
// while they are in use. docs/scale.md says when that is worth it.
//
// A program that reads and writes threads uses pgagui.NewCluster. This package is for those who
// administer the nodes; its calls need the rights of agui_maintainer, and Init and Add those of the
// owner of the schema.
package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/address"
	"github.com/pgagui/pgagui/internal/buckets"
	"github.com/pgagui/pgagui/internal/rawjson"
)

// Buckets is the number of buckets of a cluster. agui.bucket(scope, thread_id) is that of a thread.
const Buckets = buckets.Count

// Node describes a database of a cluster.
type Node struct {
	// Name is the name of the node in the map: small letters, digits, and . _ -.
	Name string `json:"name"`
	// URL is the address of the database, as for pgagui's command line.
	URL string `json:"url"`
	// Standbys are the addresses of streaming standbys of the database. "pgagui serve" reads there.
	Standbys []string `json:"standbys,omitempty"`
}

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]{0,62}$`)

// ReadFile reads the description of a cluster:
// {"nodes": [{"name": "a", "url": "postgres://…", "standbys": ["postgres://…"]}, …]}. An address may
// have variables of the environment: ${NAME}.
func ReadFile(path string) ([]Node, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var described struct {
		Nodes []Node `json:"nodes"`
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	invalid := func(err error) error { return &os.PathError{Op: "read the nodes", Path: path, Err: err} }
	if err := decoder.Decode(&described); err != nil {
		return nil, invalid(err)
	}
	for i, node := range described.Nodes {
		var unset string
		expand := func(address string) string {
			return os.Expand(address, func(name string) string {
				value, found := os.LookupEnv(name)
				if !found {
					unset = name
				}
				return value
			})
		}
		described.Nodes[i].URL = expand(node.URL)
		for j, address := range node.Standbys {
			node.Standbys[j] = expand(address)
		}
		if unset != "" {
			return nil, invalid(fmt.Errorf("node %q: the variable %s of its address is not set", node.Name, unset))
		}
	}
	if err := check(described.Nodes); err != nil {
		return nil, invalid(err)
	}
	return described.Nodes, nil
}

func check(nodes []Node) error {
	if len(nodes) == 0 {
		return errors.New("there are no nodes")
	}
	known := map[string]bool{}
	for _, node := range nodes {
		switch {
		case !nameForm.MatchString(node.Name):
			return fmt.Errorf("%q is no name of a node (expected small letters, digits, and . _ -, at most 63)", node.Name)
		case known[node.Name]:
			return fmt.Errorf("there are two nodes %q", node.Name)
		case node.URL == "":
			return fmt.Errorf("node %q has no address", node.Name)
		case slices.Contains(node.Standbys, ""):
			return fmt.Errorf("a standby of node %q has no address", node.Name)
		}
		known[node.Name] = true
	}
	return nil
}

// Cluster is a cluster that is administered.
type Cluster struct {
	// RemoveAfter is how long the rows of a moved thread stay where it was, for reads that began
	// before. Open sets it to two seconds.
	RemoveAfter time.Duration

	nodes []*node
}

type node struct {
	name     string
	pool     *pgxpool.Pool
	queries  *db.Queries
	standbys []string
}

// Open returns the cluster of these nodes. The first one coordinates: two moves never run at a time.
// It connects when a method is called.
func Open(ctx context.Context, nodes []Node) (*Cluster, error) {
	if err := check(nodes); err != nil {
		return nil, err
	}
	c := &Cluster{RemoveAfter: 2 * time.Second}
	for _, described := range nodes {
		config, err := pgxpool.ParseConfig(described.URL)
		if err == nil {
			config.MaxConns = max(config.MaxConns, 2*parallelCopies+2)
			config.AfterConnect = prepareToMove
			var pool *pgxpool.Pool
			pool, err = address.NewPool(ctx, config)
			if err == nil {
				c.nodes = append(c.nodes, &node{described.Name, pool, db.New(pool), described.Standbys})
				continue
			}
		}
		c.Close()
		return nil, fmt.Errorf("node %q: %w", described.Name, err)
	}
	return c, nil
}

// prepareToMove lets the server end a session half a minute after the machine of the client is gone, unless the database, the role
// or the address sets it otherwise: its locks are in the way of the next move. The defaults of the system take two hours. No timeout ends
// a session that waits, with the locks of the move, until rows come from the other node.
func prepareToMove(ctx context.Context, connection *pgx.Conn) error {
	_, err := connection.Exec(ctx, `
		select set_config(wanted.name, wanted.value, false)
		from (values ('tcp_keepalives_idle', '15'), ('tcp_keepalives_interval', '5'), ('tcp_keepalives_count', '3'), ('tcp_user_timeout', '30000'))
			as wanted (name, value)
		join pg_settings as known on known.name = wanted.name
		where known.source = 'default'
		union all
		select set_config(name, '0', false)
		from pg_settings
		where name in ('idle_session_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')`)
	return err
}

// Close closes the connections.
func (c *Cluster) Close() {
	for _, node := range c.nodes {
		node.pool.Close()
	}
}

func (c *Cluster) node(name string) (*node, error) {
	i := slices.IndexFunc(c.nodes, func(node *node) bool { return node.name == name })
	if i < 0 {
		return nil, fmt.Errorf("there is no node %q", name)
	}
	return c.nodes[i], nil
}

// textOf is the text of a map of buckets.
func textOf(ranges []buckets.Range) rawjson.Text {
	if ranges == nil {
		ranges = []buckets.Range{}
	}
	text, err := json.Marshal(buckets.Map{Buckets: ranges})
	if err != nil {
		panic(err) // it has texts and numbers
	}
	return text
}

func (n *node) readMap(ctx context.Context) (m buckets.Map, err error) {
	text, err := n.queries.ClusterMap(ctx)
	if err == nil {
		m, err = buckets.Read(text)
	}
	if err == nil && m.Node != "" && m.Node != n.name {
		err = fmt.Errorf("the database calls itself node %q", m.Node)
	}
	if err != nil {
		err = fmt.Errorf("node %q: %w", n.name, err)
	}
	return m, err
}

// Init makes the databases nodes of a cluster, in which the first node has all buckets. It repeats
// what an earlier call left undone. A database that joins must have no threads, but for the first.
func (c *Cluster) Init(ctx context.Context) error { return c.join(ctx, true) }

// Add makes databases nodes that have been added to the description of the cluster. They have no
// buckets until some are moved to them.
func (c *Cluster) Add(ctx context.Context) error { return c.join(ctx, false) }

func (c *Cluster) join(ctx context.Context, mayBeFirst bool) error {
	first := c.nodes[0]
	known, err := first.readMap(ctx)
	if err != nil {
		return err
	}
	if known.Node == "" {
		if !mayBeFirst {
			return fmt.Errorf("node %q is of no cluster yet", first.name)
		}
		if err := first.queries.JoinCluster(ctx, db.JoinClusterParams{Node: first.name}); err != nil {
			return fmt.Errorf("node %q: %w", first.name, err)
		}
	}
	salt, err := first.queries.ErasureSalt(ctx)
	if err != nil {
		return fmt.Errorf("node %q: the salt of erased threads: %w", first.name, err)
	}
	for _, node := range c.nodes[1:] {
		joined, err := node.readMap(ctx)
		if err != nil {
			return err
		}
		if joined.Node != "" {
			continue
		}
		text, err := first.queries.ClusterMap(ctx)
		if err == nil {
			err = node.queries.JoinCluster(ctx, db.JoinClusterParams{Node: node.name, Map: text, ErasureSalt: salt})
		}
		if err != nil {
			return fmt.Errorf("node %q: %w", node.name, err)
		}
	}
	return nil
}

// NodeStatus is what Status says of a node.
type NodeStatus struct {
	Name string `json:"name"`
	// Buckets is the number of buckets that it has, as the newest map of all nodes says.
	Buckets int `json:"buckets"`
	// Outdated is the number of buckets of which its own map has an older place. Calls are then sent to
	// the right node all the same.
	Outdated int `json:"outdated"`
	// Unfinished is the number of threads that a move has taken from the node, or was about to take, and
	// whose rows are still there. If no move is in progress, it was interrupted: move again.
	Unfinished int64 `json:"unfinished"`
	// IsNode is false for a database that has not joined.
	IsNode bool `json:"isNode"`
	// Error says why the node did not answer.
	Error string `json:"error,omitempty"`
	// Standbys are those of the description, in their order.
	Standbys []StandbyStatus `json:"standbys,omitempty"`
}

// StandbyStatus is what Status says of a standby.
type StandbyStatus struct {
	// Behind is how many transactions of the node it does not show yet.
	Behind int64 `json:"behind"`
	// Error says why it cannot be used: it does not answer, or is no standby of the node.
	Error string `json:"error,omitempty"`
}

// Status says of each node what it has.
func (c *Cluster) Status(ctx context.Context) []NodeStatus {
	known := make([]buckets.Places, len(c.nodes))
	statuses := make([]NodeStatus, len(c.nodes))
	var newest buckets.Places
	for i, node := range c.nodes {
		statuses[i].Name = node.name
		own, err := node.readMap(ctx)
		if err != nil {
			statuses[i].Error = err.Error()
			continue
		}
		if statuses[i].Unfinished, err = node.queries.UnfinishedMoves(ctx); err != nil {
			statuses[i].Error = inNode(node, err).Error()
			continue
		}
		statuses[i].IsNode = own.Node != ""
		known[i].Take(own)
		newest.Take(own)
		for j, address := range node.standbys {
			var standby StandbyStatus
			if standby.Behind, err = behind(ctx, node.queries, address); err != nil {
				standby.Error = fmt.Sprintf("standby %d of node %q: %v", j+1, node.name, err)
			}
			statuses[i].Standbys = append(statuses[i].Standbys, standby)
		}
	}
	for i := range statuses {
		for bucket, at := range newest {
			if at.Node == statuses[i].Name {
				statuses[i].Buckets++
			}
			if statuses[i].IsNode && known[i][bucket].Epoch < at.Epoch {
				statuses[i].Outdated++
			}
		}
	}
	return statuses
}

// standbyTimeout bounds how long Status waits for a standby.
const standbyTimeout = 5 * time.Second

// behind returns how many transactions of a database a standby does not show yet.
func behind(ctx context.Context, primary *db.Queries, standby string) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, standbyTimeout)
	defer cancel()
	at, err := primary.PrimaryState(ctx)
	if err != nil {
		return 0, fmt.Errorf("the primary: %w", err)
	}
	connection, err := address.Connect(ctx, standby)
	if err != nil {
		return 0, err
	}
	defer connection.Close(ctx)
	shown, err := db.New(connection).StandbyState(ctx, db.StandbyStateParams{DatabaseOid: &at.DatabaseOid, StartedAt: &at.StartedAt})
	switch {
	case err != nil:
		return 0, err
	case shown.Problem != "":
		return 0, errors.New(shown.Problem)
	}
	return max(0, at.NextTransaction-shown.NextTransaction), nil
}
