#include "drain/node_copies.hpp"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "base/attempt.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "drain/stores_content.hpp"
#include "fs/copy.hpp"
#include "fs/tree.hpp"
#include "persist/prefix_runs.hpp"
#include "store/inspect.hpp"
#include "store/location.hpp"
#include "store/run_directory.hpp"
#include "store/store_removal.hpp"

namespace kedge::drain {
namespace {

/// Copies one node's store.
class Copy {
 public:
  Copy(fs::FileSystem& files, const RecordedRun& run, const start::Environment& environment, std::string store)
      : files_(files), run_(run), environment_(environment), store_(std::move(store)) {}

  /// Returns the copied bytes; 0 if nothing is newer than on the prefix.
  std::uint64_t run() {
    const std::vector<std::string> names = newer_files();
    if (names.empty()) return 0;
    fs::make_directories(files_, scavenge_directory(run_), 0700);
    const auto lock = lock_if_possible(environment_, run_, lock_of(node()));
    if (!lock) {
      refuse(ErrorCode::busy, "another kedge scavenge is copying this store; wait for it", store_);
    }
    if (is_copied(names)) return bytes_;
    require_space(names);
    const std::string partial = fs::join(scavenge_directory(run_), partial_of(node()));
    const auto failure = attempt([&] { copy_all(names, partial); });
    if (failure) {
      (void)attempt([&] { (void)fs::remove_tree(files_, partial); });
      throw Error(*failure);
    }
    const std::string whole = fs::join(scavenge_directory(run_), node());
    (void)fs::remove_tree(files_, whole);  // left by an earlier call
    files_.rename(partial, whole);
    files_.sync_directory(scavenge_directory(run_));
    return bytes_;
  }

 private:
  /// A name that each call for this store computes, and no other's.
  [[nodiscard]] std::string node() const {
    const std::string& machine = environment_.machine;
    return compose("{}{}-{:016x}", persist::kScavengedNode, machine.substr(machine.rfind('/') + 1),
                   fnv1a(compose("{}\n{}", machine, store_)));
  }

  [[nodiscard]] std::vector<std::string> newer_files() const {
    const store::RunDirectory here(environment_.file_system, {store_});
    // Parity of an output has its generation, but does not say that it is an output.
    std::set<std::uint64_t> outputs;
    for (const StoredContainer& one : containers_in(environment_.file_system, store_, run_.record.run_id)) {
      if (one.is_output) outputs.insert(one.generation);
    }
    std::vector<std::string> names;
    for (const store::FileName& name : here.list_files()) {
      const store::ScannedFile held = store::inspect_file(here, name, run_.record.run_id, Verify::headers).scanned_file;
      if (!held.key() || !held.intact) continue;
      const std::uint64_t generation = held.generation();
      const bool is_missing =
          outputs.contains(generation) ? !run_.there.outputs.contains(generation) : generation > run_.there.generation;
      if (is_missing) names.push_back(to_string(name));
    }
    return names;
  }

  /// Whether another call copied it and may be flushing that copy, which must not be replaced.
  [[nodiscard]] bool is_copied(const std::vector<std::string>& names) {
    const std::string copy = fs::join(fs::join(scavenge_directory(run_), node()), store_name(files_, run_));
    if (!files_.status(copy) || !store::is_private_directory(files_, copy)) return false;
    const store::RunDirectory there(environment_.file_system, {copy});
    const store::RunDirectory here(environment_.file_system, {store_});
    const std::vector<store::FileName> copied = there.list_files();
    std::uint64_t bytes = 0;
    for (const store::FileName& name : here.list_files()) {
      if (std::ranges::find(names, to_string(name)) == names.end()) continue;
      if (std::ranges::find(copied, name) == copied.end()) return false;
      const store::ScannedFile mine = store::inspect_file(here, name, run_.record.run_id, Verify::headers).scanned_file;
      const store::ScannedFile other = store::inspect_file(there, name, run_.record.run_id, Verify::all).scanned_file;
      if (!other.intact || other.key() != mine.key() || other.generation() != mine.generation()) return false;
      bytes += mine.size_bytes;
    }
    bytes_ = bytes;
    return true;
  }

  void require_space(const std::vector<std::string>& names) const {
    std::uint64_t needed = 0;
    for (const std::string& name : names) {
      if (const auto status = files_.status(fs::join(store_, name))) needed += status->size_bytes;
    }
    const fs::Space space = files_.space(run_.prefix);
    if (space.free_bytes >= needed) return;
    refuse(ErrorCode::no_space,
           compose("copying this node's store needs {}, and {} is free ({}); free some space and run this "
                   "again",
                   human_bytes(needed), human_bytes(space.free_bytes), space.limit),
           run_.prefix);
  }

  void copy_all(std::vector<std::string> names, const std::string& partial) {
    (void)fs::remove_tree(files_, partial);
    files_.make_directory(partial, 0700);
    const std::string target = fs::join(partial, store_name(files_, run_));
    files_.make_directory(target, 0700);
    for (const std::string_view record : {store::kRunRecord, store::kCommitRecord}) {
      if (files_.status(fs::join(store_, record))) names.emplace_back(record);
    }
    for (const std::string& name : names) copy_one(fs::join(store_, name), fs::join(target, name));
    files_.sync_directory(target);
    files_.sync_directory(partial);
  }

  void copy_one(const std::string& from, const std::string& to) {
    const auto source = files_.open(from, fs::Access::read);
    const auto copy = files_.create(to, 0600);
    if (!copy) refuse(ErrorCode::io, "the file already exists: another kedge scavenge is copying this store", to);
    const std::uint64_t bytes = source->status().size_bytes;
    fs::copy_unchecked(*source, *copy, bytes);
    copy->sync();
    bytes_ += bytes;
  }

  fs::FileSystem& files_;
  const RecordedRun& run_;
  const start::Environment& environment_;
  std::string store_;
  std::uint64_t bytes_ = 0;
};

}  // namespace

std::string scavenge_directory(const RecordedRun& run) {
  return persist::scavenge_directory(persist::records_directory(run.prefix, run.name));
}

std::optional<std::unique_ptr<fs::Lock>> lock_if_possible(const start::Environment& environment, const RecordedRun& run,
                                                          std::string_view name) {
  std::unique_ptr<fs::Lock> lock;
  const std::string path = fs::join(scavenge_directory(run), name);
  const auto failure = attempt([&] { lock = environment.file_system->try_lock(path, environment.machine); });
  if (!failure && !lock) return std::nullopt;
  return lock;
}

std::string lock_of(std::string_view node) { return compose(".lock-{}", node); }
std::string partial_of(std::string_view node) { return compose(".part-{}", node); }

std::string store_name(const fs::FileSystem& files, const RecordedRun& run) {
  store::LocationOptions configured;
  configured.configured = ".";
  return store::directory_name(files.user(), configured, run.name, run.record.prefix_id);
}

std::uint64_t copy_store(const start::Environment& environment, const RecordedRun& run, const std::string& store) {
  return Copy(*environment.file_system, run, environment, store).run();
}

}  // namespace kedge::drain
