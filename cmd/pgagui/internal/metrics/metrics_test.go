package metrics

import (
	"context"
	"crypto/rand"
	"log/slog"
	neturl "net/url"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

// upOf scrapes pgagui_store_up, by view, and counts the other metrics of the store.
func upOf(t *testing.T, m *StoreMetrics) (up map[string]float64, others int) {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(m)
	families := must.Have(registry.Gather())(t)
	up = map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() != "pgagui_store_up" {
				others++
				continue
			}
			up[metric.GetLabel()[0].GetValue()] = metric.GetGauge().GetValue()
		}
	}
	return up, others
}

func newTestStoreMetrics(t *testing.T, url string) *StoreMetrics {
	t.Helper()
	m := must.Have(NewStoreMetrics(t.Context(), url, slog.New(slog.DiscardHandler)))(t)
	t.Cleanup(m.Close)
	return m
}

// A scrape does not wait for the database, and says what it could not read.
func TestScrapesDoNotWaitForTheStore(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	m := newTestStoreMetrics(t, url)
	tx, err := testdb.Connect(t, url).Begin(t.Context())
	if err == nil {
		_, err = tx.Exec(t.Context(), `lock table agui.run`)
	}
	must.Do(t, err)
	begin := time.Now()
	if up, others := upOf(t, m); up["lag"] != 0 || up["stats"] != 0 || len(up) != 2 || others != 0 {
		t.Errorf("%v and %d others", up, others)
	}
	if took := time.Since(begin); took < scrapePatience || took > 3*scrapePatience {
		t.Errorf("a scrape took %s", took)
	}
	must.Do(t, tx.Rollback(context.Background()))
	clitest.WaitFor(t, func() bool {
		up, others := upOf(t, m)
		return up["lag"] == 1 && up["stats"] == 1 && others > 10
	})
}

// With row-level security, the numbers of one scope would mislead.
func TestMetricsOfTheStoreAreThoseOfAllScopes(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	owner := testdb.Connect(t, url)
	role := "metrics_" + strings.ToLower(rand.Text())
	t.Cleanup(func() {
		if _, err := owner.Exec(context.Background(), `drop owned by `+role+`; drop role `+role); err != nil {
			t.Error(err)
		}
	})
	for _, statement := range []string{
		`create role ` + role + ` login password 'secret' in role agui_writer`, `select agui.map_pool('` + role + `')`, `call agui.enable_row_security()`,
	} {
		testdb.Exec(t, owner, statement)
	}
	as := must.Have(neturl.Parse(url))(t)
	as.User = neturl.UserPassword(role, "secret")
	if up, others := upOf(t, newTestStoreMetrics(t, as.String())); up["lag"] != 0 || up["stats"] != 0 || others != 0 {
		t.Errorf("a role of one scope: %v and %d others", up, others)
	}
	testdb.Exec(t, owner, `grant pg_monitor to `+role)
	m := newTestStoreMetrics(t, as.String())
	clitest.WaitFor(t, func() bool { up, _ := upOf(t, m); return up["lag"] == 1 && up["stats"] == 1 })
}
