#include "comm/sockets/frame.hpp"

namespace kedge::comm {

std::optional<std::string_view> check_frame_head(const FrameHead& head) noexcept {
  if (head.magic != kFrameMagic) return "bad magic number";
  if (head.kind < FrameKind::message || head.kind > FrameKind::goodbye) return "unknown kind of frame";
  if (head.tag >= kTagLimit) return "bad tag";
  if (head.padding != 0) return "bad padding";
  if (head.kind == FrameKind::message && head.size > kSmallMessageBytes) return "message too large";
  if (head.kind == FrameKind::lost && head.size > kReasonBytesMax) return "reason too long";
  if (head.kind == FrameKind::credit && head.size > kCreditBytes) return "bad credit";
  return std::nullopt;
}

bool equal_in_constant_time(const Id128& a, const Id128& b) noexcept {
  unsigned differ = 0;
  for (std::size_t i = 0; i < a.bytes.size(); ++i) differ |= static_cast<unsigned>(a.bytes[i] ^ b.bytes[i]);
  // Not to be turned into a loop that ends at the first difference.
  const volatile unsigned seen = differ;
  return seen == 0;
}

}  // namespace kedge::comm
