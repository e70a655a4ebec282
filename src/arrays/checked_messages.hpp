// Messages that end with a CRC32C of what is before it: what arrives is what was sent, or a failure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/text.hpp"
#include "checksum/crc32c.hpp"
#include "kedge/communicator.hpp"
#include "kedge/error.hpp"

namespace kedge::arrays {

inline constexpr std::uint64_t kMessageTailBytes = sizeof(std::uint32_t);

[[noreturn]] inline void refuse_message(int from) {
  throw Error(ErrorCode::io, compose("a message from rank {} was damaged on its way; check the network", from));
}

inline void append_checksum(std::vector<std::byte>& bytes) {
  const std::uint32_t crc = crc32c(bytes);
  const auto tail = std::as_bytes(std::span(&crc, 1));
  bytes.insert(bytes.end(), tail.begin(), tail.end());
}

/// The bytes before the checksum. Throws Error{io} if it does not fit them.
[[nodiscard]] inline std::span<const std::byte> checked_bytes(const Communicator::Message& message) {
  std::uint32_t crc = 0;
  if (message.bytes.size() < sizeof crc) refuse_message(message.peer);
  const auto bytes = std::span(message.bytes).first(message.bytes.size() - sizeof crc);
  std::memcpy(&crc, bytes.data() + bytes.size(), sizeof crc);
  if (crc != crc32c(bytes)) refuse_message(message.peer);
  return bytes;
}

}  // namespace kedge::arrays
