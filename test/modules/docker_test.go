package modules

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/internal/testfile"
)

// A go.mod also lists what only tests need.
func TestWhatDevelopmentServersBringIntoGoMod(t *testing.T) {
	t.Parallel()
	list := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "*go.mod")
	list.Dir = "../.."
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	requiring := func(modules ...string) (files []string) {
		for name := range strings.FieldsSeq(string(out)) {
			text := testfile.Read(t, "../../"+name)
			if slices.ContainsFunc(modules, func(module string) bool { return strings.Contains(string(text), module) }) {
				files = append(files, name)
			}
		}
		return files
	}

	docker := requiring("dockertest", "docker/docker", "docker/cli", "moby", "containerd")
	if want := []string{"devpg/docker/go.mod"}; !slices.Equal(docker, want) {
		t.Errorf("%v require a client of Docker, not %v alone", docker, want)
	}
	// The store requires devpg for its tests. If devpg required the store, neither could be tagged before the other.
	for _, name := range requiring(rootModule + " v") {
		if strings.HasPrefix(name, "devpg/") {
			t.Errorf("%s requires the store", name)
		}
	}
}
