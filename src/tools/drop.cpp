// kedge drop STORE... | PREFIX --run NAME: removes what jobs left behind, after showing it and asking.
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "persist/prefix_runs.hpp"
#include "persist/tag_directory.hpp"
#include "store/location.hpp"
#include "store/store_removal.hpp"
#include "tools/node_stores.hpp"
#include "tools/outcome.hpp"
#include "tools/tag_location.hpp"
#include "tools/text_format.hpp"

namespace kedge::tools {
namespace {

struct DropArguments {
  std::vector<std::string> stores;
  std::string prefix;
  std::string run;
  std::string job;
  bool yes = false;
};

std::string text_of(const std::vector<Store>& stores) {
  Table table("lllrlp");
  table.add({"store", "run id", "job", "bytes", "in use by", "prefix"});
  for (const Store& one : stores) {
    table.add({printable(one.directory), short_id(one.content.record.run_id),
               one.content.job.empty() ? "-" : printable(one.content.job), human_bytes(one.content.bytes),
               one.content.used_by.empty() ? "-" : printable(one.content.used_by),
               printable(one.content.record.prefix)});
  }
  return table.text();
}

/// False if the user says no or cannot be asked.
bool is_confirmed(const std::string& question, bool yes) {
  if (yes) return true;
  if (::isatty(STDIN_FILENO) == 0) {
    print_error("nothing was removed: standard input is not a terminal; use --yes");
    return false;
  }
  print(question + " [y/N] ");
  std::cout.flush();
  std::string answer;
  if (!std::getline(std::cin, answer)) print("\n");  // ends the line at end of input
  if (answer == "y" || answer == "yes") return true;
  print_error("nothing was removed");
  return false;
}

void refuse_if_used(const Store& one) {
  if (one.content.used_by.empty()) return;
  refuse(ErrorCode::busy, compose("in use by a job ({}); end that job first", printable(one.content.used_by)),
         one.directory);
}

Outcome remove_one(fs::FileSystem& file_system, const std::string& directory) {
  const std::size_t left = store::remove_store(file_system, directory);
  if (left == 0) {
    print(compose("freed {}\n", printable(directory)));
    return Outcome::ok;
  }
  print_error(compose("{} is not removed: {} not written by Kedge remain{}", printable(directory),
                      count_text(left, "file"), left == 1 ? "s" : ""));
  return Outcome::not_checked;
}

Outcome drop_stores(fs::FileSystem& file_system, const DropArguments& arguments) {
  std::vector<Store> stores;
  for (const std::string& path : arguments.stores) stores.push_back(open_store(file_system, path));
  print(text_of(stores));
  for (const Store& one : stores) refuse_if_used(one);
  if (!is_confirmed(stores.size() == 1 ? "Remove this store?" : "Remove these stores?", arguments.yes))
    return Outcome::not_checked;
  Outcome outcome = Outcome::ok;
  for (const Store& one : stores) outcome = std::max(outcome, remove_one(file_system, one.directory));
  return outcome;
}

/// A failure with one store does not prevent removing the others.
Outcome drop_of_job(fs::FileSystem& file_system, const DropArguments& arguments) {
  const std::string job = job_name(arguments.job);
  std::vector<std::string> paths = arguments.stores;
  if (paths.empty()) {
    for (const Store& one : find_stores(file_system)) paths.push_back(one.directory);
  }
  std::vector<std::string> of_job;
  Outcome outcome = Outcome::ok;
  const auto with_each = [&](const std::vector<std::string>& stores, auto&& step) {
    for (const std::string& path : stores) {
      if (const auto failure = attempt([&] { step(open_store(file_system, path)); })) {
        outcome = std::max(outcome, report_failed_attempt(*failure));
      }
    }
  };
  with_each(paths, [&](const Store& one) {
    if (one.content.job == job) return of_job.push_back(one.directory);
    print(compose("kept {}: {}\n", printable(one.directory),
                  one.content.job.empty() ? "no job is recorded there; to free it: kedge drop, with its path"
                                          : compose("job {} used it last", printable(one.content.job))));
  });
  if (of_job.empty()) return outcome;
  if (!is_confirmed(compose("Remove {} of job {}?", count_text(of_job.size(), "store"), printable(job)), arguments.yes))
    return Outcome::not_checked;
  with_each(of_job, [&](const Store& one) {
    refuse_if_used(one);
    outcome = std::max(outcome, remove_one(file_system, one.directory));
  });
  return outcome;
}

/// Throws if the run has neither records nor checkpoints.
persist::RunOnPrefix find_run(fs::FileSystem& file_system, const std::string& prefix, const std::string& run) {
  persist::RunOnPrefix found = persist::find_run_on_prefix(file_system, prefix, run);
  if (!found.entries.empty() || file_system.status(persist::records_directory(prefix, run))) return found;
  std::string list;
  for (const std::string& one : persist::runs_with_checkpoints(file_system, prefix)) {
    list += (list.empty() ? "" : ", ") + one;
  }
  refuse(ErrorCode::not_found,
         compose("there is no run '{}' on this prefix{}", printable(run),
                 list.empty() ? "" : compose("; there are: {}", printable(list))),
         prefix);
}

std::string text_of(const persist::RunOnPrefix& found, const std::string& prefix, const std::string& run) {
  Table table("lrlrll");
  table.add({"tag", "generation", "time (UTC)", "bytes", "pinned", "run id"});
  std::uint64_t bytes = 0;
  for (const persist::TagEntry& entry : found.entries) {
    table.add({printable(entry.commit.tag), compose("{}", entry.commit.generation), utc_cell(entry.commit.time_ns),
               human_bytes(entry.total_bytes), entry.pinned ? "pinned" : "-", short_id(entry.commit.run_id)});
    bytes += entry.total_bytes;
  }
  return fold(compose("{}run '{}' on {}: {}, {}\n", found.entries.empty() ? "" : table.text(), printable(run),
                      printable(prefix), count_text(found.entries.size(), "checkpoint"), human_bytes(bytes)));
}

/// Removes `latest` if it names one of these.
void remove_latest(fs::FileSystem& file_system, const std::string& prefix,
                   const std::vector<persist::TagEntry>& entries) {
  const std::string latest = fs::join(prefix, persist::kLatestFile);
  (void)attempt([&] {
    const auto named = tag_directory_at(file_system, latest);
    const auto is_it = [&](const persist::TagEntry& entry) { return entry.directory == named->directory; };
    if (named && std::ranges::any_of(entries, is_it)) file_system.remove(latest);
  });
}

/// Text about the remains of a removed run.
std::string remains_text(fs::FileSystem& file_system, const std::string& prefix, const std::string& run,
                         const persist::RunOnPrefix& removed) {
  std::string text;
  for (const std::string& directory : removed.unreadable) {
    text += compose("{} is not removed: its manifest cannot be read, so it may be another run's\n",
                    printable(fs::join(prefix, directory)));
  }
  for (const Store& one : find_stores(file_system)) {
    const store::StoreRecord& record = one.content.record;
    // Another run's name may begin with this one's. The node follows after an @.
    const std::string name = one.directory.substr(one.directory.rfind('/') + 1);
    const std::string of_run = name.substr(0, name.find('@'));
    if (record.prefix != prefix || !store::is_directory_of(of_run, file_system.user(), {}, run, record.prefix_id))
      continue;
    text += compose("a store of it on this node is still there; to free it: kedge drop {}\n",
                    printable(shell_word(one.directory)));
  }
  return text;
}

Outcome drop_run(const std::shared_ptr<fs::FileSystem>& file_system, const DropArguments& arguments) {
  if (!arguments.stores.empty() || !arguments.job.empty()) {
    refuse(ErrorCode::invalid_argument, "name either stores, or a run with --run and its prefix with --prefix", {});
  }
  const std::string given = arguments.prefix.empty() ? configured_prefix() : arguments.prefix;
  if (!status_of(*file_system, given))
    refuse(ErrorCode::not_found, missing_prefix_message(arguments.prefix.empty()), given);
  if (arguments.run.find('/') != std::string::npos || arguments.run.starts_with('.')) {
    refuse(ErrorCode::invalid_argument,
           compose("'{}' is not the name of a run; the first line of a job's log gives it", printable(arguments.run)),
           {});
  }
  const std::string prefix = file_system->canonical(given);
  print(text_of(find_run(*file_system, prefix, arguments.run), prefix, arguments.run));
  if (!is_confirmed("Remove all of it?", arguments.yes)) return Outcome::not_checked;
  const persist::RunOnPrefix removed = persist::remove_run(file_system, prefix, arguments.run);
  remove_latest(*file_system, prefix, removed.entries);
  print(remains_text(*file_system, prefix, arguments.run, removed));
  return removed.unreadable.empty() ? Outcome::ok : Outcome::not_checked;
}

Outcome drop(const DropArguments& arguments) {
  const auto file_system = fs::posix_file_system();
  if (!arguments.run.empty()) return drop_run(file_system, arguments);
  if (!arguments.prefix.empty())
    refuse(ErrorCode::invalid_argument, "--prefix needs --run; kedge ls --json names the run of each checkpoint",
           arguments.prefix);
  if (!arguments.job.empty()) return drop_of_job(*file_system, arguments);
  if (!arguments.stores.empty()) return drop_stores(*file_system, arguments);
  const std::vector<Store> stores = find_stores(*file_system);
  print(stores.empty() ? std::string("you have no stores on this node\n")
                       : text_of(stores) + "to free one: kedge drop STORE\n");
  return Outcome::ok;
}

}  // namespace

Command add_drop(CLI::App& program) {
  auto arguments = std::make_shared<DropArguments>();
  // An empty variable in a script must not change the meaning.
  const CLI::Validator not_empty([](const std::string& text) { return std::string(text.empty() ? "is empty" : ""); },
                                 "");
  CLI::App* parser = program.add_subcommand("drop", "Free node-local stores, or a run on a prefix");
  parser->add_option("STORE", arguments->stores,
                     "Stores on this node to remove; default: list yours in the default places");
  parser
      ->add_option("--run", arguments->run,
                   "Remove all checkpoints and records of this name on the prefix, also those that start = fresh left")
      ->check(not_empty)
      ->type_name("NAME");
  parser
      ->add_option("--prefix", arguments->prefix, "The prefix of --run; default: the configured one (persistent.path)")
      ->check(not_empty)
      ->type_name("PREFIX");
  parser
      ->add_option("--job", arguments->job,
                   "Only stores that this job of the batch system used last; of the others, says why they stay")
      ->check(not_empty)
      ->type_name("ID");
  parser->add_flag("-y,--yes", arguments->yes, "Do not ask");
  parser->footer(
      "Lists what will be removed, pinned checkpoints included, and asks. A store that a job is using is refused; "
      "a job whose run is removed from the prefix can no longer commit to it.\n"
      "Exit status: 0, 75 if another attempt may succeed (a job uses it), or 2 if not all of it was removed.");
  return {parser, [arguments] {
            Outcome outcome = Outcome::ok;
            const auto failure = attempt([&] { outcome = drop(*arguments); });
            return failure ? report_failed_attempt(*failure) : outcome;
          }};
}

}  // namespace kedge::tools
