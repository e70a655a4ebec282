#include "drain/stores_content.hpp"

#include <algorithm>
#include <iterator>

#include "base/attempt.hpp"
#include "store/inspect.hpp"
#include "store/location.hpp"
#include "store/run_directory.hpp"
#include "store/store_removal.hpp"

namespace kedge::drain {
namespace {

constexpr std::string_view kNode = "{node}";

/// Nodes of consecutive ranks: which of them a process sees does not depend on the process.
bool sees_all_nodes(const start::Environment& environment) {
  return environment.node.empty() && environment.ranks_per_node != 0;
}

/// Existing directories that match `path` with any node.
std::vector<std::string> expand_any_node(fs::FileSystem& file_system, const std::string& path) {
  const std::size_t at = path.find(kNode);
  if (at == std::string::npos) return {path};
  const std::size_t begin = path.rfind('/', at) + 1;  // 0 if there is none
  const std::size_t end = std::min(path.find('/', at), path.size());
  const std::string parent = begin == 0 ? "." : path.substr(0, begin);
  const std::string pattern = path.substr(begin, end - begin);
  std::vector<std::string> found;
  if (!file_system.status(parent)) return found;
  for (const std::string& name : file_system.list(parent)) {
    if (!matches_node_pattern(name, pattern)) continue;
    for (std::string& one : expand_any_node(file_system, fs::join(parent, name) + path.substr(end))) {
      found.push_back(std::move(one));
    }
  }
  return found;
}

/// In which stores lie side by side.
std::vector<std::string> roots(const start::Environment& environment, const Options& options) {
  const std::string& configured = options.store.path;
  if (configured.empty()) return environment.store_candidates;
  if (sees_all_nodes(environment)) return expand_any_node(*environment.file_system, configured);
  return {store::expand_node(configured, start::node_name(environment, 0))};
}

class StoreSearch {
 public:
  StoreSearch(const start::Environment& environment, const Options& options, std::string_view run,
              const persist::RunRecord& record)
      : environment_(environment), options_(options), run_(run), record_(record) {}

  StoresContent operator()() {
    std::set<std::string> seen;
    for (const std::string& root : roots(environment_, options_)) {
      if (!files().status(root)) continue;
      const std::string canonical = files().canonical(root);
      if (!seen.insert(canonical).second) continue;
      for (const std::string& name : files().list(canonical)) {
        if (is_of_run(name)) take(fs::join(canonical, name));
      }
    }
    return std::move(found_);
  }

 private:
  [[nodiscard]] fs::FileSystem& files() const { return *environment_.file_system; }

  /// Judges by the name; other nodes' stores are not read.
  [[nodiscard]] bool is_of_run(const std::string& name) const {
    const std::size_t at = name.find('@');
    const bool is_another_nodes = !sees_all_nodes(environment_) && !environment_.node.empty() &&
                                  at != std::string::npos && name.substr(at + 1) != environment_.node;
    return !is_another_nodes &&
           store::is_directory_of(name.substr(0, at), files().user(), {}, std::string(run_), record_.prefix_id);
  }

  /// Whether a start here would not use this directory.
  [[nodiscard]] bool is_beyond_reach(const std::string& directory) const {
    const bool names_nodes = sees_all_nodes(environment_) || !environment_.node.empty();
    return !names_nodes && directory.substr(directory.rfind('/') + 1).find('@') != std::string::npos;
  }

  void take(const std::string& directory) {
    if (!store::is_private_directory(files(), directory)) return;
    const store::StoreContent content = store::read_store_content(files(), directory);
    if (content.record.run_id != record_.run_id || content.record.prefix_id != record_.prefix_id) return;
    if (is_beyond_reach(directory)) {
      refuse(ErrorCode::invalid_argument,
             "this store belongs to a job that named its nodes itself (KEDGE_NODE or "
             "KEDGE_TEST_RANKS_PER_NODE); run this with the job's environment",
             directory);
    }
    found_.stores.push_back(directory);
    std::ranges::copy(content.dead_starts, std::back_inserter(found_.dead_starts));
    if (found_.used_by.empty()) found_.used_by = content.used_by;
    for (const StoredContainer& one : containers_in(environment_.file_system, directory, record_.run_id)) {
      found_.containers.push_back(one);
    }
    found_.outputs.merge(outputs_in(environment_.file_system, directory, record_.run_id));
  }

  const start::Environment& environment_;
  const Options& options_;
  std::string_view run_;
  const persist::RunRecord& record_;
  StoresContent found_;
};

/// Copies of other ranks' containers reveal a commit, and its node, if the rank's own container is unreadable.
void add_copies(const store::RunDirectory& here, const Id128& run_id, std::vector<StoredContainer>& found) {
  for (const store::FileName& name : here.list_files()) {
    if (name.kind != store::FileKind::parity) continue;
    const store::Inspection one = store::inspect_file(here, name, run_id, Verify::headers);
    if (!one.scanned_file.intact || !one.scanned_file.copied_commit) continue;
    const CommitHead& commit = *one.scanned_file.copied_commit;
    const auto is_seen = [&](const StoredContainer& other) {
      return other.generation == commit.generation && other.logical_rank == name.logical_rank.value;
    };
    if (std::ranges::any_of(found, is_seen)) continue;
    found.push_back(
        {commit.generation, name.logical_rank.value, commit.world_size, commit.incarnation, commit.is_output});
  }
}

}  // namespace

std::vector<StoredContainer> containers_in(const std::shared_ptr<fs::FileSystem>& file_system,
                                           const std::string& directory, const Id128& run_id) {
  const store::RunDirectory here(file_system, {directory});
  std::vector<StoredContainer> found;
  for (const store::FileName& name : here.list_files()) {
    if (name.kind != store::FileKind::container) continue;
    const store::Inspection one = store::inspect_file(here, name, run_id, Verify::headers);
    if (!one.scanned_file.superblock || !one.scanned_file.intact) continue;
    const CommitHead& commit = one.scanned_file.superblock->commit;
    found.push_back(
        {commit.generation, name.logical_rank.value, commit.world_size, commit.incarnation, commit.is_output});
  }
  add_copies(here, run_id, found);
  return found;
}

std::map<std::uint64_t, Tag> outputs_in(const std::shared_ptr<fs::FileSystem>& file_system,
                                        const std::string& directory, const Id128& run_id) {
  const store::RunDirectory here(file_system, {directory});
  std::map<std::uint64_t, Tag> found;
  for (const store::FileName& name : here.list_files()) {
    if (name.kind != store::FileKind::container && name.kind != store::FileKind::parity) continue;
    const store::ScannedFile held = store::inspect_file(here, name, run_id, Verify::headers).scanned_file;
    if (!held.intact) continue;
    const CommitHead* commit = held.superblock      ? &held.superblock->commit
                               : held.copied_commit ? &*held.copied_commit
                                                    : nullptr;
    if (commit != nullptr && commit->is_output) found[commit->generation] = commit->tag;
  }
  return found;
}

std::vector<Tag> tags_of(const std::map<std::uint64_t, Tag>& outputs, const std::set<std::uint64_t>& generations) {
  std::vector<Tag> tags;
  for (const auto& [generation, tag] : outputs) {
    if (generations.contains(generation) && std::ranges::find(tags, tag) == tags.end()) tags.push_back(tag);
  }
  return tags;
}

std::string node_of(const start::Environment& environment) {
  const std::string& machine = environment.machine;
  return environment.node.empty() ? machine.substr(machine.rfind('/') + 1) : environment.node;
}

bool matches_node_pattern(std::string_view name, std::string_view pattern) {
  const std::size_t at = pattern.find(kNode);
  if (at == std::string_view::npos) return name == pattern;
  const std::string_view before = pattern.substr(0, at);
  const std::string_view after = pattern.substr(at + kNode.size());
  return name.size() > before.size() + after.size() && name.starts_with(before) && name.ends_with(after);
}

StoresContent find_stores_content(const start::Environment& environment, const Options& options, std::string_view run,
                                  const persist::RunRecord& record) {
  return StoreSearch(environment, options, run, record)();
}

}  // namespace kedge::drain
