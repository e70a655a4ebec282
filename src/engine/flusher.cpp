#include "engine/flusher.hpp"

#include <utility>

#include "base/attempt.hpp"
#include "store/pin.hpp"

namespace kedge::engine {
namespace {

pipeline::FlushSettings settings_of(const Context& context) {
  pipeline::FlushSettings settings{{context.run, context.run_id}, context.options.persistent, std::nullopt, false};
  if (context.redundancy.second_manifest >= 0) settings.second_root = context.redundancy.second_manifest;
  settings.durable = context.options.store.durable;
  return settings;
}

}  // namespace

std::optional<Failure> Flusher::flush(const Commit& commit) {
  if (!stage_) {
    stage_.emplace(*context_.store, ledger_, *context_.tier, context_.catalog.get(), settings_of(context_),
                   context_.log);
  }
  const comm::Group group(*context_.comm, context_.patience());
  pipeline::CommitFiles files{commit.head, context_.logical_rank(), {}};
  auto failure = group.try_together([&] {
    files.container = store::Pin(*context_.store, store::FileKind::container, files.logical_rank, {commit.head.id, {}});
  });
  if (failure) return failure;
  read_context();
  failure = stage_->run(group, files);
  write_context();
  if (!failure) context_.unflushed = 0;
  if (failure && failure->code == ErrorCode::busy) context_.dead_because = failure->message;
  return failure;
}

void Flusher::read_context() {
  commits::Surveyed known;
  for (const Commit& commit : context_.commits) {
    known.entries.push_back({commit.head, commit.level, commit.protection_id, commit.persistent});
  }
  known.highest_generation = context_.highest_generation;
  ledger_.survey(std::move(known));
  for (const auto& [commit_id, why] : context_.excluded) ledger_.exclude(commit_id, why);
  ledger_.set_parent(context_.parent_commit_id);
}

void Flusher::write_context() {
  for (const commits::Entry& entry : ledger_.entries()) context_.set_persistent(entry.commit.id, entry.persistent);
}

}  // namespace kedge::engine
