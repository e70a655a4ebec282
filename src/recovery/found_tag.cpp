#include "recovery/found_tag.hpp"

#include <cstring>
#include <type_traits>
#include <utility>

#include "base/attempt.hpp"
#include "base/invariant.hpp"
#include "base/text.hpp"
#include "commits/commit_record.hpp"
#include "fs/file_system.hpp"

namespace kedge::recovery {
namespace {

/// A tag's record in a message; its texts follow.
struct FoundTagRecord {
  commits::CommitRecord commit;
  std::uint64_t total_bytes = 0;
  std::uint64_t directory_bytes = 0;
  std::uint64_t problem_bytes = 0;
};
static_assert(std::has_unique_object_representations_v<FoundTagRecord>, "no byte is sent that nobody has set");

std::string take_text(std::span<const std::byte>& bytes, std::uint64_t size) {
  invariant(size <= bytes.size(), "a packed tag is as long as it says");
  std::string text(size, '\0');
  std::memcpy(text.data(), bytes.data(), size);
  bytes = bytes.subspan(size);
  return text;
}

void append(std::vector<std::byte>& to, std::span<const std::byte> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

}  // namespace

FoundTag found_tag(const persist::TagEntry& entry, std::string problem) {
  return {entry.commit, entry.total_bytes, entry.directory, std::move(problem)};
}

FoundTag check_tag_manifest(persist::PrefixReader& prefix_storage, const persist::TagEntry& listed) {
  FoundTag found;
  const auto failure = attempt([&] {
    prefix_storage.require_trusted(listed);
    const persist::TagEntry read = prefix_storage.read_commit(listed.directory);
    const bool is_of_run = read.commit.run_id == listed.commit.run_id && read.run == listed.run;
    if (read.commit.id != listed.commit.id || !is_of_run) {
      throw Error(Failure{ErrorCode::corrupt,
                          compose("the manifest belongs to another {}", is_of_run ? "commit" : "run"), -1,
                          fs::join(prefix_storage.location(), listed.directory), 0});
    }
    found = found_tag(read, {});
  });
  return failure ? found_tag(listed, to_string(*failure)) : found;
}

std::vector<std::byte> pack(std::span<const FoundTag> tags) {
  std::vector<std::byte> bytes;
  for (const FoundTag& tag : tags) {
    const FoundTagRecord record{commits::to_record(tag.commit), tag.total_bytes, tag.directory.size(),
                                tag.problem.size()};
    append(bytes, std::as_bytes(std::span(&record, 1)));
    append(bytes, std::as_bytes(std::span(tag.directory)));
    append(bytes, std::as_bytes(std::span(tag.problem)));
  }
  return bytes;
}

std::vector<FoundTag> unpack(std::span<const std::byte> bytes) {
  std::vector<FoundTag> tags;
  while (!bytes.empty()) {
    FoundTagRecord record;
    invariant(sizeof record <= bytes.size(), "a packed tag begins with its record");
    std::memcpy(&record, bytes.data(), sizeof record);
    bytes = bytes.subspan(sizeof record);
    FoundTag& tag = tags.emplace_back();
    tag.commit = commits::to_head(record.commit);
    tag.total_bytes = record.total_bytes;
    tag.directory = take_text(bytes, record.directory_bytes);
    tag.problem = take_text(bytes, record.problem_bytes);
  }
  return tags;
}

}  // namespace kedge::recovery
