package testdb

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Node is a database of a cluster.
type Node struct {
	Name, URL string
	Pool      *pgxpool.Pool
}

// Nodes makes databases with the schema that are the nodes of a cluster. Each has as many buckets as the others.
func Nodes(t testing.TB, n int) []Node {
	t.Helper()
	addresses := make([]string, n)
	for i := range addresses {
		addresses[i] = New(t)
	}
	return JoinNodes(t, addresses...)
}

// JoinNodes makes empty databases with the schema the nodes of a cluster.
func JoinNodes(t testing.TB, addresses ...string) []Node {
	t.Helper()
	nodes := make([]Node, len(addresses))
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal("testdb:", err)
		}
	}
	const buckets = 1024
	var first, spread string
	var salt []byte
	for i, address := range addresses {
		node := Node{Name: string(rune('a' + i)), URL: address, Pool: Connect(t, address)}
		nodes[i] = node
		if i == 0 {
			_, err := node.Pool.Exec(t.Context(), `call agui.join_cluster($1)`, node.Name)
			must(err)
			must(node.Pool.QueryRow(t.Context(), `select agui.cluster_map()::text, salt from agui_internal.erasure_salt`).Scan(&first, &salt))
		} else {
			_, err := node.Pool.Exec(t.Context(), `call agui.join_cluster($1, $2::json, $3)`, node.Name, first, salt)
			must(err)
			spread += ","
		}
		spread += fmt.Sprintf(`{"first":%d,"last":%d,"node":%q,"epoch":2}`, i*buckets/len(addresses), (i+1)*buckets/len(addresses)-1, node.Name)
	}
	for _, node := range nodes {
		_, err := node.Pool.Exec(t.Context(), `select agui_internal.take_map($1::json)`, `{"buckets":[`+spread+`]}`)
		must(err)
	}
	return nodes
}
