// The read side of a Source: another run's checkpoint, read where it lies.

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "engine/reader.hpp"

namespace kedge::engine {

/// Nothing of it comes into this run's stores: it belongs to another run.
std::optional<Tag> Reader::open_source(const Source& source, double begin_s) {
  std::string reasons;
  GivenUp given_up;  // what a failure of storage rules out is tried again by the next call
  for (const auto& [what, why] : context_.excluded_sources) {
    if (what.first == source.prefix) given_up[what.second] = why;
  }
  while (true) {
    const std::vector<ToldTag> told = look_at_source(context_, source, given_up);
    for (const ToldTag& one : told) {
      std::string problem = one.problem.data();
      if (one.usable()) {
        const auto failure = take_hold(source, one);
        if (!failure) {
          if (context_.is_root()) {
            context_.log.info(
                compose("opened {} (generation {}) of {} as this run's beginning: {} containers, {}, took {}",
                        one.commit.tag.data(), one.commit.generation, source.prefix, one.commit.world_size,
                        human_bytes(one.total_bytes), human_seconds(context_.environment.clock->seconds() - begin_s)));
          }
          return commits::to_head(one.commit).tag;
        }
        problem = to_string(*failure);
        given_up[one.commit.id] = problem;
      }
      const std::string line = compose("{} (generation {}): {}", one.commit.tag.data(), one.commit.generation, problem);
      if (reasons.find(line) != std::string::npos) continue;
      reasons += compose("{}{}", reasons.empty() ? "" : "; ", line);
      if (context_.is_root()) context_.log.warning("passed over " + line);
    }
    if (told.empty() || !told.back().usable()) {
      throw Error(ErrorCode::unrecoverable,
                  compose("'{}' of {} cannot be had: {}", source.tag, source.prefix, reasons));
    }
  }
}

/// COLLECTIVE. The failure, the same on every rank, and then nothing is open.
std::optional<Failure> Reader::take_hold(const Source& source, const ToldTag& chosen) {
  open_ = std::make_unique<OpenCheckpoint>();
  open_->parent_before = context_.parent_commit_id;
  open_->source_prefix = source.prefix;
  auto failure = context_.vote(attempt([&] {
    fs::FileSystem& file_system = *context_.environment.file_system;
    persist::OpenedContainer opened = persist::open_container(file_system, {directory_of(context_, source, chosen)},
                                                              commits::to_head(chosen.commit), context_.logical_rank());
    persist::require_trusted(file_system, opened.path, context_.options.persistent.trust);
    open_->source = std::move(opened.bytes);
    open_->container = std::move(opened.reader);
  }));
  if (failure) {
    release();
    return failure;
  }
  context_.parent_commit_id = chosen.commit.id;
  hold({commits::to_head(chosen.commit), {}, RecoverySource::fetched, chosen.total_bytes, {}});
  return std::nullopt;
}

}  // namespace kedge::engine
