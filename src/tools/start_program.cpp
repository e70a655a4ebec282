#include "tools/start_program.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>

#include "base/text.hpp"
#include "fs/system_error.hpp"
#include "kedge/error.hpp"

namespace kedge::tools {

std::string path_of_program(const std::string& name, const std::string& why) {
  std::array<char, PATH_MAX> path{};
  const auto length = ::readlink("/proc/self/exe", path.data(), path.size());
  if (length <= 0) fs::throw_system_error("find this program", "/proc/self/exe", errno);
  const std::string own(path.data(), static_cast<std::size_t>(length));
  std::string program = own.substr(0, own.rfind('/') + 1) + name;
  if (::access(program.c_str(), X_OK) == 0) return program;
  throw Error(Failure{ErrorCode::not_found, compose("program not found: {}", why), -1, program, 0});
}

void exec_program(std::vector<std::string> words, const std::string& advice) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::execvp(pointers.front(), pointers.data());
  fs::throw_system_error(advice, words.front(), errno);
}

}  // namespace kedge::tools
