#include "base/job_name.hpp"

#include <algorithm>
#include <cstddef>

namespace kedge {
namespace {

constexpr std::size_t kLengthMax = 100;
constexpr std::string_view kKept = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-[]";

}  // namespace

std::string job_name(std::string_view id) {
  std::string name(id.substr(0, kLengthMax));
  std::ranges::replace_if(
      name, [](char one) { return kKept.find(one) == std::string_view::npos; }, '_');
  return name;
}

}  // namespace kedge
