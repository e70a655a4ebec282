// What a rank that fails during a call tells the others, over MPI.
#pragma once

#include <mpi.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace kedge::comm {

/// A message that any rank may start, that each rank passes on along a tree, and that every waiting rank looks for. Its
/// memory is allocated in advance. One for each communicator; after the first farewell nothing is sent or received.
class MpiFarewell {
 public:
  void say(MPI_Comm comm, int rank, int size, std::string_view why) noexcept;
  /// Call it again and again: it looks now and then. Returns what a rank that has left said, once it is passed on.
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
