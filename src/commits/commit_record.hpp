// A commit's identity in messages between processes of one job; never stored.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "base/text.hpp"
#include "commits/head_check.hpp"
#include "kedge/error.hpp"
#include "kedge/types.hpp"

namespace kedge::commits {

/// CommitHead with a fixed size.
struct CommitRecord {
  Id128 run_id;
  Id128 id;
  Id128 parent_id;
  std::uint64_t generation = 0;
  std::uint64_t incarnation = 0;
  std::int64_t time_ns = 0;
  std::uint32_t world_size = 0;
  std::uint32_t is_output = 0;
  std::array<char, 136> tag{};  ///< followed by at least one zero
};
static_assert(std::is_trivially_copyable_v<CommitRecord>);
static_assert(std::has_unique_object_representations_v<CommitRecord>, "no byte is sent that nobody has set");
static_assert(kTagBytesMax < sizeof(CommitRecord::tag));

/// Converts a head. Throws Error{invalid_argument} if the tag is longer than create allows: truncated, it would name
/// another commit.
[[nodiscard]] inline CommitRecord to_record(const CommitHead& head) {
  if (head.tag.size() > kTagBytesMax) {
    throw Error(ErrorCode::invalid_argument,
                compose("tag '{}' is longer than {} bytes; give the checkpoint a shorter one", head.tag, kTagBytesMax));
  }
  CommitRecord record{head.run_id,
                      head.id,
                      head.parent_id,
                      head.generation,
                      head.incarnation,
                      head.time_ns,
                      head.world_size,
                      head.is_output ? 1U : 0U,
                      {}};
  std::ranges::copy(head.tag, record.tag.begin());
  return record;
}

/// Converts a record.
[[nodiscard]] inline CommitHead to_head(const CommitRecord& record) {
  return {record.run_id,        record.id,
          record.parent_id,     record.generation,
          record.incarnation,   record.world_size,
          record.time_ns,       {record.tag.data(), strnlen(record.tag.data(), sizeof record.tag)},
          record.is_output != 0};
}

}  // namespace kedge::commits
