# Functions for the scripts in contrib/, which source this file in the project's folder with set -euo pipefail.
# shellcheck shell=bash

# The Debian packages that a build requires besides Swift.
build_packages=(git binutils libc6-dev libedit-dev libgcc-12-dev libpq-dev libsqlite3-dev libssl-dev libstdc++-12-dev
  libsystemd-dev libyaml-dev pkg-config zlib1g-dev)
# The Debian packages of the database that replicated stores are in.
database_packages=(postgresql)
# The Debian packages of other programs that speak TLS.
tls_packages=(gnutls-bin openssl)
# The Debian packages of the browser that the console is tried in, and the fonts of its pictures.
browser_packages=(chromium fonts-dejavu-core)
# The Debian packages of the proxy that the API over HTTP is tried behind.
proxy_packages=(nginx-light)
# The Debian packages of the shells that have completions.
shell_packages=(bash fish zsh)
# The Debian packages of Larder's peers, and of the program that draws plots.
bench_packages=(redis-server redis-tools memcached gnuplot-nox)

# larderd refuses files of settings that others may write.
umask 022

log=$(mktemp)
trap 'rm -f "$log"' EXIT

fail() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# Builds a command for release, with the Swift runtime linked in: all scripts share this build, which runs without
# Swift.
release=(-c release --static-swift-stdlib)
build_release() { with_progress "building $1" swift build "${release[@]}" --product "$1"; }

# Runs a command and shows its output only if it fails.
quietly() {
  "$@" >"$log" 2>&1 </dev/null || {
    cat "$log" >&2
    fail "command failed: $*"
  }
}

# with_progress NAME COMMAND...: runs a command that can take minutes, such as a build, and shows its progress. Shows its
# output only if it fails.
with_progress() {
  local name=$1
  shift
  "$@" 2>&1 </dev/null | tee "$log" | show_progress "$name" || {
    cat "$log" >&2
    fail "command failed: $*"
  }
}

# show_progress NAME: reads the output of a command and shows, on standard error, the last [n/m] in the output, the time
# so far and the name: on a terminal in one line, which it erases at the end; elsewhere in a line every 10 seconds, if
# there is an [n/m].
show_progress() {
  local name=$1 start=$SECONDS shown=$SECONDS line='' position='' size columns text status
  while true; do
    status=0
    IFS= read -r -t 1 line || status=$?
    if [[ $line =~ ^\[[0-9]+/[0-9]+\] ]]; then position=${BASH_REMATCH[0]}; fi
    # A status above 128 means that no line came in a second.
    if ((status > 0 && status <= 128)); then break; fi
    text="${position:+$position }$((SECONDS - start)) s, $name"
    if [[ -t 2 ]]; then
      if ((SECONDS == shown)); then continue; fi
      size=$(stty size <&2) || size=''
      columns=${size#* }
      printf '\r%s\e[K' "${text:0:columns > 1 ? columns - 1 : 79}" >&2
    else
      if ((SECONDS < shown + 10)) || [[ -z $position ]]; then continue; fi
      printf '%s\n' "$text" >&2
    fi
    shown=$SECONDS
  done
  if [[ -t 2 ]]; then printf '\r\e[K' >&2; fi
}

need_swift() {
  command -v swift >/dev/null || fail 'swift is not in PATH; install it from https://www.swift.org/install/linux'
}

# Installs Python packages that tests need into a virtual environment: Prometheus's parser, what tests an API by its
# description, what checks the description and makes a client of it, and what drives a browser.
need_python_packages() {
  if [[ ! -x .build-python/bin/python3 ]]; then python3 -m venv .build-python; fi
  .build-python/bin/pip install --quiet --disable-pip-version-check prometheus_client==0.23.1 schemathesis==4.32.5 \
    openapi-spec-validator==0.9.0 openapi-python-client==0.29.1 playwright==1.65.2 axe-playwright-python==0.1.8
}

# install_missing PACKAGE...: installs the Debian packages that are missing.
install_missing() {
  local missing=() package as_root=()
  for package in "$@"; do
    [[ $(dpkg-query --show --showformat '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
  done
  if ((${#missing[@]} == 0)); then return; fi
  printf 'installing %s\n' "${missing[*]}" >&2
  if ((EUID != 0)); then
    command -v sudo >/dev/null || fail "as root, run: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  # Debian starts the servers that it installs unless this script exits with 101.
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
# The names of the steps that failed, and a line with the seconds of each step.
failed=()
step_times=()

# step NAME COMMAND...: runs the command and prints a line with the result. If it fails, shows its output (of Swift
# suites, the failed tests), and returns success, so that the next step runs.
step() {
  local name=$1 start=$SECONDS
  shift
  if ! "$@" 2>&1 </dev/null | tee "$log" | show_progress "$name"; then
    grep -a -A 8 '^✘' "$log" && tail -n 30 "$log" || tail -n 500 "$log"
    printf '\n%s failed: %s\n\n' "$name" "$*"
    failed+=("$name")
    step_times+=("$(printf '%6d s   %s (failed)' $((SECONDS - start)) "$name")")
    return
  fi
  passed=$((passed + 1))
  step_times+=("$(printf '%6d s   %s' $((SECONDS - start)) "$name")")
  printf '  %-28s %4d s   %s\n' "$name" $((SECONDS - start)) "$(summary_line)"
}

# required_step NAME COMMAND...: a step that all later ones depend on. If it fails, no other runs.
required_step() {
  local failures=${#failed[@]}
  step "$@"
  if ((${#failed[@]} > failures)); then finish_steps; fi
}

# Prints the steps by the time that they took, the slowest last, and those that failed, and exits: with 1 if one has.
finish_steps() {
  printf '\n'
  printf '%s\n' "${step_times[@]}" | sort -n
  local name
  for name in "${failed[@]}"; do printf 'FAILED: %s\n' "$name"; done
  printf '%d passed, %d failed\n' "$passed" "${#failed[@]}"
  exit $((${#failed[@]} > 0))
}

# Prints the last summary line of the log, if any.
summary_line() {
  grep -aoE -e 'Test run with [0-9]+ tests?.* passed' -e '^[0-9]+ passed, [0-9]+ failed.*' -e '[0-9,]+ executions.*' \
    -e '^[0-9]+ sources, .*' -e 'exposure level .*: [0-9.]+' "$log" | tail -n 1 || true
}
