// Headers of containers that are damaged, or containers that are gone, as long as what protects them is there: a copy
// counts as what it is, also where no container says any more which commit it was.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "harness/engine_checks.hpp"
#include "harness/several_starts.hpp"
#include "store/file_name.hpp"

namespace kedge::faults::damaged_headers_test {
namespace {

constexpr std::uint64_t kInTheHead = 70;

/// Every rank on a node of its own, in one set.
struct JobOf : SimulatedJob {
  JobOf(int rank_count, Scheme scheme) : SimulatedJob(rank_count) {
    ranks_per_node = 1;
    options.redundancy.scheme = scheme;
    options.redundancy.set_size = static_cast<std::uint32_t>(rank_count);
  }
};

class DamagedHeaders : public testing::Test {
 protected:
  /// Files of the stores of this kind, of all ranks.
  static std::vector<std::string> files(const SimulatedJob& job, store::FileKind kind) {
    std::vector<std::string> found;
    for (const auto& [path, entry] : job.disk.snapshot()) {
      const auto name = store::parse_file_name(path.substr(path.rfind('/') + 1));
      if (path.starts_with("/nodes/") && name && name->kind == kind) found.push_back(path);
    }
    return found;
  }
  static void flip_all(SimulatedJob& job, store::FileKind kind) {
    for (const std::string& path : files(job, kind)) job.disk.flip_bit(path, kInTheHead);
  }
  static void expect_step(SimulatedJob& job, const Tag& tag, int step) {
    const Opened opened = reopen(job, latest, Newer::keep, {{"next", 99}});
    EXPECT_EQ(opened.tag, tag) << text_of(opened.failure);
    EXPECT_EQ(opened.step, step);
    EXPECT_EQ(reopen(job).step, 99) << "the job goes on from it";
  }
};

TEST_F(DamagedHeaders, OfAllContainersWithWholeCopies) {
  for (const int ranks : {2, 4}) {
    JobOf job(ranks, Scheme::partner);
    commit_steps(job, {{"a", 1}, {"b", 2}});
    flip_all(job, store::FileKind::container);
    expect_step(job, "b", 2);
  }
}

TEST_F(DamagedHeaders, SomeDamagedAndSomeGone) {
  for (const bool descriptors_too : {false, true}) {
    JobOf job(4, Scheme::partner);
    commit_steps(job, {{"a", 1}, {"b", 2}});
    const auto containers = files(job, store::FileKind::container);
    for (std::size_t i = 0; i < containers.size(); ++i) {
      if (i % 2 == 0) job.disk.remove_all(containers[i]);
      else job.disk.flip_bit(containers[i], kInTheHead);
    }
    if (descriptors_too) flip_all(job, store::FileKind::descriptor);
    expect_step(job, "b", 2);
  }
}

TEST_F(DamagedHeaders, AllGone) {
  JobOf job(2, Scheme::partner);
  commit_steps(job, {{"a", 1}});
  for (const std::string& path : files(job, store::FileKind::container)) job.disk.remove_all(path);
  expect_step(job, "a", 1);
}

/// One copy too few, and there is nothing: never another rank's bytes, and no start from zero.
TEST_F(DamagedHeaders, ACopyThatIsDamagedTooIsUnrecoverable) {
  for (const std::uint64_t offset : {kInTheHead, std::uint64_t{4096} + kInTheHead, std::uint64_t{20000}}) {
    JobOf job(2, Scheme::partner);
    commit_steps(job, {{"a", 1}});
    flip_all(job, store::FileKind::container);
    job.disk.flip_bit(files(job, store::FileKind::parity).front(), offset);
    const Opened opened = reopen(job);
    EXPECT_EQ(opened.failure ? opened.failure->code : ErrorCode::io, ErrorCode::unrecoverable) << offset;
  }
}

TEST_F(DamagedHeaders, WhatWasDiscardedDoesNotComeBackByItsCopies) {
  JobOf job(2, Scheme::partner);
  job.options.store.keep = 2;
  commit_steps(job, {{"a", 1}, {"b", 2}});
  EXPECT_EQ(reopen(job, "a", Newer::discard).step, 1);
  flip_all(job, store::FileKind::container);
  expect_step(job, "a", 1);
}

TEST_F(DamagedHeaders, WithinTheToleranceOfCodedSets) {
  struct Case {
    Scheme scheme;
    std::size_t tolerated;
  };
  for (const Case& one : {Case{Scheme::xor_, 1}, Case{Scheme::rs, 2}}) {
    for (const bool too_many : {false, true}) {
      JobOf job(4, one.scheme);
      job.options.redundancy.parity = 2;
      commit_steps(job, {{"a", 1}});
      flip_all(job, store::FileKind::descriptor);
      const std::size_t lost = one.tolerated + (too_many ? 1 : 0);
      for (std::size_t rank = 0; rank < lost; ++rank) {
        for (const std::string& path : container_files(job.disk, static_cast<int>(rank))) {
          job.disk.flip_bit(path, kInTheHead);
        }
      }
      if (!too_many) {
        expect_step(job, "a", 1);
        continue;
      }
      const Opened opened = reopen(job);
      EXPECT_EQ(opened.failure ? opened.failure->code : ErrorCode::io, ErrorCode::unrecoverable);
    }
  }
}

}  // namespace
}  // namespace kedge::faults::damaged_headers_test
