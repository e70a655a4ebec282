// Messages that a rank sends to itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "kedge/communicator.hpp"

namespace kedge::comm {

/// By channel, in order: the nth message is for the nth receive.
class SelfMessages {
 public:
  void send(int channel, std::span<const std::byte> bytes);
  /// Refers to this object, which must outlive it.
  [[nodiscard]] Communicator::Request receive(int channel, std::span<std::byte> bytes);

 private:
  friend class SelfReceive;

  struct Lane {
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
    std::map<std::uint64_t, std::vector<std::byte>> waiting;  // by number
  };
  std::map<int, Lane> lanes_;
};

class SelfReceive final : public Communicator::Operation {
 public:
  SelfReceive(SelfMessages& messages, int channel, std::uint64_t number, std::span<std::byte> bytes)
      : messages_(messages), channel_(channel), number_(number), target_(bytes) {}

  /// Local. True if complete. Throws Error{bad_state} if a message of another size came.
  [[nodiscard]] bool test();

 private:
  SelfMessages& messages_;
  int channel_;
  std::uint64_t number_;
  std::span<std::byte> target_;
};

}  // namespace kedge::comm
