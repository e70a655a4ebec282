#include "pipeline/pipeline.hpp"

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace kedge::pipeline {

std::string not_flushed(const commits::Ledger& ledger, const CommitHead& commit, const Failure& failure) {
  const auto entry = ledger.find(commit.id);
  // A flush may be over when a later start of the run is found to have taken over.
  if (entry && entry->persistent) return to_string(failure);
  return compose("{} is not on the parallel filesystem: {}", commit.tag, to_string(failure));
}

std::optional<Failure> Pipeline::run(Stage& stage, const CommitHead& commit) {
  CommitFiles files{commit, {}};
  auto not_held = group_.try_together([&] {
    files.container = store::Pin(store_, store::FileKind::container, group_.logical_rank(), {commit.id, {}});
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

void Pipeline::continue_from(const CommitHead& commit, bool persistent) {
  // A job that never lives for N commits must get something to the prefix all the same.
  unflushed_ = persistent ? 0 : schedule_.flush_every;
  const Protections found = judge_protection(commit);
  // At the level that the survey found: the protection that it was recovered from still exists. This also removes the
  // unfinished protections of starts that died while protecting it again, which would add up otherwise.
  retire();
  const bool is_current = !found.current.is_none();
  const bool is_protected = is_current || !found.sound.is_none();
  if (!is_protected) ledger_.unprotect(commit.id);
  const bool is_due = !is_current && protect_->is_possible() && schedule_.protect_every != 0;
  if (is_due) protect_again(commit);
  // Without the former copies, what is left of a protection that was asked for once may protect nothing.
  else if (is_protected || found.best.is_none() || !protect_->is_possible()) (void)drop_former_copies(commit);
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
                "this run's redundancy scheme is single, so no commit can be protected; run on two nodes or more, with "
                "redundancy.scheme auto, partner, xor or rs");
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
    log_.warning(not_flushed(ledger_, newest->commit, *failure));
  } else {
    log_.info(compose("{} is persistent", newest->commit.tag));
  }
}

/// What the ranks have of its protections; the ledger knows then which one is worth keeping.
Protections Pipeline::judge_protection(const CommitHead& commit) {
  const Protections found = protect_->find(group_, commit.id);
  if (!found.current.is_none()) ledger_.protect(commit.id, found.current);
  else if (!found.sound.is_none()) ledger_.protect(commit.id, found.sound);
  else ledger_.prefer(commit.id, found.best);
  return found;
}

/// The copies that protected the commit on its former nodes stay until it is protected where its containers lie now. A
/// failure is logged: the commit is open all the same.
void Pipeline::protect_again(const CommitHead& commit) {
  const double begin_s = clock_.seconds();
  std::optional<Failure> failure = run(*protect_, commit);
  // Where there is no room for both, the former copies are worth less than the new protection.
  if (!failure || failure->code == ErrorCode::no_space) {
    const bool room_was_made = drop_former_copies(commit);
    if (failure && room_was_made) {
      if (group_.is_root()) {
        log_.info(
            compose("no room to protect {} beside the copies on its former nodes; removing them and "
                    "retrying",
                    commit.tag));
      }
      failure = run(*protect_, commit);
    }
  }
  if (!failure) retire();  // its former protection
  if (!group_.is_root()) return;
  if (failure) {
    const auto entry = ledger_.find(commit.id);
    const bool is_protected = entry && entry->in_stores == Level::protected_;
    log_.warning(compose("{} is open and {}: {}", commit.tag,
                         is_protected ? "keeps the protection that it had" : "not protected against the loss of a node",
                         to_string(*failure)));
  } else {
    log_.info(compose("{} is protected again ({}), took {}", commit.tag, to_string(protect_->scheme()),
                      human_seconds(clock_.seconds() - begin_s)));
  }
}

/// What lies on nodes that its owners have left only costs space: it goes at the latest when its commit is retired.
/// Whether any rank dropped something.
bool Pipeline::drop_former_copies(const CommitHead& commit) {
  std::size_t dropped = 0;
  const auto failure = attempt([&] { dropped = store_.drop_adopted(commit.id); });
  if (failure) log_.debug(compose("former copies of {} could not be removed: {}", commit.tag, to_string(*failure)));
  return group_.any(dropped != 0);
}

}  // namespace kedge::pipeline
