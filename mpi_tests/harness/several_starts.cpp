#include "harness/several_starts.hpp"

#include <algorithm>
#include <span>

#include "base/attempt.hpp"
#include "base/text.hpp"

namespace kedge::faults {
namespace {

constexpr std::size_t kLarge = 10'000;  // 80 KB: an extent of its own
constexpr std::size_t kSmall = 100;

double value(int rank, int step, std::size_t i) { return rank * 1e6 + step * 1e3 + static_cast<double>(i) * 1e-3; }

std::vector<double> field(int rank, int step, std::size_t size) {
  std::vector<double> values(size);
  for (std::size_t i = 0; i < size; ++i) values[i] = value(rank, step, i);
  return values;
}

/// Code and words, without the rank that is told of, which differs where nobody failed in particular.
std::string text_of(const std::optional<Failure>& failure) {
  return failure ? compose("{}: {}", to_string(failure->code), failure->message) : "success";
}

}  // namespace

void commit_step(Engine& engine, int rank, const Tag& tag, int step) {
  auto large = field(rank, step, kLarge);
  auto small = field(rank, step, kSmall);
  State state;
  state.add("step", step).add("field/large", large).add("field/small", small);
  engine.checkpoint(tag, state);
}

void find_damaged(Engine& engine, int rank, const Selection& selection, const Tag& tag) {
  EXPECT_EQ(engine.open(selection), tag);
  load_damaged(engine, rank);
}

void load_damaged(Engine& engine, int rank) {
  (void)load_step(engine, rank);
  const auto told = attempt([&] { engine.close(); });
  ASSERT_TRUE(told);
  EXPECT_EQ(told->code, ErrorCode::corrupt);
}

int load_step(Engine& engine, int rank) {
  int step = -1;
  std::vector<double> large(kLarge);
  std::vector<double> small(kSmall);
  State state;
  state.add("step", step).add("field/large", large).add("field/small", small);
  bool loaded = true;
  for (const auto& item : state.items()) loaded = engine.load(item.name, item.view().region).ok() && loaded;
  if (!loaded) return -1;  // close reports it
  EXPECT_EQ(large, field(rank, step, kLarge)) << "rank " << rank << ", step " << step;
  EXPECT_EQ(small, field(rank, step, kSmall)) << "rank " << rank << ", step " << step;
  return step;
}

/// By restore, which checks what it loads as it loads it.
std::optional<Tag> restore_step(Engine& engine, int rank, const Selection& selection, int& step) {
  std::vector<double> large;
  std::vector<double> small;
  State state;
  int loaded = -1;
  state.add("step", loaded).add("field/large", large).add("field/small", small);
  auto tag = engine.restore(state, selection);
  if (!tag) return tag;
  step = loaded;
  EXPECT_EQ(large, field(rank, step, kLarge)) << "rank " << rank << ", step " << step;
  EXPECT_EQ(small, field(rank, step, kSmall)) << "rank " << rank << ", step " << step;
  return tag;
}

Opened reopen(SimulatedJob& job, const Selection& selection, Newer newer, const Steps& then) {
  std::vector<Opened> found(static_cast<std::size_t>(job.ranks));
  const auto outcomes = job.start([&](RankScope& scope) {
    Opened& mine = found[static_cast<std::size_t>(scope.rank)];
    try {
      Engine engine = scope.make_engine();
      if (newer == Newer::keep && job.options.open.verify == Verify::all) {
        mine.tag = restore_step(engine, scope.rank, selection, mine.step);
      } else if ((mine.tag = engine.open(selection, newer))) {
        mine.step = load_step(engine, scope.rank);
        engine.close();
      }
      if (mine.tag) {
        mine.info = engine.info();
        mine.level = engine.level(*mine.tag);
      }
      for (const auto& [tag, step] : then) commit_step(engine, scope.rank, tag, step);
    } catch (const Error& error) {
      mine.failure = error.failure();
    }
  });
  expect_all_returned(outcomes);
  for (const Opened& other : found) {
    EXPECT_EQ(other.tag, found[0].tag);
    EXPECT_EQ(other.step, found[0].step);
    EXPECT_EQ(other.info.id, found[0].info.id);
    // In the background a commit may be protected again while ranks look at its level.
    if (job.options.pipeline.mode == PipelineMode::inline_) {
      EXPECT_EQ(other.level, found[0].level);
    }
    EXPECT_EQ(text_of(other.failure), text_of(found[0].failure));
  }
  return found[0];
}

void commit_steps(SimulatedJob& job, const Steps& steps) {
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    for (const auto& [tag, step] : steps) commit_step(engine, scope.rank, tag, step);
  }));
}

TwoTimelines::TwoTimelines(int ranks, const std::function<void(SimulatedJob&)>& configure) : job(ranks) {
  job.options.store.keep = 2;
  configure(job);
  commit_steps(job, {{"base", 1}});
  before = job.disk.snapshot();
  reopen(job, latest, Newer::keep, {{"next", 20}});
  first = job.disk.snapshot();
  job.disk.restore(before);
  reopen(job, latest, Newer::keep, {{"next", 30}});
  second = job.disk.snapshot();
}

void expect_all_returned(const std::vector<testing::RankOutcome>& outcomes) {
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    EXPECT_TRUE(outcomes[rank].returned())
        << "rank " << rank << ": " << (outcomes[rank].failure ? to_string(*outcomes[rank].failure) : "died");
  }
}

Failure expect_all_failed(const std::vector<testing::RankOutcome>& outcomes, ErrorCode code) {
  Failure first;
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    const auto& failure = outcomes[rank].failure;
    EXPECT_TRUE(failure) << "rank " << rank << " threw nothing";
    if (!failure) continue;
    EXPECT_EQ(failure->code, code) << "rank " << rank << ": " << to_string(*failure);
    if (first.message.empty()) first = *failure;
    EXPECT_EQ(failure->message, first.message) << "rank " << rank;
  }
  return first;
}

std::vector<std::pair<std::string, format::Superblock>> superblocks(const FaultyDisk& disk, int rank) {
  std::vector<std::pair<std::string, format::Superblock>> found;
  for (const std::string& path : container_files(disk, rank)) {
    const auto bytes = disk.read_all(path);
    if (bytes.size() < format::kSuperblockBytes) continue;
    const auto first = std::span(bytes).first(format::kSuperblockBytes);
    // A death in the middle of sealing or unsealing leaves half a superblock.
    (void)attempt([&] {
      if (!format::is_unsealed(first)) found.emplace_back(path, format::decode_superblock(first, path));
    });
  }
  return found;
}

std::string container_of(const FaultyDisk& disk, int rank, const Tag& tag) {
  std::string newest;
  std::uint64_t generation = 0;
  for (const auto& [path, superblock] : superblocks(disk, rank)) {
    if (superblock.commit.tag != tag || superblock.commit.generation < generation) continue;
    generation = superblock.commit.generation;
    newest = path;
  }
  EXPECT_FALSE(newest.empty()) << "rank " << rank << " has no container of " << tag;
  return newest;
}

format::Superblock superblock_of(const FaultyDisk& disk, int rank, const Tag& tag) {
  const std::string path = container_of(disk, rank, tag);
  return path.empty() ? format::Superblock{} : format::decode_superblock(disk.read_all(path), path);
}

bool says(const std::string& text, const std::vector<std::string>& parts) {
  return std::all_of(parts.begin(), parts.end(),
                     [&](const std::string& part) { return text.find(part) != std::string::npos; });
}

}  // namespace kedge::faults
