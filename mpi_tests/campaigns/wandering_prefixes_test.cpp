// A random walk of prefixes and stores that are moved, copied, linked, lost in part, set back and begun afresh, with
// several runs, parts of launches and tasks of arrays, against a model: no start takes up what the model says is
// another's, none begins from zero where the model has something, and none is refused without a reason.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "base/text.hpp"
#include "campaigns/wandering_model.hpp"
#include "engine/start/right_run.hpp"
#include "engine/start/variables.hpp"
#include "harness/named_communicator.hpp"
#include "harness/seeds.hpp"

namespace kedge::faults::wandering_test {
namespace {

// Some twice: they are met more often.
constexpr const char* kPlaces[] = {"/d0", "/d0", "/d1", "/d1", "/d2"};
constexpr const char* kRuns[] = {"a", "a", "a", "b", "c.left", "c.right"};
const std::string kLink = "/link/checkpoints";

class Walk {
 public:
  explicit Walk(std::uint64_t seed) : random_(seed) {
    job_.ranks_per_node = 1;
    job_.disk.make_directories("/link", 0755);
    for (const char* place : kPlaces) make(place);
  }

  void run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      if (draw(4) == 0) disturb();
      else start();
    }
  }
  std::string told;
  int opened = 0, refused = 0, zero = 0;

 private:
  std::uint64_t draw(std::uint64_t below) { return random_() % below; }
  template <std::size_t N>
  std::string any(const char* const (&of)[N]) {
    return of[draw(N)];
  }
  void tell(std::string line) { told += std::move(line) + "\n"; }
  static std::string prefix_of(const std::string& place) { return place + "/checkpoints"; }
  void make(const std::string& place) { job_.disk.make_directories(prefix_of(place), 0755); }

  void disturb() {
    const std::string from = any(kPlaces), to = any(kPlaces);
    switch (draw(9)) {
      case 0: return move(from, to);
      case 1: return copy(from, to);
      case 2:
        tell("link to " + from);
        job_.disk.remove_all(kLink);
        job_.disk.plant_link(kLink, prefix_of(from));
        return model_.link(kLink, prefix_of(from));
      case 3:
        if (draw(2) == 0) return;
        tell("remove " + from);
        job_.disk.remove_all(prefix_of(from));
        make(from);
        return model_.remove(prefix_of(from));
      case 4:
        tell("records of " + from + " lost");
        job_.disk.remove_all(prefix_of(from) + "/.kedge");
        return model_.lose_records(prefix_of(from));
      case 5: return lose_node(compose("/nodes/node{}", draw(2)));
      case 6:
        if (draw(3) != 0) return;
        lose_node("/nodes/node0");
        return lose_node("/nodes/node1");
      default: return set_back(from);
    }
  }

  void move(const std::string& from, const std::string& to) {
    if (from == to) return;
    tell("move " + from + " to " + to);
    job_.disk.remove_all(to);
    job_.disk.view(0)->rename(from, to);
    make(from);
    model_.move(prefix_of(from), prefix_of(to));
  }
  void copy(const std::string& from, const std::string& to) {
    if (from == to) return;
    tell("copy " + from + " to " + to);
    job_.disk.remove_all(to);
    copy_tree(job_.disk.snapshot(), from, to);
    model_.copy(prefix_of(from), prefix_of(to));
  }
  void copy_tree(const FaultyDisk::Snapshot& source, const std::string& from, const std::string& to) {
    for (const auto& [path, entry] : source) {
      if (path != from && !path.starts_with(from + "/")) continue;
      const std::string target = to + path.substr(from.size());
      if (entry.status.kind == fs::FileStatus::Kind::directory) job_.disk.make_directories(target, entry.status.mode);
      else job_.disk.write_all(target, entry.bytes);
    }
  }
  /// Records alone, to what they were a while ago.
  void set_back(const std::string& place) {
    const std::string records = prefix_of(place) + "/.kedge";
    if (!kept_.contains(place) || draw(2) == 0) {
      kept_[place] = job_.disk.snapshot();
      return model_.keep_records(prefix_of(place));
    }
    if (!kept_[place].contains(records)) return;
    tell("records of " + place + " set back");
    job_.disk.remove_all(records);
    copy_tree(kept_[place], records, records);
    model_.set_back_records(prefix_of(place));
  }
  void lose_node(const std::string& node) {
    tell("lost " + node);
    job_.disk.remove_all(node);
    model_.lose_node();
  }

  void stand(const std::string& path, const std::string& run) {
    job_.options.persistent.path = path;
    const std::size_t dot = run.find('.');
    job_.options.run = run.substr(0, dot);
    const std::string name = dot == std::string::npos ? "" : run.substr(dot + 1);
    job_.in_front = [name](int /*rank*/, std::unique_ptr<Communicator> own) {
      return std::make_unique<NamedCommunicator>(std::move(own), name);
    };
    launch(compose("launch{}", ++launches_), 0, "");
  }
  void launch(const std::string& key, int first, const std::string& task) {
    const std::string process = compose("vm/{}@1", ++processes_);
    Variables variables = {{"OMPI_MCA_orte_precondition_transports", key},
                           {"OMPI_COMM_WORLD_RANK", std::to_string(first)},
                           {"OMPI_COMM_WORLD_SIZE", compose("{}", 10 + launches_)}};
    if (!task.empty()) variables.insert({{"SLURM_ARRAY_JOB_ID", "77"}, {"SLURM_ARRAY_TASK_ID", task}});
    job_.surroundings = [=](int /*rank*/, start::Environment& environment) {
      environment.find_variable = from(variables);
      environment.processes = {process, "vm/3@1", ""};
    };
  }

  /// One start, and what it commits.
  void start() {
    const bool by_link = draw(4) == 0 && model_.target(kLink);
    const std::string path = by_link ? kLink : prefix_of(any(kPlaces));
    const std::string prefix = by_link ? *model_.target(kLink) : path;
    const std::string run = any(kRuns);
    stand(path, run);
    job_.advance_clock(std::chrono::seconds(1));
    job_.options.persistent.every = draw(2);
    Steps then;
    for (int step = next_, end = next_ + static_cast<int>(draw(3)); step < end; ++step) {
      then.emplace_back(compose("s{}", step), step);
    }
    const Opened found = reopen(job_, latest, Newer::keep, then);
    tell(compose("start of {} at {} ({}), {} commits, every {}: {}", run, path, prefix, then.size(),
                 job_.options.persistent.every,
                 found.failure ? to_string(*found.failure) : found.tag.value_or("from zero")));
    if (found.failure) return refuse(path, prefix, run, *found.failure);
    judge(prefix, path, run, found);
    commit({prefix, path, run}, then, found.tag ? std::optional(found.step) : std::nullopt);
    if (!then.empty() && draw(4) == 0) others(run);
  }

  void judge(const std::string& prefix, const std::string& path, const std::string& run, const Opened& found) {
    if (found.tag) ++opened;
    else ++zero;
    const std::string wrong =
        found.tag ? model_.wrong_step({prefix, path, run}, found.step) : model_.wrong_zero({prefix, path, run});
    EXPECT_EQ(wrong, "") << "\n" << told;
  }
  void commit(const Where& where, const Steps& then, std::optional<int> step) {
    model_.started(where, step);
    for (const auto& [tag, number] : then) model_.committed(where, number, job_.options.persistent.every == 1);
    next_ += static_cast<int>(then.size());
  }

  /// Another part of the same launch, and a task of an array where there was none, take nothing up.
  void others(const std::string& run) {
    if (run.find('.') != std::string::npos) return;
    launch(compose("launch{}", launches_), 4, "");
    const Opened part = reopen(job_);
    EXPECT_EQ(part.failure.value_or(Failure{}).code, ErrorCode::mismatch) << "another part\n" << told;
    tell("another part is refused");
  }

  void refuse(const std::string& path, const std::string& prefix, const std::string& run, const Failure& failure) {
    ++refused;
    EXPECT_TRUE(model_.may_refuse({prefix, path, run})) << to_string(failure) << "\n" << told;
    EXPECT_TRUE(failure.code == ErrorCode::mismatch || failure.code == ErrorCode::unrecoverable ||
                failure.code == ErrorCode::corrupt)
        << to_string(failure) << "\n"
        << told;
    EXPECT_TRUE(says(failure.message, {"KEDGE_START=fresh"}) || says(failure.message, {"KEDGE_RUN"}))
        << failure.message;
    const auto way = draw(3);
    if (way == 0) {  // as kedge drop
      if (!failure.path.starts_with("/nodes/node")) return;
      tell("drop " + failure.path);
      const std::string store = failure.path.substr(std::string("/nodes/node0").size());
      for (const char* node : {"/nodes/node0", "/nodes/node1"}) job_.disk.remove_all(node + store);
      return model_.lose_node();
    }
    job_.options.start = way == 1 ? StartMode::adopt : StartMode::fresh;
    stand(path, run);
    job_.advance_clock(std::chrono::seconds(1));
    const Opened found = reopen(job_, latest, Newer::keep, {{compose("s{}", next_), next_}});
    tell(compose("  {}: {}", way == 1 ? "adopt" : "fresh",
                 found.failure ? to_string(*found.failure) : found.tag.value_or("from zero")));
    job_.options.start = StartMode::continue_;
    if (found.failure) {
      EXPECT_EQ(way, 1U) << "fresh always works: " << to_string(*found.failure) << "\n" << told;
      return;
    }
    if (way == 1) {
      EXPECT_EQ(found.tag ? model_.wrong_adoption({prefix, path, run}, found.step) : "adopted nothing", "") << told;
      model_.adopted({prefix, path, run}, found.step);
    } else {
      EXPECT_FALSE(found.tag) << told;
      model_.begun_afresh({prefix, path, run});
    }
    model_.committed({prefix, path, run}, next_++, job_.options.persistent.every == 1);
  }

  std::mt19937_64 random_;
  SimulatedJob job_{2};
  Model model_;
  std::map<std::string, FaultyDisk::Snapshot> kept_;
  int next_ = 1, launches_ = 0, processes_ = 10;
};

TEST(WanderingPrefixes, NoStartTakesUpWhatIsAnothersOrBeginsFromZeroWhereThereIsSomething) {
  int opened = 0, refused = 0, zero = 0;
  for_each_seed({4, 100}, "campaigns", [&](std::uint64_t seed) {
    Walk walk(seed);
    walk.run(150);
    opened += walk.opened, refused += walk.refused, zero += walk.zero;
  });
  // Each outcome is met often: a walk that meets none of a kind shows nothing.
  EXPECT_GT(std::min({opened, refused, zero}), Seeds::alone() ? 0 : 20) << opened << " " << refused << " " << zero;
}

}  // namespace
}  // namespace kedge::faults::wandering_test
