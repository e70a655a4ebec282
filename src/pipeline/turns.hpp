// Which checkpoints go to which level by themselves: every so many of them.
#pragma once

#include <atomic>
#include <cstdint>

namespace kedge::pipeline {

/// Counts checkpoints. The same on every rank, but for what a worker noted, which one rank may know before another.
class Turns {
 public:
  /// The options redundancy.every and persistent.every; 0: never.
  Turns(std::uint64_t protect_every, std::uint64_t flush_every) noexcept
      : protect_every_(protect_every), flush_every_(flush_every) {}

  struct Due {
    bool protect = false;
    bool flush = false;
  };

  [[nodiscard]] bool protects() const noexcept { return protect_every_ != 0; }
  [[nodiscard]] bool flushes() const noexcept { return flush_every_ != 0; }

  /// Another checkpoint was made.
  void count() noexcept { ++made_, ++unflushed_; }
  /// What is due for the checkpoint that was counted last. `flush_failed`: take_flush_failed() said so on some rank.
  [[nodiscard]] Due take(bool flush_failed) noexcept {
    const bool is_lost = protect_lost_.exchange(false);
    return {protects() && (made_ % protect_every_ == 0 || is_lost),
            flushes() && (flush_failed || unflushed_ >= flush_every_)};
  }
  /// Whether the next one may be due for a flush, as far as this rank knows.
  [[nodiscard]] bool may_flush_next() const noexcept {
    return flushes() && (flush_failed_ || unflushed_ + 1 >= flush_every_);
  }

  /// One is persistent, or a worker has it in hand: the count begins anew.
  void flushed() noexcept { unflushed_ = 0; }
  /// The next one is due for a flush.
  void make_flush_due() noexcept { unflushed_ = flush_every_; }

  // From any thread.

  /// What became of a worker's last flush. A failure makes the next one due.
  void note_flush(bool failed) noexcept { flush_failed_ = failed; }
  /// Whether the last one failed; asked once.
  [[nodiscard]] bool take_flush_failed() noexcept { return flush_failed_.exchange(false); }
  /// The one whose turn it was to be protected became no commit: the next one is due.
  void note_protect_lost() noexcept { protect_lost_ = true; }

 private:
  std::uint64_t protect_every_;
  std::uint64_t flush_every_;
  std::uint64_t made_ = 0;
  std::uint64_t unflushed_ = 0;  ///< since the last that is persistent
  std::atomic<bool> flush_failed_ = false;
  std::atomic<bool> protect_lost_ = false;
};

}  // namespace kedge::pipeline
