#!/usr/bin/env bash
# Epilog of slurmd: frees the node-local stores that the job's user left on this node, but for those that another job of
# this user is using. What was not flushed to the parallel filesystem is lost then, unless scavenge= is set: a job that is
# queued again continues from there. Sites that would rather keep it until another user needs the node take prolog.sh.
#
# Slurm runs it without a search path, and drains a node whose epilog fails, so this one never does.
set -uo pipefail

# The command, by its whole path: where it was installed with this script. In a copy of this script, write it here.
kedge=${KEDGE:-$(dirname "$(readlink -f "$0")")/../../../bin/kedge}
# The directories in which stores may lie, with spaces between.
roots=${STORE_ROOTS:-/dev/shm /tmp}
# Not empty: what was not flushed is copied to the job's prefix first, and flushed there by the last node's epilog.
scavenge=${SCAVENGE:-}

user=${SLURM_JOB_USER:-} uid=${SLURM_JOB_UID:-}
[[ -n $user && -n $uid ]] || exit 0
[[ -x $kedge ]] || {
  echo "nothing was freed: there is no $kedge; set kedge= in $0" | tee /dev/stderr | logger -t kedge
  exit 0
}

as_user() { if [[ $(id -u) == "$uid" ]]; then "$@"; else runuser -u "$user" -- "$@"; fi; }

for root in $roots; do
  for store in "$root/kedge-$uid-"*; do
    [[ -d $store && ! -L $store ]] || continue
    # A store that could not be scavenged stays.
    [[ -z $scavenge ]] || as_user timeout 600 "$kedge" scavenge "$store" || continue
    as_user timeout 60 "$kedge" drop --yes "$store" || true  # in use by another job, or not a store of Kedge
  done
done
exit 0
