#include "fs/guarded_range.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <mutex>

#include "base/signal_action.hpp"

namespace kedge::fs {

/// The part of a range that the signal handler reads.
struct Entry {
  std::atomic<bool> is_taken = false;
  std::atomic<std::uintptr_t> begin = 0;  ///< 0 if the entry is free
  std::atomic<std::uintptr_t> end = 0;
  std::atomic<bool> is_writable = false;
  std::atomic<bool> is_intact = true;
};
static_assert(std::atomic<std::uintptr_t>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

namespace {

// Ranges that can be guarded at once. A commit in the store needs two or three.
constexpr std::size_t kEntries = 4096;

constinit std::array<Entry, kEntries> entries{};
constinit std::mutex add_mutex;
constinit PreviousAction previous_action;
constinit std::uintptr_t page_bytes = 0;  ///< written before the handler is installed

/// Replaces [from, to) by zeros; false if the system refuses. Calls the kernel directly, because libraries for fast
/// networks replace the C library's mmap by functions that take locks.
bool map_zeros(std::uintptr_t from, std::uintptr_t to, int protection) noexcept {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
  return ::syscall(SYS_mmap, from, to - from, protection, kFlags, -1, 0) != -1;
}

/// Replaces the pages from this address to the end of its range; false if no range contains it.
bool replace_guarded_page(std::uintptr_t address) noexcept {
  for (Entry& entry : entries) {
    const std::uintptr_t begin = entry.begin.load();
    const std::uintptr_t end = entry.end.load();
    if (begin == 0 || address < begin || address >= end) continue;
    const int protection = entry.is_writable.load() ? PROT_READ | PROT_WRITE : PROT_READ;
    if (entry.begin.load() != begin) continue;  // the entry was reused meanwhile: `end` may be the new range's
    entry.is_intact.store(false);               // first: nobody may see zeros and an intact range
    return map_zeros(address / page_bytes * page_bytes, end, protection);
  }
  return false;
}

/// Whether an access raised the signal, and would raise it again if it were ignored.
bool is_access(const siginfo_t& info) noexcept { return info.si_code == BUS_ADRERR || info.si_code == BUS_MCEERR_AR; }

void on_bus_error(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  const bool is_done =
      is_access(*info) && replace_guarded_page(reinterpret_cast<std::uintptr_t>(info->si_addr));  // NOLINT(*-cast)
  if (!is_done && !previous_action.call(signal, info, context)) {
    // A signal that was sent can be ignored; an access would be repeated forever.
    const bool is_sent = info->si_code <= 0 || info->si_code == BUS_MCEERR_AO;
    if (!is_sent || is_default(previous_action.action) || is_handler(previous_action.action))
      raise_with_default_action(signal);
  }
  errno = error;
}

/// Requires the lock `add_mutex`.
void install_once() noexcept {
  static bool is_installed = false;
  if (is_installed || ::sigaction(SIGBUS, nullptr, &previous_action.action) != 0) return;
  page_bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  struct sigaction ours {};
  ours.sa_sigaction = on_bus_error;
  ours.sa_mask = previous_action.action.sa_mask;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  is_installed = ::sigaction(SIGBUS, &ours, nullptr) == 0;
}

}  // namespace

GuardedRange::GuardedRange(std::byte* begin, std::size_t size_bytes, Access access) noexcept {
  if (size_bytes == 0) return;
  const std::lock_guard guard(add_mutex);
  install_once();
  for (Entry& entry : entries) {
    if (entry.is_taken.load()) continue;
    const auto first = reinterpret_cast<std::uintptr_t>(begin);
    entry.is_taken = true;
    entry.is_intact = true;
    entry.is_writable = access == Access::read_write;
    entry.end = (first + size_bytes + page_bytes - 1) / page_bytes * page_bytes;
    entry.begin = first;  // last: makes the range visible to the handler
    entry_ = &entry;
    return;
  }
}

GuardedRange::~GuardedRange() {
  if (entry_ == nullptr) return;
  entry_->begin = 0;
  entry_->is_taken = false;
}

bool GuardedRange::is_intact() const noexcept {
  if (entry_ == nullptr) return true;
  bool expected = true;  // no plain load: that could be reordered before the accesses that it reports on
  return entry_->is_intact.compare_exchange_strong(expected, true);
}

}  // namespace kedge::fs
