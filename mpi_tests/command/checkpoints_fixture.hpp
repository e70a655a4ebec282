// What the tests of the kedge command on checkpoints share.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "command/kedge_program.hpp"
#include "harness/sample_prefix.hpp"

namespace kedge::testing {

class KedgeCheckpoints : public ::testing::Test {
 protected:
  void add_three() const {
    for (const unsigned generation : {1U, 2U, 3U}) prefix_.add(sample_entry(generation));
  }
  [[nodiscard]] std::string manifest(const persist::TagEntry& entry) const {
    return prefix_.path(entry.directory) + "/checkpoint.h5";
  }
  [[nodiscard]] Result on_prefix(const std::string& words) const {
    return kedge(words + " --prefix " + prefix_.directory());
  }
  /// The damage is seen by tag, by directory and on the whole prefix.
  void expect_damaged(const persist::TagEntry& entry, const std::string& what) const {
    for (const std::string& words : {"verify " + entry.commit.tag + " --prefix " + prefix_.directory(),
                                     "verify " + prefix_.path(entry.directory), "verify " + prefix_.directory()}) {
      const Result verified = kedge(words);
      EXPECT_EQ(verified.status, 1) << what << ": " << verified.text;
      EXPECT_THAT(verified.text, ::testing::AllOf(::testing::HasSubstr("DAMAGED"), ::testing::HasSubstr(what)))
          << words;
    }
  }
  SamplePrefix prefix_;
};

}  // namespace kedge::testing
