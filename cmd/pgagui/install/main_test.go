package install_test

import (
	"testing"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/root"
)

func TestMain(m *testing.M) { clitest.Main(m, root.Main, root.Run) }
