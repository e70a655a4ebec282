#include "harness/history.hpp"

#include <optional>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "format/container_reader.hpp"
#include "harness/full_test.hpp"

namespace kedge::faults {
namespace {

std::string tag_of_step(int step) { return "step-" + std::to_string(step); }
int step_of(const Tag& tag) { return std::stoi(tag.substr(5)); }

/// No two ranks or steps have a value in common.
std::vector<double> field_of(int rank, int step) {
  std::vector<double> field(full_test() ? 20000 : 600);
  for (std::size_t i = 0; i < field.size(); ++i) field[i] = rank * 1e6 + step * 1e9 + static_cast<double>(i);
  return field;
}
std::vector<std::int32_t> extra_of(int rank, int step) {
  std::vector<std::int32_t> extra(200, 1000 * step + rank);
  return extra;
}
bool has_extra(int step) { return step % 3 == 0; }

template <class Value>
void load_and_compare(Engine& engine, const std::string& name, const std::vector<Value>& expected, int rank,
                      Ledger& ledger) {
  std::vector<Value> loaded(expected.size());
  const Status status = engine.load(name, mutable_region(std::span(loaded)));
  if (!status) ledger.problem(compose("rank {} cannot load {}: {}", rank, name, to_string(status.failure())));
  else if (loaded != expected) ledger.problem(compose("rank {} loads wrong values of {}", rank, name));
}

void check_file_counts(const SimulatedJob& job, std::string_view when, std::vector<std::string>& problems) {
  for (int rank = 0; rank < job.ranks; ++rank) {
    const std::size_t files = container_files(job.disk, rank).size();
    // One being written, or so many under way, and the newest protected one where not every commit is.
    const Options& options = job.options;
    const std::uint32_t under_way =
        options.pipeline.mode == PipelineMode::background ? options.pipeline.max_pending : 1;
    if (files > options.store.keep + under_way + (options.redundancy.every > 1 ? 1 : 0)) {
      problems.push_back(compose("{} rank {} has {} container files", when, rank, files));
    }
  }
}

/// Where more than one is kept, the one before the newest is there as well.
void check_previous(Engine& engine, int rank, int newest, Ledger& ledger) {
  if (newest < 2) return;
  const int older = open_and_check(engine, rank, ledger, Before{tag_of_step(newest)});
  if (older != newest - 1) ledger.problem(compose("before step {} step {} was opened", newest, older));
  // Back to the newest, so that the next commit has it as parent.
  (void)open_and_check(engine, rank, ledger);
}

std::string describe(const testing::RankOutcome& outcome) {
  if (outcome.died) return "it died";
  if (outcome.failure) return to_string(*outcome.failure);
  return outcome.exception ? "another exception" : "it returned";
}

}  // namespace

void Ledger::begun(int step) {
  const std::lock_guard guard(mutex_);
  begun_.insert(step);
}
void Ledger::returned(int step) {
  const std::lock_guard guard(mutex_);
  returned_.insert(step);
}
void Ledger::is_protected(int step) {
  const std::lock_guard guard(mutex_);
  protected_.insert(step);
}
void Ledger::is_persistent(int step) {
  const std::lock_guard guard(mutex_);
  persistent_.insert(step);
}
void Ledger::failed(int step) {
  const std::lock_guard guard(mutex_);
  begun_.erase(step);
}
void Ledger::problem(std::string text) {
  const std::lock_guard guard(mutex_);
  problems_.push_back(std::move(text));
}
int Ledger::newest_begun() const {
  const std::lock_guard guard(mutex_);
  return begun_.empty() ? 0 : *begun_.rbegin();
}
int Ledger::newest_returned() const {
  const std::lock_guard guard(mutex_);
  return returned_.empty() ? 0 : *returned_.rbegin();
}
int Ledger::newest_protected() const {
  const std::lock_guard guard(mutex_);
  return protected_.empty() ? 0 : *protected_.rbegin();
}
int Ledger::newest_persistent() const {
  const std::lock_guard guard(mutex_);
  return persistent_.empty() ? 0 : *persistent_.rbegin();
}
bool Ledger::may_be_opened(int step) const {
  const int newest = newest_returned();
  const std::lock_guard guard(mutex_);
  return step == newest || (step > newest && begun_.contains(step));
}
std::vector<std::string> Ledger::problems() const {
  const std::lock_guard guard(mutex_);
  return problems_;
}

void checkpoint(Engine& engine, int rank, int step, Ledger& ledger, std::size_t more_bytes) {
  const auto field = field_of(rank, step);
  const auto extra = extra_of(rank, step);
  const std::vector<std::byte> more(more_bytes);
  ledger.begun(step);
  engine.create(tag_of_step(step));
  (void)engine.save("state/field", region(std::span(field)));
  if (has_extra(step)) (void)engine.save("state/extra", region(std::span(extra)));
  if (more_bytes != 0) (void)engine.save("more", region(std::span(more)));
  engine.commit();
  ledger.returned(step);
  if (engine.level(tag_of_step(step)) >= Level::protected_) ledger.is_protected(step);
  if (engine.level(tag_of_step(step)) == Level::persistent) ledger.is_persistent(step);
}

int open_and_check(Engine& engine, int rank, Ledger& ledger, const Selection& selection) {
  const std::optional<Tag> tag = engine.open(selection);
  if (!tag) return 0;
  const int step = step_of(*tag);
  ledger.returned(step);  // what was opened once may not be lost any more than what was committed
  if (engine.level(*tag) >= Level::protected_) ledger.is_protected(step);
  load_and_compare(engine, "state/field", field_of(rank, step), rank, ledger);
  if (has_extra(step)) load_and_compare(engine, "state/extra", extra_of(rank, step), rank, ledger);
  engine.close();
  return step;
}

void run_application(RankScope& scope, int count, Ledger& ledger, bool finalize) {
  Engine engine = scope.make_engine();
  int step = open_and_check(engine, scope.rank, ledger);
  for (int i = 0; i < count; ++i) checkpoint(engine, scope.rank, ++step, ledger);
  if (finalize) engine.finalize();
}

std::vector<std::string> half_made_containers(SimulatedJob& job) {
  std::vector<std::string> problems;
  const auto file_system = job.disk.view(0);
  for (int rank = 0; rank < job.ranks; ++rank) {
    for (const std::string& path : container_files(job.disk, rank)) {
      const auto file = file_system->open(path, fs::Access::read);
      const std::uint64_t size_bytes = file->status().size_bytes;
      // Without a valid superblock it is no container: that is what unsealing and a torn seal leave.
      std::vector<std::byte> first(4096);
      if (size_bytes < first.size()) continue;
      (void)file->read_with_crc(0, first, 0);
      if (attempt([&] { (void)format::decode_superblock(first, path); })) continue;
      const auto failure = attempt([&] {
        const auto damages = format::ContainerReader(*file, size_bytes, path).verify();
        if (!damages.empty()) throw Error(ErrorCode::corrupt, damages.front().description + " is damaged");
      });
      if (failure) problems.push_back(path + " is sealed and not whole: " + failure->message);
    }
  }
  return problems;
}

std::vector<std::string> check_survivors(const std::vector<testing::RankOutcome>& outcomes, int victim) {
  std::vector<std::string> problems;
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    const testing::RankOutcome& outcome = outcomes[rank];
    if (outcome.died && (victim < 0 || static_cast<std::size_t>(victim) == rank)) continue;
    if (outcome.returned() || (outcome.failure && outcome.failure->code == ErrorCode::timeout)) continue;
    problems.push_back(compose("rank {} should have timed out: {}", rank, describe(outcome)));
  }
  return problems;
}

std::vector<std::string> check_after_crash(SimulatedJob& job, Ledger& ledger) {
  std::vector<std::string> problems = half_made_containers(job);
  check_file_counts(job, "before the restart", problems);
  const int next = ledger.newest_begun() + 1;
  std::vector<int> opened(static_cast<std::size_t>(job.ranks), -1);
  Ledger after;
  const auto outcomes = job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    opened[static_cast<std::size_t>(scope.rank)] = open_and_check(engine, scope.rank, after);
    if (job.options.store.keep > 1) {
      check_previous(engine, scope.rank, opened[static_cast<std::size_t>(scope.rank)], after);
    }
    checkpoint(engine, scope.rank, next, after);
    const int reopened = open_and_check(engine, scope.rank, after);
    if (reopened != next) after.problem(compose("step {} was committed and step {} opened", next, reopened));
    engine.finalize();
  });
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    if (!outcomes[rank].returned()) {
      problems.push_back(compose("the restart failed on rank {}: {}", rank, describe(outcomes[rank])));
    }
    if (opened[rank] != opened[0]) problems.push_back(compose("ranks opened {} and {}", opened[0], opened[rank]));
  }
  if (!ledger.may_be_opened(opened[0])) {
    problems.push_back(compose("step {} was opened; the newest that returned is {}, the newest begun {}", opened[0],
                               ledger.newest_returned(), ledger.newest_begun()));
  }
  check_file_counts(job, "after the restart", problems);
  for (const Ledger* each : {static_cast<const Ledger*>(&ledger), static_cast<const Ledger*>(&after)}) {
    for (const std::string& problem : each->problems()) problems.push_back(problem);
  }
  return problems;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

}  // namespace kedge::faults
