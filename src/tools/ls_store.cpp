// Lists a node's store: one line per commit, as far as this node knows it.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/attempt.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "fs/tree.hpp"
#include "store/failed_flush.hpp"
#include "store/file_name.hpp"
#include "tools/examine.hpp"
#include "tools/ls.hpp"
#include "tools/text_format.hpp"

namespace kedge::tools {
namespace {

struct Commit {
  CommitHead head;  // complete if a container is here, otherwise without the tag
  std::uint64_t bytes = 0;
  std::set<std::uint32_t> containers;  // logical ranks
  std::set<std::uint32_t> described;   // that a set here protects
  struct Set {
    std::set<std::uint32_t> members;
    std::size_t may_be_lost = 0;
  };
  std::map<std::pair<Id128, std::uint64_t>, Set> sets;  // that files here describe, by protection and number
  std::uint64_t parity_files = 0;
  std::uint64_t parity_bytes = 0;

  // The node may only have parity of other nodes' containers. Where it has more containers of a set than may be lost,
  // as after a job of fewer ranks rebuilt some here, their loss with the node would be too much.
  [[nodiscard]] Level level() const {
    const bool all = std::includes(described.begin(), described.end(), containers.begin(), containers.end());
    const bool too_many = std::ranges::any_of(sets, [&](const auto& one) {
      const auto is_member = [&](std::uint32_t rank) { return one.second.members.contains(rank); };
      return std::ranges::count_if(containers, is_member) > static_cast<std::ptrdiff_t>(one.second.may_be_lost);
    });
    return all && !described.empty() && !too_many ? Level::protected_ : Level::local;
  }
};

struct Key {
  std::uint64_t generation = 0;
  Id128 commit_id;
  auto operator<=>(const Key&) const = default;
};

struct Broken {
  std::string path;
  std::string state;
  std::string reason;
};

class StoreListing {
 public:
  StoreListing(fs::FileSystem& file_system, const std::string& directory, const std::string& shown) : shown_(shown) {
    (void)attempt([&] { failed_flush_ = store::read_failed_flush(file_system, directory); });
    for (const std::string& name : file_system.list(directory)) {
      const auto parsed = store::parse_file_name(name);
      if (parsed) add_storage(file_system, fs::join(directory, name));
      if (name.starts_with(store::kRoutedPrefix)) add_routed(file_system, fs::join(directory, name));
      if (!parsed) continue;
      const auto failure = attempt([&] { add(file_system, fs::join(directory, name), *parsed); });
      if (failure) note(fs::join(shown, name), *failure);
    }
  }

  [[nodiscard]] Listing listing(bool as_json) const;

 private:
  void add(fs::FileSystem& file_system, const std::string& path, const store::FileName& name);
  void add_container(const format::Superblock& superblock);
  void add_set_file(const format::SetDescriptor& set, std::uint64_t file_bytes);
  void add_routed(fs::FileSystem& file_system, const std::string& directory);
  void add_storage(fs::FileSystem& file_system, const std::string& path);
  [[nodiscard]] std::string storage_text() const;
  [[nodiscard]] std::string flush_text() const;
  void note(const std::string& path, const Failure& failure);
  [[nodiscard]] std::string text() const;
  [[nodiscard]] Json json() const;

  std::string shown_;
  std::map<Key, Commit, std::greater<>> commits_;  // newest first
  std::optional<store::FailedFlush> failed_flush_;
  std::vector<Broken> broken_;
  std::uint64_t unsealed_ = 0;
  std::uint64_t routed_files_ = 0;
  std::uint64_t routed_bytes_ = 0;
  std::uint64_t storage_bytes_ = 0;  // allocated by all files of the store
  Outcome outcome_ = Outcome::ok;
};

void StoreListing::add(fs::FileSystem& file_system, const std::string& path, const store::FileName& name) {
  const OpenedFile opened = open_file(file_system, path);
  if (opened.kind == FileKind::unsealed) {
    ++unsealed_;
    return;
  }
  if (is_manifest(opened, name)) return;  // containers tell the same
  if (opened.kind != FileKind::container && opened.kind != FileKind::set_file) throw refusal(opened.kind, path);
  const store::VerifiedFile found =
      store::verify_file(*opened.file, opened.size_bytes, path, expected_from_name(name), Verify::headers);
  if (found.fault == store::FileFault::unsealed) {  // since it was opened
    ++unsealed_;
    return;
  }
  if (!found.is_intact()) throw Error(ErrorCode::corrupt, describe_fault(opened, found, name));
  if (found.superblock) add_container(*found.superblock);
  else add_set_file(*found.set_descriptor, opened.size_bytes);
}

void StoreListing::add_container(const format::Superblock& superblock) {
  Commit& commit = commits_[{superblock.commit.generation, superblock.commit.id}];
  commit.head = superblock.commit;
  commit.bytes += superblock.file_size;
  commit.containers.insert(superblock.logical_rank.value);
}

void StoreListing::add_set_file(const format::SetDescriptor& set, std::uint64_t file_bytes) {
  Commit& commit = commits_[{set.generation, set.commit_id}];
  commit.head.run_id = set.run_id;
  commit.head.world_size = set.world_size;
  Commit::Set& known = commit.sets[{set.protection_id, set.set_number}];
  for (const format::SetMember& member : set.members) known.members.insert(member.logical_rank.value);
  known.may_be_lost = set.parity_count;
  commit.described.insert(known.members.begin(), known.members.end());
  if (set.kind != format::SetFileKind::parity) return;
  ++commit.parity_files;
  commit.parity_bytes += file_bytes;
}

/// Files may vanish while the store is read.
void StoreListing::add_routed(fs::FileSystem& file_system, const std::string& directory) {
  (void)attempt([&] {
    for (const fs::TreeFile& file : fs::files_below(file_system, directory)) {
      ++routed_files_;
      if (file.status.kind == fs::FileStatus::Kind::file) routed_bytes_ += file.status.size_bytes;
    }
  });
}

void StoreListing::add_storage(fs::FileSystem& file_system, const std::string& path) {
  (void)attempt([&] {
    if (const auto status = file_system.status(path)) storage_bytes_ += status->allocated_bytes;
  });
}

void StoreListing::note(const std::string& path, const Failure& failure) {
  const bool damaged = failure.code == ErrorCode::corrupt;
  if (damaged) outcome_ = Outcome::damaged;
  else if (outcome_ == Outcome::ok) outcome_ = Outcome::not_checked;
  broken_.push_back({path, damaged ? "damaged" : "not checked",
                     describe(Failure{failure.code, failure.message, -1, {}, failure.system_errno})});
}

// Only containers have the tag.
std::string tag_cell(const Commit& commit) { return commit.containers.empty() ? "?" : printable(commit.head.tag); }

/// The store's size in checkpoints, for planning a node's memory.
std::string StoreListing::storage_text() const {
  const auto newest = std::ranges::find_if(commits_, [](const auto& one) { return one.second.bytes > 0; });
  if (newest == commits_.end()) return {};
  const auto times = static_cast<double>(storage_bytes_) / static_cast<double>(newest->second.bytes);
  return compose("\nstorage taken: {}, {:.1f} times the newest checkpoint here\n", human_bytes(storage_bytes_), times);
}

/// Text about a failed flush, if its commit is still here.
std::string StoreListing::flush_text() const {
  if (!failed_flush_ || !commits_.contains({failed_flush_->generation, failed_flush_->commit_id})) return {};
  return "\n" + failed_flush_text(*failed_flush_);
}

std::string StoreListing::text() const {
  std::string text;
  if (commits_.empty()) text = compose("nothing is sealed in {} yet\n", printable(shown_));
  if (!commits_.empty()) {
    Table table("lrlrrll");
    table.add({"tag", "gen.", "time (UTC)", "here", "bytes", "level", "parity"});
    for (const auto& [key, commit] : commits_) {
      table.add({tag_cell(commit), compose("{}", key.generation),
                 commit.containers.empty() ? "?" : utc_cell(commit.head.time_ns),
                 compose("{} of {}", commit.containers.size(), commit.head.world_size), human_bytes(commit.bytes),
                 commit.containers.empty() ? "?" : std::string(to_string(commit.level())),
                 commit.parity_files == 0 ? "-" : human_bytes(commit.parity_bytes)});
    }
    text = table.text();
  }
  text += flush_text();
  text += storage_text();
  if (unsealed_ > 0) text += compose("\n{} being written or free\n", count_text(unsealed_, "file"));
  if (routed_files_ > 0) {
    text += compose("\nrouted files of a job: {} ({})\n", routed_files_, human_bytes(routed_bytes_));
  }
  if (broken_.empty()) return text;
  Table table("lll");
  for (const Broken& broken : broken_) {
    table.add({printable(broken.path), broken.state == "damaged" ? "DAMAGED" : broken.state, printable(broken.reason)});
  }
  return text + "\n" + table.text();
}

Json StoreListing::json() const {
  Json json = {{"path", shown_},
               {"kind", "store"},
               {"checkpoints", Json::array()},
               {"unsealed", unsealed_},
               {"routed_files", routed_files_},
               {"routed_bytes", routed_bytes_},
               {"storage_bytes", storage_bytes_},
               {"unusable", Json::array()}};
  for (const auto& [key, commit] : commits_) {
    const bool known = !commit.containers.empty();
    json["checkpoints"].push_back({{"tag", known ? Json(commit.head.tag) : Json()},
                                   {"generation", key.generation},
                                   {"commit_id", to_string(key.commit_id)},
                                   {"parent_commit_id", id_json(commit.head.parent_id)},
                                   {"run_id", to_string(commit.head.run_id)},
                                   {"time", known ? Json(utc(commit.head.time_ns)) : Json()},
                                   {"time_ns", known ? Json(commit.head.time_ns) : Json()},
                                   {"world_size", commit.head.world_size},
                                   {"ranks", commit.containers},
                                   {"bytes", commit.bytes},
                                   {"level", known ? Json(to_string(commit.level())) : Json()},
                                   {"parity_files", commit.parity_files},
                                   {"parity_bytes", commit.parity_bytes}});
    if (failed_flush_ && failed_flush_->commit_id == key.commit_id) {
      json["checkpoints"].back()["flush_failed"] = failed_flush_json(*failed_flush_);
    }
  }
  for (const Broken& broken : broken_) {
    json["unusable"].push_back({{"path", broken.path}, {"state", broken.state}, {"reason", broken.reason}});
  }
  return json;
}

Listing StoreListing::listing(bool as_json) const { return {as_json ? json_text(json()) : fold(text()), outcome_}; }

}  // namespace

Listing list_store(fs::FileSystem& file_system, const std::string& directory, const std::string& shown, bool json) {
  return StoreListing(file_system, directory, shown).listing(json);
}

}  // namespace kedge::tools
