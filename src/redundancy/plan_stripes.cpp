#include "redundancy/plan_stripes.hpp"

#include <algorithm>
#include <optional>

#include "codec/reed_solomon.hpp"
#include "kedge/error.hpp"

namespace kedge::redundancy {
namespace {

constexpr std::uint64_t kSegmentUnit = 4096;

std::uint32_t member_count(const SetShape& set) { return static_cast<std::uint32_t>(set.sizes.size()); }

bool is_coded(Scheme scheme) { return scheme == Scheme::xor_ || scheme == Scheme::rs; }

void require_valid_shape(const SetShape& set) {
  const bool fits = is_coded(set.scheme) ? set.parity_count >= 1 && set.sizes.size() > set.parity_count
                                         : set.scheme == Scheme::partner && set.sizes.size() >= 2;
  if (fits) return;
  throw Error(ErrorCode::invalid_argument,
              "a redundancy set needs the scheme partner, xor or rs, and more members than may be lost");
}

std::uint32_t previous_position(std::uint32_t position, std::uint32_t members) {
  return (position + members - 1) % members;
}
std::uint32_t next_position(std::uint32_t position, std::uint32_t members) { return (position + 1) % members; }

/// Maps a coded set's stripes to segments of files.
class Geometry {
 public:
  explicit Geometry(const SetShape& set)
      : set_(set), members_(member_count(set)), parities_(set.parity_count), code_(members_ - parities_, parities_) {
    const std::uint64_t segments = members_ - parities_;
    const std::uint64_t longest = *std::ranges::max_element(set.sizes);
    const std::uint64_t length = longest / segments + (longest % segments != 0 ? 1 : 0);
    segment_bytes_ = (length + kSegmentUnit - 1) / kSegmentUnit * kSegmentUnit;
  }

  [[nodiscard]] std::uint64_t segment_bytes() const noexcept { return segment_bytes_; }
  [[nodiscard]] std::uint32_t members() const noexcept { return members_; }
  [[nodiscard]] std::uint32_t parities() const noexcept { return parities_; }
  [[nodiscard]] const codec::ErasureCode& code() const noexcept { return code_; }

  /// The member with a stripe's symbol; data symbols are numbered before parity symbols.
  [[nodiscard]] std::uint32_t member_with(std::uint32_t stripe, std::uint32_t symbol) const noexcept {
    const bool is_data = symbol < code_.data_count();
    return (stripe + (is_data ? parities_ + symbol : symbol - code_.data_count())) % members_;
  }
  [[nodiscard]] std::uint32_t symbol_of(std::uint32_t stripe, std::uint32_t member) const noexcept {
    const std::uint32_t turn = (member + members_ - stripe) % members_;
    return turn < parities_ ? code_.data_count() + turn : turn - parities_;
  }
  [[nodiscard]] bool is_data(std::uint32_t stripe, std::uint32_t member) const noexcept {
    return symbol_of(stripe, member) < code_.data_count();
  }

  /// A member's segment in a stripe; nothing if the container ends before it.
  [[nodiscard]] std::optional<StripeInput> segment(std::uint32_t stripe, std::uint32_t member) const {
    if (!is_data(stripe, member)) {
      const std::uint64_t number = symbol_of(stripe, member) - code_.data_count();
      if (segment_bytes_ == 0) return std::nullopt;
      return StripeInput{member, MemberPart::parity, number * segment_bytes_, segment_bytes_};
    }
    std::uint64_t number = 0;
    for (std::uint32_t earlier = 0; earlier < stripe; ++earlier) number += is_data(earlier, member) ? 1U : 0U;
    const std::uint64_t offset = number * segment_bytes_;
    const std::uint64_t size = set_.sizes.at(member);
    if (size <= offset) return std::nullopt;
    return StripeInput{member, MemberPart::container, offset, std::min(size - offset, segment_bytes_)};
  }

  /// The stripe that makes a member's missing segment from present ones; nothing if the segment is empty.
  [[nodiscard]] std::optional<Stripe> made(std::uint32_t stripe, std::uint32_t member,
                                           const std::vector<bool>& present) const {
    const auto target = segment(stripe, member);
    if (!target) return std::nullopt;
    Stripe result{member, target->part, target->offset, target->length, {}};
    for (const codec::ErasureCode::WeightedSymbol& part : code_.solve_for(symbol_of(stripe, member), present)) {
      auto input = segment(stripe, member_with(stripe, part.symbol));
      if (!input) continue;
      input->length = std::min(input->length, result.length);
      input->coefficient = part.coefficient;
      result.inputs.push_back(*input);
    }
    return result;
  }

 private:
  const SetShape& set_;
  std::uint32_t members_;
  std::uint32_t parities_;
  codec::ErasureCode code_;
  std::uint64_t segment_bytes_ = 0;
};

/// The stripe of a member's parity segment `number`.
std::uint32_t stripe_of_parity(const Geometry& geometry, std::uint32_t member, std::uint32_t number) {
  return (member + geometry.members() - number) % geometry.members();
}

Stripe copy_stripe(const SetShape& set, std::uint32_t position) {
  const std::uint32_t from = previous_position(position, member_count(set));
  Stripe stripe{position, MemberPart::parity, 0, set.sizes[from], {}};
  if (stripe.length > 0) stripe.inputs.push_back({from, MemberPart::container, 0, stripe.length});
  return stripe;
}

std::vector<Stripe> decode_copies(const SetShape& set, const PresentFiles& present) {
  std::vector<Stripe> stripes;
  for (std::uint32_t position = 0; position < member_count(set); ++position) {
    const std::uint64_t size = set.sizes[position];
    if (!present.container.at(position) && size > 0) {
      const std::uint32_t keeper = next_position(position, member_count(set));
      stripes.push_back({position, MemberPart::container, 0, size, {{keeper, MemberPart::parity, 0, size}}});
    }
    if (!present.parity.at(position) && parity_bytes(set, position) > 0) stripes.push_back(copy_stripe(set, position));
  }
  return stripes;
}

/// The stripes of one lost file, by offset.
using Lane = std::vector<Stripe>;

/// Interleaves the lanes. All chains visit the members in the same order: otherwise a step could wait for another one's
/// way through the whole chain.
std::vector<Stripe> interleave(std::vector<Lane> lanes) {
  std::vector<Stripe> stripes;
  std::size_t longest = 0;
  for (const Lane& lane : lanes) longest = std::max(longest, lane.size());
  for (std::size_t i = 0; i < longest; ++i) {
    for (Lane& lane : lanes) {
      if (i >= lane.size()) continue;
      std::ranges::sort(lane[i].inputs, {}, &StripeInput::member);
      stripes.push_back(std::move(lane[i]));
    }
  }
  return stripes;
}

std::vector<Stripe> decode_coded(const SetShape& set, const PresentFiles& present) {
  const Geometry geometry(set);
  const auto present_in = [&](std::uint32_t stripe) {
    std::vector<bool> symbols;
    for (std::uint32_t symbol = 0; symbol < geometry.members(); ++symbol) {
      const std::uint32_t member = geometry.member_with(stripe, symbol);
      symbols.push_back(geometry.is_data(stripe, member) ? present.container.at(member) : present.parity.at(member));
    }
    return symbols;
  };
  std::vector<Lane> lanes;
  for (std::uint32_t member = 0; member < geometry.members(); ++member) {
    Lane container;
    for (std::uint32_t stripe = 0; stripe < geometry.members() && !present.container.at(member); ++stripe) {
      if (!geometry.is_data(stripe, member)) continue;
      if (auto made = geometry.made(stripe, member, present_in(stripe))) container.push_back(std::move(*made));
    }
    Lane parity;
    for (std::uint32_t number = 0; number < geometry.parities() && !present.parity.at(member); ++number) {
      const std::uint32_t stripe = stripe_of_parity(geometry, member, number);
      if (auto made = geometry.made(stripe, member, present_in(stripe))) parity.push_back(std::move(*made));
    }
    lanes.push_back(std::move(container));
    lanes.push_back(std::move(parity));
  }
  return interleave(std::move(lanes));
}

}  // namespace

std::uint64_t parity_bytes(const SetShape& set, std::uint32_t position) {
  require_valid_shape(set);
  if (is_coded(set.scheme)) return set.parity_count * Geometry(set).segment_bytes();
  return set.sizes.at(previous_position(position, member_count(set)));
}

std::vector<Stripe> encode_stripes(const SetShape& set) {
  require_valid_shape(set);
  std::vector<Stripe> stripes;
  if (!is_coded(set.scheme)) {
    for (std::uint32_t position = 0; position < member_count(set); ++position)
      stripes.push_back(copy_stripe(set, position));
    return stripes;
  }
  const Geometry geometry(set);
  std::vector<bool> data(geometry.members(), true);
  std::fill(data.end() - geometry.parities(), data.end(), false);
  for (std::uint32_t number = 0; number < geometry.parities(); ++number) {
    for (std::uint32_t position = 0; position < geometry.members(); ++position) {
      auto made = geometry.made(stripe_of_parity(geometry, position, number), position, data);
      if (made) stripes.push_back(std::move(*made));
    }
  }
  return stripes;
}

bool can_decode(Scheme scheme, std::uint32_t parities, const PresentFiles& present) {
  const auto members = static_cast<std::uint32_t>(present.container.size());
  std::uint32_t damaged = 0;
  for (std::uint32_t position = 0; position < members; ++position) {
    const bool container = present.container[position];
    if (scheme == Scheme::single && !container) return false;
    if (scheme == Scheme::partner && !container && !present.parity.at(next_position(position, members))) return false;
    if (is_coded(scheme) && (!container || !present.parity.at(position))) ++damaged;
  }
  return damaged <= parities;
}

std::vector<Stripe> decode_stripes(const SetShape& set, const PresentFiles& present) {
  require_valid_shape(set);
  if (!can_decode(set.scheme, set.parity_count, present)) {
    throw Error(ErrorCode::unrecoverable, "too many members of a redundancy set are lost to rebuild its containers");
  }
  return is_coded(set.scheme) ? decode_coded(set, present) : decode_copies(set, present);
}

std::uint64_t piece_bytes(std::uint64_t buffers, const PieceSettings& settings) {
  constexpr std::uint64_t kUnit = 4096;
  const std::uint64_t pieces = settings.depth * std::max<std::uint64_t>(buffers, 1) + 2;
  if (settings.bytes != 0) return std::min(settings.bytes, kBufferBytesMax / pieces);
  return std::clamp(kExchangeBufferBytes / pieces / kUnit * kUnit, kPieceBytesMin, kPieceBytesMax);
}

}  // namespace kedge::redundancy
