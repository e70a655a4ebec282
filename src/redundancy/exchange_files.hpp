// Reads inputs and writes sums of an exchange to this member's files, and keeps the first failure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "base/page_buffer.hpp"
#include "codec/reed_solomon.hpp"
#include "redundancy/exchange.hpp"
#include "redundancy/plan_stripes.hpp"

namespace kedge::redundancy {

class ExchangeFiles {
 public:
  ExchangeFiles(std::size_t stripes, const LocalMember& member) : member_(member) {
    checksums_.written.resize(stripes);
    checksums_.read.resize(stripes);
  }

  /// Bytes of an input of stripe `number`, in mapped memory or read into `buffer`; zeros after a failure.
  [[nodiscard]] std::span<const std::byte> read_input(const StripeInput& input, const Piece& part, std::size_t number,
                                                      PageBuffer& buffer);
  /// Writes the sum of the terms block by block; does nothing after a failure.
  void write_sum(const Stripe& stripe, const Piece& piece, std::size_t number, std::span<const codec::Term> terms);

  [[nodiscard]] const std::optional<Failure>& failure() const noexcept { return failure_; }
  [[nodiscard]] StripeChecksums& checksums() noexcept { return checksums_; }

 private:
  [[nodiscard]] const MemberFile& file_of(MemberPart part) const {
    return part == MemberPart::container ? member_.container : member_.parity;
  }

  const LocalMember& member_;
  PageBuffer sum_;
  std::optional<Failure> failure_;
  StripeChecksums checksums_;
};

}  // namespace kedge::redundancy
