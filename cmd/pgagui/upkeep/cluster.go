package upkeep

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui/cluster"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/sql/schema"
)

func (p *program) clusterCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "cluster",
		Short: "Spread threads over several databases",
		Long: `Administers a cluster: several databases, its nodes, of which each has some of the threads. A thread
is in one of 1,024 buckets (select agui.bucket(scope, thread_id)), and a bucket is on one node.

The nodes are described in a file, which --nodes or $PGAGUI_NODES names. Addresses may have
variables of the environment:

  {"nodes": [{"name": "a", "url": "postgres://agui:${PASSWORD_A}@db-a/agui"},
             {"name": "b", "url": "postgres://agui:${PASSWORD_B}@db-b/agui"}]}

The first node coordinates. In a cluster that is made of a store in use it is that store. A node may
have "standbys": ["postgres://…"], streaming standbys of the database: "pgagui serve" reads there.

With --nodes all commands take a cluster where they take a database. "pgagui serve" and commands
about threads find the node of each thread. "pgagui worker" runs the jobs of all nodes. Jobs, checks
and settings (job, verify, stats, doctor, erase --older-than, retention, webhook, …) work on one
node after the other: results come below the name of the node, or with --json have the member node.
--limit, --max-time and --sample count for each node. If a node fails or is away, the command goes
on with the next one, and names it in its error; --node NAME repeats it there. "pgagui migrate up"
and "down" work on one node, which --node names.`,
		Example: `  pgagui cluster init --nodes nodes.json
  pgagui threads --nodes nodes.json
  pgagui verify --nodes nodes.json --node a`,
		Args: cli.NoArguments,
		RunE: cli.NeedsSubcommand("migrate, init, add, status, move, pin, rebalance or front"),
	}
	nodes := func(command *cobra.Command) ([]cluster.Node, error) {
		if p.Nodes == "" {
			return nil, cli.WrongUsage(command, "no file that describes the nodes: expected --nodes or $PGAGUI_NODES")
		}
		return cluster.ReadFile(p.Nodes)
	}
	// with opens the cluster for a subcommand.
	with := func(work func(*cobra.Command, []string, *cluster.Cluster) error) func(*cobra.Command, []string) error {
		return func(command *cobra.Command, arguments []string) error {
			described, err := nodes(command)
			if err != nil {
				return err
			}
			opened, err := cluster.Open(command.Context(), described)
			if err != nil {
				return err
			}
			defer opened.Close()
			return work(command, arguments, opened)
		}
	}
	command.AddCommand(
		&cobra.Command{
			Use:   "migrate",
			Short: "Install or upgrade the schema on each node, one after the other",
			Long: `Does what "pgagui migrate up" does, on each node, one after the other. It stops at the first node
that fails. Nodes of two versions work together, as a program of one version works with a schema of
the other (see docs/install.md).`,
			Example: `  pgagui cluster migrate`,
			Args:    cli.NoArguments,
			RunE: func(command *cobra.Command, _ []string) error {
				described, err := nodes(command)
				if err != nil {
					return err
				}
				return p.migrateNodes(command.Context(), described)
			},
		},
		&cobra.Command{
			Use:   "init",
			Short: "Make the databases nodes of a cluster",
			Long: `Makes the databases nodes of a cluster. They need the schema: "pgagui cluster migrate" installs it,
in databases that have none. The first node has all buckets, until some are moved to
others. The others must have no threads. The command needs the owner of the schema. It can be
repeated.

From then on clients have to know the nodes. The calls of a client that does not fail with UI027, if
the thread is on another node.`,
			Example: `  pgagui cluster init`,
			Args:    cli.NoArguments,
			RunE: with(func(command *cobra.Command, _ []string, c *cluster.Cluster) error {
				if err := c.Init(command.Context()); err != nil {
					return err
				}
				return p.clusterStatus(command.Context(), c)
			}),
		},
		&cobra.Command{
			Use:   "add",
			Short: "Make databases nodes that were added to the description",
			Long: `Makes databases nodes that were added to the description of the cluster. They have no buckets until
"pgagui cluster rebalance" or "pgagui cluster move" gives them some. Programs that use the cluster
have to know a node before it gets threads: give them the new description first.`,
			Example: `  pgagui cluster add`,
			Args:    cli.NoArguments,
			RunE: with(func(command *cobra.Command, _ []string, c *cluster.Cluster) error {
				if err := c.Add(command.Context()); err != nil {
					return err
				}
				return p.clusterStatus(command.Context(), c)
			}),
		},
		&cobra.Command{
			Use:   "status",
			Short: "Show how many buckets each node has, and how far its standbys are behind",
			Long: `Shows how many buckets each node has, and the nodes that do not answer. OUTDATED counts the buckets
of which a node does not know the place yet; the next move brings it. UNFINISHED counts the threads
that a move took from the node, or was about to take, and whose rows are still there: if no move is
in progress, one was interrupted, and the next move or "pgagui cluster rebalance" finishes it. Below
a node are its standbys, with the number of transactions of the node that they do not show yet. If a
node or a standby does not answer, the exit code is 5.`,
			Example: `  pgagui cluster status --json`,
			Args:    cli.NoArguments,
			RunE: with(func(command *cobra.Command, _ []string, c *cluster.Cluster) error {
				return p.clusterStatus(command.Context(), c)
			}),
		},
		p.clusterMoveCommand(with),
		p.clusterPinCommand(with),
		&cobra.Command{
			Use:   "front",
			Short: "Print the SQL of a database that carries calls to the nodes",
			Long: `Prints SQL that makes a database a front of the cluster: it has the functions of the schema agui,
and carries each call to the node of its thread. The database needs the extension PL/Proxy
(Debian: postgresql-15-plproxy), and no store of its own. A superuser runs the SQL there, and
again after an upgrade, or when the description of the nodes has changed. Moves need no new SQL.
After "pgagui cluster pin", new SQL saves a call for each call of a thread of the scope.

The SQL has the passwords of the nodes, from the description. See docs/guides/front.md.`,
			Example: `  pgagui cluster front | psql --dbname postgres://postgres@front/agui`,
			Args:    cli.NoArguments,
			RunE: with(func(command *cobra.Command, _ []string, c *cluster.Cluster) error {
				return c.Front(command.Context(), p.Out)
			}),
		},
		&cobra.Command{
			Use:   "rebalance",
			Short: "Give each node the same number of buckets",
			Long: `Moves buckets, as few as possible, until each node has as many as the others, or one more. See
"pgagui cluster move --help" for what a move means.`,
			Example: `  pgagui cluster rebalance`,
			Args:    cli.NoArguments,
			RunE: with(func(command *cobra.Command, _ []string, c *cluster.Cluster) error {
				line := p.NewProgress()
				moved, err := c.Rebalance(command.Context(), showMoved(line))
				line.Clear()
				return p.printMoved(moved, err)
			}),
		},
	)
	return command
}

func (p *program) migrateNodes(ctx context.Context, nodes []cluster.Node) error {
	for _, node := range nodes {
		before, err := schema.Status(ctx, node.URL)
		if err == nil {
			err = schema.Up(ctx, node.URL, schema.OnNotice(p.Notice))
		}
		if err != nil {
			return fmt.Errorf("node %q: %w", node.Name, err)
		}
		if before.Version == 0 {
			fmt.Fprintf(p.Messages, "node %s: installed the schema agui, version %d\n", node.Name, before.Latest)
			continue
		}
		fmt.Fprintf(p.Messages, "node %s: version %d before, now %d\n", node.Name, before.Version, before.Latest)
	}
	return nil
}

func (p *program) clusterStatus(ctx context.Context, c *cluster.Cluster) error {
	rows := [][]string{{"NODE", "BUCKETS", "OUTDATED", "UNFINISHED", "STATE"}}
	var failed error
	for _, status := range c.Status(ctx) {
		state := "node of the cluster"
		switch {
		case status.Error != "":
			state = cli.OneLine(status.Error)
			failed = errors.Join(failed, errors.New(status.Error))
		case !status.IsNode:
			state = "has not joined"
		}
		if p.JSON {
			if err := p.PrintJSON(status); err != nil {
				return err
			}
		}
		rows = append(rows, []string{status.Name, strconv.Itoa(status.Buckets), strconv.Itoa(status.Outdated), strconv.FormatInt(status.Unfinished, 10), state})
		for i, standby := range status.Standbys {
			state := fmt.Sprintf("standby %d, %s behind", i+1, cli.CountText(standby.Behind, "transaction"))
			if standby.Error != "" {
				state = cli.OneLine(standby.Error)
				failed = errors.Join(failed, errors.New(state))
			}
			rows = append(rows, []string{status.Name, "", "", "", state})
		}
	}
	if !p.JSON {
		if err := p.PrintTable(rows, 4); err != nil {
			return err
		}
	}
	if failed != nil {
		return &cli.UnavailableError{Err: failed, IsComplete: true}
	}
	return nil
}

type withCluster func(work func(*cobra.Command, []string, *cluster.Cluster) error) func(*cobra.Command, []string) error

func (p *program) clusterMoveCommand(with withCluster) *cobra.Command {
	var to, thread string
	command := &cobra.Command{
		Use:   "move [BUCKETS…]",
		Short: "Move buckets, or one thread, to another node",
		Long: `Moves buckets to a node, for example 17 or 0-341, or with --thread one thread of the scope, for
example one that is used much more than others.

Threads are moved one by one, while they are in use. Calls for a thread wait while it is copied:
milliseconds, or seconds for a thread of many megabytes. Writers and followers that know the cluster
go on. The database of the target compares what it has stored with hashes from the source, and
checks it as "pgagui verify" does, before a thread counts as moved.

All nodes must answer. The command can be killed at any time: the next one, or "pgagui cluster
rebalance", finishes what it left. A thread that was being copied
when it was killed is not available until then. The jobs of the target make snapshots and facts
again. Rows of moved threads go from the source after some seconds; those about which
requests of webhooks are waiting go with the next move.`,
		Example: `  pgagui cluster move 0-341 --to b
  pgagui cluster move --thread hot --to c`,
		RunE: with(func(command *cobra.Command, arguments []string, c *cluster.Cluster) error {
			buckets, err := bucketsOf(arguments)
			switch {
			case err != nil:
			case to == "":
				err = errors.New("expected --to NODE")
			case (thread == "") == (len(buckets) == 0):
				err = errors.New("expected either buckets or --thread ID")
			}
			if err != nil {
				return cli.WrongUsage(command, err.Error())
			}
			var moved cluster.Moved
			if thread != "" {
				moved, err = c.MoveThread(command.Context(), p.Scope, thread, to)
			} else {
				line := p.NewProgress()
				moved, err = c.Move(command.Context(), buckets, to, showMoved(line))
				line.Clear()
			}
			return p.printMoved(moved, err)
		}),
	}
	command.Flags().StringVar(&to, "to", "", "`name` of the node")
	command.Flags().StringVar(&thread, "thread", "", "`id` of a thread to move alone")
	return command
}

func (p *program) clusterPinCommand(with withCluster) *cobra.Command {
	var bucket int
	var remove bool
	command := &cobra.Command{
		Use:   "pin [SCOPE]",
		Short: "Keep all threads of a scope in one bucket, or list the scopes that are pinned",
		Long: `Puts all threads of a scope into one bucket, so that they are on one node, and move together.
Lists, search and transactions over threads of one tenant are then those of one database. Without
--bucket, the bucket comes from a hash of the scope. Threads that the scope has are moved there
while they are in use, as "pgagui cluster move" does, and so are threads that were moved away from
the bucket alone. New threads of the scope wait for a moment. A scope that is pinned already moves
to the other bucket.

The size of the scope counts: "pgagui cluster rebalance" gives each node the same number of buckets.
If the command is interrupted, repeat it. Without a scope it lists the scopes that are pinned, with
their buckets and nodes. --remove spreads the threads of a scope to the buckets of their hashes.`,
		Example: `  pgagui cluster pin acme
  pgagui cluster pin acme --bucket 17
  pgagui cluster pin acme --remove
  pgagui cluster pin`,
		Args: cli.Arguments(0, 1),
		RunE: with(func(command *cobra.Command, arguments []string, c *cluster.Cluster) error {
			hasBucket := command.Flags().Changed("bucket")
			switch {
			case remove && hasBucket:
				return cli.WrongUsage(command, "--remove and --bucket exclude each other")
			case remove && len(arguments) == 0:
				return cli.WrongUsage(command, "expected one scope, got 0 arguments")
			case len(arguments) == 0:
				return p.listPins(command.Context(), c)
			}
			if !hasBucket {
				bucket = cluster.BucketOfScope(arguments[0])
			}
			line := p.NewProgress()
			var moved cluster.Moved
			var err error
			if remove {
				moved, err = c.UnpinScope(command.Context(), arguments[0], showMoved(line))
			} else {
				moved, err = c.PinScope(command.Context(), arguments[0], bucket, showMoved(line))
			}
			line.Clear()
			return p.printMoved(moved, err)
		}),
	}
	command.Flags().IntVar(&bucket, "bucket", 0, "`number` of the bucket (default: from a hash of the scope)")
	command.Flags().BoolVar(&remove, "remove", false, "spread the threads of the scope again")
	return command
}

func (p *program) listPins(ctx context.Context, c *cluster.Cluster) error {
	pins, err := c.Pins(ctx)
	if err != nil {
		return err
	}
	return cli.PrintList(p.Program, pins, "", []string{"SCOPE", "BUCKET", "NODE"}, func(pin cluster.Pin) []string {
		return []string{pin.Scope, strconv.Itoa(pin.Bucket), pin.Node}
	}, 0)
}

// bucketsOf reads numbers and ranges of buckets.
func bucketsOf(arguments []string) (buckets []int, err error) {
	for _, argument := range arguments {
		first, last, isRange := strings.Cut(argument, "-")
		if !isRange {
			last = first
		}
		from, err := strconv.Atoi(first)
		to, errTo := strconv.Atoi(last)
		if errors.Join(err, errTo) != nil || from < 0 || to >= cluster.Buckets || from > to {
			return nil, fmt.Errorf("%q names no buckets (expected for example 17 or 0-341, at most %d)", argument, cluster.Buckets-1)
		}
		for bucket := from; bucket <= to; bucket++ {
			buckets = append(buckets, bucket)
		}
	}
	return buckets, nil
}

// showMoved shows what a move has done so far.
func showMoved(line *cli.Progress) cluster.MoveOptions {
	return cluster.MoveOptions{OnProgress: func(moved cluster.Moved) {
		line.Show(func() string {
			return fmt.Sprintf("%s and %s moved", cli.CountText(moved.Threads, "thread"), cli.CountText(moved.Buckets, "bucket"))
		})
	}}
}

// printMoved prints what was moved, also before failed, and returns failed.
func (p *program) printMoved(moved cluster.Moved, failed error) error {
	if p.JSON {
		return errors.Join(p.PrintJSON(moved), failed)
	}
	if failed != nil && moved.Buckets == 0 && moved.Threads == 0 {
		return failed
	}
	_, err := fmt.Fprintf(p.Out, "moved %s and %s in %s, a thread waited at most %s\n", cli.CountText(moved.Buckets, "bucket"), cli.CountText(moved.Threads, "thread"),
		moved.Duration.Round(time.Millisecond), moved.LongestPause.Round(time.Millisecond))
	if err == nil && moved.Left > 0 {
		_, err = fmt.Fprintf(p.Out, "rows of %s are still where they were, because requests of webhooks are waiting: move again later\n", cli.CountText(moved.Left, "thread"))
	}
	return errors.Join(err, failed)
}
