package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	"go.yaml.in/yaml/v3"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/root"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/schedule"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testfile"
	"github.com/pgagui/pgagui/jobs"
)

// shell runs a command line with pgagui in $PATH, and returns its exit code and stderr.
func shell(c clitest.CommandLine, line string) (code int, messages string) {
	c.T.Helper()
	self := must.Have(os.Executable())(c.T)
	folder := c.T.TempDir()
	must.Do(c.T, os.Symlink(self, filepath.Join(folder, "pgagui")))
	command := c.Program("sh", "-c", line)
	command.Env = append(command.Env, "PATH="+folder+":"+os.Getenv("PATH"))
	var stderr bytes.Buffer
	command.Stderr = &stderr
	var exit *exec.ExitError
	if err := command.Run(); err != nil && !errors.As(err, &exit) {
		c.T.Fatal(err)
	}
	return command.ProcessState.ExitCode(), stderr.String()
}

// mustServe starts a worker, which has to run a job and to exit with 0 after SIGTERM.
func mustServe(c clitest.CommandLine, arguments ...string) {
	c.T.Helper()
	worker := c.Start(append(arguments, "--compact", "@every 1s")...) // overrides the schedule of the file
	worker.WaitForLine(c.T, `"msg":"job done","job":"compact"`)
	worker.Terminate(c.T)
	if code := worker.End(c.T); code != cli.ExitOK {
		c.T.Errorf("pgagui %s: exit code %d:\n%s", strings.Join(arguments, " "), code, worker.Log)
	}
}

func TestCrontab(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	clitest.ImportThreads(t, commands, 2)
	clitest.LeaveRun(t, commands, "left", "r")
	clitest.SetLease(t, commands, "0")
	entry := regexp.MustCompile(`(?m)^(?:# )?((?:[\d*/,-]+ +){5})(.*pgagui .*)$`)
	entries := entry.FindAllStringSubmatch(clitest.ReadDeploy(t, "crontab"), -1)
	if len(entries) != 5 {
		t.Fatalf("%d entries", len(entries))
	}
	for _, entry := range entries {
		if _, err := cron.ParseStandard(strings.TrimSpace(entry[1])); err != nil {
			t.Errorf("%s: %v", entry[0], err)
		}
		if code, messages := shell(commands, entry[2]); code != cli.ExitOK || messages != "" && !strings.HasPrefix(messages, "This permanently removes") {
			t.Errorf("%s: exit code %d, cron would mail: %s", entry[2], code, messages)
		}
	}
	if stats := clitest.Parse[jobs.Stats](commands, "stats"); stats.CompactedLogBytes == 0 || stats.RunningRuns != 0 {
		t.Errorf("afterwards %+v", stats)
	}
}

func TestSystemdUnits(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	command := regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/(pgagui (?:job )?(\w+) .*)$`)
	for name, subcommand := range map[string]string{"pgagui-compact": "compact", "pgagui-reap": "reap", "pgagui-worker": "worker"} {
		unit := clitest.ReadDeploy(t, "systemd/"+name+".service")
		match := command.FindStringSubmatch(unit)
		if match == nil || match[2] != subcommand {
			t.Errorf("%s: no command %s", name, subcommand)
			continue
		}
		if subcommand == "worker" {
			// systemd quotes like a shell, so a shell can split the line into words.
			words := must.Have(exec.CommandContext(t.Context(), "sh", "-c", `set -- `+match[1]+`; shift; printf '%s\n' "$@"`).Output())(t)
			mustServe(commands, strings.Split(strings.TrimSpace(string(words)), "\n")...)
		} else if code, messages := shell(commands, match[1]); code != cli.ExitOK || messages != "" {
			t.Errorf("%s: exit code %d, %s", match[1], code, messages)
		}
	}
	for _, name := range []string{"pgagui-compact", "pgagui-reap"} {
		if timer := clitest.ReadDeploy(t, "systemd/"+name+".timer"); !strings.Contains(timer, "\nUnit="+name+".service\n") {
			t.Errorf("the timer of %s does not start the service", name)
		}
	}
	if _, err := exec.LookPath("systemd-analyze"); err == nil {
		units, _ := filepath.Glob("../../deploy/systemd/*")
		output, err := exec.CommandContext(t.Context(), "systemd-analyze", append([]string{"verify"}, units...)...).CombinedOutput()
		// It also checks that the program is installed, which it need not be here.
		for line := range strings.Lines(string(output)) {
			if strings.Contains(line, "pgagui") && !strings.Contains(line, "/usr/local/bin/pgagui is not executable") {
				t.Errorf("systemd-analyze verify (%v): %s", err, line)
			}
		}
		// 20 is 2.0 of 10 on its scale of exposure.
		services, _ := filepath.Glob("../../deploy/systemd/*.service")
		for _, service := range services {
			if output, err := exec.CommandContext(t.Context(), "systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager", service).CombinedOutput(); err != nil {
				t.Errorf("%s has more rights than it needs: %v\n%s", service, err, output)
			}
		}
	}
}

// The configuration of the folder is valid, and the unit and the manifest serve with it.
func TestServeRecipes(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	folder := t.TempDir()
	commands.Token(filepath.Join(folder, "tokens.yaml"), "web", "acme", "read")
	config := strings.NewReplacer("/etc/pgagui/", folder+"/", ":8080", ":0", ":9090", ":0").Replace(clitest.ReadDeploy(t, "serve.yaml"))
	if got := len(regexp.MustCompile(`(?m)^# (?:tls|jwt|worker):|^#   `).FindAllString(config, -1)); got != 10 {
		t.Errorf("%d lines of the configuration are examples", got)
	}
	clitest.WriteCertificate(t, filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key"), 1)
	testfile.Write(t, filepath.Join(folder, "worker"), []byte(commands.DatabaseURL))
	all := regexp.MustCompile(`(?m)^# (tls:|jwt:|worker:|  \w)`).ReplaceAllString(config, "$1")
	for name, text := range map[string]string{"serve.yaml": config, "all.yaml": all} {
		testfile.Write(t, filepath.Join(folder, name), []byte(text))
	}
	environment := "ASSISTANT_AUTHORIZATION=x "
	if code, messages := shell(commands, environment+"pgagui serve --check --config "+filepath.Join(folder, "all.yaml")); code != cli.ExitOK {
		t.Errorf("exit code %d: %s", code, messages)
	}

	unit := regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/pgagui (.*)$`).FindStringSubmatch(clitest.ReadDeploy(t, "systemd/pgagui-serve.service"))
	var manifest struct {
		Spec struct {
			Template struct {
				Spec struct {
					TerminationGracePeriodSeconds int `yaml:"terminationGracePeriodSeconds"`
					Containers                    []struct{ Args []string }
				}
			}
		}
	}
	must.Do(t, yaml.Unmarshal([]byte(clitest.ReadDeploy(t, "kubernetes/serve.yaml")), &manifest))
	pod := manifest.Spec.Template.Spec
	serve, _, err := root.Command(&cli.Program{}).Find([]string{"serve"})
	must.Do(t, err)
	timeout, err := serve.Flags().GetDuration("shutdown-timeout")
	if err != nil || float64(pod.TerminationGracePeriodSeconds) <= timeout.Seconds() {
		t.Errorf("the pod gets %d seconds, --shutdown-timeout is %s (%v)", pod.TerminationGracePeriodSeconds, timeout, err)
	}
	for _, line := range []string{unit[1], strings.Join(pod.Containers[0].Args, " ")} {
		line = strings.NewReplacer("/etc/pgagui/", folder+"/", ":8080", "127.0.0.1:0", ":9090", "127.0.0.1:0").Replace(line)
		command := commands.Program(os.Args[0], strings.Fields(line)...)
		command.Env = append(command.Env, environment[:len(environment)-1])
		server := clitest.StartProcess(t, command)
		server.WaitForLine(t, `"msg":"serving"`)
		server.Terminate(t)
		if code := server.End(t); code != cli.ExitOK {
			t.Errorf("pgagui %s: exit code %d:\n%s", line, code, server.Log)
		}
	}
}

// The commands of the Compose file run in the order of its services.
func TestComposeFile(t *testing.T) {
	t.Parallel()
	commands := clitest.On(t, testdb.Empty(t))
	var file struct {
		Services map[string]struct {
			Image       string
			Command     []string
			Environment map[string]string
			Volumes     []string
			Grace       string                                `yaml:"stop_grace_period"`
			DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
		}
	}
	text := clitest.ReadDeploy(t, "compose/compose.yaml")
	must.Do(t, yaml.Unmarshal([]byte(text), &file))
	migrate, serve := file.Services["migrate"], file.Services["serve"]
	if migrate.DependsOn["db"].Condition != "service_healthy" || serve.DependsOn["migrate"].Condition != "service_completed_successfully" ||
		!strings.HasPrefix(serve.Environment["DATABASE_URL"], "postgres://") || serve.Image != migrate.Image {
		t.Errorf("the services are %+v", file.Services)
	}
	commands.Must(migrate.Command...)
	folder := t.TempDir()
	token := regexp.MustCompile(`(?m)^#   docker compose run .* serve (token .*)$`).FindStringSubmatch(text)
	commands.Must(strings.Fields(strings.ReplaceAll(token[1], "/etc/pgagui/", folder+"/"))...)
	line := strings.NewReplacer("/etc/pgagui/", folder+"/", ":8080", "127.0.0.1:0", "host.docker.internal", "localhost").Replace(strings.Join(serve.Command, " "))
	server := commands.Start(strings.Fields(line)...)
	server.WaitForLine(t, `"msg":"serving"`)
	server.Terminate(t)
	if code := server.End(t); code != cli.ExitOK {
		t.Errorf("pgagui %s: exit code %d:\n%s", line, code, server.Log)
	}
	flags, _, err := root.Command(&cli.Program{}).Find([]string{"serve"})
	must.Do(t, err)
	timeout, err := flags.Flags().GetDuration("shutdown-timeout")
	grace, graceErr := time.ParseDuration(serve.Grace)
	if err != nil || graceErr != nil || grace <= timeout {
		t.Errorf("the container gets %s, --shutdown-timeout is %s", serve.Grace, timeout)
	}
}

func TestKubernetesManifests(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	type podSpec struct {
		RestartPolicy                 string `yaml:"restartPolicy"`
		TerminationGracePeriodSeconds int    `yaml:"terminationGracePeriodSeconds"`
		Containers                    []struct {
			Image string   `yaml:"image"`
			Args  []string `yaml:"args"`
			Env   []struct {
				Name string `yaml:"name"`
			} `yaml:"env"`
		} `yaml:"containers"`
	}
	type template struct {
		Spec podSpec `yaml:"spec"`
	}
	type manifest struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string `yaml:"kind"`
		Spec       struct {
			Schedule    string   `yaml:"schedule"`
			Template    template `yaml:"template"`
			JobTemplate struct {
				Spec struct {
					Template         template `yaml:"template"`
					PodFailurePolicy struct {
						Rules []struct {
							Action      string `yaml:"action"`
							OnExitCodes struct {
								Values []int `yaml:"values"`
							} `yaml:"onExitCodes"`
						} `yaml:"rules"`
					} `yaml:"podFailurePolicy"`
				} `yaml:"spec"`
			} `yaml:"jobTemplate"`
		} `yaml:"spec"`
	}
	read := func(name string) manifest {
		var typed manifest
		decoder := yaml.NewDecoder(strings.NewReader(clitest.ReadDeploy(t, "kubernetes/"+name)))
		if err := decoder.Decode(&typed); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var policy manifest // tested in test/manifests
		if err := decoder.Decode(&policy); err != nil || policy.Kind != "NetworkPolicy" {
			t.Errorf("%s: the second document is a %s (%v)", name, policy.Kind, err)
		}
		if err := decoder.Decode(new(any)); err != io.EOF {
			t.Errorf("%s: more than two documents, error %v", name, err)
		}
		return typed
	}
	check := func(name string, pod podSpec) []string {
		if len(pod.Containers) != 1 || len(pod.Containers[0].Env) != 1 || pod.Containers[0].Env[0].Name != "DATABASE_URL" {
			t.Fatalf("%s: %+v", name, pod)
		}
		if !slices.Contains(pod.Containers[0].Args, "reap") && float64(pod.TerminationGracePeriodSeconds) <= schedule.DefaultGrace.Seconds() {
			t.Errorf("%s: the pod gets %d seconds, --grace alone is %s", name, pod.TerminationGracePeriodSeconds, schedule.DefaultGrace)
		}
		return pod.Containers[0].Args
	}

	for _, name := range []string{"cronjob.yaml", "cronjob-reap.yaml"} {
		cronJob := read(name)
		if _, err := cron.ParseStandard(cronJob.Spec.Schedule); err != nil || cronJob.Kind != "CronJob" || cronJob.APIVersion != "batch/v1" {
			t.Errorf("%s: %s %s, schedule %v", name, cronJob.APIVersion, cronJob.Kind, err)
		}
		job := cronJob.Spec.JobTemplate.Spec
		// Kubernetes accepts rules for exit codes only with the restart policy Never.
		if rules := job.PodFailurePolicy.Rules; job.Template.Spec.RestartPolicy != "Never" || len(rules) != 2 ||
			rules[0].Action != "Ignore" || !slices.Equal(rules[0].OnExitCodes.Values, []int{cli.ExitWorkLeft}) ||
			rules[1].Action != "FailJob" || !slices.Equal(rules[1].OnExitCodes.Values, []int{cli.ExitUsage}) {
			t.Errorf("%s: restart policy %q, rules %+v", name, job.Template.Spec.RestartPolicy, rules)
		}
		commands.Must(check(name, job.Template.Spec)...)
	}

	deployment := read("worker.yaml")
	if deployment.Kind != "Deployment" || deployment.APIVersion != "apps/v1" {
		t.Errorf("%s %s", deployment.APIVersion, deployment.Kind)
	}
	arguments := check("worker.yaml", deployment.Spec.Template.Spec)
	arguments[slices.Index(arguments, "--metrics-listen")+1] = "127.0.0.1:0"
	mustServe(commands, arguments...)
}
