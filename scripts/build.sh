#!/usr/bin/env bash
# The one door to every build step; what a step prints is shown when it fails.
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
tests() { # tests <folder below tests/>...: all of them, also after a failure
  local folder code=0
  for folder in "$@"; do
    if [[ $(find "tests/$folder" -name 'test_*.py' 2>/dev/null) ]]; then
      step "$folder" scripts/test "tests/$folder" || code=1
    else
      echo "Passing over $folder: there are no tests in tests/$folder"
    fi
  done
  return "$code"
}
every() { # the folders of tests, unit first
  echo unit
  for folder in tests/*/; do
    case $folder in */unit/ | */support/ | */__pycache__/ | 'tests/*/') ;; *) basename -- "$folder" ;; esac
  done
}

command=${1:-none}
(($# <= 1)) || command=none
# shellcheck disable=SC2046 # test-all: one word per folder
case $command in
  build) step setup scripts/setup && step build .venv/bin/python -m build && ls -- dist/* ;;
  test) tests unit ;;
  test-all) tests $(every) ;;
  test-int) tests integration contract cli ;;
  test-system) tests e2e crash ;;
  lint) step lint scripts/check ;;
  check) step format scripts/fmt && step lint scripts/check && tests unit ;;
  clean) step clean rm -rf build dist htmlcov .coverage .coverage.* .hypothesis .import_linter_cache .{mypy,pytest,ruff}_cache ;;
  *)
    echo "usage: scripts/build.sh {build|test|test-all|test-int|test-system|lint|check|clean}" >&2
    exit 2
    ;;
esac
