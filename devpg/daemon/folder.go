package daemon

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Folder is a private folder of a server's account, for all that the server writes.
//
// When this process is root, what is in the folder belongs to another account, which may put links where root expects files. So its
// files are made and opened here: none outside of the folder, none behind a link, and none of a third account.
type Folder struct {
	path    string
	root    *os.Root
	account *Account
	isKept  bool
}

// MakeFolder makes a folder that the account owns, in the parent; empty means the system's for temporary files.
func (a *Account) MakeFolder(parent string) (*Folder, error) {
	parents := []string{parent}
	if parent == "" {
		parents = []string{os.TempDir(), "/tmp", "/var/tmp"}
	}
	for _, parent := range parents {
		parent, err := filepath.Abs(parent)
		if err != nil {
			return nil, err
		}
		if !a.canReach(parent) {
			continue
		}
		path, err := os.MkdirTemp(parent, "pgagui-")
		if err != nil {
			return nil, fmt.Errorf("make a folder for a private server: %w", err)
		}
		root, err := os.OpenRoot(path)
		if err != nil {
			return nil, fmt.Errorf("make a folder for a private server: %w", err)
		}
		folder := &Folder{path: path, root: root, account: a}
		if err := folder.own("."); err != nil {
			return nil, errors.Join(err, folder.Release())
		}
		return folder, nil
	}
	return nil, fmt.Errorf("%s, which runs the server, may not enter any of %v: choose another folder", a, parents)
}

// KeepFolder opens a folder of the account that Release and the watchdog leave as it is. It makes the folder if it is not there.
func (a *Account) KeepFolder(path string) (*Folder, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if !a.canReach(filepath.Dir(path)) {
		return nil, fmt.Errorf("%s, which runs the server, may not enter %s: choose another folder (XDG_DATA_HOME), or run as another user", a, filepath.Dir(path))
	}
	err = os.Mkdir(path, 0o700)
	isNew := err == nil
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	folder := &Folder{path: path, root: root, account: a, isKept: true}
	if isNew {
		err = folder.own(".")
	} else if info, statErr := root.Stat("."); statErr != nil {
		err = statErr
	} else if !a.owns(info) {
		err = fmt.Errorf("%s belongs to another account than the one that runs the server (%s)", path, a)
	}
	if err != nil {
		return nil, errors.Join(err, folder.Release())
	}
	return folder, nil
}

// Path is where the folder is.
func (f *Folder) Path() string { return f.path }

// FS is the content of the folder as a file system.
func (f *Folder) FS() fs.FS { return f.root.FS() }

// Write makes a file, in place of one that is there.
func (f *Folder) Write(name string, content io.Reader) error {
	if err := f.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := f.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, f.account.give(file), file.Close())
}

// Mkdir makes a folder within the folder.
func (f *Folder) Mkdir(name string) error {
	if err := f.root.Mkdir(name, 0o700); err != nil {
		return err
	}
	return f.own(name)
}

// Open opens a file that the account has, to read it, or with os.O_APPEND|os.O_WRONLY to add to it.
func (f *Folder) Open(name string, flag int) (*os.File, error) {
	file, err := f.root.OpenFile(name, flag|noFollow, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && (!info.Mode().IsRegular() || !f.account.owns(info)) {
		err = fmt.Errorf("%s in %s is not a file of the account that runs the server", name, f.path)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Remove removes a file.
func (f *Folder) Remove(name string) error { return f.root.Remove(name) }

// Rename gives a file or a folder another name.
func (f *Folder) Rename(name, newName string) error { return f.root.Rename(name, newName) }

// RemoveTree removes a folder within the folder, if it is there.
func (f *Folder) RemoveTree(name string) error { return f.root.RemoveAll(name) }

// Release ends the use of the folder. It removes the folder with all that is in it, except one that is kept.
func (f *Folder) Release() error {
	err := f.root.Close()
	if !f.isKept {
		err = errors.Join(os.RemoveAll(f.path), err)
	}
	return err
}
