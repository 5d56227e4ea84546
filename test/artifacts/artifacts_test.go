//go:build unix

// Package artifacts checks what a release consists of, as make artifacts builds it.
package artifacts

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testfile"
)

var (
	dist    = flag.String("dist", "", "the folder with the artifacts: without it nothing is tested")
	version = flag.String("version", "", "the version that they are of")
)

var platforms = []struct{ system, architecture, archive, program string }{
	{"linux", "amd64", "tar.gz", "pgagui"}, {"linux", "arm64", "tar.gz", "pgagui"},
	{"darwin", "amd64", "tar.gz", "pgagui"}, {"darwin", "arm64", "tar.gz", "pgagui"},
	{"windows", "amd64", "zip", "pgagui.exe"}, {"windows", "arm64", "zip", "pgagui.exe"},
}

func TestMain(m *testing.M) {
	flag.Parse()
	if *dist == "" {
		fmt.Println("no artifacts: make artifacts")
		return
	}
	os.Exit(m.Run())
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text := testfile.Read(t, filepath.Join(*dist, name))
	return text
}

func TestArchives(t *testing.T) {
	sums := string(read(t, "checksums.txt"))
	for _, p := range platforms {
		t.Run(p.system+" "+p.architecture, func(t *testing.T) {
			name := fmt.Sprintf("pgagui_%s_%s_%s.%s", *version, p.system, p.architecture, p.archive)
			content := read(t, name)
			sum := sha256.Sum256(content)
			if line := hex.EncodeToString(sum[:]) + "  " + name + "\n"; !strings.Contains(sums, line) {
				t.Errorf("checksums.txt lacks %s", line)
			}
			unpack := untar
			if p.archive == "zip" {
				unpack = unzip
			}
			files := must.Have(unpack(content))(t)
			for _, file := range []string{p.program, "LICENSE", "README.md", "CHANGELOG.md", "deploy/container/Dockerfile"} {
				if len(files[file]) == 0 {
					t.Errorf("%s has no %s", name, file)
				}
			}
			info := must.Have(buildinfo.Read(bytes.NewReader(files[p.program])))(t)
			settings := map[string]string{}
			for _, setting := range info.Settings {
				settings[setting.Key] = setting.Value
			}
			if settings["GOOS"] != p.system || settings["GOARCH"] != p.architecture || settings["CGO_ENABLED"] != "0" || settings["-tags"] != "timetzdata" {
				t.Errorf("%s was built with %v", name, settings)
			}
			checkSBOM(t, fmt.Sprintf("pgagui_%s_%s_%s.sbom.json", *version, p.system, p.architecture), info)
			if p.system == "linux" && p.architecture == "amd64" {
				runAlone(t, files[p.program])
			}
		})
	}
}

// checkSBOM compares a list of modules with those that the program is made of.
func checkSBOM(t *testing.T, name string, info *buildinfo.BuildInfo) {
	t.Helper()
	var document struct {
		BOMFormat  string
		Components []struct {
			Name     string
			Licenses []any
		}
	}
	if err := json.Unmarshal(read(t, name), &document); err != nil || document.BOMFormat != "CycloneDX" {
		t.Fatalf("%s: %q, %v", name, document.BOMFormat, err)
	}
	listed := map[string]bool{}
	for _, component := range document.Components {
		listed[component.Name] = true
	}
	for _, module := range info.Deps {
		if !listed[module.Path] {
			t.Errorf("%s does not list %s", name, module.Path)
		}
	}
}

// runAlone runs the program in a root that has nothing else.
func runAlone(t *testing.T, program []byte) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Log("not run in a root of its own: that needs root")
		return
	}
	root := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(root, "pgagui"), program, 0o755))
	run := func(arguments ...string) string {
		t.Helper()
		command := exec.Command("/pgagui", arguments...)
		command.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
		command.Dir, command.Env = "/", []string{}
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("pgagui %s: %v: %s", strings.Join(arguments, " "), err, out)
		}
		return string(out)
	}
	if out := run("version"); !strings.HasPrefix(out, "pgagui "+*version+" ") {
		t.Errorf("version: %s", out)
	}
	if out := run("migrate", "sql"); !strings.Contains(out, "create or replace function agui.append(") {
		t.Errorf("migrate sql: %d bytes", len(out))
	}
	if out := run("help", "scopes"); !strings.Contains(out, "scope") {
		t.Errorf("help: %s", out)
	}
}

func untar(archive []byte) (map[string][]byte, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for reader := tar.NewReader(unzipped); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if files[header.Name], err = io.ReadAll(reader); err != nil {
			return nil, err
		}
	}
}

func unzip(archive []byte) (map[string][]byte, error) {
	reader, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, file := range reader.File {
		content, err := file.Open()
		if err != nil {
			return nil, err
		}
		if files[file.Name], err = io.ReadAll(content); err != nil {
			return nil, err
		}
	}
	return files, nil
}
