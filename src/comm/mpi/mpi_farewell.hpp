// What a rank that fails during a call tells the others, over MPI.
#pragma once

#include <mpi.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace kedge::comm {

/// Goes along a tree of the ranks, from whichever of them, as a message that whoever waits looks for. The memory for it
/// is there before it is needed. One for each communicator; after the first farewell nothing more is said or heard.
class MpiFarewell {
 public:
  void say(MPI_Comm comm, int rank, int size, std::string_view why) noexcept;
  /// To be called again and again: looks now and then. What a rank that has left said, passed on.
  [[nodiscard]] std::optional<std::string> hear(MPI_Comm comm, int rank, int size);

 private:
  struct Message {
    std::array<char, 1024> text{};
    std::array<MPI_Request, 3> requests{};
  };
  void pass_on(MPI_Comm comm, int rank, int size, int from) noexcept;

  std::unique_ptr<Message> message_ = std::make_unique<Message>();
  unsigned looks_ = 0;
};

}  // namespace kedge::comm
