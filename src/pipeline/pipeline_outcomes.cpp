// How a pipeline meets a flush that fails, and what it says of what became of its commits.
#include <optional>
#include <vector>

#include "base/text.hpp"
#include "pipeline/pipeline.hpp"

namespace kedge::pipeline {
namespace {

/// Before try number `tries` + 1: 1, 2, 4, ... seconds.
double backoff_s(std::uint64_t tries) {
  constexpr double kLongest_s = 60;
  constexpr std::uint64_t kLongestAfter = 7;
  return tries >= kLongestAfter ? kLongest_s : static_cast<double>(std::uint64_t{1} << (tries - 1));
}

}  // namespace

/// COLLECTIVE. The worker tries again what may succeed later, as long as nobody waits for it.
std::optional<Failure> Pipeline::flush(const comm::Group& group, Job& job, store::Reach reach, std::uint64_t& tries) {
  auto failure = run_timed(*flush_, group, job.files, job.prepare_s, reach);
  for (; failure && may_pass(*failure) && reach == store::Reach::known && tries <= schedule_.flush_retries; ++tries) {
    const double wait_s = backoff_s(tries);
    if (group.is_root()) {
      log_.debug(
          compose("flush of {} failed, retrying in {:.0f} s: {}", job.files.commit.tag, wait_s, to_string(*failure)));
    }
    if (!worker_->wait_before_retry(group, comm::Group::Seconds(wait_s))) break;
    metrics_.retries(job.files.commit, *failure, wait_s);
    failure = run_timed(*flush_, group, job.files, job.prepare_s, reach);
  }
  return failure;
}

/// Local, from any thread.
void Pipeline::note(const Job& job, const Submitted& submitted) {
  const CommitHead& commit = job.files.commit;
  if (submitted.protected_after_s) record(commit, Level::protected_, job.bytes, submitted.protected_after_s);
  if (submitted.persistent_after_s) {
    // The last of a job was not due with its commit.
    record(commit, Level::persistent, job.bytes, job.is_last ? std::nullopt : submitted.persistent_after_s);
  }
  if (submitted.not_protected) {
    completions_.failed(commit.id, Level::protected_, *submitted.not_protected);
    record(commit, Level::protected_, *submitted.not_protected, 1);
  }
  if (submitted.not_persistent) {
    completions_.failed(commit.id, Level::persistent, *submitted.not_persistent);
    if (!submitted.persistent_after_s) {
      record(commit, Level::persistent, *submitted.not_persistent, submitted.flush_tries);
    }
  }
}

/// Local. A stage succeeded.
void Pipeline::record(const CommitHead& commit, Level level, const CommitBytes& bytes, std::optional<double> after_s) {
  metrics_.reached(commit, level, bytes, after_s);
  if (level != Level::persistent) return;
  flush_record_.persistent(commit);
  const auto line = group_.is_root() ? flush_news_.succeeded(commit) : std::nullopt;
  if (line) log_.info(*line);
}

/// Local. It failed.
void Pipeline::record(const CommitHead& commit, Level level, const Failure& failure, std::uint64_t tries) {
  metrics_.failed(commit, level, failure);
  if (level == Level::persistent) flush_record_.failed(commit, failure, tries);
}

/// Rank 0. All that there is to say of a commit.
void Pipeline::log_outcome(const Job& job, const Submitted& processed) {
  if (job.is_last && processed.persistent_after_s)
    log_.info(compose("{} is persistent", named(job.files.commit, schedule_.run)));
  if (!job.is_last)
    log_.info(
        committed(job.files.commit,
                  {job.bytes.total, processed.protected_after_s ? Level::protected_ : Level::local, protect_->scheme(),
                   job.blocked_s, processed.protected_after_s, processed.persistent_after_s, schedule_.run}));
  warn(job.files.commit, processed);
}

void Pipeline::warn(const CommitHead& commit, const Submitted& processed) {
  if (processed.not_protected) log_.warning(not_protected(commit, *processed.not_protected));
  if (processed.not_persistent) warn_not_flushed(commit, *processed.not_persistent, processed.flush_tries);
}

/// Rank 0.
void Pipeline::warn_not_flushed(const CommitHead& commit, const Failure& failure, std::uint64_t tries) {
  const std::string line = not_flushed(ledger_, commit, failure, tries);
  if (flush_news_.is_news(failure)) log_.warning(line);
  else log_.debug(line);
}

/// Local.
void Pipeline::retire(store::Reach reach) {
  const std::vector<commits::Entry> before = ledger_.entries();
  store::retire_superseded(store_, ledger_, schedule_.keep, reach, log_);
  for (const commits::Entry& entry : before) {
    if (!ledger_.find(entry.commit.id)) metrics_.retired(entry.commit);
  }
  flush_record_.retired();
}

}  // namespace kedge::pipeline
