#!/usr/bin/env bash
# Are the Go benchmarks of this checkout, changes that are not committed included, slower than those of a commit?
#
#   bench-compare.sh BASE [BENCH]    BASE is a commit, BENCH a regular expression as for go test -bench (default: all)
#
# Builds the tests of both, runs the two alternately, in the other order each round, and prints both and their ratios.
# Exits with 1 if a benchmark takes more than RATIO times its time at BASE, and that is no accident (p < ALPHA); with 2 if
# nothing could be compared.
#
# Settings: RATIO (1.15), ALPHA (0.05), ROUNDS (8; below 4 nothing can be significant), BENCHTIME of a benchmark in a
# round (500ms), PACKAGES (those of the hot path).
set -euo pipefail
cd "$(dirname "$0")/.."

RATIO=${RATIO:-1.15} ALPHA=${ALPHA:-0.05} ROUNDS=${ROUNDS:-8} BENCHTIME=${BENCHTIME:-500ms}
PACKAGES=${PACKAGES:-pkg/topology pkg/state pkg/tasks}
BENCHSTAT=golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da

die() {
  echo "bench-compare.sh: $*" >&2
  exit 2
}

[ $# -le 2 ] && [ -n "${1:-}" ] || die "which commit is BASE? For example: make bench-compare BASE=main"
base=$(git rev-parse --verify --quiet "$1^{commit}") || die "$1 is no commit"
bench=${2:-.}

work=$(mktemp -d)
cleanup() {
  git worktree remove --force "$work/base" 2>/dev/null || true
  rm -rf "$work"
  git worktree prune
}
trap cleanup EXIT
git worktree add --quiet --detach "$work/base" "$base"
ln -s "$PWD" "$work/here"

# build SIDE PACKAGE: makes its tests, if there are any.
build() {
  [ -d "$work/$1/$2" ] || return 0
  (cd "$work/$1" && go test -c -o "$work/$1-${2//\//-}" "./$2") >/dev/null || die "the tests of $2 do not build ($1)"
}

# run SIDE PACKAGE: adds to the results of a side. Tests run where their package is.
run() {
  local binary="$work/$1-${2//\//-}"
  [ -x "$binary" ] || return 0
  (cd "$work/$1/$2" && "$binary" -test.run '^$' -test.bench "$bench" -test.benchmem -test.benchtime "$BENCHTIME") >>"$work/$1.txt" ||
    die "a benchmark of $2 fails ($1): $(tail -5 "$work/$1.txt")"
}

echo "building $(git describe --always "$base") and this checkout" >&2
for package in $PACKAGES; do
  build base "$package"
  build here "$package"
done
: >"$work/base.txt"
: >"$work/here.txt"
for ((round = 1; round <= ROUNDS; round++)); do
  echo "round $round of $ROUNDS" >&2
  sides="base here"
  if ((round % 2 == 0)); then sides="here base"; fi
  for package in $PACKAGES; do
    for side in $sides; do run "$side" "$package"; done
  done
done

benchstat() { (cd "$work" && go run "$BENCHSTAT" -alpha "$ALPHA" "$@" base.txt here.txt); }
benchstat
# Rows of the table of times end in the change, such as +12.50%, and in p and n; "~" is no significant change.
benchstat -format csv 2>/dev/null | awk -F, -v ratio="$RATIO" '
  $1 == "" { times = $2 == "sec/op"; next }
  !times || $NF !~ /^p=/ { next }
  { compared++ }
  $(NF - 1) ~ /^\+/ && 1 + $(NF - 1) / 100 > ratio { slower++; print "slower by more than " ratio ": " $1 " " $(NF - 1) " (" $NF ")" }
  END {
    if (!compared) { print "no benchmark is on both sides"; exit 2 }
    if (slower) exit 1
    print compared " benchmarks, none slower by more than " ratio
  }'
