// Format of a connection between two ranks: one side sends a greeting, the other a welcome, and then frames go from the
// side that greeted to the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include "kedge/types.hpp"

namespace kedge::comm {

// On the wire between the processes of one job, which run the same program; never stored. Numbers are as the machine
// has them: where byte orders differ, the magic numbers do.
inline constexpr std::uint64_t kGreetingMagic = 0x313050435445444bU;  // "KDETCP01"
inline constexpr std::uint64_t kWelcomeMagic = 0x3130454d4f434c57U;   // "WLCOME01"
inline constexpr std::uint32_t kFrameMagic = 0x314d5246U;             // "FRM1"

/// First message of the connecting side.
struct Greeting {
  std::uint64_t magic = kGreetingMagic;
  Id128 token;             ///< of the job: a process that has it is one of its ranks
  std::uint32_t from = 0;  ///< the rank that connects
  std::uint32_t to = 0;    ///< the rank that it connects to: another process may listen at that rank's former address
};
static_assert(std::is_trivially_copyable_v<Greeting> && sizeof(Greeting) == 32);

/// Reply to the greeting, before anything else is sent.
struct Welcome {
  std::uint64_t magic = kWelcomeMagic;
  Id128 token;  ///< the job's token for this direction
};
static_assert(std::is_trivially_copyable_v<Welcome> && sizeof(Welcome) == 24);

/// The one byte that the welcoming side may send later: it closes the connection on purpose.
inline constexpr std::byte kGoodbye{0x42};

enum class FrameKind : std::uint16_t {
  message = 1,  ///< a small message: `size` bytes follow
  offer,        ///< a message of `size` bytes is offered under the number `id`
  accept,       ///< the message that was offered as `id` may be sent
  refuse,       ///< the message is larger than expected, and dropped
  data,         ///< the message that was accepted as `id`: `size` bytes follow
  credit,       ///< small messages of `size` bytes in all were received: as many more may come
  lost,         ///< rank `id` is dead, or has failed and says why: a text of `size` bytes follows
  goodbye,      ///< nothing more comes: this rank ends its part
};

/// Before each frame.
struct FrameHead {
  std::uint32_t magic = kFrameMagic;
  FrameKind kind = FrameKind::message;
  std::uint16_t channel = 0;
  std::uint32_t tag = 0;
  std::uint32_t padding = 0;
  std::uint64_t size = 0;
  std::uint64_t id = 0;
};
static_assert(std::is_trivially_copyable_v<FrameHead> && sizeof(FrameHead) == 32);

inline constexpr std::uint32_t kTagLimit = 4096;
/// Largest message that is sent at once; larger ones are offered, and sent when they are received.
inline constexpr std::uint64_t kSmallMessageBytes = 64 * 1024 + 8;
/// Longest text that a failed rank sends.
inline constexpr std::uint64_t kReasonBytesMax = 1024;
/// Credit: how many bytes of small messages, with their heads, one rank may send another ahead of what it has received.
/// Further messages are offered, so that no rank's memory is filled, and no message waits behind one that is not
/// received yet.
inline constexpr std::uint64_t kCreditBytes = 256 * 1024;
/// Maximum number of messages that one rank may offer another at once; each costs the other a few bytes.
inline constexpr std::uint64_t kOffersMax = 65536;

/// Returns the credit that a small message takes.
[[nodiscard]] constexpr std::uint64_t credit_needed(std::uint64_t size) noexcept { return size + sizeof(FrameHead); }

/// Returns the error in a head, from whichever rank; nothing if it is valid. Pure.
[[nodiscard]] std::optional<std::string_view> check_frame_head(const FrameHead& head) noexcept;

/// Whether the ids are equal, in a time that does not depend on where they differ. Pure.
[[nodiscard]] bool equal_in_constant_time(const Id128& a, const Id128& b) noexcept;

}  // namespace kedge::comm
