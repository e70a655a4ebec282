#!/usr/bin/env bash
# Prolog of slurmd, on nodes that one user has alone: frees the node-local stores of all other users before a job
# begins. Those of the job's own user stay, since a job that was queued again continues from them; so do stores that a
# job is using.
#
# Slurm runs it without a search path, and drains a node whose prolog fails, so this one never does.
set -uo pipefail

# The command, by its whole path: where it was installed with this script. In a copy of this script, write it here.
kedge=${KEDGE:-$(dirname "$(readlink -f "$0")")/../../../bin/kedge}
# The directories in which stores may lie, with spaces between.
roots=${STORE_ROOTS:-/dev/shm /tmp}

[[ -n ${SLURM_JOB_UID:-} ]] || exit 0
[[ -x $kedge ]] || {
  echo "nothing was freed: there is no $kedge; set kedge= in $0" | tee /dev/stderr | logger -t kedge
  exit 0
}

# kedge drop frees what belongs to the user who calls it, and nothing else.
as_user() { # as_user UID COMMAND...
  local uid=$1 user
  shift
  if [[ $(id -u) == "$uid" ]]; then "$@"; return; fi
  user=$(id -nu "$uid" 2>/dev/null)
  if [[ -n $user ]]; then runuser -u "$user" -- "$@"; return; fi
  setpriv --reuid="$uid" --regid="$uid" --clear-groups -- "$@"  # the account is gone, its memory is still taken
}

for root in $roots; do
  for store in "$root"/kedge-[0-9]*-*; do
    [[ -d $store && ! -L $store ]] || continue
    uid=$(stat --format=%u "$store") || continue
    [[ $uid != "$SLURM_JOB_UID" && ${store##*/} == "kedge-$uid-"* ]] || continue
    as_user "$uid" timeout 60 "$kedge" drop --yes "$store" || true
  done
done
exit 0
