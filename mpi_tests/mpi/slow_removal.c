// For LD_PRELOAD: removing a name below SLOW_REMOVAL_BELOW takes SLOW_REMOVAL_S seconds longer, as on a parallel
// filesystem whose metadata server is busy.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void take_time(int directory, const char* name) {
  const char* below = getenv("SLOW_REMOVAL_BELOW");
  const char* seconds = getenv("SLOW_REMOVAL_S");
  if (below == NULL || seconds == NULL) return;
  char path[PATH_MAX] = "";
  if (name[0] != '/') {  // then its directory tells
    char link[64] = "/proc/self/cwd";
    if (directory != AT_FDCWD) snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
    if (readlink(link, path, sizeof path - 1) < 0) return;
  }
  if (strncmp(name[0] == '/' ? name : path, below, strlen(below)) != 0) return;
  const double wanted = strtod(seconds, NULL);
  const time_t whole = (time_t)wanted;
  const struct timespec pause = {whole, (long)((wanted - (double)whole) * 1e9)};
  nanosleep(&pause, NULL);
}

int unlinkat(int directory, const char* name, int flags) {
  take_time(directory, name);
  return (int)syscall(SYS_unlinkat, directory, name, flags);
}

int unlink(const char* name) { return unlinkat(AT_FDCWD, name, 0); }

int rmdir(const char* name) { return unlinkat(AT_FDCWD, name, AT_REMOVEDIR); }

int remove(const char* name) {
  if (unlinkat(AT_FDCWD, name, 0) == 0) return 0;
  return errno == EISDIR ? (int)syscall(SYS_unlinkat, AT_FDCWD, name, AT_REMOVEDIR) : -1;
}
