#include "tags_rows.hpp"

#include <algorithm>

#include "kedge/mpi.hpp"
#include "kedge/state.hpp"
#include "timing.hpp"

namespace kedge_bench {
namespace {

constexpr std::uint64_t kFew = 20;
constexpr std::uint64_t kCommitsPerRound = 5;
constexpr std::uint64_t kKeptAtLast = 5;

}  // namespace

TagsRows::TagsRows(const Workplace& workplace, std::uint64_t tags) : workplace_(workplace), wanted_(tags) {}

void TagsRows::add_to(Table& table) {
  table.add({"tags_few", "5 commits and flushes of 8 bytes, few tags on the prefix", "", 0});
  table.add({"tags_many", "the same with many", "tags_few", 0});
  table.add({"tags_lowered", "the slowest x 5, after persistent.keep was lowered to 5", "tags_few", 0});
}

void TagsRows::start(Run& run, std::uint64_t keep) const {
  run.engine.reset();
  kedge::Options options;
  options.open.chained = true;  // one engine after the other
  options.run = run.name;
  options.store.path = workplace_.store();
  options.store.on_exit = kedge::OnExit::remove;
  options.persistent.path = workplace_.prefix() + "/" + run.name;
  options.persistent.every = 1;
  options.pipeline.mode = kedge::PipelineMode::inline_;
  options.persistent.keep = keep;
  options.redundancy.scheme = kedge::Scheme::single;
  options.log.level = kedge::LogLevel::error;  // that removing takes its time is what is measured
  run.engine.emplace(MPI_COMM_WORLD, options);
}

void TagsRows::commit(Run& run) {
  std::uint64_t number = ++run.tags;
  const std::string tag = "tag-" + std::to_string(number);
  run.engine->checkpoint(tag, kedge::State().add("number", number));
  agree(run.engine->level(tag) == kedge::Level::persistent ? "" : tag + " was not flushed");
}

void TagsRows::fill() {
  for (Run* run : {&few_, &many_}) {
    start(*run, 0);
    const std::uint64_t wanted = run == &few_ ? std::min(kFew, wanted_) : wanted_;
    while (run->tags < wanted) commit(*run);
  }
}

void TagsRows::round(Recorder& recorder) {
  double few_s = 0;
  double many_s = 0;
  for (std::uint64_t i = 0; i < kCommitsPerRound; ++i) {
    few_s += timed([&] { commit(few_); });
    many_s += timed([&] { commit(many_); });
  }
  recorder.record("tags_few", few_s);
  recorder.record("tags_many", many_s);
}

void TagsRows::lower(Recorder& recorder, std::uint64_t rounds) {
  many_.engine->finalize();
  start(many_, kKeptAtLast);
  for (std::uint64_t i = 0; i < rounds; ++i) {
    double slowest_s = 0;
    for (std::uint64_t k = 0; k < kCommitsPerRound; ++k) {
      slowest_s = std::max(slowest_s, timed([&] { commit(many_); }) * static_cast<double>(kCommitsPerRound));
    }
    recorder.record("tags_lowered", slowest_s);
  }
  for (Run* run : {&few_, &many_}) {
    run->engine->finalize();
    run->engine.reset();
  }
}

}  // namespace kedge_bench
