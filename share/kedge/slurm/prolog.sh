#!/usr/bin/env bash
# Prolog of slurmd, on nodes that one user has alone: frees the node-local stores of all other users before a job
# begins. Those of the job's own user stay, since a job that was queued again continues from them; so do stores that a
# job is using.
#
# Slurm runs it without a search path, and drains a node whose prolog fails, so this one never does; nor can what a
# user's process does in its stores hold it up.
set -uo pipefail

# The command, by its whole path: where it was installed with this script. In a copy of this script, write it here.
kedge=${KEDGE:-$(dirname "$(readlink -f "$0")")/../../../bin/kedge}
# The directories in which stores may lie, with spaces between.
roots=${STORE_ROOTS:-/dev/shm /tmp}
# For all stores together, in seconds; stores that were not reached by then stay.
limit=${LIMIT:-300}

[[ -n ${SLURM_JOB_UID:-} ]] || exit 0
[[ -x $kedge ]] || {
  echo "nothing was freed: there is no $kedge; set kedge= in $0" | tee /dev/stderr | logger -t kedge
  exit 0
}

# kedge drop frees what belongs to the user who calls it, and nothing else. Where the account is gone, the memory is still
# taken.
as_user() { # as_user UID COMMAND...
  local uid=$1 user
  shift
  if [[ $(id -u) == "$uid" ]]; then exec "$@"; fi
  user=$(id -nu "$uid" 2>/dev/null)
  if [[ -z $user ]]; then exec setpriv --reuid="$uid" --regid="$uid" --clear-groups -- "$@"; fi
  exec setpriv --reuid="$uid" --regid="$(id -g "$user")" --init-groups -- "$@"
}

# within SECONDS COMMAND...: is killed from here, where the user's processes cannot prevent it; what even that does not
# end is left behind.
within() {
  local seconds=$1 tenths pid
  shift
  ("$@") </dev/null &
  pid=$!
  for ((tenths = 0; tenths < 10 * seconds; ++tenths)); do
    kill -0 "$pid" 2>/dev/null || return 0
    sleep 0.1
  done
  kill -9 "$pid" 2>/dev/null
}

for root in $roots; do
  for store in "$root"/kedge-[0-9]*-*; do
    [[ -d $store && ! -L $store ]] || continue
    uid=$(stat --format=%u "$store") || continue
    [[ $uid != "$SLURM_JOB_UID" && ${store##*/} == "kedge-$uid-"* ]] || continue
    left=$((limit - SECONDS))
    if ((left <= 0)); then
      echo "${store@Q} stays: $limit s have passed" | tee /dev/stderr | logger -t kedge
      continue
    fi
    within $((left < 60 ? left : 60)) as_user "$uid" "$kedge" drop --yes "$store"
  done
done
exit 0
