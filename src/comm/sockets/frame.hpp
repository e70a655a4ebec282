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
  Id128 token;             ///< of the job: who has it is one of its ranks
  std::uint32_t from = 0;  ///< the rank that connects
  std::uint32_t to = 0;    ///< the rank that it wants: another process may listen where that one did
};
static_assert(std::is_trivially_copyable_v<Greeting> && sizeof(Greeting) == 32);

/// Reply to the greeting, before anything else is sent.
struct Welcome {
  std::uint64_t magic = kWelcomeMagic;
  Id128 token;  ///< another one of the job
};
static_assert(std::is_trivially_copyable_v<Welcome> && sizeof(Welcome) == 24);

/// The one byte that the side that welcomed sends later: before it closes the connection because it ends.
inline constexpr std::byte kGoodbye{0x42};

enum class FrameKind : std::uint16_t {
  message = 1,  ///< a small message: `size` bytes follow
  offer,        ///< a message of `size` bytes can be had under the number `id`
  accept,       ///< what was offered as `id` may be sent
  refuse,       ///< the message is larger than what was expected, and dropped
  data,         ///< what was accepted as `id`: `size` bytes follow
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
/// A message up to here is sent without being asked for; larger ones are offered, and sent when they are received.
inline constexpr std::uint64_t kSmallMessageBytes = 64 * 1024 + 8;
/// Longest reason that a rank that failed sends.
inline constexpr std::uint64_t kReasonBytesMax = 1024;
/// Credit: so many bytes of small messages, with their heads, one rank may send another ahead of what that one has
/// received. Messages beyond are offered: so nobody's memory is filled, and nobody waits behind what is not wanted yet.
inline constexpr std::uint64_t kCreditBytes = 256 * 1024;
/// How many messages one rank may offer another at once; each costs the other a few bytes.
inline constexpr std::uint64_t kOffersMax = 65536;

/// Credit that a small message takes.
[[nodiscard]] constexpr std::uint64_t credit_needed(std::uint64_t size) noexcept { return size + sizeof(FrameHead); }

/// Pure. Error in a head, whoever sent it; nothing if it is valid.
[[nodiscard]] std::optional<std::string_view> check_frame_head(const FrameHead& head) noexcept;

/// Pure. In a time that does not depend on where they differ.
[[nodiscard]] bool same(const Id128& a, const Id128& b) noexcept;

}  // namespace kedge::comm
