package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testfile"
	"github.com/pgagui/pgagui/internal/testneeds"
)

// The image of deploy/container serves as an account without rights, and its health check is right.
// The base image of the build stage is in a registry, so the test makes the files of that stage
// here.
func TestContainerImage(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it compiles the command and makes an image")
	}
	if _, err := exec.LookPath("buildah"); errors.Is(err, exec.ErrNotFound) || os.Getuid() != 0 {
		testneeds.Skip(t, testneeds.Buildah, "buildah is not installed, or this account may not make a container")
	}
	file := clitest.ReadDeploy(t, "container/Dockerfile")
	build, final, isPair := strings.Cut(file, "\nFROM scratch\n")
	compile := regexp.MustCompile(`(?m)^RUN (CGO_ENABLED=0 go build .*) -o /image/pgagui (\./cmd/pgagui)$`).FindStringSubmatch(build)
	if !isPair || compile == nil {
		t.Fatal(file)
	}
	folder := t.TempDir()
	context := filepath.Join(folder, "context")
	for _, name := range []string{"image", "etc/ssl/certs"} {
		must.Do(t, os.MkdirAll(filepath.Join(context, name), 0o755))
	}
	must.Do(t, os.WriteFile(filepath.Join(context, "etc/ssl/certs/ca-certificates.crt"), nil, 0o644))
	do := func(folder, name string, arguments ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), name, arguments...)
		command.Dir = folder
		command.Env = append(os.Environ(), "VERSION=v1.4.0")
		var stderr bytes.Buffer
		command.Stderr = &stderr
		out, err := command.Output()
		if err != nil && name == "buildah" && strings.Contains(stderr.String(), "operation not permitted") {
			testneeds.Skip(t, testneeds.Buildah, "buildah may not make a container on this machine: "+stderr.String())
		}
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(arguments, " "), err, &stderr)
		}
		return strings.TrimSpace(string(out))
	}
	do("../..", "sh", "-c", compile[1]+" -o "+filepath.Join(context, "image/pgagui")+" "+compile[2])
	testfile.Write(t, filepath.Join(folder, "Dockerfile"), []byte("FROM scratch\n"+strings.ReplaceAll(final, "--from=build /", "")))
	buildah := func(arguments ...string) []string {
		return append([]string{"buildah", "--storage-driver", "vfs", "--root", filepath.Join(folder, "storage"), "--runroot", filepath.Join(folder, "run")}, arguments...)
	}
	call := func(arguments ...string) string {
		t.Helper()
		line := buildah(arguments...)
		return do(folder, line[0], line[1:]...)
	}
	call("bud", "--isolation", "chroot", "--format", "docker", "--tag", "pgagui", "--file", filepath.Join(folder, "Dockerfile"), context)
	var image struct {
		Docker struct {
			Config struct {
				User, StopSignal string
				Entrypoint, Cmd  []string
				Healthcheck      struct{ Test []string }
			} `json:"config"`
		}
	}
	must.Do(t, json.Unmarshal([]byte(call("inspect", "--type", "image", "pgagui")), &image))
	config := image.Docker.Config
	if config.User != "65532:65532" || config.StopSignal != "SIGTERM" || len(config.Healthcheck.Test) == 0 || config.Healthcheck.Test[0] != "CMD" ||
		!slices.Equal(config.Entrypoint, []string{"/pgagui"}) || !slices.Equal(config.Cmd, []string{"serve"}) {
		t.Errorf("%+v", config)
	}

	// Containers without isolation of the network, so the port must be a free one.
	free := must.Have(net.Listen("tcp", "127.0.0.1:0"))(t)
	address := free.Addr().String()
	must.Do(t, free.Close())
	container := call("from", "--pull-never", "pgagui")
	run := func(arguments ...string) []string {
		return buildah(append([]string{"run", "--isolation", "chroot", container}, arguments...)...)
	}
	if version := do(folder, run("/pgagui")[0], append(run("/pgagui")[1:], "version")...); !strings.HasPrefix(version, "pgagui v1.4.0 ") {
		t.Error(version)
	}
	commands := clitest.NewCommandLine(t)
	line := buildah("run", "--isolation", "chroot", "--env", "DATABASE_URL="+commands.DatabaseURL, "--env", "PGAGUI_LISTEN="+address, container)
	server := exec.CommandContext(t.Context(), line[0], slices.Concat(line[1:], config.Entrypoint, config.Cmd, []string{"--insecure", "--json", "--until-stdin-ends"})...)
	stdin := must.Have(server.StdinPipe())(t)
	process := clitest.StartProcess(t, server)
	process.WaitForLine(t, `"msg":"serving"`)
	if users := usersOf(t, address); !slices.Equal(users, []string{"65532"}) {
		t.Errorf("the accounts %s", users)
	}
	health := strings.Split(strings.ReplaceAll(strings.Join(config.Healthcheck.Test[1:], " "), "127.0.0.1:8080", address), " ")
	check := run(health...)
	do(folder, check[0], check[1:]...)
	must.Do(t, stdin.Close())
	process.WaitForLine(t, `"msg":"the server stopped"`)
	if code := process.End(t); code != cli.ExitOK {
		t.Errorf("exit code %d:\n%s", code, process.Log)
	}
	if err := exec.CommandContext(t.Context(), check[0], check[1:]...).Run(); err == nil {
		t.Error("the health check of a server that is gone succeeds")
	}
}

// usersOf returns the accounts of the processes that listen on an address, of /proc/net/tcp.
func usersOf(t *testing.T, address string) (users []string) {
	t.Helper()
	_, port, _ := strings.Cut(address, ":")
	var number int
	must.Have(fmt.Sscan(port, &number))(t)
	const listening = "0A"
	for line := range strings.Lines(clitest.ReadFile(t, "/proc/net/tcp")) {
		if fields := strings.Fields(line); strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", number)) && fields[3] == listening {
			users = append(users, fields[7])
		}
	}
	return users
}
