#include "pipeline/pipeline.hpp"

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace kedge::pipeline {
std::optional<Failure> Pipeline::run(Stage& stage, const CommitHead& commit) {
  CommitFiles files{commit, group_.logical_rank(), {}};
  auto not_held = group_.try_together([&] {
    files.container = store::Pin(store_, store::FileKind::container, files.logical_rank, {commit.id, {}});
  });
  if (not_held) return not_held;
  auto failure = stage.run(group_, files);
  if (!failure && stage.reaches() == Level::persistent) unflushed_ = 0;
  return failure;
}

Submitted Pipeline::submit(const CommitHead& commit) {
  Submitted submitted;
  ++commits_;
  const std::uint64_t protect_every = schedule_.protect_every;
  if (protect_->is_possible() && protect_every != 0 && commits_ % protect_every == 0) {
    submitted.not_protected = run(*protect_, commit);
  }
  if (schedule_.flush_every != 0 && ++unflushed_ >= schedule_.flush_every) {
    submitted.not_persistent = run(*flush_, commit);
  }
  retire();
  return submitted;
}

void Pipeline::adopt(const CommitHead& commit, bool persistent) {
  // A job that never lives for N commits must get something to the prefix all the same.
  unflushed_ = persistent ? 0 : schedule_.flush_every;
  const bool is_whole = judge_protection(commit);
  // With the level that the survey found: what it was opened from protects it still, so older ones may go. And what
  // starts that died in protecting it again left half made must not add up.
  retire();
  if (!is_whole) ledger_.unprotect(commit.id);
  const bool is_due = !is_whole && protect_->is_possible() && schedule_.protect_every != 0;
  if (is_due) restore_protection(commit);
  else (void)drop_left_behind(commit);
}

void Pipeline::require(const commits::Entry& entry, Level level) {
  if (entry.level() >= level) return;
  if (level == Level::persistent) {
    auto failure = run(*flush_, entry.commit);
    if (failure && failure->code == ErrorCode::not_found) {
      failure->message += "; open this commit first, so that every rank has its container";
    }
    comm::throw_if(failure);
  } else if (!protect_->is_possible()) {
    throw Error(ErrorCode::invalid_argument,
                "commits are not protected with scheme single; set redundancy.scheme to partner or xor, and run on two "
                "nodes or more");
  } else {
    comm::throw_if(run(*protect_, entry.commit));
  }
  retire();
}

void Pipeline::finish() {
  const std::optional<commits::Entry> newest = ledger_.newest();
  if (schedule_.flush_every == 0 || !schedule_.flush_at_end || !newest || newest->persistent || ledger_.is_lost())
    return;
  const auto failure = run(*flush_, newest->commit);
  if (!group_.is_root()) return;
  if (failure) {
    log_.warning(compose("{} is not on the parallel filesystem: {}", newest->commit.tag, to_string(*failure)));
  } else {
    log_.info(compose("{} is persistent", newest->commit.tag));
  }
}

/// Whether every rank has its own part of one protection; the ledger knows then which one is worth keeping.
bool Pipeline::judge_protection(const CommitHead& commit) {
  if (!protect_->is_possible()) return false;
  const Protections found = protect_->find(group_, commit.id, group_.logical_rank());
  if (found.whole.is_none()) {
    ledger_.prefer(commit.id, found.best);
    return false;
  }
  ledger_.protect(commit.id, found.whole);
  return true;
}

/// Until the opened commit is protected where its containers lie now, the copies stay that it was protected with where
/// they lay before. A failure is logged: the commit is open all the same.
void Pipeline::restore_protection(const CommitHead& commit) {
  std::optional<Failure> failure = protect_again(commit);
  // Where there is no room for both, what the commit left behind is worth less than its new protection.
  if (failure && failure->code != ErrorCode::no_space) return;
  const bool room_was_made = drop_left_behind(commit);
  if (failure && room_was_made) failure = protect_again(commit);
  if (!failure) retire();  // the protection that it had before
}

/// What lies on nodes that its owners have left only costs space: it goes at the latest when its commit is retired.
/// Whether any rank dropped something.
bool Pipeline::drop_left_behind(const CommitHead& commit) {
  std::size_t dropped = 0;
  (void)attempt([&] { dropped = store_.drop_adopted(commit.id); });
  return group_.any(dropped != 0);
}

std::optional<Failure> Pipeline::protect_again(const CommitHead& commit) {
  const double begin_s = clock_.seconds();
  std::optional<Failure> failure = run(*protect_, commit);
  if (!group_.is_root()) return failure;
  if (failure) {
    log_.warning(
        compose("{} is open and not protected against the loss of a node: {}", commit.tag, to_string(*failure)));
  } else {
    log_.info(compose("{} is protected again ({}), took {}", commit.tag, to_string(protect_->scheme()),
                      human_seconds(clock_.seconds() - begin_s)));
  }
  return failure;
}

}  // namespace kedge::pipeline
