#!/usr/bin/env bash
# agent-framework-ag-ui 1.7.0 and ag-ui-protocol 1.0.0 (both PyPI)
#
# Behaviour: the adapter of Agent Framework requires ag-ui-protocol below 1, so pip refuses to install it beside ag-ui-protocol 1.0.0.
#
# Why it matters: one would guess that the newest adapter takes the newest protocol. A program that parses events with the models of
# AG-UI 1.0 and serves an agent of Agent Framework needs two environments, or the protocol's models before 1.0.
#
# Output:
#   pip: ResolutionImpossible
#   alone: ag-ui-protocol 0.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
pip() { "$dir/venv/bin/pip" --disable-pip-version-check "$@"; }
if pip install --dry-run --quiet agent-framework-ag-ui==1.7.0 ag-ui-protocol==1.0.0 2> "$dir/errors"; then
    echo "pip installs both"
    exit 1
fi
printf 'pip: %s\n' "$(grep --only-matching --max-count=1 ResolutionImpossible "$dir/errors")"
pip install --quiet agent-framework-ag-ui==1.7.0
version=$(pip show ag-ui-protocol | sed -n 's/^Version: //p')
echo "alone: ag-ui-protocol ${version%%.*}."
[ "${version%%.*}" = 0 ]
