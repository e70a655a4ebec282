// Which values an option may have, beyond what its type permits.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/cores.hpp"
#include "base/exit_signals.hpp"
#include "base/network.hpp"
#include "base/timestamp.hpp"

namespace kedge::options_valid {

inline bool is_run_name(const std::string& name) {
  const auto permitted = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  };
  return name.size() <= 64 && name.front() != '.' && std::ranges::all_of(name, permitted);
}

inline constexpr std::size_t kFingerprintBytesMax = 4096;

inline bool is_path(const std::string& path) { return path.find('\0') == std::string::npos; }

/// Whether every {name} in the path is one of `replaced`. Ignores ${NAME}, and braces around other things.
inline bool has_only_placeholders(const std::string& path, std::initializer_list<std::string_view> replaced) {
  for (std::size_t at = path.find('{'); at != std::string::npos; at = path.find('{', at + 1)) {
    const std::size_t end = path.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_", at + 1);
    if (end == std::string::npos || end == at + 1 || path[end] != '}' || (at > 0 && path[at - 1] == '$')) continue;
    const std::string_view name = std::string_view(path).substr(at + 1, end - at - 1);
    if (std::ranges::find(replaced, name) == replaced.end()) return false;
  }
  return true;
}

inline constexpr auto kRunName = [](const std::string& name) { return name.empty() || is_run_name(name); };
inline constexpr auto kLine = [](const std::string& text) {
  return text.size() <= kFingerprintBytesMax && text.find_first_of(std::string_view("\0\n\r", 3)) == std::string::npos;
};
inline constexpr auto kPaths = [](const std::vector<std::string>& paths) {
  return std::ranges::all_of(paths, is_path);
};
inline constexpr auto kStorePath = [](const std::string& path) {
  return is_path(path) && has_only_placeholders(path, {"node"});
};
inline constexpr auto kEventsPath = [](const std::string& path) {
  return is_path(path) && has_only_placeholders(path, {"node", "run", "user", "job"});
};
inline constexpr auto kSomePath = [](const std::string& path) {
  return !path.empty() && is_path(path) && has_only_placeholders(path, {});
};
inline constexpr auto kTimestamp = [](const std::string& text) {
  return text.empty() || text == "none" || parse_timestamp(text).has_value();
};
inline constexpr auto kSignals = [](const std::vector<std::string>& names) {
  return std::ranges::all_of(names, [](const std::string& name) { return parse_exit_signal(name).has_value(); });
};
inline constexpr auto kAtLeastOne = [](std::uint64_t count) { return count >= 1; };
inline constexpr auto kThreads = [](std::uint32_t threads) { return threads <= 64; };
inline constexpr auto kSetSize = [](std::uint32_t members) { return members >= 2 && members <= 32; };
inline constexpr auto kParity = [](std::uint32_t parity) { return parity >= 1 && parity <= 4; };
inline constexpr auto kRetries = [](std::uint32_t retries) { return retries <= 1000; };
inline constexpr auto kRotation = [](std::uint64_t bytes) { return bytes == 0 || bytes >= 4096; };
inline constexpr auto kLoadBuffer = [](std::uint64_t bytes) { return bytes >= std::uint64_t{1} << 20U; };
inline constexpr auto kPending = [](std::uint32_t commits) { return commits >= 1 && commits <= 1024; };
inline constexpr auto kCores = [](const std::string& cores) { return parse_cores(cores).has_value(); };
inline constexpr auto kNetworks = [](const std::string& networks) { return parse_networks(networks).has_value(); };
inline constexpr auto kDomain = [](const std::string& domain) {
  return domain == "node" || (domain.starts_with("env:") && domain.size() > 4 && is_path(domain));
};
// The owner has all rights in the directories, others must not write: Kedge itself would not read them then.
inline constexpr auto kMode = [](const std::string& mode) {
  unsigned bits = 0;
  const char* end = mode.data() + mode.size();
  const auto [stop, error] = std::from_chars(mode.data(), end, bits, 8);
  return error == std::errc{} && stop == end && (bits & 0700U) == 0700U && (bits & ~0775U) == 0;
};
inline constexpr auto kWait = [](double seconds) { return std::isfinite(seconds) && seconds >= 0; };
inline constexpr auto kShare = [](double share) { return share >= 0 && share <= 1; };
inline constexpr auto kPositive = [](double seconds) { return std::isfinite(seconds) && seconds > 0; };

}  // namespace kedge::options_valid
