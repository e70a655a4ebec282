#include "base/random.hpp"

#include <sys/random.h>

#include <cerrno>

#include "kedge/error.hpp"

namespace kedge {

Id128 random_id() {
  Id128 id;
  while (id.is_none()) {
    const ssize_t got = ::getrandom(id.bytes.data(), id.bytes.size(), 0);
    if (got == static_cast<ssize_t>(id.bytes.size())) continue;
    if (got < 0 && errno != EINTR) {
      throw Error(Failure{ErrorCode::io, "cannot draw random bits for a new id: getrandom failed", -1, {}, errno});
    }
    id = Id128{};
  }
  return id;
}

}  // namespace kedge
