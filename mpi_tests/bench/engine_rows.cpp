#include "engine_rows.hpp"

#include <algorithm>
#include <span>

#include "kedge/mpi.hpp"
#include "timing.hpp"

namespace kedge_bench {
namespace {

constexpr const char* kRegion = "field";

/// Targets hold for xor alone; partner moves every byte once more and writes it, too.
std::optional<double> target(const Arguments& arguments, double value) {
  return arguments.scheme == kedge::Scheme::xor_ ? std::optional(value) : std::nullopt;
}

std::string tag_of(std::uint64_t content) { return "content-" + std::to_string(content); }

}  // namespace

EngineRows::EngineRows(const Arguments& arguments, const Workplace& workplace, Buffers& buffers, int rank, int ranks)
    : arguments_(arguments),
      workplace_(workplace),
      buffers_(buffers),
      rank_(rank),
      ranks_(ranks),
      protects_(arguments.scheme != kedge::Scheme::single && ranks > 1) {}

void EngineRows::add_to(Table& table) const {
  table.add({"blocked", "blocked copy with checksum (create, save, commit)", "write", 0.5, {}});
  if (protects_) {
    table.add({"protect", "protect, after the local write", "write", target(arguments_, 0.9), {}});
    table.add(
        {"checkpoint", "local write, checksum and protect, one after the other", "write", target(arguments_, 1.5), {}});
  }
  table.add({"open", "open from an intact store: every byte verified", "read", {}, {}});
  table.add({"open_load", "open and load from an intact store", "read", 1.0, {}});
  if (protects_) table.add({"rebuild", "open with one node's store lost", "write", target(arguments_, 1.3), {}});
}

void EngineRows::round(Table& table) {
  start();
  // Twice, so that all files of the store are there, mapped, and used before: what follows recycles them.
  for (int i = 0; i < 2; ++i) {
    new_data();
    checkpoint(tag_of(content_));
    if (protects_) engine_->wait(tag_of(content_), kedge::Level::protected_);
  }
  write(table);
  reopen(table);
  if (protects_) lose_and_reopen(table);
  ++rounds_;
}

void EngineRows::start() {
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

void EngineRows::new_data() { fill(buffers_.data, rank_, ++content_); }

void EngineRows::checkpoint(const std::string& tag) {
  engine_->create(tag);
  (void)engine_->save(kRegion, kedge::region(std::span(buffers_.data)));  // commit reports what went wrong
  engine_->commit();
}

void EngineRows::write(Table& table) {
  new_data();
  newest_ = tag_of(content_);
  table.record("blocked", timed([&] { checkpoint(newest_); }));
  if (!protects_) return;
  table.record("protect", timed([&] { engine_->wait(newest_, kedge::Level::protected_); }));
  new_data();
  newest_ = tag_of(content_);
  table.record("checkpoint", timed([&] {
                 checkpoint(newest_);
                 engine_->wait(newest_, kedge::Level::protected_);
               }));
}

void EngineRows::reopen(Table& table) {
  engine_->finalize();
  start();
  const double open_s = timed([&] { (void)engine_->open(); });
  load_and_compare(newest_, kedge::RecoverySource::in_place);
  table.record("open", open_s);
  table.record("open_load", open_s + load_s_);
}

void EngineRows::lose_and_reopen(Table& table) {
  engine_->finalize();
  engine_.reset();
  workplace_.lose_node(static_cast<int>(rounds_ % static_cast<std::uint64_t>(ranks_)));
  start();
  table.record("rebuild", timed([&] { (void)engine_->open(); }));
  load_and_compare(newest_, kedge::RecoverySource::rebuilt);
  agree(engine_->level(newest_) == kedge::Level::protected_ ? "" : "the parity of the lost rank was not made again");
}

/// Ends what open began.
void EngineRows::load_and_compare(const std::string& tag, kedge::RecoverySource expected) {
  const kedge::CheckpointInfo info = engine_->info();
  agree(info.tag == tag && info.source == expected
            ? ""
            : "opened " + info.tag + ", " + std::string(to_string(info.source)) + ", and should have opened " + tag +
                  ", " + std::string(to_string(expected)));
  std::ranges::fill(buffers_.back, 0);
  load_s_ = timed([&] { (void)engine_->load(kRegion, kedge::mutable_region(std::span(buffers_.back))); });
  engine_->close();  // reports what went wrong
  if (arguments_.spoil && rank_ == ranks_ - 1) buffers_.back_bytes().back() ^= std::byte{1};
  agree(buffers_.back == buffers_.data ? "" : "what came back differs from what was saved as " + tag);
}

}  // namespace kedge_bench
