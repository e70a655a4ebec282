// Messages between processes that each host ranks.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace kedge::comm {

/// Carries messages from process to process: in the order sent between two of them. All calls are local, by one thread,
/// and throw Error{rank_failed} when communication failed.
class ProcessLink {
 public:
  ProcessLink() = default;
  ProcessLink(const ProcessLink&) = delete;
  ProcessLink& operator=(const ProcessLink&) = delete;
  virtual ~ProcessLink() = default;

  [[nodiscard]] virtual int process() const noexcept = 0;    ///< Number of this process, from 0.
  [[nodiscard]] virtual int processes() const noexcept = 0;  ///< How many there are.
  [[nodiscard]] virtual std::string library() const = 0;     ///< The message layer's name and version, for messages.

  virtual void send(int to, std::vector<std::byte> message) = 0;
  /// The next message that has come, from whichever process; nothing if none has.
  [[nodiscard]] virtual std::optional<std::vector<std::byte>> receive() = 0;
  /// Whether all that was sent is out of this process's hands.
  [[nodiscard]] virtual bool is_idle() = 0;
};

}  // namespace kedge::comm
