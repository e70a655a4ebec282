#include "redundancy/exchange_files.hpp"

#include <algorithm>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "checksum/crc32c.hpp"

namespace kedge::redundancy {
namespace {

constexpr std::uint64_t kBlockBytes = std::uint64_t{128} << 10U;  // summed and written while in the cache

fs::ByteAccess& require_file(const MemberFile& file, const char* verb) {
  if (file.bytes != nullptr) return *file.bytes;
  throw Error(
      ErrorCode::io,
      compose(
          "this rank has no open file to {} for its redundancy set; an earlier message says why it could not be opened",
          verb));
}

}  // namespace

std::span<const std::byte> ExchangeFiles::read_input(const StripeInput& input, const Piece& part, std::size_t number,
                                                     PageBuffer& buffer) {
  const MemberFile& file = file_of(input.part);
  const std::uint64_t offset = file.offset + input.offset + part.begin;
  std::uint32_t& crc = checksums_.read[number];
  std::span<const std::byte> bytes;
  if (!failure_) {
    failure_ = attempt([&] {
      if (file.mapped.empty()) {
        const auto room = buffer.ensure_size(part.length);
        crc = require_file(file, "read").read_with_crc(offset, room, crc);
        bytes = room;
        return;
      }
      if (offset > file.mapped.size() || part.length > file.mapped.size() - offset) {
        throw Error(ErrorCode::corrupt, compose("a file of the redundancy set ends at byte {}, but should extend to {}",
                                                file.mapped.size(), offset + part.length));
      }
      bytes = file.mapped.subspan(offset, part.length);
      crc = crc32c_from_memory(bytes, crc);
    });
  }
  if (!failure_) return bytes;
  const auto zeros = buffer.ensure_size(part.length);
  std::ranges::fill(zeros, std::byte{0});
  return zeros;
}

void ExchangeFiles::write_sum(const Stripe& stripe, const Piece& piece, std::size_t number,
                              std::span<const codec::Term> terms) {
  if (failure_) return;
  const MemberFile& file = file_of(stripe.part);
  const std::uint64_t offset = file.offset + stripe.offset + piece.begin;
  std::uint32_t& crc = checksums_.written[number];
  failure_ = attempt([&] {
    fs::ByteAccess& out = require_file(file, "write");
    const bool as_it_is =
        terms.size() == 1 && terms.front().coefficient == 1 && terms.front().bytes.size() == piece.length;
    if (as_it_is) {
      crc = out.write_with_crc(offset, terms.front().bytes, crc);
      return;
    }
    const bool is_xor = !terms.empty() && std::ranges::all_of(terms, [&](const codec::Term& term) {
      return term.coefficient == 1 && term.bytes.size() == piece.length;
    });
    if (is_xor) {
      std::vector<std::span<const std::byte>> sources(terms.size());
      std::ranges::transform(terms, sources.begin(), &codec::Term::bytes);
      crc = out.write_xor(offset, sources, crc);
      return;
    }
    std::vector<codec::Term> blocks;
    for (std::uint64_t done = 0; done < piece.length; done += kBlockBytes) {
      const auto sum = sum_.ensure_size(std::min(kBlockBytes, piece.length - done));
      blocks.clear();
      for (const auto& [bytes, coefficient] : terms) {
        if (bytes.size() <= done) continue;
        blocks.push_back({bytes.subspan(done, std::min(sum.size(), bytes.size() - done)), coefficient});
      }
      codec::combine_into(sum, blocks);
      crc = out.write_with_crc(offset + done, sum, crc);
    }
  });
}

}  // namespace kedge::redundancy
