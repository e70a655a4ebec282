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

inline Result shell(const std::string& command) {
  Result result;
  FILE* pipe = ::popen(("{ " + command + "; } 2>&1").c_str(), "r");
  if (pipe == nullptr) return result;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) result.text += static_cast<char>(c);
  const int status = ::pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

inline Result kedge(const std::string& arguments) { return shell("'" KEDGE_PROGRAM "' " + arguments); }

/// In this directory, with these variables ("A=b C=d").
inline Result kedge_in(const std::string& directory, const std::string& arguments, const std::string& variables = {}) {
  return shell("cd '" + directory + "' && env " + variables + " '" KEDGE_PROGRAM "' " + arguments);
}

inline Json kedge_json(const std::string& arguments, int status) {
  const Result result = shell("'" KEDGE_PROGRAM "' " + arguments + " --json 2>/dev/null");
  EXPECT_EQ(result.status, status) << result.text;
  return Json::parse(result.text);
}

}  // namespace kedge::testing
