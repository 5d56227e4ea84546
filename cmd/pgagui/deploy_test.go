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

	"github.com/robfig/cron/v3"
	"go.yaml.in/yaml/v3"

	"github.com/pgagui/pgagui/jobs"
)

// These tests run the command lines of the files in the folder deploy.

func readDeploy(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../deploy", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// shell runs a command line with pgagui in $PATH, and returns its exit code and stderr.
func (c commandLine) shell(line string) (code int, messages string) {
	c.t.Helper()
	self, err := os.Executable()
	if err != nil {
		c.t.Fatal(err)
	}
	folder := c.t.TempDir()
	if err := os.Symlink(self, filepath.Join(folder, "pgagui")); err != nil {
		c.t.Fatal(err)
	}
	command := c.program("sh", "-c", line)
	command.Env = append(command.Env, "PATH="+folder+":"+os.Getenv("PATH"))
	var stderr bytes.Buffer
	command.Stderr = &stderr
	var exit *exec.ExitError
	if err := command.Run(); err != nil && !errors.As(err, &exit) {
		c.t.Fatal(err)
	}
	return command.ProcessState.ExitCode(), stderr.String()
}

// mustServe starts a worker, which has to run a job and to exit with 0 after SIGTERM.
func (c commandLine) mustServe(arguments ...string) {
	c.t.Helper()
	worker := c.start(append(arguments, "--compact", "@every 1s")...) // overrides the schedule of the file
	worker.waitForLine(c.t, `"msg":"job done","job":"compact"`)
	worker.terminate(c.t)
	if code := worker.end(c.t); code != exitOK {
		c.t.Errorf("pgagui %s: exit code %d:\n%s", strings.Join(arguments, " "), code, worker.log)
	}
}

func TestCrontab(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	importThreads(t, commands, 2)
	leaveRun(t, commands, "left", "r")
	setLease(t, commands, "0")
	entry := regexp.MustCompile(`(?m)^(?:# )?((?:[\d*/,-]+ +){5})(.*pgagui .*)$`)
	entries := entry.FindAllStringSubmatch(readDeploy(t, "crontab"), -1)
	if len(entries) != 3 {
		t.Fatalf("%d entries", len(entries))
	}
	for _, entry := range entries {
		if _, err := cron.ParseStandard(strings.TrimSpace(entry[1])); err != nil {
			t.Errorf("%s: %v", entry[0], err)
		}
		if code, messages := commands.shell(entry[2]); code != exitOK || messages != "" && !strings.HasPrefix(messages, "This permanently removes") {
			t.Errorf("%s: exit code %d, cron would mail: %s", entry[2], code, messages)
		}
	}
	if stats := parse[jobs.Stats](commands, "stats"); stats.CompactedLogBytes == 0 || stats.RunningRuns != 0 {
		t.Errorf("afterwards %+v", stats)
	}
}

func TestSystemdUnits(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	command := regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/(pgagui (\w+) .*)$`)
	for name, subcommand := range map[string]string{"pgagui-compact": "compact", "pgagui-reap": "reap", "pgagui-worker": "worker"} {
		unit := readDeploy(t, "systemd/"+name+".service")
		match := command.FindStringSubmatch(unit)
		if match == nil || match[2] != subcommand {
			t.Errorf("%s: no command %s", name, subcommand)
			continue
		}
		if subcommand == "worker" {
			// systemd quotes like a shell, so a shell can split the line into words.
			words, err := exec.CommandContext(t.Context(), "sh", "-c", `set -- `+match[1]+`; shift; printf '%s\n' "$@"`).Output()
			if err != nil {
				t.Fatal(err)
			}
			commands.mustServe(strings.Split(strings.TrimSpace(string(words)), "\n")...)
		} else if code, messages := commands.shell(match[1]); code != exitOK || messages != "" {
			t.Errorf("%s: exit code %d, %s", match[1], code, messages)
		}
	}
	for _, name := range []string{"pgagui-compact", "pgagui-reap"} {
		if timer := readDeploy(t, "systemd/"+name+".timer"); !strings.Contains(timer, "\nUnit="+name+".service\n") {
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
	commands := newCommandLine(t)
	folder := t.TempDir()
	commands.token(filepath.Join(folder, "tokens.yaml"), "web", "acme", "read")
	config := strings.NewReplacer("/etc/pgagui/", folder+"/", ":8080", ":0", ":9090", ":0").Replace(readDeploy(t, "serve.yaml"))
	if got := len(regexp.MustCompile(`(?m)^# (?:tls|jwt|worker):|^#   `).FindAllString(config, -1)); got != 10 {
		t.Errorf("%d lines of the configuration are examples", got)
	}
	writeCertificate(t, filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key"), 1)
	if err := os.WriteFile(filepath.Join(folder, "worker"), []byte(commands.databaseURL), 0o600); err != nil {
		t.Fatal(err)
	}
	all := regexp.MustCompile(`(?m)^# (tls:|jwt:|worker:|  \w)`).ReplaceAllString(config, "$1")
	for name, text := range map[string]string{"serve.yaml": config, "all.yaml": all} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	environment := "ASSISTANT_AUTHORIZATION=x "
	if code, messages := commands.shell(environment + "pgagui serve --check --config " + filepath.Join(folder, "all.yaml")); code != exitOK {
		t.Errorf("exit code %d: %s", code, messages)
	}

	unit := regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/pgagui (.*)$`).FindStringSubmatch(readDeploy(t, "systemd/pgagui-serve.service"))
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
	if err := yaml.Unmarshal([]byte(readDeploy(t, "kubernetes/serve.yaml")), &manifest); err != nil {
		t.Fatal(err)
	}
	pod := manifest.Spec.Template.Spec
	var standard serveConfig
	standard.settings()
	if float64(pod.TerminationGracePeriodSeconds) <= standard.shutdownTimeout.Seconds() {
		t.Errorf("the pod gets %d seconds, --shutdown-timeout is %s", pod.TerminationGracePeriodSeconds, standard.shutdownTimeout)
	}
	for _, line := range []string{unit[1], strings.Join(pod.Containers[0].Args, " ")} {
		line = strings.NewReplacer("/etc/pgagui/", folder+"/", ":8080", "127.0.0.1:0", ":9090", "127.0.0.1:0").Replace(line)
		command := commands.program(os.Args[0], strings.Fields(line)...)
		command.Env = append(command.Env, environment[:len(environment)-1])
		server := startProcess(t, command)
		server.waitForLine(t, `"msg":"serving"`)
		server.terminate(t)
		if code := server.end(t); code != exitOK {
			t.Errorf("pgagui %s: exit code %d:\n%s", line, code, server.log)
		}
	}
}

func TestKubernetesManifests(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
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
		decoder := yaml.NewDecoder(strings.NewReader(readDeploy(t, "kubernetes/"+name)))
		if err := decoder.Decode(&typed); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := decoder.Decode(new(any)); err != io.EOF {
			t.Errorf("%s: more than one document, error %v", name, err)
		}
		return typed
	}
	check := func(name string, pod podSpec) []string {
		if len(pod.Containers) != 1 || len(pod.Containers[0].Env) != 1 || pod.Containers[0].Env[0].Name != "DATABASE_URL" {
			t.Fatalf("%s: %+v", name, pod)
		}
		if pod.Containers[0].Args[0] != "reap" && float64(pod.TerminationGracePeriodSeconds) <= defaultGrace.Seconds() {
			t.Errorf("%s: the pod gets %d seconds, --grace alone is %s", name, pod.TerminationGracePeriodSeconds, defaultGrace)
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
			rules[0].Action != "Ignore" || !slices.Equal(rules[0].OnExitCodes.Values, []int{exitWorkLeft}) ||
			rules[1].Action != "FailJob" || !slices.Equal(rules[1].OnExitCodes.Values, []int{exitUsage}) {
			t.Errorf("%s: restart policy %q, rules %+v", name, job.Template.Spec.RestartPolicy, rules)
		}
		commands.must(check(name, job.Template.Spec)...)
	}

	deployment := read("worker.yaml")
	if deployment.Kind != "Deployment" || deployment.APIVersion != "apps/v1" {
		t.Errorf("%s %s", deployment.APIVersion, deployment.Kind)
	}
	arguments := check("worker.yaml", deployment.Spec.Template.Spec)
	arguments[slices.Index(arguments, "--metrics-listen")+1] = "127.0.0.1:0"
	commands.mustServe(arguments...)
}
