package doctor_test

import (
	"testing"

	"github.com/pgagui/pgagui/internal/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }
