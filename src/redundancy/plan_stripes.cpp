#include "redundancy/plan_stripes.hpp"

#include <algorithm>
#include <optional>

#include "kedge/error.hpp"

namespace kedge::redundancy {
namespace {

constexpr std::uint64_t kSegmentUnit = 4096;

std::uint32_t members_of(const SetShape& set) {
  const bool protects = set.scheme == Scheme::partner || set.scheme == Scheme::xor_;
  if (protects && set.sizes.size() >= 2) return static_cast<std::uint32_t>(set.sizes.size());
  throw Error(ErrorCode::invalid_argument, "a redundancy set wants the scheme partner or xor and two members");
}

std::uint64_t segment_bytes(const SetShape& set) {
  const std::uint64_t segments = members_of(set) - 1;
  const std::uint64_t longest = *std::ranges::max_element(set.sizes);
  const std::uint64_t length = longest / segments + (longest % segments != 0 ? 1 : 0);
  return (length + kSegmentUnit - 1) / kSegmentUnit * kSegmentUnit;
}

/// Which segment of a member's container goes into the parity of another one, and back.
std::uint32_t segment_in(std::uint32_t parity_of, std::uint32_t member) {
  return parity_of < member ? parity_of : parity_of - 1;
}
std::uint32_t parity_with(std::uint32_t segment, std::uint32_t member) {
  return segment < member ? segment : segment + 1;
}

std::uint32_t before(std::uint32_t position, std::uint32_t members) { return (position + members - 1) % members; }
std::uint32_t after(std::uint32_t position, std::uint32_t members) { return (position + 1) % members; }

/// One member's segment as an input; nothing if the container ends before it.
std::optional<Input> segment_input(const SetShape& set, std::uint32_t member, std::uint32_t segment,
                                   std::uint64_t length_at_most) {
  const std::uint64_t size = set.sizes.at(member);
  const std::uint64_t offset = segment * segment_bytes(set);
  if (size <= offset || length_at_most == 0) return std::nullopt;
  return Input{member, Part::container, offset, std::min(size - offset, length_at_most)};
}

/// Segments of all members but two, which may be one, as the parity of `parity_of` has them.
void add_others(Stripe& stripe, const SetShape& set, std::uint32_t parity_of, std::uint32_t without) {
  for (std::uint32_t member = 0; member < set.sizes.size(); ++member) {
    if (member == parity_of || member == without) continue;
    const auto input = segment_input(set, member, segment_in(parity_of, member), stripe.length);
    if (input) stripe.inputs.push_back(*input);
  }
}

Stripe parity_stripe(const SetShape& set, std::uint32_t position) {
  Stripe stripe{position, Part::parity, 0, parity_bytes(set, position), {}};
  if (set.scheme == Scheme::xor_) {
    add_others(stripe, set, position, position);
  } else if (stripe.length > 0) {
    stripe.inputs.push_back({before(position, members_of(set)), Part::container, 0, stripe.length});
  }
  return stripe;
}

/// Each segment of a lost container, from the one parity that has it.
void add_container(std::vector<Stripe>& stripes, const SetShape& set, std::uint32_t lost) {
  const std::uint64_t segment_length = segment_bytes(set);
  for (std::uint32_t segment = 0; segment + 1 < members_of(set); ++segment) {
    const auto made = segment_input(set, lost, segment, segment_length);
    if (!made) break;
    const std::uint32_t keeper = parity_with(segment, lost);
    Stripe stripe{lost, Part::container, made->offset, made->length, {{keeper, Part::parity, 0, made->length}}};
    add_others(stripe, set, keeper, lost);
    stripes.push_back(std::move(stripe));
  }
}

void add_copy(std::vector<Stripe>& stripes, const SetShape& set, std::uint32_t lost) {
  const std::uint64_t size = set.sizes.at(lost);
  if (size == 0) return;
  const std::uint32_t keeper = after(lost, members_of(set));
  stripes.push_back({lost, Part::container, 0, size, {{keeper, Part::parity, 0, size}}});
}

}  // namespace

std::uint64_t parity_bytes(const SetShape& set, std::uint32_t position) {
  const std::uint32_t members = members_of(set);
  return set.scheme == Scheme::xor_ ? segment_bytes(set) : set.sizes.at(before(position, members));
}

std::vector<Stripe> encode_stripes(const SetShape& set) {
  std::vector<Stripe> stripes;
  for (std::uint32_t position = 0; position < members_of(set); ++position) {
    stripes.push_back(parity_stripe(set, position));
  }
  return stripes;
}

bool can_decode(Scheme scheme, const Presence& present) {
  const auto members = static_cast<std::uint32_t>(present.container.size());
  std::uint32_t damaged = 0;
  for (std::uint32_t position = 0; position < members; ++position) {
    const bool container = present.container[position];
    if (scheme == Scheme::single && !container) return false;
    if (scheme == Scheme::partner && !container && !present.parity.at(after(position, members))) return false;
    if (scheme == Scheme::xor_ && (!container || !present.parity.at(position))) ++damaged;
  }
  return damaged <= 1;
}

std::vector<Stripe> decode_stripes(const SetShape& set, const Presence& present) {
  if (!can_decode(set.scheme, present)) {
    throw Error(ErrorCode::unrecoverable, "too much of a redundancy set is lost to make its containers again");
  }
  std::vector<Stripe> stripes;
  for (std::uint32_t position = 0; position < members_of(set); ++position) {
    if (present.container.at(position)) continue;
    if (set.scheme == Scheme::xor_) add_container(stripes, set, position);
    if (set.scheme == Scheme::partner) add_copy(stripes, set, position);
  }
  for (std::uint32_t position = 0; position < members_of(set); ++position) {
    if (present.parity.at(position)) continue;
    Stripe stripe = parity_stripe(set, position);
    if (stripe.length > 0) stripes.push_back(std::move(stripe));
  }
  return stripes;
}

}  // namespace kedge::redundancy
