package server_test

import (
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/testdb"
)

// notInCluster says why a test cannot run on a cluster.
var notInCluster = map[string]string{
	"TestTheRequestsOfTheDocs":                       "docs/reference/http.md shows positions of one database",
	"TestSessionsOfAllDoors":                         "it calls functions for several threads on one database",
	"TestDroppedStreamsAreUnavailable":               "it breaks the database of one thread",
	"TestAReplicaInAStorm":                           "a cluster has no replicas",
	"TestSlowWritersStopNobody":                      "it locks a thread on one database",
	"TestADatabaseThatIsReadOnlyForTheMoment":        "it makes one database read-only",
	"TestAnEndThatNothingFollowsIsStored":            "it reads a table of one database",
	"TestLockedThreadsOfOneLeaveConnectionsToOthers": "it locks threads on one database",
	"TestAnAgentIsNotIdleWhileTheDatabaseIsSlow":     "it locks a table of one database",
	"TestReadsOfLargeDocumentsAreBounded":            "it fills one database, and counts the bytes that come from it",
}

// clusters are the nodes by the pool of the one that tests read.
var clusters sync.Map

// clusterAround makes the database of a pool the second one of three nodes.
func clusterAround(t *testing.T, pool *pgxpool.Pool) *pgagui.Store {
	t.Helper()
	testdb.SkipInCluster(t, notInCluster)
	nodes, isKnown := clusters.Load(pool)
	if !isKnown {
		nodes = testdb.JoinNodes(t, testdb.New(t), pool.Config().ConnString(), testdb.New(t))
		clusters.Store(pool, nodes)
	}
	var list []pgagui.Node
	for _, node := range nodes.([]testdb.Node) {
		list = append(list, pgagui.Node{Name: node.Name, Pool: node.Pool})
	}
	return pgagui.NewCluster(list, nil)
}
