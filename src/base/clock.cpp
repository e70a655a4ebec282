#include "base/clock.hpp"

#include <thread>

namespace kedge {
namespace {

class SystemClock final : public Clock {
 public:
  std::int64_t wall_ns() override {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
  double seconds() override {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  void sleep_for(std::chrono::duration<double> wait) override { std::this_thread::sleep_for(wait); }
};

}  // namespace

std::shared_ptr<Clock> system_clock() { return std::make_shared<SystemClock>(); }

}  // namespace kedge
