package testdb

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/internal/buckets"
)

// Node is a database of a cluster.
type Node struct {
	Name, URL string
	Pool      *pgxpool.Pool
}

// SkipInCluster skips a test if there is a reason, by its name, why it cannot run on a cluster.
func SkipInCluster(t testing.TB, reasons map[string]string) {
	t.Helper()
	name, _, _ := strings.Cut(t.Name(), "/")
	if reason := reasons[name]; reason != "" {
		t.Skip("not in a cluster: ", reason)
	}
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
	var ranges []string
	nameOf := func(i int) string { return string(rune('a' + i)) }
	for i := range addresses {
		ranges = append(ranges, fmt.Sprintf(`{"first":%d,"last":%d,"node":%q,"epoch":1}`, i*buckets.Count/len(addresses), (i+1)*buckets.Count/len(addresses)-1, nameOf(i)))
	}
	nodes := make([]Node, len(addresses))
	var salt []byte
	for i, address := range addresses {
		nodes[i] = Node{Name: nameOf(i), URL: address, Pool: Connect(t, address)}
		_, err := nodes[i].Pool.Exec(t.Context(), `call agui.join_cluster($1, $2::json, $3)`, nodes[i].Name, `{"buckets":[`+strings.Join(ranges, ",")+`]}`, salt)
		if err == nil && i == 0 {
			err = nodes[i].Pool.QueryRow(t.Context(), `select salt from agui_internal.erasure_salt`).Scan(&salt)
		}
		if err != nil {
			t.Fatal("testdb:", err)
		}
	}
	return nodes
}
