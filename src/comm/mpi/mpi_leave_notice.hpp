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

/// A message that any rank may start, that each rank passes on along a tree, and that every waiting rank looks for. Its
/// memory is allocated in advance. One for each channel; after the first farewell nothing is sent or received there.
class MpiLeaveNotice {
 public:
  explicit MpiLeaveNotice(int channel) : channel_(channel) {}

  struct Place {
    MPI_Comm comm = MPI_COMM_NULL;
    int rank = 0;
    int size = 0;
  };
  /// Calls are counted alike on all ranks: this rank has completed all before `from_call`, so whoever is still in
  /// one of those needs nothing more from it.
  void send_notice(const Place& place, std::string_view why, std::uint64_t from_call) noexcept;
  /// Call it again and again: it looks now and then. Returns what a rank that has left said, once it is passed on, and
  /// once it counts for this call.
  [[nodiscard]] std::optional<std::string> poll_notice(const Place& place, std::uint64_t call);

 private:
  struct Payload {
    std::uint64_t from_call = 0;
    std::array<char, 1016> text{};
  };
  struct Message {
    Payload words;
    std::array<MPI_Request, 3> requests{};
  };
  void forward(const Place& place, int from) noexcept;

  int channel_;
  std::unique_ptr<Message> message_ = std::make_unique<Message>();
  std::optional<Payload> received_;
  unsigned looks_ = 0;
};

}  // namespace kedge::comm
