#!/usr/bin/env bash
# check.sh BUILD_DIRECTORY WORK_DIRECTORY: makes the Debian package of a build, installs it into a root that has nothing
# but Debian's base system, runs heat2d and the kedge command there, and builds a program with what it suggests. By hand:
# as root, with debootstrap and a mirror of Debian 12 (DEB_MIRROR, if the machine's own is not the default). Needs 2 GiB
# below WORK_DIRECTORY.
set -euo pipefail
build=$(cd "$1" && pwd) work=$2
if ((EUID != 0)) || ! command -v debootstrap >/dev/null; then
  echo "skipped: it needs root and debootstrap (Debian: debootstrap)"
  exit 77
fi
mirror=${DEB_MIRROR-$(sed -n 's|^URIs: *\([^ ]*\).*|\1|p; s|^deb \(\[[^]]*\] \)\?\([^ ]*\) .*|\2|p' /etc/apt/sources.list /etc/apt/sources.list.d/*.sources 2>/dev/null | head -n 1 || true)}
mkdir -p "$work"
work=$(cd "$work" && pwd) root=$work/root
finish() { umount "$root/proc" "$root/dev/shm" 2>/dev/null || true; }
trap finish EXIT

(cd "$work" && rm -f ./*.deb && cpack -G DEB --config "$build/CPackConfig.cmake" -B "$work/pack" >cpack.log && mv pack/*.deb .) ||
  { cat "$work/cpack.log"; exit 1; }
deb=$(echo "$work"/*.deb)
dpkg-deb --info "$deb" | sed -n 's/^ \(Package\|Version\|Depends\|Installed-Size\)/\1/p'
# A new one: in one that was used, apt would keep a package of the same version, and heat2d would have nothing left to do.
finish
rm -rf --one-file-system "$root"
debootstrap --variant=minbase bookworm "$root" "$mirror" >"$work/debootstrap.log" ||
  { tail -n 5 "$work/debootstrap.log"; exit 1; }
# How this machine reaches its mirror.
cp -a /etc/apt/. "$root/etc/apt/"
cp /etc/resolv.conf /etc/hosts "$root/etc/"
mkdir -p "$root/usr/local/share/ca-certificates" && cp -rL /etc/ssl/certs "$root/etc/ssl/" 2>/dev/null || true
mkdir -p "$root/dev/shm"
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/dev/shm"
cp "$deb" "$root/tmp/kedge.deb"
chroot "$root" bash -c 'apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends /tmp/kedge.deb openmpi-bin openssh-client' >"$work/apt.log" 2>&1 ||
  { tail -n 20 "$work/apt.log"; exit 1; }
chroot "$root" bash -ec '
  cd /tmp
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 KEDGE_PERSISTENT_EVERY=1
  heat2d() { timeout 60 mpirun --oversubscribe --bind-to none -n 2 /usr/libexec/kedge/heat2d --steps 200 --every 50 "$@"; }
  heat2d --die-at 170 --die-rank 1 2>/dev/null && exit 1
  heat2d | tee /tmp/second
  grep -q "resumed step-000150" /tmp/second
  kedge ls
  kedge verify latest
'
# A program of a user's, with what the package suggests: linked with all that a static Kedge is made of.
cp "$(dirname "${BASH_SOURCE[0]}")/program.cpp" "$root/tmp/"
suggested=$(dpkg-deb --field "$deb" Suggests | tr -d ,)
chroot "$root" bash -c "DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends $suggested" >"$work/apt.log" 2>&1 ||
  { tail -n 20 "$work/apt.log"; exit 1; }
chroot "$root" bash -ec '
  cd /tmp
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 KEDGE_PERSISTENT_PATH=/tmp/program-checkpoints
  "$(pkg-config --variable=mpicxx kedge)" -std=c++20 -o program program.cpp $(pkg-config --cflags --libs kedge)
  for step in 0 1; do
    rm -f begun
    timeout 60 mpirun --oversubscribe --bind-to none -n 2 ./program >begun
    cat begun
    grep -q "begins at step $step" begun
  done
'
echo "installed and run: $(basename "$deb")"
