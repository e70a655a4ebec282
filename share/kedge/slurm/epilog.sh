#!/usr/bin/env bash
# Epilog of slurmd: frees the node-local stores that the job's user left on this node, but for those that another job of
# this user is using. What was not flushed to the parallel filesystem is lost then: a job that is queued again continues
# from there. Sites that would rather keep it until another user needs the node take prolog.sh instead.
#
# Slurm drains a node whose epilog fails, so this one never does.
# KEDGE: the command; STORE_ROOTS: where stores may lie, if not below /dev/shm and /tmp; with spaces between.
set -uo pipefail

kedge=${KEDGE:-kedge}
user=${SLURM_JOB_USER:-} uid=${SLURM_JOB_UID:-}
[[ -n $user && -n $uid ]] || exit 0

as_user() { if [[ $(id -u) == "$uid" ]]; then "$@"; else runuser -u "$user" -- "$@"; fi; }

for root in ${STORE_ROOTS:-/dev/shm /tmp}; do
  for store in "$root/kedge-$uid-"*; do
    [[ -d $store && ! -L $store ]] || continue
    as_user timeout 60 "$kedge" drop --yes "$store" || true  # in use by another job, or not a store of Kedge
  done
done
exit 0
