package testdb

import "testing"

func TestMain(m *testing.M) { Main(m) }

func TestDatabaseHasTheSchema(t *testing.T) {
	t.Parallel()
	var version int
	err := Pool(t).QueryRow(t.Context(), `select version from agui.schema_migrations where not dirty`).Scan(&version)
	if err != nil || version == 0 {
		t.Errorf("version %d, error %v", version, err)
	}
}
