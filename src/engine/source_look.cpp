#include "engine/source_look.hpp"

#include <array>
#include <span>
#include <utility>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "persist/tag_directory.hpp"

namespace kedge::engine {
namespace {

constexpr std::size_t kUnusableTold = 16;

class Look {
 public:
  Look(const Context& context, const Source& source, const GivenUp& given_up)
      : context_(context), source_(source), given_up_(given_up), file_system_(*context.environment.file_system) {}

  std::vector<ToldTag> run() const {
    const std::string prefix = file_system_.canonical(source_.prefix);
    persist::require_trusted_parent(file_system_, prefix, context_.options.persistent.trust);
    std::vector<ToldTag> told;
    const persist::TagList list = candidates(prefix);
    for (const persist::TagEntry& entry : list.entries) {
      if (!source_.run.empty() && entry.run != source_.run) continue;
      if (!is_wanted(entry.commit.tag)) continue;
      const ToldTag one = tell(entry, problem_of(prefix, entry));
      if (one.usable() || told.size() < kUnusableTold) told.push_back(one);
      if (one.usable()) break;
    }
    const std::string unreadable = warn_of(list.unusable);
    if (!told.empty()) return told;
    if (!unreadable.empty()) {
      throw Error(Failure{ErrorCode::unrecoverable,
                          compose("'{}' of {} cannot be had: {}", source_.tag, source_.prefix, unreadable), -1, prefix,
                          0});
    }
    throw Error(Failure{ErrorCode::not_found,
                        compose("no checkpoint{}{} is there; kedge ls {} lists what is",
                                source_.tag == "latest" ? "" : compose(" '{}'", source_.tag),
                                source_.run.empty() ? "" : compose(" of run '{}'", source_.run), source_.prefix),
                        -1, prefix, 0});
  }

 private:
  [[nodiscard]] bool is_wanted(const Tag& tag) const { return source_.tag == "latest" || source_.tag == tag; }

  /// Whose they are is not known any more; they may be meant. In words, what is damaged.
  std::string warn_of(const std::vector<persist::Unusable>& unusable) const {
    std::string damaged;
    for (const persist::Unusable& one : unusable) {
      const auto name = persist::parse_directory_name(one.directory);
      if (!one.committed || !name || !is_wanted(name->tag)) continue;
      const std::string line = compose("{}: {}", one.directory, one.reason);
      context_.log.warning("passed over " + line);
      damaged += compose("{}{}", damaged.empty() ? "" : "; ", line);
    }
    return damaged;
  }

  [[nodiscard]] persist::TagList candidates(const std::string& prefix) const {
    if (!file_system_.status(fs::join(prefix, persist::kManifestFile))) {
      return persist::list_tags(file_system_, prefix);
    }
    persist::TagEntry entry = persist::read_tag(file_system_, prefix, ".");
    entry.directory.assign(1, '.');
    return {{std::move(entry)}, {}};
  }

  [[nodiscard]] std::string problem_of(const std::string& prefix, const persist::TagEntry& entry) const {
    if (const auto why = given_up_.find(entry.commit.id); why != given_up_.end()) return why->second;
    if (entry.commit.world_size != static_cast<std::uint32_t>(context_.comm->size())) {
      return compose("it was saved by {} ranks and this job has {}; start it with {} ranks", entry.commit.world_size,
                     context_.comm->size(), entry.commit.world_size);
    }
    const auto failure = attempt([&] {
      const std::string directory = fs::join(prefix, entry.directory);
      persist::require_trusted(file_system_, directory, context_.options.persistent.trust);
      persist::require_trusted(file_system_, fs::join(directory, persist::kManifestFile),
                               context_.options.persistent.trust);
      (void)persist::read_tag(file_system_, prefix, entry.directory);
    });
    return failure ? to_string(*failure) : "";
  }

  const Context& context_;
  const Source& source_;
  const GivenUp& given_up_;
  fs::FileSystem& file_system_;
};

}  // namespace

std::vector<ToldTag> look_at_source(Context& context, const Source& source, const GivenUp& given_up) {
  std::vector<ToldTag> told;
  const auto local = attempt([&] {
    if (context.is_root()) told = Look(context, source, given_up).run();
  });
  comm::throw_if(context.vote(local));
  std::uint64_t count = told.size();
  context.broadcast(count);
  told.resize(count);
  context.comm->broadcast(std::as_writable_bytes(std::span(told)), 0, context.deadline());
  return told;
}

std::string directory_of(const Context& context, const Source& source, const ToldTag& told) {
  const std::string prefix = context.environment.file_system->canonical(source.prefix);
  const std::string directory = told.directory.data();
  return directory == "." ? prefix : fs::join(prefix, directory);
}

}  // namespace kedge::engine
