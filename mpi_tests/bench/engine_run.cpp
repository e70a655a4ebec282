#include "engine_run.hpp"

#include <algorithm>
#include <span>

#include "kedge/mpi.hpp"
#include "timing.hpp"

namespace kedge_bench {
namespace {

constexpr const char* kRegion = "field";

}  // namespace

EngineRun::EngineRun(const Arguments& arguments, const Workplace& workplace, Buffers& buffers, int rank, int ranks)
    : arguments_(arguments),
      workplace_(workplace),
      buffers_(buffers),
      rank_(rank),
      ranks_(ranks),
      protects_(arguments.scheme != kedge::Scheme::single && ranks > 1) {}

void EngineRun::start() {
  engine_.reset();
  kedge::Options options;  // not load(): what is measured does not depend on the user's own settings
  options.run = "bench";
  options.store.path = workplace_.store();
  options.persistent.path = workplace_.prefix();
  options.persistent.every = 0;
  options.redundancy.scheme = arguments_.scheme;
  options.redundancy.every = 0;
  options.topology.ranks_per_node = 1;
  options.log.level = kedge::LogLevel::warning;
  engine_.emplace(kedge::mpi(MPI_COMM_WORLD), options);
}

void EngineRun::stop() {
  engine_->finalize();
  engine_.reset();
}

void EngineRun::new_data() { fill(buffers_.data, rank_, ++content_); }

void EngineRun::checkpoint() {
  engine_->create(tag());
  (void)engine_->save(kRegion, kedge::region(std::span(buffers_.data)));  // commit reports what went wrong
  engine_->commit();
}

double EngineRun::load_and_compare(kedge::RecoverySource expected) {
  const kedge::CheckpointInfo info = engine_->info();
  agree(info.tag == tag() && info.source == expected
            ? ""
            : "opened " + info.tag + ", " + std::string(to_string(info.source)) + ", and should have opened " + tag() +
                  ", " + std::string(to_string(expected)));
  std::ranges::fill(buffers_.back, 0);
  const double load_s = timed([&] { (void)engine_->load(kRegion, kedge::mutable_region(std::span(buffers_.back))); });
  engine_->close();  // reports what went wrong
  if (arguments_.spoil && rank_ == ranks_ - 1) buffers_.back_bytes().back() ^= std::byte{1};
  agree(buffers_.back == buffers_.data ? "" : "what came back differs from what was saved as " + tag());
  return load_s;
}

}  // namespace kedge_bench
