#include "engine/calls.hpp"

#include "base/hash.hpp"
#include "base/text.hpp"
#include "commits/head_check.hpp"

namespace kedge::engine {
std::string_view to_string(Call call) noexcept {
  switch (call) {
    case Call::start: return "Engine()";
    case Call::need_checkpoint: return "need_checkpoint";
    case Call::create: return "create";
    case Call::commit: return "commit";
    case Call::abandon: return "abandon";
    case Call::open: return "open";
    case Call::close: return "close";
    case Call::finalize: return "finalize";
    case Call::wait: return "wait";
    case Call::wait_for: return "wait_for";
    case Call::pin: return "pin";
    case Call::should_exit: return "should_exit";
    case Call::finalize_for: return "finalize(at_most)";
  }
  return "unknown call";
}

std::uint64_t begin_call(const comm::Group& group, Call call, std::uint64_t argument_hash,
                         const std::optional<Failure>& local, std::uint64_t payload) {
  return group.agree_on_call({static_cast<std::uint32_t>(call), argument_hash, payload}, local,
                             [](std::uint32_t code) { return to_string(static_cast<Call>(code)); });
}

std::optional<Failure> check_tag(std::string_view tag) {
  std::string problem;
  if (tag.empty()) problem = "it is empty";
  else if (tag.size() > commits::kTagBytesMax) problem = compose("it has {} characters", tag.size());
  else if (tag.front() == '.') problem = "it begins with a dot";
  else if (tag == "latest") problem = "this word is reserved";
  else if (!commits::is_tag(tag)) problem = "it has characters that no tag may have";
  if (problem.empty()) return std::nullopt;
  return Failure{ErrorCode::invalid_argument,
                 compose("tag '{}' cannot be used: {}; give 1 to {} of A-Z a-z 0-9 . _ -, not beginning with a dot",
                         tag.substr(0, commits::kTagBytesMax), problem, commits::kTagBytesMax),
                 -1,
                 {},
                 0};
}

std::optional<Failure> check_source(const Source& source) {
  if (source.prefix.find('\0') == std::string::npos) return std::nullopt;
  // The system would take what is before it for the path.
  return Failure{ErrorCode::invalid_argument,
                 compose("the prefix '{}' of a Source contains a NUL byte, which no path can", source.prefix),
                 -1,
                 {},
                 0};
}

std::uint64_t hash_of(std::string_view text) noexcept { return fnv1a(text); }

std::uint64_t hash_of(const Selection& selection, Newer newer) noexcept {
  std::uint64_t hash = selection.index() * 2 + (newer == Newer::discard ? 1 : 0);
  if (const auto* tag = std::get_if<Tag>(&selection)) hash ^= hash_of(*tag) << 3U;
  if (const auto* before = std::get_if<Before>(&selection)) hash ^= hash_of(before->tag) << 3U;
  if (const auto* source = std::get_if<Source>(&selection)) {
    hash ^= hash_of(source->prefix) * 3 + hash_of(source->run) * 5 + hash_of(source->tag) * 7;
  }
  return hash;
}

}  // namespace kedge::engine
