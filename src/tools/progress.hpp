// A progress bar for terminals.
#pragma once

#include <cstdint>
#include <memory>

#include "base/clock.hpp"

namespace kedge::tools {

/// Draws on standard error if it is a terminal and the operation takes longer than a second: share done, bytes,
/// remaining time. Removed when cleared or destroyed.
class Progress {
 public:
  Progress(std::uint64_t total_bytes, std::shared_ptr<Clock> clock, bool on_terminal = standard_error_is_terminal());
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance(std::uint64_t bytes);
  /// Removes the bar so that something else can be printed; advance() draws it again.
  void clear();

 private:
  [[nodiscard]] static bool standard_error_is_terminal() noexcept;
  void draw(double now_s);

  std::shared_ptr<Clock> clock_;
  std::uint64_t total_bytes_;
  std::uint64_t done_bytes_ = 0;
  bool on_terminal_;
  bool drawn_ = false;
  double started_s_;
  double drawn_s_;
};

}  // namespace kedge::tools
