// Messages between processes that each host ranks.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace kedge::comm {

/// Carries messages from process to process; between two processes in the order of sending. All calls are local, by one
/// thread, and throw Error{rank_failed} when communication failed.
class ProcessLink {
 public:
  ProcessLink() = default;
  ProcessLink(const ProcessLink&) = delete;
  ProcessLink& operator=(const ProcessLink&) = delete;
  virtual ~ProcessLink() = default;

  [[nodiscard]] virtual int process() const noexcept = 0;  ///< number of this process, from 0
  [[nodiscard]] virtual int process_count() const noexcept = 0;
  [[nodiscard]] virtual std::string library() const = 0;  ///< name and version of the message layer, for messages

  virtual void send(int to, std::vector<std::byte> message) = 0;
  /// Returns the next message from any process; nothing if there is none.
  [[nodiscard]] virtual std::optional<std::vector<std::byte>> receive() = 0;
  /// Whether the memory of all sent messages is free again.
  [[nodiscard]] virtual bool is_idle() = 0;
};

}  // namespace kedge::comm
