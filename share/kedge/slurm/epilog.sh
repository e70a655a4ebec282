#!/usr/bin/env bash
# Epilog of slurmd: frees the node-local stores that this job left on this node. Those of the user's other jobs stay,
# which may continue from them; so do those that a job is using, and those of which no job is recorded. What was not
# flushed to the parallel filesystem is lost then, unless scavenge= is set: a job that is queued again continues from
# there. Sites that would rather keep it until another user needs the node take prolog.sh.
#
# What is freed and what stays goes to the system's log. Slurm runs it without a search path, and drains a node whose
# epilog fails, so this one never does; nor can what a user's process does in its stores hold it up.
set -uo pipefail

# The command, by its whole path: where it was installed with this script. In a copy of this script, write it here.
kedge=${KEDGE:-$(dirname "$(readlink -f "$0")")/../../../bin/kedge}
# The directories in which stores may lie, with spaces between.
roots=${STORE_ROOTS:-/dev/shm /tmp}
# Not empty: what was not flushed is copied to the job's prefix first, and flushed there by the last node's epilog. A
# store for which that fails stays.
scavenge=${SCAVENGE:-}
# For all stores together, in seconds; stores that were not reached by then stay.
limit=${LIMIT:-900}

job=${SLURM_JOB_ID:-} user=${SLURM_JOB_USER:-} uid=${SLURM_JOB_UID:-}
[[ -n $job && -n $user && -n $uid ]] || exit 0

say() { echo "$*"; logger -t kedge -- "job $job: $*" 2>/dev/null; }

[[ -x $kedge ]] || {
  say "nothing was freed: there is no $kedge; set kedge= in $0" >&2
  exit 0
}

words=$(mktemp -p /run 2>/dev/null || mktemp) || words=/dev/null  # the filesystem of a store may be full
[[ $words == /dev/null ]] || trap 'rm -f "$words"' EXIT

as_user() {
  if [[ $(id -u) == "$uid" ]]; then exec "$@"; fi
  exec setpriv --reuid="$uid" --regid="$(id -g "$user")" --init-groups -- "$@"  # kedge drop frees its caller's stores
}

# within SECONDS COMMAND...: as the user, and logs its output. It is killed from here, where the user's processes cannot
# prevent it; what even that does not end, as on a filesystem that hangs, is left behind.
within() {
  local seconds=$1 tenths pid status
  shift
  (as_user "$@") >"$words" 2>&1 </dev/null &
  pid=$!
  for ((tenths = 0; tenths < 10 * seconds; ++tenths)); do
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.1
  done
  if kill -9 "$pid" 2>/dev/null; then status=124; else wait "$pid"; status=$?; fi
  if [[ -s $words ]]; then say "$(printf '%s' "$(head -c 1000 "$words")" | tr -s '[:space:]' ' ')"; fi
  ((status != 124)) || say "given up after $seconds s: ${*@Q}"
  return "$status"
}

for root in $roots; do
  for store in "$root/kedge-$uid-"*; do
    [[ -d $store && ! -L $store ]] || continue
    left=$((limit - SECONDS))
    if ((left <= 0)); then
      say "${store@Q} stays: $limit s have passed"
      continue
    fi
    if [[ -n $scavenge ]]; then
      within $((left < 600 ? left : 600)) "$kedge" scavenge --job "$job" "$store" || {
        say "${store@Q} stays: it could not be scavenged; to free it: kedge drop, as its owner"
        continue
      }
    fi
    within $((left < 60 ? left : 60)) "$kedge" drop --yes --job "$job" "$store"
  done
done
exit 0
