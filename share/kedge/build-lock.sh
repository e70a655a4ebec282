# For scripts that build in `build`, in whose directory they are: two at once would corrupt each other's files.

# Waits until no other one builds there. The lock is the descriptor 9, held until this script and all that it started have
# ended; what may outlive it, a test that hangs, is to be started with 9>&-.
lock_build() {
  command -v flock >/dev/null && mkdir -p build 2>/dev/null && (: >>build/lock) 2>/dev/null || return 0
  exec 9>>build/lock
  flock --nonblock 9 && return
  echo "-- waiting for another quickstart or test in this directory to finish"
  flock 9
}
