package cluster

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// Download is an archive of server programs, for machines that have none. What it is made of is pinned by its hash.
type Download struct {
	// Version is that of the archive, Major that of PostgreSQL.
	Version string
	Major   int
	URL     string
	// SHA512 is the hash of the archive in base64.
	SHA512 string
}

const (
	downloadVersion = "17.10.0-beta.17"
	downloadMajor   = 17
	registry        = "https://registry.npmjs.org/@embedded-postgres/"
	// maxDownload bounds the archive, and maxUnpacked what it is unpacked to.
	maxDownload = 200 << 20
	maxUnpacked = 1 << 30
)

// downloadSums are the hashes of the archives by platform, as the registry has them.
var downloadSums = map[string]string{
	"linux/amd64":   "hU4Sgna19ixDP/l3P/zkHhQ9B0JDV39qA97RNz55QcngeRjFC5/1G36LZjODVJ84kVJHUTQMmly7nzWO8js8kg==",
	"linux/arm64":   "mC+bQvaBEf0WDD0nPWW3eGUXDUVzoyCzMtgl+Fw6Jy9DkQFK+jcPtzkzqhhrS/fGzn5telNpKInl8xPqDh71Ig==",
	"darwin/amd64":  "gXk65MIyttD/PWo6NDSmu/n4vzPcqZQmxVWjEKuecwlyGmWO984AZ3Ljb7F0bwPvXhqcovH4FGN4ydr0fGeJxg==",
	"windows/amd64": "q6xIETTkv67i1QlTWz1LAKb3Z+vG2V3qrp+BjLEWhCQ9jE4hbbsQ/J/3wiOPFLJbuwak7CfHC9EUJG7txAbGKw==",
	"darwin/arm64":  "E2dxhSllrcyAJBHuvgTrBTx2BaPlX2vvjXClPKHxfwBezk+nTZ01uAEraKiRJMpzHSCyN8J1dTjKh4q/uTsBLQ==",
}

// DownloadFor returns the download for a platform, runtime.GOOS and runtime.GOARCH. It returns false if there is none.
func DownloadFor(system, architecture string) (Download, bool) {
	sum, isThere := downloadSums[system+"/"+architecture]
	name := system + "-" + strings.Replace(architecture, "amd64", "x64", 1)
	return Download{
		Version: downloadVersion, Major: downloadMajor, SHA512: sum, URL: registry + name + "/-/" + name + "-" + downloadVersion + ".tgz",
	}, isThere
}

// Programs returns the folder with the programs below a folder, where Install puts them.
func (d Download) Programs(folder string) string {
	return filepath.Join(folder, "postgresql-"+d.Version, "bin")
}

// Install downloads the archive, checks it, and unpacks it below a folder. It changes nothing that is there.
func (d Download) Install(ctx context.Context, folder string) error {
	temporary, err := os.MkdirTemp(folder, ".download-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	if err := os.Chmod(temporary, 0o755); err != nil { // the account of the server reads it
		return err
	}
	archive := filepath.Join(temporary, "archive")
	if err := d.fetch(ctx, archive); err != nil {
		return fmt.Errorf("download %s: %w", d.URL, err)
	}
	unpacked := filepath.Join(temporary, "unpacked")
	if err := os.Mkdir(unpacked, 0o755); err != nil {
		return err
	}
	if err := unpack(archive, unpacked); err != nil {
		return fmt.Errorf("unpack %s: %w", d.URL, err)
	}
	return os.Rename(unpacked, filepath.Dir(d.Programs(folder)))
}

// fetch writes the archive to a file, and checks its hash.
func (d Download) fetch(ctx context.Context, name string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.URL, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the answer is %s", answer.Status)
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	hash := sha512.New()
	_, err = io.Copy(io.MultiWriter(file, hash), io.LimitReader(answer.Body, maxDownload))
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	if sum := base64.StdEncoding.EncodeToString(hash.Sum(nil)); sum != d.SHA512 {
		return fmt.Errorf("its SHA-512 is %s, want %s: nothing of it was used", sum, d.SHA512)
	}
	return nil
}

// programsFolder is the folder of the archive that has bin, lib and share. linksFile, in it, lists the symbolic links, which this kind
// of archive cannot have.
const (
	programsFolder = "package/native/"
	linksFile      = "pg-symlinks.json"
)

// unpack unpacks the programs of an archive into an empty folder.
func unpack(archive, folder string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	uncompressed, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	entries := tar.NewReader(io.LimitReader(uncompressed, maxUnpacked))
	for {
		entry, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return link(root)
		}
		if err != nil {
			return err
		}
		name, isIn := strings.CutPrefix(entry.Name, programsFolder)
		if !isIn || entry.Typeflag != tar.TypeReg {
			continue
		}
		name = filepath.FromSlash(name) // root refuses a name that leads outside
		if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if entry.Mode&0o100 != 0 {
			mode = 0o755
		}
		out, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, entries)
		if err := errors.Join(err, out.Close()); err != nil {
			return err
		}
	}
}

// link makes the symbolic links of unpacked programs.
func link(root *os.Root) error {
	text, err := root.ReadFile(linksFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var links []struct{ Source, Target string } // both begin with "native/"
	if err := json.Unmarshal(text, &links); err != nil {
		return fmt.Errorf("%s: %w", linksFile, err)
	}
	for _, one := range links {
		target := strings.TrimPrefix(one.Target, "native/")
		source, err := filepath.Rel(filepath.Dir(target), strings.TrimPrefix(one.Source, "native/"))
		if err != nil {
			return fmt.Errorf("%s: %w", linksFile, err)
		}
		if err := root.Symlink(filepath.FromSlash(source), filepath.FromSlash(target)); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}
