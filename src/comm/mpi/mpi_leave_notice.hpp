// Notices over MPI that a rank has failed during a call, or makes no more calls.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace kedge::comm {

/// A notice that any rank may send, that each rank forwards along a tree, and that every waiting rank polls for. Its
/// memory is allocated in advance. One per channel; after the first notice the channel is not used any more.
class MpiLeaveNotice {
 public:
  explicit MpiLeaveNotice(int channel) : channel_(channel) {}

  struct TreePosition {
    MPI_Comm comm = MPI_COMM_NULL;
    int rank = 0;
    int size = 0;
  };
  /// Sends the notice. Calls are counted alike on all ranks: this rank has completed all before `from_call`, so ranks
  /// in those need nothing more from it.
  void send_notice(const TreePosition& position, std::string_view why, std::uint64_t from_call) noexcept;
  /// Returns the text of a rank that has left, once it is forwarded and counts for this call; nothing before. Call it
  /// often: it polls now and then.
  [[nodiscard]] std::optional<std::string> poll_notice(const TreePosition& position, std::uint64_t call);

 private:
  struct Payload {
    std::uint64_t from_call = 0;
    std::array<char, 1016> text{};
  };
  struct Message {
    Payload payload;
    std::array<MPI_Request, 3> requests{};
  };
  void forward(const TreePosition& position, int from) noexcept;

  int channel_;
  std::unique_ptr<Message> message_ = std::make_unique<Message>();
  std::optional<Payload> received_;
  unsigned poll_count_ = 0;
};

}  // namespace kedge::comm
