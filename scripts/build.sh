#!/usr/bin/env bash
# The one door to every build step; what a step prints is shown when it fails. All tests in one run: scripts/test
# test: unit tests, under 5 s. test-all: with those that start programs or draw examples, under 15 s. test-int and
# test-system: real git, tmux and agent programs, kills at every point; minutes.
set -euo pipefail
cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
log=$(mktemp)
trap 'rm -f -- "$log"' EXIT

now() { echo "${EPOCHREALTIME:-$SECONDS.0}" | tr , .; }
step() { # step <name> <command>...
  local name=$1 began took code=0
  shift
  printf 'Running %s... ' "$name"
  began=$(now)
  "$@" >"$log" 2>&1 </dev/null || code=$?
  took=$(awk "BEGIN { printf \"%.1f\", $(now) - $began }")
  if ((code == 0)); then echo "ok (${took}s)"; return; fi
  echo "FAILED (${took}s)"
  echo "+ $*"
  cat -- "$log"
  return "$code"
}
tests() { # tests <kind>...: all of them, also after a failure
  local kind code=0
  step setup scripts/setup
  export SWARM_IS_SET_UP=1
  for kind in "$@"; do
    step "$kind" env "SWARM_TEST_WORKERS=$(workers "$kind")" scripts/test --kind "$kind" || code=1
  done
  return "$code"
}
workers() { # workers <kind>: unit tests are done before a second process has begun
  if [[ $1 == unit ]]; then echo 0; else echo "${SWARM_TEST_WORKERS:-2}"; fi
}

command=${1:-none}
(($# <= 1)) || command=none
case $command in
  build) step setup scripts/setup && step build .venv/bin/python -m build --no-isolation && ls -- dist/* ;;
  test) tests unit ;;
  test-all) tests unit component ;;
  test-int) tests integration contract ;;
  test-system) tests e2e crash agents ;;
  lint) step lint scripts/check ;;
  check) step format scripts/fmt && step lint scripts/check && tests unit ;;
  clean) step clean rm -rf build dist htmlcov .coverage .coverage.* .hypothesis .import_linter_cache .{mypy,pytest,ruff}_cache ;;
  *)
    echo "usage: scripts/build.sh {build|test|test-all|test-int|test-system|lint|check|clean}" >&2
    exit 2
    ;;
esac
