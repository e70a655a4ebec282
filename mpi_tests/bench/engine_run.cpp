#include "engine_run.hpp"

#include <algorithm>
#include <utility>

#include "engine/engine_environment.hpp"
#include "kedge/mpi.hpp"
#include "kedge/state.hpp"
#include "timing.hpp"

namespace kedge_bench {
namespace {

std::uint32_t tolerance_of(kedge::Scheme scheme, const Arguments& arguments, int nodes) {
  if (scheme == kedge::Scheme::single || nodes < 2) return 0;
  return scheme == kedge::Scheme::rs ? arguments.parity : 1;
}

}  // namespace

EngineRun::EngineRun(const Arguments& arguments, kedge::Scheme scheme, Content content, const Workplace& workplace,
                     Buffers& buffers, int rank, int ranks)
    : arguments_(arguments),
      scheme_(scheme),
      run_(std::move(content.run)),
      on_exit_(content.on_exit),
      background_(content.background),
      bytes_per_s_(content.bytes_per_s),
      workplace_(workplace),
      data_(std::span(buffers.data).first(content.regions * content.region_bytes / sizeof(std::uint64_t))),
      back_(std::span(buffers.back).first(data_.size())),
      rank_(rank),
      ranks_(ranks),
      tolerance_(tolerance_of(scheme, arguments, workplace.nodes())) {
  const std::size_t words = content.region_bytes / sizeof(std::uint64_t);
  for (std::uint64_t i = 0; i < content.regions; ++i) {
    pieces_.push_back({"field-" + std::to_string(i), data_.subspan(i * words, words), back_.subspan(i * words, words)});
  }
}

std::uint32_t EngineRun::members() const noexcept {
  if (scheme_ == kedge::Scheme::single) return 1;
  const auto nodes = static_cast<std::uint32_t>(workplace_.nodes());
  return std::min(nodes, scheme_ == kedge::Scheme::partner ? 2 : arguments_.set_size);
}

kedge::Options options_of(const std::string& run, const Arguments& arguments, const Workplace& workplace) {
  kedge::Options options;  // not load(): what is measured does not depend on the user's own settings, but for these two
  options.open.chained = true;  // one engine after the other
  const kedge::Options given = kedge::Options::load();
  options.pipeline.messages = given.pipeline.messages;
  options.pipeline.interface = given.pipeline.interface;
  options.run = run;
  options.store.path = workplace.store();
  options.persistent.path = workplace.prefix();
  options.persistent.every = 0;
  options.pipeline.max_pending = 2;
  options.io = arguments.prefix_io;
  options.log.level = kedge::LogLevel::warning;
  return options;
}

void EngineRun::start(kedge::PipelineMode mode, std::shared_ptr<kedge::fs::FileSystem> files) {
  engine_.reset();
  kedge::Options options = options_of(run_, arguments_, workplace_);
  options.store.on_exit = on_exit_;
  options.persistent.every = background_ ? 1 : 0;
  options.pipeline.mode = mode;
  options.persistent.bandwidth_limit = bytes_per_s_;
  options.redundancy.bandwidth_limit = bytes_per_s_;
  options.redundancy.scheme = scheme_;
  options.redundancy.set_size = arguments_.set_size;
  options.redundancy.parity = arguments_.parity;
  options.redundancy.every = background_ ? 1 : 0;
  if (!files) {
    engine_.emplace(MPI_COMM_WORLD, options);
    return;
  }
  auto environment = kedge::start::Environment::system();
  environment.file_system = std::move(files);
  engine_.emplace(
      kedge::engine::EngineEnvironment::make_engine(kedge::mpi(MPI_COMM_WORLD), options, std::move(environment)));
}

void EngineRun::stop() {
  if (!engine_) return;
  engine_->finalize();
  engine_.reset();
}

void EngineRun::new_data() { fill(data_, rank_, ++number_); }

EngineRun::Spent EngineRun::checkpoint(const std::string& tag) {
  engine_->create(tag);
  const double begin_cpu_s = cpu_seconds();
  const double begin_s = MPI_Wtime();
  for (const Piece& piece : pieces_) (void)engine_->save(piece.name, kedge::region(piece.data));
  const Spent spent{MPI_Wtime() - begin_s, cpu_seconds() - begin_cpu_s};
  engine_->commit();  // reports what went wrong in save
  return spent;
}

double EngineRun::load_and_compare(kedge::RecoverySource expected) {
  const kedge::CheckpointInfo info = engine_->info();
  agree(info.tag == tag() && info.source == expected
            ? ""
            : "opened " + info.tag + ", " + std::string(to_string(info.source)) + ", and should have opened " + tag() +
                  ", " + std::string(to_string(expected)));
  std::ranges::fill(back_, 0);
  const double load_s = timed([&] {
    for (const Piece& piece : pieces_) (void)engine_->load(piece.name, kedge::mutable_region(piece.back));
  });
  engine_->close();  // reports what went wrong
  compare();
  return load_s;
}

double EngineRun::restore_and_compare() {
  std::ranges::fill(back_, 0);
  kedge::State state;
  for (Piece& piece : pieces_) state.add(piece.name, kedge::mutable_region(piece.back));
  std::string found;
  const double restore_s = timed([&] { found = engine_->restore(state).value_or("nothing"); });
  agree(found == tag() && engine_->info().source == kedge::RecoverySource::in_place
            ? ""
            : "restored " + found + " and should have restored " + tag() + " in place");
  compare();
  return restore_s;
}

/// COLLECTIVE.
void EngineRun::compare() {
  if (arguments_.spoil && rank_ == ranks_ - 1) std::as_writable_bytes(back_).back() ^= std::byte{1};
  agree(std::ranges::equal(back_, data_) ? "" : "what came back differs from what was saved as " + tag());
}

}  // namespace kedge_bench
