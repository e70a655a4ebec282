#include "engine/open_checkpoint.hpp"

#include <utility>

#include "base/attempt.hpp"

namespace kedge::engine {

bool is_lost(const Failure& failure) {
  return failure.code == ErrorCode::corrupt || failure.code == ErrorCode::not_found ||
         (failure.code == ErrorCode::io && failure.system_errno == 0);
}

void OpenCheckpoint::require_present() const {
  auto failure = attempt([&] {
    for (const recovery::Holding& holding : holdings) holding.require_present();
  });
  if (!failure) return;
  if (is_lost(*failure)) failure->code = ErrorCode::corrupt;
  throw Error(*std::move(failure));
}

}  // namespace kedge::engine
