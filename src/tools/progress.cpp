#include "tools/progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/text.hpp"

namespace kedge::tools {
namespace {

constexpr double kMomentS = 1.0;
constexpr double kRedrawS = 0.1;
constexpr std::size_t kBarCells = 30;

}  // namespace

Progress::Progress(std::uint64_t total_bytes, std::shared_ptr<Clock> clock, bool on_terminal)
    : clock_(std::move(clock)),
      total_bytes_(std::max<std::uint64_t>(total_bytes, 1)),
      on_terminal_(on_terminal),
      started_s_(clock_->seconds()),
      drawn_s_(started_s_ + kMomentS - kRedrawS) {}

bool Progress::standard_error_is_terminal() noexcept { return ::isatty(STDERR_FILENO) == 1; }

Progress::~Progress() { clear(); }

void Progress::advance(std::uint64_t bytes) {
  // A file may grow while it is read.
  done_bytes_ = std::min(done_bytes_ + bytes, total_bytes_);
  if (!on_terminal_) return;
  const double now_s = clock_->seconds();
  if (now_s - drawn_s_ >= kRedrawS) draw(now_s);
}

void Progress::clear() {
  if (!drawn_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  drawn_ = false;
}

void Progress::draw(double now_s) {
  const double share = static_cast<double>(done_bytes_) / static_cast<double>(total_bytes_);
  const double left_s = share > 0 ? (now_s - started_s_) * (1 - share) / share : 0;
  const auto filled = static_cast<std::size_t>(share * static_cast<double>(kBarCells));
  const std::string line = compose("\r[{}{}] {:3.0f}%  {} of {}  {} left\033[K", std::string(filled, '#'),
                                   std::string(kBarCells - filled, '.'), share * 100, human_bytes(done_bytes_),
                                   human_bytes(total_bytes_), human_seconds(left_s));
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
  drawn_ = true;
  drawn_s_ = now_s;
}

}  // namespace kedge::tools
