package main

import (
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/root"
)

// What two databases, and two calls, do not have in common: times, how long it took, what is random.
var ofOneCall = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?|\d+\.?\d* ?(ns|µs|ms|s|minutes?|seconds?)\b( ago)?|now\b|"nanoseconds":\d+|\+\d+ms| {2,}|` +
	`[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{64}|whsec_\S+|"logBytes":\d+|[0-9a-f]{40}|[\d.]+ [kM]?B of log`)

// Each old name prints what the new one prints, and exits as that does. The calls are made in their order, with the
// old names on one database, with the new ones on another.
func TestOldNamesAreTheNewOnes(t *testing.T) {
	t.Parallel()
	ofOld, ofNew := clitest.NewCommandLine(t), clitest.NewCommandLine(t)
	for _, commands := range []clitest.CommandLine{ofOld, ofNew} {
		clitest.ImportTree(t, commands)
		clitest.LeaveRun(t, commands, "open", "r")
		clitest.SetLease(t, commands, "0")
		commands.Must("webhook", "add", "crm", "https://example.com", "--all-scopes")
	}
	untested := map[string]bool{}
	var find func(*cobra.Command)
	find = func(command *cobra.Command) {
		for _, child := range command.Commands() {
			find(child)
			if child.Deprecated != "" {
				untested[strings.TrimPrefix(child.CommandPath(), "pgagui ")] = true
			}
		}
	}
	find(root.Command(&cli.Program{}))
	for _, test := range []struct{ old, now string }{
		{"branches t --json", "log t --branches --json"},
		{"branches t", "log t --branches"},
		{"branches", "log --branches"},
		{"runs", "log --all-threads"},
		{"runs --status failed --limit 1 --json", "log --all-threads --status failed --limit 1 --json"},
		{"runs t", "log t --all-threads"},
		{"export t", "events t"},
		{"export --all --null", "events --all --null"},
		{"export --all t", "events --all t"},
		{"export t --run r2 --compact snapshot --lineage=false", "events t --run r2 --compact snapshot --lineage=false"},
		{"follow t", "events t --follow"},
		{"follow t --run r3 --history snapshot --json", "events t --follow --run r3 --compact snapshot --json"},
		{"follow t --after 11 --json", "events t --follow --after 11 --json"},
		{"follow t --history=all", "events t --follow --compact=all"},
		{"history t", "events t --page"},
		{"history t --after-seq 3 --limit 2 --json", "events t --page --after 3 --limit 2 --json"},
		{"history t --all --type RUN_ERROR", "events t --page --all --type RUN_ERROR"},
		{"history t --null", "events t --page --null"},
		{"reap", "job reap"},
		{"reap --limit -1", "job reap --limit -1"},
		{"compact --workers 1 --json", "job compact --workers 1 --json"},
		{"compact", "job compact"},
		{"compact --rebuild", "job compact --rebuild"},
		{"repack --older-than 0s --limit 1", "job repack --older-than 0s --limit 1"},
		{"repack --older-than -1h", "job repack --older-than -1h"},
		{"project --retry", "job project --retry"},
		{"project t", "job project t"},
		{"heads", "verify --print-heads"},
		{"heads t", "verify --print-heads t"},
		{"hold set t --reason law", "retention hold t --reason law"},
		{"hold set t", "retention hold t --reason="},
		{"hold set", "retention hold --reason="},
		{"hold ls", "retention hold"},
		{"retention plan --threads --json", "retention apply --dry-run --threads --json"},
		{"retention plan --scope a", "retention apply --dry-run --scope a"},
		{"hold lift t", "retention hold t --lift"},
		{"hold lift", "retention hold --lift"},
		{"allow open", "retention allow open"},
		{"consumers move c", "feed consumers move c"},
		{"consumers ls --json", "feed consumers --json"},
		{"consumers rm nothere", "feed consumers rm nothere"},
		{"cluster unpin s", "cluster pin s --remove"},
		{"webhook disable crm", "webhook set crm --enabled=false"},
		{"webhook enable crm", "webhook set crm --enabled"},
		{"webhook enable nothere", "webhook set nothere --enabled"},
		{"webhook retry crm", "webhook failures crm --retry"},
		{"webhook retry", "webhook failures --retry"},
		{"webhook drop crm evt_1 --json", "webhook failures crm evt_1 --drop --json"},
		{"restore t", "show t --document"},
		{"restore t --run r3 --at 4 --json", "show t --document --run r3 --at 4 --json"},
		{"restore nobody", "show nobody --document"},
		{"restore t --at -1", "show t --document --at -1"},
		{"status t", "show t --status"},
		{"status --run r2 t --json", "show t --status --run r2 --json"},
		{"subagents t --lineage=false", "show t --subagents --lineage=false"},
		{"usage t --whole-thread", "show t --usage --whole-thread"},
		{"usage t --whole-thread --run r1", "show t --usage --whole-thread --run r1"},
	} {
		old, now := ofOld.Run(strings.Fields(test.old)...), ofNew.Run(strings.Fields(test.now)...)
		was, is := ofOneCall.ReplaceAllString(old.Out+old.Messages, "…"), ofOneCall.ReplaceAllString(now.Out+now.Messages, "…")
		if was != is || old.Code != now.Code {
			t.Errorf("pgagui %s: exit code %d, %s\npgagui %s: exit code %d, %s", test.old, old.Code, was, test.now, now.Code, is)
		}
		maps.DeleteFunc(untested, func(name string, _ bool) bool { return strings.HasPrefix(test.old+" ", name+" ") })
	}
	if len(untested) > 0 {
		t.Errorf("no test calls %v", untested)
	}
	if out := ofOld.Must("--json", "restore", "--help"); !strings.Contains(out, "pgagui show THREAD [flags]") {
		t.Errorf("the help of an old name: %s", out)
	}
	if help := ofOld.Must("help"); strings.Contains(help, "restore ") {
		t.Errorf("the help: %s", help)
	}
	for line, want := range map[string]string{"restore ": "open\nt\tWhere to?\n", "resto": ""} {
		if got, _, _ := strings.Cut(ofOld.RunBefore("__complete", strings.Split(line, " ")...).Out, ":"); got != want {
			t.Errorf("%s offers %q, want %q", line, got, want)
		}
	}
}
