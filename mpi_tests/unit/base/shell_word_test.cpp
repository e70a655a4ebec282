// Words for a shell, as the log prints them to be pasted.
#include "base/text.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace kedge::shell_word_test {
namespace {

/// What a shell makes of its first argument. Variables, because popen's own shell reads its command first.
std::string read_by_shell(const std::string& word) {
  ::setenv("KEDGE_TEST_SCRIPT", ("printf %s. " + word).c_str(), 1);
  FILE* pipe = ::popen("sh -c \"$KEDGE_TEST_SCRIPT\"", "r");
  if (pipe == nullptr) return "no shell";
  std::string text;
  std::array<char, 256> bytes{};
  for (std::size_t got = 1; got != 0; text.append(bytes.data(), got))
    got = std::fread(bytes.data(), 1, bytes.size(), pipe);
  ::pclose(pipe);
  return text;
}

TEST(ShellWord, WhatNeedsNoQuotesHasNone) {
  for (const char* plain : {"/dev/shm/kedge-1000-heat-0123abcd@node7", "a.b_c-d", "7"}) {
    EXPECT_EQ(shell_word(plain), plain);
    EXPECT_EQ(in_quotes(plain), std::string("'") + plain + "'");
  }
}

TEST(ShellWord, EverythingElseIsQuoted) {
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("/scratch/my runs"), "'/scratch/my runs'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word("'"), "''\\'''");
  EXPECT_EQ(shell_word("~"), "'~'");
  EXPECT_EQ(shell_word("a=b"), "'a=b'");
}

TEST(ShellWord, AShellReadsTheTextBack) {
  std::string every;
  for (int byte = 1; byte < 256; ++byte) every += static_cast<char>(byte);
  for (const std::string& text : {every, std::string("$HOME `id` \"$(id)\" \\"), std::string("two\nlines\n"),
                                  std::string("'a' b; rm x & | > *?[!]{1,2}~#"), std::string(" "), std::string("''")}) {
    EXPECT_EQ(read_by_shell(shell_word(text)), text + ".");
    EXPECT_EQ(read_by_shell(in_quotes(text)), text + ".");
  }
}

}  // namespace
}  // namespace kedge::shell_word_test
