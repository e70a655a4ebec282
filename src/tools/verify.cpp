// kedge verify TAG|DIRECTORY|FILE...: verifies every checksum of checkpoints and files.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <utility>

#include "base/attempt.hpp"
#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "persist/tag_directory.hpp"
#include "persist/tags.hpp"
#include "tools/container_view.hpp"
#include "tools/examine.hpp"
#include "tools/outcome.hpp"
#include "tools/progress.hpp"
#include "tools/tag_location.hpp"
#include "tools/tag_reader.hpp"
#include "tools/text_format.hpp"

namespace kedge::tools {
namespace {

constexpr std::size_t kDamagesShown = 20;  // per container; --json lists all

struct VerifyArguments {
  std::vector<std::string> paths;  // or tags
  std::string prefix;
  std::string run;
  bool json = false;
  bool quiet = false;
};

// A file or checkpoint to check. `name` is set for files of a store's directory.
struct Task {
  std::string path;   // to open
  std::string shown;  // in the user's spelling
  std::optional<store::FileName> name;
  std::optional<TagLocation> tag;
};

using State = Finding::State;

std::string_view to_string(State state) {
  switch (state) {
    case State::ok: return "ok";
    case State::damaged: return "damaged";
    case State::unsealed: return "unsealed";
    case State::uncommitted: return "not committed";
    case State::not_checked: return "not checked";
  }
  return "not checked";
}

Finding unreadable(const std::string& path, const Failure& failure) {
  Finding finding;
  finding.path = path;
  finding.reason = describe(Failure{failure.code, failure.message, -1, {}, failure.system_errno});
  return finding;
}

Task checkpoint(TagLocation place) { return {{}, place.shown, std::nullopt, std::move(place)}; }

/// Directories of other runs; unreadable ones may be this run's.
std::set<std::string> of_other_runs(fs::FileSystem& file_system, const std::string& prefix, const std::string& run) {
  std::set<std::string> others;
  if (run.empty()) return others;
  for (const auto& entry : persist::list_tags(file_system, prefix).entries)
    if (entry.run != run) others.insert(entry.directory);
  return others;
}

// All checkpoints of a prefix except `others`, newest first.
std::vector<Task> tags_of(const std::vector<std::string>& names, const std::string& directory, const std::string& shown,
                          const std::set<std::string>& others) {
  std::vector<std::pair<std::uint64_t, std::string>> tags;
  for (const std::string& name : names) {
    const auto parsed = persist::parse_tag_directory_name(name);
    if (parsed && !others.contains(name)) tags.emplace_back(parsed->generation, name);
  }
  std::sort(tags.rbegin(), tags.rend());
  std::vector<Task> tasks;
  tasks.reserve(tags.size());
  for (const auto& [generation, name] : tags) tasks.push_back(checkpoint({directory, name, fs::join(shown, name)}));
  if (tasks.empty()) refuse(ErrorCode::not_found, "there are no checkpoints on this prefix yet", shown);
  return tasks;
}

// The files of a run's directory, by kind and rank. Links are not followed, since only the owner should create any.
std::vector<Task> files_of(const std::vector<std::string>& names, const std::string& directory,
                           const std::string& shown) {
  std::vector<Task> tasks;
  for (const std::string& name : names) {
    if (const auto parsed = store::parse_file_name(name)) {
      tasks.push_back({fs::join(directory, name), fs::join(shown, name), parsed, std::nullopt});
    }
  }
  std::sort(tasks.begin(), tasks.end(), [](const Task& a, const Task& b) { return a.name < b.name; });
  return tasks;
}

std::vector<Task> tasks_of(fs::FileSystem& file_system, const TagQuery& meant) {
  const std::string& word = meant.word;
  if (auto place = resolve_tag(file_system, meant)) return {checkpoint(*std::move(place))};
  const std::string real_path = file_system.canonical(word);  // users may name links
  const auto status = file_system.status(real_path);
  if (!status || status->kind != fs::FileStatus::Kind::directory)
    return {{real_path, word, std::nullopt, std::nullopt}};
  const std::vector<std::string> names = file_system.list(real_path);
  const DirectoryKind kind = classify_directory(names);
  if (kind == DirectoryKind::store) return files_of(names, real_path, word);
  if (kind == DirectoryKind::prefix)
    return tags_of(names, real_path, word, of_other_runs(file_system, real_path, meant.run));
  refuse(ErrorCode::not_found,
         compose("there is no container or checkpoint in this directory; name a prefix, a tag directory, or a run's "
                 "directory on the node-local store{}",
                 run_directory_hint(names)),
         word);
}

std::uint64_t bytes_of(fs::FileSystem& file_system, const std::vector<Task>& tasks) {
  std::uint64_t total = 0;
  for (const Task& task : tasks) {
    if (task.tag) total += bytes_of_tag(file_system, *task.tag);
    else
      static_cast<void>(attempt([&] {
        if (const auto status = file_system.status(task.path)) total += status->size_bytes;
      }));
  }
  return total;
}

std::string whose(const Finding& finding) {
  if (finding.manifest) return compose("manifest of {}", printable(finding.manifest->commit.tag));
  if (finding.set) return set_line(*finding.set);
  const CommitHead& commit = finding.superblock->commit;
  return compose("{} of rank {} of {}", printable(commit.tag), finding.superblock->logical_rank.value,
                 commit.world_size);
}

std::string_view name_of(store::FileKind kind) {
  switch (kind) {
    case store::FileKind::container: return "container";
    case store::FileKind::parity: return "parity";
    case store::FileKind::manifest: return "manifest";
    case store::FileKind::descriptor: break;
  }
  return "descriptor";
}

std::string finding_text(const Finding& finding) {
  const std::string path = printable(finding.path);
  switch (finding.state) {
    case State::ok: return compose("ok       {}  {}, {}\n", path, whose(finding), human_bytes(finding.size_bytes));
    case State::uncommitted:
    case State::unsealed: return compose("-        {}  {}\n", path, finding.reason);
    case State::not_checked: return compose("?        {}  {}\n", path, printable(finding.reason));
    case State::damaged: break;
  }
  std::string text =
      compose("DAMAGED  {}  {}{}\n", path, finding.superblock ? printable(finding.superblock->commit.tag) + ": " : "",
              printable(finding.reason));
  for (std::size_t i = 0; i < std::min(finding.damages.size(), kDamagesShown); ++i) {
    const format::Damage& damage = finding.damages[i];
    text += compose("           {} in bytes {} to {}\n", printable(damage.description), damage.offset,
                    damage.offset + damage.length - 1);
  }
  if (finding.damages.size() > kDamagesShown) {
    text += compose("           and {} more\n", finding.damages.size() - kDamagesShown);
  }
  return text;
}

Json finding_json(const Finding& finding) {
  Json json = {{"path", finding.path}, {"state", to_string(finding.state)}, {"file_bytes", finding.size_bytes}};
  if (finding.superblock) {
    json["tag"] = finding.superblock->commit.tag;
    json["generation"] = finding.superblock->commit.generation;
    json["commit_id"] = kedge::to_string(finding.superblock->commit.id);
    json["logical_rank"] = finding.superblock->logical_rank.value;
  }
  if (finding.kind) json["kind"] = name_of(*finding.kind);
  if (finding.manifest) {
    json["kind"] = "manifest";
    json["tag"] = finding.manifest->commit.tag;
    json["generation"] = finding.manifest->commit.generation;
    json["commit_id"] = kedge::to_string(finding.manifest->commit.id);
    json["world_size"] = finding.manifest->commit.world_size;
  }
  if (finding.set) {
    json["generation"] = finding.set->generation;
    json["commit_id"] = kedge::to_string(finding.set->commit_id);
    json["protection_id"] = kedge::to_string(finding.set->protection_id);
    json["set"] = finding.set->set_number;
    json["logical_rank"] = holder(*finding.set).logical_rank.value;
  }
  if (!finding.reason.empty()) json["reason"] = finding.reason;
  if (finding.state == State::damaged) {
    json["damages"] = Json::array();
    for (const auto& damage : finding.damages) {
      json["damages"].push_back({{"what", damage.description}, {"offset", damage.offset}, {"bytes", damage.length}});
    }
  }
  return json;
}

// Findings so far and the resulting exit status.
struct Tally {
  std::uint64_t ok = 0;
  std::uint64_t damaged = 0;
  std::uint64_t unsealed = 0;
  std::uint64_t uncommitted = 0;
  std::uint64_t not_checked = 0;
  std::uint64_t checked_bytes = 0;
  std::uint64_t ok_manifests = 0;
  std::array<std::uint64_t, store::kFileKindCount> ok_of_kind{};  // by store::FileKind

  [[nodiscard]] std::uint64_t ok_of(store::FileKind kind) const {
    return ok_of_kind.at(static_cast<std::size_t>(kind));
  }

  void add(const Finding& finding) {
    switch (finding.state) {
      case State::ok:
        ++ok;
        if (finding.manifest) ++ok_manifests;
        if (finding.kind) ++ok_of_kind.at(static_cast<std::size_t>(*finding.kind));
        break;
      case State::damaged: ++damaged; break;
      case State::unsealed: ++unsealed; return;
      case State::uncommitted: ++uncommitted; return;
      case State::not_checked: ++not_checked; return;
    }
    checked_bytes += finding.size_bytes;
  }

  // If nothing was sealed, nothing was checked, which scripts must not take for "ok".
  [[nodiscard]] Outcome outcome() const {
    if (damaged > 0) return Outcome::damaged;
    return not_checked > 0 || ok == 0 ? Outcome::not_checked : Outcome::ok;
  }

  [[nodiscard]] std::string text(double took_s) const {
    std::string line = compose("{} ok, {} damaged", ok, damaged);
    const std::string kinds = kinds_text();
    if (!kinds.empty()) line = compose("{} ok ({}), {} damaged", ok, kinds, damaged);
    if (unsealed > 0) line += compose(", {} being written or free", unsealed);
    if (uncommitted > 0) line += compose(", {} not committed", uncommitted);
    if (not_checked > 0) line += compose(", {} not checked", not_checked);
    return fold(line + compose(" ({} in {})\n", human_bytes(checked_bytes), human_seconds(took_s)));
  }

 private:
  // The kinds of the intact files, unless they are the usual ones.
  [[nodiscard]] std::string kinds_text() const {
    const std::uint64_t containers = ok_of(store::FileKind::container);
    if (ok == containers) return {};
    const std::uint64_t parity = ok_of(store::FileKind::parity);
    const std::uint64_t descriptors = ok_of(store::FileKind::descriptor);
    if (parity + descriptors == 0) return compose("manifests {}, containers {}", ok_manifests, ok - ok_manifests);
    return compose("containers {}, parity {}, descriptors {}{}", containers, parity, descriptors,
                   ok_manifests == 0 ? "" : compose(", manifests {}", ok_manifests));
  }
};

class Verification {
 public:
  explicit Verification(const VerifyArguments& arguments)
      : arguments_(arguments), file_system_(fs::posix_file_system()) {}

  Outcome run() {
    const auto clock = system_clock();
    const double started_s = clock->seconds();
    for (const std::string& path : arguments_.paths) {
      if (const auto failure = attempt([&] {
            for (Task& task : tasks_of(*file_system_, {path, arguments_.prefix, arguments_.run}))
              tasks_.push_back(std::move(task));
          })) {
        unreadable_.push_back(unreadable(path, *failure));
      }
    }
    progress_ = std::make_unique<Progress>(bytes_of(*file_system_, tasks_), clock);
    for (const Finding& finding : unreadable_) report(finding);
    for (const Task& task : tasks_) check(task);
    progress_->clear();
    conclude(clock->seconds() - started_s);
    return tally_.outcome();
  }

 private:
  void check(const Task& task) {
    const auto on_progress = [this](std::uint64_t bytes) { progress_->advance(bytes); };
    if (task.tag) {
      check_checkpoint(*task.tag, on_progress);
      return;
    }
    Finding finding = check_file(*file_system_, task.path, task.name, on_progress);
    finding.path = task.shown;
    report(finding);
  }

  // Summarizes intact ranks in one line.
  void check_checkpoint(const TagLocation& place, const std::function<void(std::uint64_t)>& on_progress) {
    std::uint64_t containers = 0;
    std::uint64_t bytes = 0;
    std::string tag;
    bool all_ok = true;
    check_tag(*file_system_, place, on_progress, [&](const Finding& finding) {
      if (finding.manifest) tag = printable(finding.manifest->commit.tag);
      else ++containers;
      bytes += finding.size_bytes;
      const bool ok = finding.state == State::ok;
      all_ok = all_ok && ok;
      if (ok && !arguments_.json) tally_.add(finding);
      else report(finding);
    });
    if (!all_ok || arguments_.json || arguments_.quiet) return;
    progress_->clear();
    print(fold(compose("ok       {}  {}: manifest and {}, {}\n", printable(place.shown), tag,
                       count_text(containers, "container"), human_bytes(bytes))));
  }

  void report(const Finding& finding) {
    tally_.add(finding);
    if (arguments_.json) {
      json_.push_back(finding_json(finding));
    } else if (!arguments_.quiet || finding.state == State::damaged || finding.state == State::not_checked) {
      progress_->clear();
      print(fold(finding_text(finding)));
    }
  }

  void conclude(double took_s) {
    if (arguments_.json) {
      const Json json = {{"files", json_},
                         {"ok", tally_.ok},
                         {"ok_manifests", tally_.ok_manifests},
                         {"ok_containers", tally_.ok_of(store::FileKind::container)},
                         {"ok_parity", tally_.ok_of(store::FileKind::parity)},
                         {"ok_descriptors", tally_.ok_of(store::FileKind::descriptor)},
                         {"damaged", tally_.damaged},
                         {"unsealed", tally_.unsealed},
                         {"uncommitted", tally_.uncommitted},
                         {"not_checked", tally_.not_checked},
                         {"checked_bytes", tally_.checked_bytes},
                         {"exit_status", static_cast<int>(tally_.outcome())}};
      print(json_text(json));
      return;
    }
    if (!arguments_.quiet) print(tally_.text(took_s));
    if (tally_.damaged > 0) {
      print_error(
          "the next start skips damaged files and opens the newest intact commit; if this happens repeatedly, have the "
          "node's memory or disk checked");
    } else if (tally_.not_checked == 0 && tally_.ok == 0) {
      print_error("nothing is sealed yet, so nothing was checked; try again after the next commit");
    }
  }

  const VerifyArguments& arguments_;
  std::shared_ptr<fs::FileSystem> file_system_;
  std::vector<Task> tasks_;
  std::vector<Finding> unreadable_;
  std::unique_ptr<Progress> progress_;
  Tally tally_;
  Json json_ = Json::array();
};

}  // namespace

Command add_verify(CLI::App& program) {
  auto arguments = std::make_shared<VerifyArguments>();
  CLI::App* parser = program.add_subcommand("verify", "Check every checksum of checkpoints, containers and parity");
  parser
      ->add_option(
          kCheckpointOperand, arguments->paths,
          "Tags on the prefix (latest: the newest), tag directories, whole prefixes, run directories on the node-local "
          "store, and single files in any of these")
      ->required();
  add_tag_options(*parser, arguments->prefix, arguments->run);
  parser->add_flag("--json", arguments->json, "JSON output for programs: every finding and the place of all damage");
  parser->add_flag("--quiet,-q", arguments->quiet, "Report only problems");
  parser->footer(
      "Exit status: 0 ok, 1 something is damaged or missing, 2 something could not be checked or nothing is sealed "
      "yet.\nUnsealed files are being written or free, directories without checkpoint.h5 are not committed: neither is "
      "damage.");
  return {parser, [arguments] { return Verification(*arguments).run(); }};
}

}  // namespace kedge::tools
