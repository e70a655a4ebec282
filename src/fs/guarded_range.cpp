#include "fs/guarded_range.hpp"

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <mutex>

#include "base/signal_action.hpp"
#include "fs/linux.hpp"

namespace kedge::fs {

/// All that a handler can know of a range.
struct Entry {
  std::atomic<bool> is_taken = false;
  std::atomic<std::uintptr_t> begin = 0;  ///< 0: none
  std::atomic<std::uintptr_t> end = 0;
  std::atomic<bool> is_writable = false;
  std::atomic<bool> is_intact = true;
};
static_assert(std::atomic<std::uintptr_t>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

namespace {

// Files of a store that are mapped at once: two or three for each commit that is kept. More go without.
constexpr std::size_t kEntries = 2048;

constinit std::array<Entry, kEntries> entries{};
constinit std::mutex adding;
constinit struct sigaction before {};  ///< written before the handler is installed

/// From the page with `address` to the end. False if the system refuses.
bool replace_rest(Entry& entry, std::uintptr_t address) noexcept {
  const std::uintptr_t page = address / kPageBytes * kPageBytes;
  const int protection = entry.is_writable.load() ? PROT_READ | PROT_WRITE : PROT_READ;
  entry.is_intact.store(false);  // first: whoever reads zeros finds it so afterwards
  // No function of the C library is promised to be safe here; this one is a bare call of the kernel.
  void* const where = reinterpret_cast<void*>(page);  // NOLINT(performance-no-int-to-ptr)
  return ::mmap(where, entry.end.load() - page, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
                0) != MAP_FAILED;
}

bool is_ours(std::uintptr_t address) noexcept {
  for (Entry& entry : entries) {
    const std::uintptr_t begin = entry.begin.load();
    if (begin != 0 && address >= begin && address < entry.end.load()) return replace_rest(entry, address);
  }
  return false;
}

void on_bus_error(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  const bool is_raised_here = info->si_code > 0;  // by the kernel, at an address; not by kill
  if (is_raised_here && is_ours(reinterpret_cast<std::uintptr_t>(info->si_addr))) {
    errno = error;
    return;
  }
  if (is_handler(before)) call_handler(before, signal, info, context);
  else if (is_raised_here || before.sa_handler == SIG_DFL) be_killed_by(signal);
  errno = error;
}

/// Under `adding`.
void install_once() noexcept {
  static bool is_installed = false;
  if (is_installed || ::sigaction(SIGBUS, nullptr, &before) != 0) return;
  struct sigaction ours {};
  ours.sa_sigaction = on_bus_error;
  ours.sa_mask = before.sa_mask;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  is_installed = ::sigaction(SIGBUS, &ours, nullptr) == 0;
}

}  // namespace

GuardedRange::GuardedRange(std::byte* begin, std::size_t size_bytes, Access access) noexcept {
  if (size_bytes == 0) return;
  const std::lock_guard guard(adding);
  install_once();
  for (Entry& entry : entries) {
    if (entry.is_taken.load()) continue;
    const auto first = reinterpret_cast<std::uintptr_t>(begin);
    entry.is_taken = true;
    entry.is_intact = true;
    entry.is_writable = access == Access::read_write;
    entry.end = (first + size_bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
    entry.begin = first;  // last: from now on the handler sees it
    entry_ = &entry;
    return;
  }
}

GuardedRange::~GuardedRange() {
  if (entry_ == nullptr) return;
  entry_->begin = 0;
  entry_->is_taken = false;
}

bool GuardedRange::is_intact() const noexcept { return entry_ == nullptr || entry_->is_intact.load(); }

}  // namespace kedge::fs
