// Runs the kedge command as a shell would.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <string>

#include "base/json.hpp"

namespace kedge::testing {

struct Result {
  int status = -1;
  std::string text;  // standard output and standard error
};

/// Lines that were folded to fit 80 columns go on after 9 spaces; here they are one again.
inline std::string unfolded(const std::string& text) {
  const std::string fold = "\n         ";
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::size_t next = at + fold.size();
    if (text.compare(at, fold.size(), fold) != 0 || next >= text.size() || text[next] == ' ') {
      out += text[at];
      continue;
    }
    out += ' ';
    at = next - 1;
  }
  return out;
}

inline Result shell(const std::string& command) {
  Result result;
  FILE* pipe = ::popen(("{ " + command + "; } 2>&1").c_str(), "r");
  if (pipe == nullptr) return result;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) result.text += static_cast<char>(c);
  const int status = ::pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

inline Result kedge(const std::string& arguments) {
  Result result = shell("'" KEDGE_PROGRAM "' " + arguments);
  result.text = unfolded(result.text);
  return result;
}

/// In this directory, with these variables ("A=b C=d").
inline Result kedge_in(const std::string& directory, const std::string& arguments, const std::string& variables = {}) {
  Result result = shell("cd '" + directory + "' && env " + variables + " '" KEDGE_PROGRAM "' " + arguments);
  result.text = unfolded(result.text);
  return result;
}

inline Json kedge_json(const std::string& arguments, int status) {
  const Result result = shell("'" KEDGE_PROGRAM "' " + arguments + " --json 2>/dev/null");
  EXPECT_EQ(result.status, status) << result.text;
  return Json::parse(result.text);
}

}  // namespace kedge::testing
