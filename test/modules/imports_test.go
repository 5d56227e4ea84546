package modules

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const rootModule = "github.com/pgagui/pgagui"

// layers are the packages from the lowest layer to the highest. A package imports nothing of its own layer or of a higher one, neither
// itself nor through packages that are not listed.
var layers = [][]string{
	{"internal/rawjson", "internal/refusal", "events", "protocol"},
	{"internal/jsontree", "db"},
	{"compaction", "session"},
	{"transcript"},
	{""}, // the store
	{"cluster", "jobs", "timeline"},
	{"worker", "otelagui", "server/access", "server/accept", "server/problem", "server/internal/ambientv1", "server/internal/jsontext", "server/internal/sse"},
	{"server/door"},
	{"server/core"},
	{"server/face"},
	{"server/face/agui", "server/face/ambient", "server/face/copilotkit", "server/face/rest"},
	{"explorer", "server"},
	{"bench", "cmd/pgagui/internal/cli", "cmd/pgagui/internal/doctor", "cmd/pgagui/internal/eventjson", "cmd/pgagui/internal/graph", "cmd/pgagui/internal/telemetry"},
	{"cmd/pgagui/internal/metrics"},
	{"cmd/pgagui/internal/archive", "cmd/pgagui/internal/ingest", "cmd/pgagui/internal/runlog", "cmd/pgagui/internal/sampleagent", "cmd/pgagui/internal/schedule"},
	{"cmd/pgagui/demo", "cmd/pgagui/install", "cmd/pgagui/read", "cmd/pgagui/serve", "cmd/pgagui/upkeep", "cmd/pgagui/write"},
	{"cmd/pgagui/internal/root"},
	{"cmd/pgagui"},
}

type goPackage struct {
	ImportPath    string
	Imports, Deps []string // without those of tests
	Module        *struct{ Path string }
}

// nameOf returns the path of a package in the repository; false: it is of another module.
func nameOf(importPath string) (name string, ok bool) {
	if importPath == rootModule {
		return "", true
	}
	return strings.CutPrefix(importPath, rootModule+"/")
}

func layerOf(name string) int {
	return slices.IndexFunc(layers, func(layer []string) bool { return slices.Contains(layer, name) })
}

func packagesOfAllModules(t *testing.T) (packages []goPackage) {
	t.Helper()
	command := exec.Command("go", "list", "-json=ImportPath,Imports,Deps,Module", "work")
	command.Dir = "../.."
	var messages strings.Builder
	command.Stderr = &messages
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, messages.String())
	}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); decoder.More(); {
		var p goPackage
		if err := decoder.Decode(&p); err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
	return packages
}

// inNoLayer are packages of the command line that only tests import.
var inNoLayer = []string{"cmd/pgagui/internal/clitest"}

// Each folder of the command line is in a layer, so no group of commands imports another.
func TestEveryFolderOfTheCommandLineIsInALayer(t *testing.T) {
	t.Parallel()
	for _, p := range packagesOfAllModules(t) {
		name, _ := nameOf(p.ImportPath)
		isCommand := name == "cmd/pgagui" || strings.HasPrefix(name, "cmd/pgagui/")
		if isCommand && layerOf(name) < 0 && !slices.Contains(inNoLayer, name) {
			t.Errorf("%s is in no layer: add it to layers", p.ImportPath)
		}
		if isCommand && slices.ContainsFunc(p.Deps, func(dependency string) bool { return dependency == rootModule+"/cmd/pgagui/internal/clitest" }) {
			t.Errorf("%s imports the helpers of tests", p.ImportPath)
		}
	}
}

func TestNoPackageImportsAHigherLayer(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	for _, p := range packagesOfAllModules(t) {
		name, _ := nameOf(p.ImportPath)
		layer := layerOf(name)
		if layer < 0 {
			if name == "server" || strings.HasPrefix(name, "server/") {
				t.Errorf("%s has no layer", p.ImportPath)
			}
			continue
		}
		found[name] = true
		for _, dependency := range p.Deps {
			if name, ok := nameOf(dependency); ok && layerOf(name) >= layer {
				t.Errorf("%s depends on %s, which is not of a lower layer", p.ImportPath, dependency)
			}
		}
	}
	for _, layer := range layers {
		for _, name := range layer {
			if !found[name] {
				t.Errorf("there is no package %q", name)
			}
		}
	}
}

// smallHelpers of the root are for the server, too. They are no part of the store: one scanner of JSON text is enough, one way to survive a panic,
// and one table of errors.
var smallHelpers = []string{"internal/rawjson", "internal/panics", "internal/refusal"}

func isSmallHelper(importer, imported string) bool {
	name, _ := nameOf(imported)
	return strings.HasPrefix(importer, rootModule+"/server/") && slices.Contains(smallHelpers, name)
}

// The root's internal packages are free to change for all but these: the command line and the benchmark are released with the root.
func TestOnlyCommandAndBenchmarkImportInternalPackages(t *testing.T) {
	t.Parallel()
	modules := map[string]bool{}
	for _, p := range packagesOfAllModules(t) {
		modules[p.Module.Path] = true
		name, _ := nameOf(p.ImportPath)
		isOutside := p.Module.Path != rootModule || strings.HasPrefix(name, "examples/")
		mayImport := p.Module.Path == rootModule+"/cmd/pgagui" || p.Module.Path == rootModule+"/bench"
		if !isOutside || mayImport {
			continue
		}
		for _, imported := range p.Imports {
			if strings.HasPrefix(imported, rootModule+"/internal/") && !isSmallHelper(p.ImportPath, imported) {
				t.Errorf("%s imports %s: use the packages that every importer has", p.ImportPath, imported)
			}
		}
	}
	if len(modules) < 5 {
		t.Errorf("only the modules %v were looked at", modules)
	}
}
