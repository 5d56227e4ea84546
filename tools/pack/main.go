// Command pack writes the modules of the working tree at ROOT to FOLDER, in the layout of a module
// proxy. The go command can then use them like released modules of the version VERSION:
//
//	pack ROOT FOLDER VERSION
//	GOPROXY=file://FOLDER,… GONOSUMDB=github.com/pgagui go install github.com/pgagui/pgagui/cmd/pgagui@VERSION
//
// The modules require each other at that version.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: pack ROOT FOLDER VERSION")
		os.Exit(2)
	}
	if err := pack(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func pack(root, folder, version string) error {
	text, err := os.ReadFile(filepath.Join(root, "go.work"))
	if err != nil {
		return err
	}
	work, err := modfile.ParseWork("go.work", text, nil)
	if err != nil {
		return err
	}
	files, err := sources(root)
	if err != nil {
		return err
	}
	modules := map[string]*modfile.File{} // by folder
	for _, use := range work.Use {
		name := filepath.Join(root, use.Path, "go.mod")
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if modules[filepath.Clean(use.Path)], err = modfile.Parse(name, text, nil); err != nil {
			return err
		}
	}
	for path, mod := range modules {
		for _, other := range modules {
			for _, required := range mod.Require {
				if required.Mod.Path == other.Module.Mod.Path {
					if err := mod.AddRequire(required.Mod.Path, version); err != nil {
						return err
					}
				}
			}
		}
		if err := packModule(root, path, files, modules, folder, version); err != nil {
			return fmt.Errorf("%s: %w", mod.Module.Mod.Path, err)
		}
	}
	return nil
}

// sources lists the files that git tracks or would add.
func sources(root string) ([]string, error) {
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	out, err := list.Output()
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"), err
}

func packModule(root, path string, files []string, modules map[string]*modfile.File, folder, version string) error {
	mod := modules[path]
	goMod, err := mod.Format()
	if err != nil {
		return err
	}
	var contents []zip.File
	for _, name := range files {
		if moduleOf(name, modules) != path {
			continue
		}
		inModule, err := filepath.Rel(path, name)
		if err != nil {
			return err
		}
		content := file{path: filepath.ToSlash(inModule), source: filepath.Join(root, name)}
		if inModule == "go.mod" {
			content.text = goMod
		}
		if info, err := os.Lstat(content.source); err != nil || !info.Mode().IsRegular() {
			continue // deleted, or a symbolic link
		}
		contents = append(contents, content)
	}
	escaped, err := module.EscapePath(mod.Module.Mod.Path)
	if err != nil {
		return err
	}
	target := filepath.Join(folder, escaped, "@v")
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	var archive bytes.Buffer
	if err := zip.Create(&archive, module.Version{Path: mod.Module.Mod.Path, Version: version}, contents); err != nil {
		return err
	}
	info := fmt.Sprintf(`{"Version":%q,"Time":%q}`, version, time.Now().UTC().Format(time.RFC3339))
	var errs []error
	for name, text := range map[string][]byte{
		"list": []byte(version + "\n"), version + ".info": []byte(info), version + ".mod": goMod, version + ".zip": archive.Bytes(),
	} {
		errs = append(errs, os.WriteFile(filepath.Join(target, name), text, 0o644))
	}
	return errors.Join(errs...)
}

// moduleOf returns the folder of the module that a file belongs to.
func moduleOf(name string, modules map[string]*modfile.File) string {
	for folder := filepath.Dir(name); folder != "."; folder = filepath.Dir(folder) {
		if modules[folder] != nil {
			return folder
		}
		if folder == "tools" {
			return folder // a separate module, which is not packed
		}
	}
	return "."
}

// file is a file of a module. If text is set, it replaces the content of the source.
type file struct {
	path, source string
	text         []byte
}

func (f file) Path() string { return f.path }

func (f file) Lstat() (os.FileInfo, error) {
	info, err := os.Lstat(f.source)
	if err == nil && f.text != nil {
		info = sized{info, int64(len(f.text))}
	}
	return info, err
}

// sized is the information about a file with another size.
type sized struct {
	os.FileInfo
	size int64
}

func (s sized) Size() int64 { return s.size }

func (f file) Open() (io.ReadCloser, error) {
	if f.text != nil {
		return io.NopCloser(bytes.NewReader(f.text)), nil
	}
	return os.Open(f.source)
}
