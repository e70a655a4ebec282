// kedge drop STORE... | PREFIX --run NAME: frees what jobs left behind, after a list and a question.
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "base/attempt.hpp"
#include "base/options_load.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "fs/tree.hpp"
#include "persist/posix_tier.hpp"
#include "persist/prefix_runs.hpp"
#include "persist/run_records.hpp"
#include "persist/tag_directory.hpp"
#include "persist/tags.hpp"
#include "store/file_name.hpp"
#include "store/node_records.hpp"
#include "tools/outcome.hpp"
#include "tools/place.hpp"
#include "tools/table.hpp"
#include "tools/words.hpp"

namespace kedge::tools {
namespace {

using Kind = fs::FileStatus::Kind;

struct Arguments {
  std::vector<std::string> stores;
  std::string prefix;
  std::string run;
  bool yes = false;
};

[[noreturn]] void refuse(ErrorCode code, std::string message, const std::string& path) {
  throw Error(Failure{code, std::move(message), -1, path, 0});
}

/// A run's directory on this node.
struct Store {
  std::string directory;
  store::StoreRecord record;
  std::vector<std::string> files;  // that are Kedge's, by name; also directories of routed files
  std::uint64_t bytes = 0;
  std::string used_by;  // who holds a lock in it
};

Store look_at(fs::FileSystem& file_system, const std::string& path) {
  const auto status = status_of(file_system, path);
  if (!status) refuse(ErrorCode::not_found, "there is no such directory; check the path", path);
  Store found;
  found.directory = file_system.canonical(path);
  if (!store::is_private(file_system, found.directory)) {
    refuse(ErrorCode::mismatch,
           "not a store of yours: a store is a directory kedge-<uid>-<run>-<8 digits> that nobody else can read", path);
  }
  found.record = store::read_store_record(file_system, found.directory);
  if (found.record.run_id.is_none()) {
    refuse(ErrorCode::mismatch, "not a store: it has no valid file 'run'; if it is one, remove it by hand", path);
  }
  for (const std::string& name : file_system.list(found.directory)) {
    const std::string file = fs::join(found.directory, name);
    const auto here = file_system.status(file);
    if (!store::is_store_file(name) || !here) continue;
    if (here->kind == Kind::directory && name.starts_with(store::kRoutedPrefix)) {
      found.files.push_back(name);
      (void)attempt([&] {  // a job that is there removes them meanwhile
        for (const fs::TreeFile& routed : fs::files_below(file_system, file)) {
          if (routed.status.kind == Kind::file) found.bytes += routed.status.size_bytes;
        }
      });
      continue;
    }
    if (here->kind != Kind::file) continue;
    found.files.push_back(name);
    found.bytes += here->size_bytes;
    if (!name.starts_with("lock.")) continue;
    if (auto holder = file_system.lock_holder(file)) found.used_by = std::move(*holder);
  }
  return found;
}

/// This user's stores in the default places on this node.
std::vector<Store> stores_here(fs::FileSystem& file_system) {
  const std::string begin = compose("kedge-{}-", file_system.user());
  std::vector<std::string> roots = store::usual_roots(process_variable);
  std::ranges::sort(roots);
  roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
  std::vector<Store> found;
  for (const std::string& root : roots) {
    (void)attempt([&] {
      for (const std::string& name : file_system.list(root)) {
        if (!name.starts_with(begin)) continue;
        (void)attempt([&] { found.push_back(look_at(file_system, fs::join(root, name))); });
      }
    });
  }
  return found;
}

std::string text_of(const std::vector<Store>& stores) {
  Table table("llrlp");
  table.add({"store", "run id", "bytes", "in use by", "prefix"});
  for (const Store& one : stores) {
    table.add({printable(one.directory), short_id(one.record.run_id), human_bytes(one.bytes),
               one.used_by.empty() ? "-" : printable(one.used_by), printable(one.record.prefix)});
  }
  return table.text();
}

/// False if the user says no, or cannot be asked.
bool is_confirmed(const std::string& question, bool yes) {
  if (yes) return true;
  if (::isatty(STDIN_FILENO) == 0) {
    complain("nothing was removed: standard input is not a terminal; use --yes");
    return false;
  }
  print(question + " [y/N] ");
  std::cout.flush();
  std::string answer;
  std::getline(std::cin, answer);
  if (answer == "y" || answer == "yes") return true;
  complain("nothing was removed");
  return false;
}

/// The containers first: what says whose they were goes last, so that half a removal is seen as that.
void remove(fs::FileSystem& file_system, const Store& one) {
  for (const bool containers : {true, false}) {
    for (const std::string& name : one.files) {
      if (store::parse_file_name(name).has_value() == containers) {
        fs::remove_tree(file_system, fs::join(one.directory, name));
      }
    }
  }
  const std::size_t left = file_system.list(one.directory).size();
  if (left == 0) return file_system.remove(one.directory);
  complain(compose("{} is not removed: {} not written by Kedge remain{}", printable(one.directory),
                   count_text(left, "file"), left == 1 ? "s" : ""));
}

void refuse_if_used(const Store& one) {
  if (one.used_by.empty()) return;
  refuse(ErrorCode::busy, compose("a job is using it ({}); end that first", printable(one.used_by)), one.directory);
}

Outcome drop_stores(fs::FileSystem& file_system, const Arguments& arguments) {
  std::vector<Store> stores;
  for (const std::string& path : arguments.stores) stores.push_back(look_at(file_system, path));
  print(text_of(stores));
  for (const Store& one : stores) refuse_if_used(one);
  if (!is_confirmed(stores.size() == 1 ? "Remove this store?" : "Remove these stores?", arguments.yes))
    return Outcome::cannot_look;
  for (const std::string& path : arguments.stores) {
    const Store now = look_at(file_system, path);  // a job may have started while the user thought about it
    refuse_if_used(now);
    remove(file_system, now);
  }
  return Outcome::ok;
}

/// A run's commits and records on a prefix.
class RunOnPrefix {
 public:
  RunOnPrefix(std::shared_ptr<fs::FileSystem> file_system, const std::string& prefix, const std::string& run)
      : file_system_(std::move(file_system)), prefix_(file_system_->canonical(prefix)), run_(run) {
    for (const persist::TagEntry& entry : persist::list_tags(*file_system_, prefix_).entries) {
      const auto status = file_system_->status(fs::join(prefix_, entry.directory));
      if (entry.run == run && status && status->owner == file_system_->user()) entries_.push_back(entry);
    }
    const std::string records = persist::records_directory(prefix_, run_);
    if (entries_.empty() && !file_system_->status(records)) {
      const auto runs = persist::runs_with_checkpoints(*file_system_, prefix_);
      std::string list;
      for (const std::string& one : runs) list += (list.empty() ? "" : ", ") + one;
      refuse(ErrorCode::not_found,
             compose("there is no run '{}' on this prefix{}", printable(run),
                     list.empty() ? "" : compose("; there are: {}", printable(list))),
             prefix);
    }
  }

  [[nodiscard]] std::string text() const {
    Table table("lrlr");
    table.add({"tag", "generation", "time (UTC)", "bytes"});
    std::uint64_t bytes = 0;
    for (const persist::TagEntry& entry : entries_) {
      table.add({printable(entry.commit.tag), compose("{}", entry.commit.generation), utc_cell(entry.commit.time_ns),
                 human_bytes(entry.total_bytes)});
      bytes += entry.total_bytes;
    }
    return folded(compose("{}run '{}' on {}: {}, {}\n", entries_.empty() ? "" : table.text(), printable(run_),
                          printable(prefix_), count_text(entries_.size(), "checkpoint"), human_bytes(bytes)));
  }

  /// As a later start would: a job of this run that is still there can commit nothing any more. Notes and records go
  /// last: half a removal is not taken for a run that never had a checkpoint.
  void remove() {
    persist::RunRecords records(file_system_, prefix_, run_);
    (void)records.take_incarnation();
    const persist::RunRecord record = records.read_record().record.value_or(persist::RunRecord{});
    run_id_ = record.run_id;
    records.begin_incarnation(record);
    persist::PosixTier tier(file_system_, prefix_, {}, &records);
    for (const persist::TagEntry& entry : entries_) tier.remove(entry);
    if (const std::vector<std::string> problems = tier.sweep({}); !problems.empty()) {
      refuse(ErrorCode::io, compose("not all of it could be removed; try again: {}", printable(problems.front())),
             prefix_);
    }
    const std::string directory = persist::records_directory(prefix_, run_);
    for (const std::string& name : file_system_->list(directory)) file_system_->remove(fs::join(directory, name));
    file_system_->remove(directory);
    remove_latest();
    file_system_->sync_directory(persist::records_directory(prefix_));
  }

  /// Its stores in the default places of this node, in words: they are not the prefix's.
  [[nodiscard]] std::string stores_text() const {
    std::string text;
    for (const Store& one : stores_here(*file_system_)) {
      if (one.record.run_id != run_id_ || one.record.prefix != prefix_) continue;
      text += compose("its store on this node is still there; to free it: kedge drop {}\n", printable(one.directory));
    }
    return text;
  }

 private:
  /// If it named a checkpoint of this run.
  void remove_latest() const {
    const std::string latest = fs::join(prefix_, persist::kLatestFile);
    (void)attempt([&] {
      const auto named = tag_directory_at(*file_system_, latest);
      const auto is_it = [&](const persist::TagEntry& entry) { return entry.directory == named->directory; };
      if (named && std::ranges::any_of(entries_, is_it)) file_system_->remove(latest);
    });
  }

  std::shared_ptr<fs::FileSystem> file_system_;
  std::string prefix_;
  std::string run_;
  Id128 run_id_;                            // once it was removed
  std::vector<persist::TagEntry> entries_;  // newest first
};

Outcome drop_run(const std::shared_ptr<fs::FileSystem>& file_system, const Arguments& arguments) {
  if (!arguments.stores.empty()) {
    refuse(ErrorCode::invalid_argument, "name either stores, or a run with --run and its prefix with --prefix", {});
  }
  const std::string prefix = arguments.prefix.empty() ? configured_prefix() : arguments.prefix;
  if (!status_of(*file_system, prefix)) refuse(ErrorCode::not_found, "there is no such prefix; check the path", prefix);
  if (arguments.run.find('/') != std::string::npos || arguments.run.starts_with('.'))
    refuse(ErrorCode::invalid_argument, compose("'{}' is not the name of a run", printable(arguments.run)), {});
  RunOnPrefix run(file_system, prefix, arguments.run);
  print(run.text());
  if (!is_confirmed("Remove all of it?", arguments.yes)) return Outcome::cannot_look;
  run.remove();
  print(run.stores_text());
  return Outcome::ok;
}

Outcome drop(const Arguments& arguments) {
  const auto file_system = fs::posix_file_system();
  if (!arguments.run.empty()) return drop_run(file_system, arguments);
  if (!arguments.prefix.empty())
    refuse(ErrorCode::invalid_argument, "--prefix needs --run; kedge ls lists the runs of a prefix", arguments.prefix);
  if (!arguments.stores.empty()) return drop_stores(*file_system, arguments);
  const std::vector<Store> stores = stores_here(*file_system);
  print(stores.empty() ? std::string("you have no stores on this node\n") : text_of(stores));
  return Outcome::ok;
}

}  // namespace

Command add_drop(CLI::App& program) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* parser = program.add_subcommand("drop", "Free node-local stores, or a run on a prefix");
  parser->add_option("STORE", arguments->stores,
                     "Stores on this node to remove; default: list yours in the default places");
  parser->add_option("--run", arguments->run, "Remove all checkpoints and records of this run on the prefix")
      ->type_name("NAME");
  parser
      ->add_option("--prefix", arguments->prefix, "The prefix of --run; default: the configured one (persistent.path)")
      ->type_name("PREFIX");
  parser->add_flag("-y,--yes", arguments->yes, "Do not ask");
  parser->footer(
      "Lists what will be removed, and asks. A store that a job is using is refused; a job whose run is removed from "
      "the prefix can commit nothing there any more.\n"
      "Exit status: 0, or 2 if nothing was removed.");
  return {parser, [arguments] { return drop(*arguments); }};
}

}  // namespace kedge::tools
