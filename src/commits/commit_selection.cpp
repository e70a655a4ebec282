#include "commits/commit_selection.hpp"

#include "base/hash.hpp"
#include "base/text.hpp"
#include "commits/head_check.hpp"

namespace kedge::commits {
namespace {

constexpr std::string_view kLatest = "latest";

Failure invalid(std::string message) { return {ErrorCode::invalid_argument, std::move(message), -1, {}, 0}; }

}  // namespace

bool is_latest(std::string_view text) noexcept { return text == kLatest; }

bool matches_tag(std::string_view text, std::string_view tag, bool is_output) noexcept {
  return is_latest(text) ? !is_output : text == tag;
}

Selection parse_selection(const Selection& given) {
  const auto* tag = std::get_if<Tag>(&given);
  return tag != nullptr && is_latest(*tag) ? Selection(latest) : given;
}

std::optional<Failure> check_tag(std::string_view tag) {
  std::string problem;
  if (tag.empty()) problem = "it is empty";
  else if (tag.size() > kTagBytesMax) problem = compose("it has {} characters", tag.size());
  else if (tag.front() == '.') problem = "it begins with a dot";
  else if (is_latest(tag)) problem = "this word is reserved";
  else if (!is_tag(tag)) problem = "it has characters that no tag may have";
  if (problem.empty()) return std::nullopt;
  return invalid(compose("tag '{}' cannot be used: {}; give 1 to {} of A-Z a-z 0-9 . _ -, not beginning with a dot",
                         tag.substr(0, kTagBytesMax), problem, kTagBytesMax));
}

std::optional<Failure> check_selection(const Selection& selection) {
  if (const auto* tag = std::get_if<Tag>(&selection)) return check_tag(*tag);
  if (const auto* before = std::get_if<Before>(&selection)) return check_tag(before->tag);
  const auto* source = std::get_if<Source>(&selection);
  if (source == nullptr || source->prefix.find('\0') == std::string::npos) return std::nullopt;
  // The system would take what is before it for the path.
  return invalid(compose("the prefix '{}' of a Source contains a NUL byte, which no path can", source->prefix));
}

std::uint64_t hash_selection(const Selection& selection, Newer newer) noexcept {
  std::uint64_t hash = selection.index() * 2 + (newer == Newer::discard ? 1 : 0);
  if (const auto* tag = std::get_if<Tag>(&selection)) hash ^= fnv1a(*tag) << 3U;
  if (const auto* before = std::get_if<Before>(&selection)) hash ^= fnv1a(before->tag) << 3U;
  if (const auto* source = std::get_if<Source>(&selection)) {
    hash ^= fnv1a(source->prefix) * 3 + fnv1a(source->run) * 5 + fnv1a(source->tag) * 7;
  }
  return hash;
}

std::string to_string(const Selection& selection) {
  if (const auto* tag = std::get_if<Tag>(&selection)) return *tag;
  if (const auto* before = std::get_if<Before>(&selection)) return "before " + before->tag;
  if (const auto* source = std::get_if<Source>(&selection)) return source->tag + " of " + source->prefix;
  return std::string(kLatest);
}

}  // namespace kedge::commits
