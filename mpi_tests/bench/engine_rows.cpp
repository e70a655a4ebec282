#include "engine_rows.hpp"

#include <optional>

#include "timing.hpp"

namespace kedge_bench {
namespace {

/// Targets hold for xor alone; partner moves every byte once more and writes it, too.
std::optional<double> target(const Arguments& arguments, double value) {
  return arguments.scheme == kedge::Scheme::xor_ ? std::optional(value) : std::nullopt;
}

}  // namespace

void EngineRows::add_to(Table& table) const {
  table.add({"blocked", "blocked copy with checksum (create, save, commit)", "write", 0.5, {}});
  if (run_.protects()) {
    table.add({"protect", "protect, after the local write", "write", target(arguments_, 0.9), {}});
    table.add(
        {"checkpoint", "local write, checksum and protect, one after the other", "write", target(arguments_, 1.5), {}});
  }
  table.add({"open", "open from an intact store: every byte verified", "read", {}, {}});
  table.add({"open_load", "open and load from an intact store", "read", 1.0, {}});
  if (run_.protects()) {
    table.add({"rebuild", "open with one node's store lost", "write", target(arguments_, 1.3), {}});
  }
}

void EngineRows::round(Table& table) {
  run_.start();
  // Twice, so that all files of the store are there, mapped, and used before: what follows recycles them.
  for (int i = 0; i < 2; ++i) {
    run_.new_data();
    run_.checkpoint();
    if (run_.protects()) run_.engine().wait(run_.tag(), kedge::Level::protected_);
  }
  write(table);
  reopen(table);
  if (run_.protects()) lose_and_reopen(table);
  ++rounds_;
}

void EngineRows::write(Table& table) {
  run_.new_data();
  table.record("blocked", timed([&] { run_.checkpoint(); }));
  if (!run_.protects()) return;
  table.record("protect", timed([&] { run_.engine().wait(run_.tag(), kedge::Level::protected_); }));
  run_.new_data();
  table.record("checkpoint", timed([&] {
                 run_.checkpoint();
                 run_.engine().wait(run_.tag(), kedge::Level::protected_);
               }));
}

void EngineRows::reopen(Table& table) {
  run_.stop();
  run_.start();
  const double open_s = timed([&] { (void)run_.engine().open(); });
  const double load_s = run_.load_and_compare(kedge::RecoverySource::in_place);
  table.record("open", open_s);
  table.record("open_load", open_s + load_s);
}

void EngineRows::lose_and_reopen(Table& table) {
  run_.stop();
  workplace_.lose_node(static_cast<int>(rounds_ % static_cast<std::uint64_t>(ranks_)));
  run_.start();
  table.record("rebuild", timed([&] { (void)run_.engine().open(); }));
  (void)run_.load_and_compare(kedge::RecoverySource::rebuilt);
  agree(run_.engine().level(run_.tag()) == kedge::Level::protected_ ? ""
                                                                    : "the parity of the lost rank was not made again");
}

}  // namespace kedge_bench
