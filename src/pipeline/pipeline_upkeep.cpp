// What a pipeline does after an open: inline at once, in the background step by step.
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "pipeline/pipeline.hpp"
#include "pipeline/timeout_factor.hpp"

namespace kedge::pipeline {

void Pipeline::continue_from(const CommitHead& commit, bool persistent, Unread unread) {
  // A job that never lives for N commits must get something to the prefix all the same.
  if (!commit.is_output) {
    if (persistent) turns_.flushed();
    else turns_.make_flush_due();
  }
  outputs_.found();
  const Protections found = find_protections(commit);
  // At the level that the survey found: the protection that it was recovered from still exists. This also removes the
  // unfinished protections of starts that died while protecting it again, which would add up otherwise.
  retire(store::Reach::all);
  const bool is_current = !found.current.is_none();
  const bool is_protected = is_current || !found.sound.is_none();
  if (!is_protected) ledger_.unprotect(commit.id);
  const bool is_due = !is_current && protects();
  // Without the former copies, what is left of a protection that was asked for once may protect nothing.
  const bool may_drop = is_protected || found.best.is_none() || !protect_->is_possible();
  if (!worker_) {
    if (is_due) (void)protect_again(group_, commit, store::Reach::all);
    else if (may_drop) (void)drop_former_copies(group_, commit);
    return;
  }
  upkeep_ = {commit, is_due, {}, !is_due && may_drop};
  if (unread.container) upkeep_.unread.push_back({commit, {}, true});
  if (unread.others) {
    if (is_protected && !unread.container) upkeep_.unread.push_back({commit, is_current ? found.current : found.sound});
    for (const commits::Entry& entry : ledger_.entries()) {
      if (entry.commit.id != commit.id) upkeep_.unread.push_back({entry.commit, {}});
    }
  }
  unread_files_.forget();
  worker_->submit_upkeep(is_due ? commit.id : Id128{});
  if (schedule_.waits) (void)wait_until_idle();
}

void Pipeline::quiesce() {
  if (!worker_) return;
  group_.together([&] { comm::throw_if(wait_until_idle(Rest::given_up).failure); });
}

/// What the ranks have of its protections; the ledger knows then which one is worth keeping.
Protections Pipeline::find_protections(const CommitHead& commit) {
  const Protections found = protect_->find(group_, commit.id);
  if (!found.current.is_none()) ledger_.protect(commit.id, found.current);
  else if (!found.sound.is_none()) ledger_.protect(commit.id, found.sound);
  else ledger_.prefer(commit.id, found.best);
  return found;
}

/// COLLECTIVE, on `channel`, in the worker's thread: one step. False if nothing is left. All ranks decide together what
/// the step is, since what one knows of commits may be a moment older than what another does.
bool Pipeline::run_upkeep_step(const comm::Group& channel) {
  pause_.begin();
  // Where there is no room, protecting drops the former copies, of which a damaged container is rebuilt.
  const bool container_first = !upkeep_.unread.empty() && upkeep_.unread.front().is_container;
  if (!container_first && std::exchange(upkeep_.protects, false)) {
    protect_opened(channel);
    return true;
  }
  if (!upkeep_.unread.empty()) {
    read_on(channel);
    return true;
  }
  if (std::exchange(upkeep_.drops_copies, false)) (void)drop_former_copies(channel, upkeep_.opened);
  if (!worker_->gives_way()) {
    make_ready(store_.size_bytes(store::FileKind::container, group_.logical_rank(), {upkeep_.opened.id, {}}));
  }
  return false;
}

/// COLLECTIVE. Before anything is read: what it replaces needs not be.
void Pipeline::protect_opened(const comm::Group& channel) {
  const CommitHead& commit = upkeep_.opened;
  // It may have been superseded, or found damaged by whoever loaded it.
  if (channel.all(ledger_.find(commit.id).has_value())) {
    const auto failure = protect_again(channel, commit, store::Reach::known);
    if (failure) completions_.failed(commit.id, Level::protected_, *failure);
    else std::erase_if(upkeep_.unread, [&](const UnreadCommit& what) { return what.commit.id == commit.id; });
  }
  worker_->upkeep_protected();
}

/// COLLECTIVE. All that is left of one commit, unless something better is to be done.
void Pipeline::read_on(const comm::Group& channel) {
  const UnreadCommit what = upkeep_.unread.front();
  const bool is_known = ledger_.find(what.commit.id).has_value();
  const std::uint64_t bytes = channel.max(is_known ? unread_files_.bytes_left(what) : 0);
  const comm::Group waiting = channel.with_timeout(channel.timeout() * timeout_factor(bytes));
  ReadFiles read;
  if (is_known) {
    read = unread_files_.read(what, [&] {
      pause_.pass();
      return worker_->gives_way();
    });
  }
  const comm::Ballot ballot =
      waiting.vote_and_ask(read.first_failure(), read.some_left && !worker_->upkeep_is_given_up());
  if (ballot.asked && !ballot.failure) return;
  // Its parity may be damaged all the same. First: protecting it again needs the room.
  if (what.is_container && channel.all(is_known && !read.some_left && !read.containers)) {
    ledger_.prove(what.commit.id);
    retire(store::Reach::known);
  }
  if (ballot.failure) handle_damage(channel, what, read, *ballot.failure);
  if (ballot.asked && what.is_container && channel.all(!read.containers)) return;  // the rest of it
  upkeep_.unread.pop_front();
  unread_files_.forget();
}

/// COLLECTIVE. What was protected by them is not, and what was opened is protected anew.
void Pipeline::handle_damage(const comm::Group& channel, const UnreadCommit& what, const ReadFiles& read,
                             const Failure& first) {
  const CommitHead& commit = what.commit;
  const bool is_opened = commit.id == upkeep_.opened.id;
  if (is_opened && channel.any(read.containers)) return handle_damaged_container(channel, commit, first);
  ledger_.unprotect(commit.id);
  if (!is_opened) ledger_.look_again();
  metrics_.damaged(commit, first);
  const std::uint64_t files = channel.sum(read.damaged.size());
  std::string so = compose(
      "{} is an older checkpoint that can no longer be relied on; the next create checks the stores again and keeps "
      "what can be recovered",
      commit.tag);
  if (is_opened) {
    std::optional<Failure> failure;
    const bool is_superseded = !channel.all(ledger_.find(commit.id).has_value());
    if (!is_superseded && protects()) failure = protect_in_room(channel, commit, store::Reach::known);
    if (failure) completions_.failed(commit.id, Level::protected_, *failure);
    so = is_superseded ? compose("{} is not needed any more", commit.tag)
         : !protects()
             ? compose(
                   "{} is no longer protected against the loss of a node; call wait(\"{}\", protected) to protect "
                   "it again",
                   commit.tag, commit.tag)
         : failure ? not_protected(commit, *failure)
                   : compose("{} is protected again ({})", commit.tag, to_string(protect_->scheme()));
  }
  if (!channel.is_root()) return;
  log_.warning(compose("a check in the background found damage: {}{}; {}; check the memory or disk of rank {}'s node",
                       to_string(first), files > 1 ? compose(" and {} more", files - 1) : "", so, first.rank));
}

/// COLLECTIVE. What the application has loaded was intact. Whatever the commit can be rebuilt from stays as it is, and
/// so does what is older.
void Pipeline::handle_damaged_container(const comm::Group& channel, const CommitHead& commit, const Failure& first) {
  upkeep_.drops_copies = false;
  if (std::exchange(upkeep_.protects, false)) {
    completions_.failed(commit.id, Level::protected_, first);
    worker_->upkeep_protected();
  }
  ledger_.look_again();
  metrics_.damaged(commit, first);
  if (!channel.is_root()) return;
  log_.warning(compose(
      "background verification found damage in a part of {} that this program did not load: {}; what it loaded is "
      "intact. "
      "The next open rebuilds the container, or opens an older checkpoint; check the memory or disk of rank {}'s node",
      commit.tag, to_string(first), first.rank));
}

/// COLLECTIVE, on `group`. The copies that protected the commit on its former nodes stay until it is protected where
/// its containers lie now. A failure is logged, and returned: the commit is open all the same.
std::optional<Failure> Pipeline::protect_again(const comm::Group& group, const CommitHead& commit, store::Reach reach) {
  const double begin_s = clock_.seconds();
  const auto failure = protect_in_room(group, commit, reach);
  if (!group.is_root()) return failure;
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
  return failure;
}

/// COLLECTIVE, on `group`. Its former protection goes when this one is there; where there is no room for both, the
/// former copies are worth less.
std::optional<Failure> Pipeline::protect_in_room(const comm::Group& group, const CommitHead& commit,
                                                 store::Reach reach) {
  const bool in_background = reach == store::Reach::known;
  if (in_background) worker_->set_sending(true);
  std::optional<Failure> failure = run(group, *protect_, commit, reach);
  if (!failure || failure->code == ErrorCode::no_space) {
    const bool room_was_made = drop_former_copies(group, commit);
    if (failure && room_was_made) {
      if (group.is_root()) {
        log_.info(
            compose("no room to protect {} beside the copies on its former nodes; removing them and "
                    "retrying",
                    commit.tag));
      }
      failure = run(group, *protect_, commit, reach);
    }
  }
  if (in_background) worker_->set_sending(false);
  if (!failure) retire(reach);
  return failure;
}

/// COLLECTIVE, on `group`. What lies on nodes that its owners have left only costs space: it goes at the latest when
/// its commit is retired. Whether any rank dropped something.
bool Pipeline::drop_former_copies(const comm::Group& group, const CommitHead& commit) {
  std::size_t dropped = 0;
  const auto failure = attempt([&] { dropped = store_.drop_adopted(commit.id); });
  if (failure) log_.debug(compose("former copies of {} could not be removed: {}", commit.tag, to_string(*failure)));
  return group.any(dropped != 0);
}

}  // namespace kedge::pipeline
