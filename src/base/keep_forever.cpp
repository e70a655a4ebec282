#include "base/keep_forever.hpp"

#include <atomic>
#include <new>
#include <utility>

namespace kedge {
namespace {

struct Kept {
  std::shared_ptr<const void> memory;
  Kept* next = nullptr;
};

}  // namespace

void keep_forever(std::shared_ptr<const void> memory) noexcept {
  static std::atomic<Kept*> list = nullptr;  // never emptied, also not when the process ends
  auto* kept = new (std::nothrow) Kept{std::move(memory), nullptr};
  if (kept == nullptr) return;
  kept->next = list.load();
  while (!list.compare_exchange_weak(kept->next, kept)) {
  }
}

}  // namespace kedge
