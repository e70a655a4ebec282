#include "base/keep_forever.hpp"

#include <atomic>
#include <new>
#include <utility>

namespace kedge {
namespace {

struct LeakedMemory {
  std::shared_ptr<const void> memory;
  LeakedMemory* next = nullptr;
};

}  // namespace

void keep_forever(std::shared_ptr<const void> memory) noexcept {
  static std::atomic<LeakedMemory*> list = nullptr;  // never emptied, also not when the process ends
  auto* kept = new (std::nothrow) LeakedMemory{std::move(memory), nullptr};
  if (kept == nullptr) return;
  kept->next = list.load();
  while (!list.compare_exchange_weak(kept->next, kept)) {
  }
}

}  // namespace kedge
