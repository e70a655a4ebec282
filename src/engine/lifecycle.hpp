// Which phase an engine is in, and whether it takes calls at all.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <exception>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "comm/calls.hpp"
#include "comm/group.hpp"
#include "kedge/error.hpp"

namespace kedge::engine {

enum class Phase : std::uint8_t { idle, writing, reading, finished };

/// The phase is the same on every rank. Whether the engine is dead is not: some ranks may time out where others return.
class Lifecycle {
 public:
  [[nodiscard]] Phase phase() const noexcept { return phase_; }
  /// Writing and reading begin and end in idle; nothing follows finished.
  void move_to(Phase next);

  /// False in a child of a fork.
  [[nodiscard]] bool is_own_process() const noexcept { return ::getpid() == process_; }
  [[nodiscard]] bool is_dead() const noexcept { return dead_because_.has_value(); }
  void die(std::string why) { dead_because_ = std::move(why); }

  /// Local. Why the engine takes no more calls, if so: it is dead or was finalized, or is the parent's of this process.
  [[nodiscard]] std::optional<Failure> ended() const;
  /// Local. Nothing if the engine is in one of these phases, else the bad_state to bring to enter().
  [[nodiscard]] std::optional<Failure> check_phase(comm::Call call, std::initializer_list<Phase> fitting) const;
  /// Local. Phase check for a call that never throws and does not communicate; `first` is the call that it lacks.
  [[nodiscard]] std::optional<Failure> check_phase(std::string_view call, Phase fitting, std::string_view first) const;

  /// Runs the body of a collective call. A timeout, a failed rank or device, or a later start of the run that has
  /// taken over ends the engine.
  template <class Body>
  auto collective(Body&& body) {
    comm::throw_if(ended());
    try {
      return std::forward<Body>(body)();
    } catch (const Error& error) {
      const bool is_over = error.code() == ErrorCode::busy || error.code() == ErrorCode::device_failed;
      if (is_over || comm::ends_communication(error.code())) die(error.failure().message);
      throw;
    } catch (const std::exception& error) {
      // Outside of every vote: the other ranks cannot know, so this rank must not take part any more.
      die(error.what());
      throw Error(ErrorCode::io, std::string("unexpected: ") + error.what());
    }
  }

 private:
  pid_t process_ = ::getpid();
  Phase phase_ = Phase::idle;
  std::optional<std::string> dead_because_;
};

}  // namespace kedge::engine
