// Memory whose first touch runs something of a test's: in the midst of a copy, on the thread that copies.
#pragma once

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <span>
#include <stdexcept>

namespace kedge::testing {

/// Its middle page springs once, then it is memory as any. One at a time in a process.
class PageTrap {
 public:
  using Action = void (*)();  ///< runs in a handler of SIGSEGV

  PageTrap(std::size_t size_bytes, Action action) : size_bytes_(size_bytes) {
    void* const data = ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) throw std::runtime_error("no memory for the trap");
    data_ = static_cast<std::byte*>(data);
    page_ = data_ + size_bytes / 2 / kPageBytes * kPageBytes;
    action_ = action;
  }
  ~PageTrap() {
    disarm();
    ::munmap(data_, size_bytes_);
  }
  PageTrap(const PageTrap&) = delete;
  PageTrap& operator=(const PageTrap&) = delete;

  [[nodiscard]] std::span<std::byte> memory() const noexcept { return {data_, size_bytes_}; }
  [[nodiscard]] static bool was_triggered() noexcept { return trapped_ == nullptr; }

  void arm() {
    trapped_ = page_;
    struct sigaction ours {};
    ours.sa_sigaction = trigger;
    ours.sa_flags = SA_SIGINFO;
    sigemptyset(&ours.sa_mask);
    if (::sigaction(SIGSEGV, &ours, &before_) != 0 || ::mprotect(page_, kPageBytes, PROT_NONE) != 0) {
      throw std::runtime_error("the trap cannot be armed");
    }
    is_armed_ = true;
  }

 private:
  static constexpr std::size_t kPageBytes = 4096;

  void disarm() noexcept {
    if (!is_armed_) return;
    (void)::mprotect(page_, kPageBytes, PROT_READ | PROT_WRITE);
    (void)::sigaction(SIGSEGV, &before_, nullptr);
  }

  static void trigger(int, siginfo_t* info, void*) {
    std::byte* const page = trapped_.exchange(nullptr);
    const auto* const at = static_cast<std::byte*>(info->si_addr);
    if (page == nullptr || at < page || at >= page + kPageBytes) std::abort();
    action_();
    (void)::mprotect(page, kPageBytes, PROT_READ | PROT_WRITE);
  }

  static inline std::atomic<std::byte*> trapped_ = nullptr;
  static inline std::atomic<Action> action_ = nullptr;

  std::byte* data_ = nullptr;
  std::byte* page_ = nullptr;
  std::size_t size_bytes_;
  struct sigaction before_ {};
  bool is_armed_ = false;
};

}  // namespace kedge::testing
