package serve

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cluster"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

// newVisitor is a browser with cookies.
func newVisitor(t *testing.T) *http.Client {
	t.Helper()
	jar := must.Have(cookiejar.New(nil))(t)
	return &http.Client{Jar: jar, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
}

// visit returns the status of a page, its address, and its text.
func visit(t *testing.T, visitor *http.Client, address string, form url.Values) (status int, at, text string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), "GET", address, nil)
	if form != nil {
		request, err = http.NewRequestWithContext(t.Context(), "POST", address, strings.NewReader(form.Encode()))
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	must.Do(t, err)
	answer := must.Have(visitor.Do(request))(t)
	defer answer.Body.Close()
	page := must.Have(io.ReadAll(answer.Body))(t)
	return answer.StatusCode, answer.Request.URL.RequestURI(), string(page)
}

// explore shows the threads of all nodes.
func TestExploreOfACluster(t *testing.T) {
	t.Parallel()
	var described []cluster.Node
	for _, node := range testdb.Nodes(t, 2) {
		described = append(described, cluster.Node{Name: node.Name, URL: node.URL})
	}
	c := clitest.OnNodes(t, described...)
	clitest.ImportThreads(t, c, 6)
	link, end := printedLink(t, c.Program(os.Args[0], "explore"))
	status, _, page := visit(t, newVisitor(t), link, nil)
	for n := range 6 {
		if status != http.StatusOK || !strings.Contains(page, fmt.Sprintf("id=t%d", n)) {
			t.Errorf("%d, without thread t%d:\n%s", status, n, page)
		}
	}
	end()
}

// The link that explore prints signs in once, and leads to the place.
func TestExplore(t *testing.T) {
	t.Parallel()
	c := clitest.NewCommandLine(t)
	clitest.ImportTree(t, c)
	first := clitest.Parse[pgagui.Thread](c, "threads", "--limit", "1")
	thread, head := first.ID, first.HeadRunID

	command := c.Program(os.Args[0], "explore", thread, "--run", head)
	link, end := printedLink(t, command)
	visitor := newVisitor(t)
	status, at, page := visit(t, visitor, link, nil)
	want := "/thread?" + url.Values{"id": {thread}, "run": {head}}.Encode()
	if status != http.StatusOK || at != want || !strings.Contains(page, head) {
		t.Errorf("%d %s, want %s\n%s", status, at, want, page)
	}
	if status, _, page := visit(t, newVisitor(t), link, nil); status != http.StatusUnauthorized || !strings.Contains(page, "Press Enter where") {
		t.Errorf("a second time: %d %s", status, page)
	}
	root, _, _ := strings.Cut(link, "login?")
	status, _, page = visit(t, visitor, root+"health", nil)
	if status != http.StatusOK || !strings.Contains(page, "Doctor") || !strings.Contains(page, "Log on disk") {
		t.Errorf("health: %d %s", status, page)
	}
	// A page from elsewhere cannot reach it under another name.
	request := must.Have(http.NewRequestWithContext(t.Context(), "GET", root, nil))(t)
	request.Host = "evil.example"
	answer := must.Have(visitor.Do(request))(t)
	answer.Body.Close()
	if answer.StatusCode != http.StatusForbidden {
		t.Errorf("under another name: %s", answer.Status)
	}
	end()

	c.MustFail(cli.ExitUsage, "explore", "--run", head)
	c.MustFail(cli.ExitUsage, "explore", "--listen", "0.0.0.0:0")
}

// printedLink starts a command that prints a link first. end presses Ctrl-C.
func printedLink(t *testing.T, command *exec.Cmd) (link string, end func()) {
	t.Helper()
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	must.Do(t, err)
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatalf("it printed nothing: %v", command.Wait())
	}
	return lines.Text(), func() {
		t.Helper()
		must.Do(t, command.Process.Signal(os.Interrupt))
		must.Report(t, command.Wait())
	}
}

// The guide of dev has a link to the explorer, and its token signs in, too.
func TestDevExplorer(t *testing.T) {
	t.Parallel()
	d := dev(clitest.On(t, ""), devData(t), "--database-url", testdb.Empty(t))
	defer d.end()
	visitor := newVisitor(t)
	if status, at, page := visit(t, visitor, d.value("explorer"), nil); status != http.StatusOK || at != "/explorer/" || !strings.Contains(page, "There are no threads yet") {
		t.Errorf("%d %s %s", status, at, page)
	}
	status, at, page := visit(t, newVisitor(t), d.value("server")+"/explorer/login", url.Values{"token": {d.value("token")}})
	if status != http.StatusOK || at != "/explorer/" || !strings.Contains(page, "Threads") {
		t.Errorf("with the token: %d %s %s", status, at, page)
	}
}

// A server has the explorer beside its endpoints, unless it is left out. A tenant learns nothing of the database.
func TestServeExplorer(t *testing.T) {
	t.Parallel()
	c := clitest.NewCommandLine(t)
	folder := t.TempDir()
	tokens := filepath.Join(folder, "tokens.yaml")
	token := c.Token(tokens, "web", "acme", "read,write")
	clitest.WriteCertificate(t, filepath.Join(folder, "crt"), filepath.Join(folder, "key"), 1)
	arguments := []string{"--token-file", tokens, "--agent", "assistant=" + clitest.NewSample(t)}
	s := c.Serve(append(arguments, "--tls-certificate", filepath.Join(folder, "crt"), "--tls-key", filepath.Join(folder, "key"))...)
	visitor := newVisitor(t)
	if answer, text := s.Request(visitor, token, "POST", "/agent/assistant/run", clitest.RunInput("t/1", "r", "Where is my order?")); answer.StatusCode != http.StatusOK {
		t.Fatalf("%s %s", answer.Status, text)
	}
	if status, at, page := visit(t, visitor, s.URL+"/explorer", nil); status != http.StatusOK || at != "/explorer/login?to=.%2F" && at != "/explorer/login?to=" || !strings.Contains(page, "Sign in") {
		t.Errorf("%d %s %s", status, at, page)
	}
	status, at, page := visit(t, visitor, s.URL+"/explorer/login", url.Values{"token": {token}, "to": {"thread?id=t%2F1"}})
	if status != http.StatusOK || at != "/explorer/thread?id=t%2F1" || !strings.Contains(page, "Where is my order?") {
		t.Errorf("%d %s %s", status, at, page)
	}
	address := must.OrPanic(url.Parse(s.URL))
	if cookies := visitor.Jar.Cookies(address); len(cookies) != 1 || !strings.HasPrefix(cookies[0].Name, "__Host-") {
		t.Errorf("the cookies are %v", cookies)
	}
	if status, _, page := visit(t, visitor, s.URL+"/explorer/health", nil); status != http.StatusOK || strings.Contains(page, "Log on disk") {
		t.Errorf("health: %d %s", status, page)
	}
	frontPage := func(client *http.Client, want string) {
		t.Helper()
		if answer, text := s.Request(client, "", "GET", "/", ""); answer.StatusCode != http.StatusOK || !strings.Contains(text, want) || strings.Count(text, "\n") != 1 {
			t.Errorf("/ answers %s: %s", answer.Status, text)
		}
	}
	frontPage(visitor, "the explorer is at /explorer/, the description of the API at /openapi.yaml")
	s.Terminate(t)
	if code := s.End(t); code != cli.ExitOK {
		t.Errorf("exit code %d: %s", code, s.Log)
	}

	s = c.Serve(append(arguments, "--explorer=false")...)
	frontPage(http.DefaultClient, "without --explorer=false the explorer is at /explorer/")
	if answer, _ := s.Request(http.DefaultClient, "", "GET", "/explorer/", ""); answer.StatusCode != http.StatusNotFound {
		t.Errorf("without it: %s", answer.Status)
	}
	s.Terminate(t)
	s.End(t)
}
