# Shared by the scripts in contrib/. Sourced from the project's folder, by scripts that have set -euo pipefail.
# shellcheck shell=bash

# What building takes beyond Swift itself, as Debian names it.
build_packages=(git binutils libc6-dev libedit-dev libgcc-12-dev libsqlite3-dev libstdc++-12-dev libsystemd-dev pkg-config)
# The servers that Larder is compared with, and what draws the plots.
bench_packages=(redis-server redis-tools memcached gnuplot-nox)

log=$(mktemp)
trap 'rm -f "$log"' EXIT

fail() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# Builds a command for release, with the Swift runtime in it: so it is built once for all scripts, and runs where there is no Swift.
release=(-c release --static-swift-stdlib)
build_release() { quietly swift build "${release[@]}" --product "$1"; }

# Runs a command without a word, unless it fails.
quietly() {
  "$@" >"$log" 2>&1 </dev/null || {
    cat "$log" >&2
    fail "this failed: $*"
  }
}

need_swift() {
  command -v swift >/dev/null || fail 'there is no swift in PATH; https://www.swift.org/install/linux has it'
}

# install_missing PACKAGE...: installs those of the Debian packages that are not there.
install_missing() {
  local missing=() package as_root=()
  for package in "$@"; do
    [[ $(dpkg-query --show --showformat '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
  done
  if ((${#missing[@]} == 0)); then return; fi
  if ((EUID != 0)); then
    command -v sudo >/dev/null || fail "as root, run: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  # Debian starts the servers that it installs, unless this script says no (101).
  local policy=/usr/sbin/policy-rc.d
  [[ ! -e $policy ]] || policy=''
  if [[ -n $policy ]]; then printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" install -m 755 /dev/stdin "$policy"; fi
  local failed=false
  (
    quietly "${as_root[@]}" apt-get update
    quietly "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "${missing[@]}"
  ) || failed=true
  if [[ -n $policy ]]; then "${as_root[@]}" rm "$policy"; fi
  if $failed; then exit 1; fi
}

passed=0

# step NAME COMMAND...: runs the command and prints a line about it; shows what it printed only if it fails, and ends the script then. Of
# Swift suites it shows the tests that failed.
step() {
  local name=$1 start=$SECONDS
  shift
  if ! "$@" >"$log" 2>&1 </dev/null; then
    grep -a -A 8 '^✘' "$log" && tail -n 30 "$log" || tail -n 500 "$log"
    printf '\n%s failed: %s\n%d passed, 1 failed\n' "$name" "$*" "$passed"
    exit 1
  fi
  passed=$((passed + 1))
  printf '  %-28s %4d s   %s\n' "$name" $((SECONDS - start)) "$(closing_line)"
}

# What a test runner said last, if it has a figure.
closing_line() {
  grep -aoE -e 'Test run with [0-9]+ tests?.* passed' -e '^[0-9]+ passed, [0-9]+ failed.*' -e '[0-9,]+ executions.*' \
    -e '^[0-9]+ sources, .*' -e 'exposure level .*: [0-9.]+' "$log" | tail -n 1 || true
}
