#include "format/cbor_reader.hpp"

#include <string>

#include "kedge/error.hpp"

namespace kedge::format {
namespace {

// Major types, in the upper three bits of a value's first byte.
constexpr unsigned kUnsigned = 0;
constexpr unsigned kBytes = 2;
constexpr unsigned kText = 3;
constexpr unsigned kArray = 4;

constexpr std::byte kFalse{0xf4};
constexpr std::byte kTrue{0xf5};
constexpr std::byte kNull{0xf6};

}  // namespace

std::uint64_t CborReader::number() { return head(kUnsigned); }

std::string_view CborReader::text() {
  const auto letters = take(head(kText));
  return {reinterpret_cast<const char*>(letters.data()), letters.size()};  // NOLINT(*-reinterpret-cast)
}

std::span<const std::byte> CborReader::bytes() { return take(head(kBytes)); }

std::uint64_t CborReader::array() {
  const std::uint64_t count = head(kArray);
  if (count > rest_.size()) refuse();
  return count;
}

void CborReader::array_of(std::uint64_t count) {
  if (array() != count) refuse();
}

bool CborReader::boolean() {
  const std::byte value = take(1)[0];
  if (value != kTrue && value != kFalse) refuse();
  return value == kTrue;
}

bool CborReader::take_null() {
  if (rest_.empty() || rest_[0] != kNull) return false;
  rest_ = rest_.subspan(1);
  return true;
}

bool CborReader::next_is_array() const noexcept {
  return !rest_.empty() && std::to_integer<unsigned>(rest_[0]) >> 5U == kArray;
}

void CborReader::end() const {
  if (!rest_.empty()) refuse();
}

// The first byte's lower five bits are the argument (below 24) or give its length in bytes.
std::uint64_t CborReader::head(unsigned major) {
  const auto first = std::to_integer<unsigned>(take(1)[0]);
  const unsigned small = first & 31U;
  if (first >> 5U != major || small > 27) refuse();
  if (small < 24) return small;
  std::uint64_t argument = 0;
  for (const std::byte byte : take(std::uint64_t{1} << (small - 24))) {
    argument = argument << 8U | std::to_integer<std::uint64_t>(byte);
  }
  return argument;
}

std::span<const std::byte> CborReader::take(std::uint64_t count) {
  if (count > rest_.size()) refuse();
  const auto taken = rest_.first(count);
  rest_ = rest_.subspan(count);
  return taken;
}

void CborReader::refuse() const {
  throw Error(Failure{ErrorCode::corrupt, "the index cannot be used: it is not a CBOR-encoded index", -1,
                      std::string(path_), 0});
}

}  // namespace kedge::format
