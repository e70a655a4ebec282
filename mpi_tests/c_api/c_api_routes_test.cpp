// Routed files by the C interface; what one rank does wrong is reported by commit and close on all.
#include <gmock/gmock.h>

#include <array>
#include <cstring>
#include <string>

#include "c_api/c_engines.hpp"

namespace kedge::faults::c_api_routes_test {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

using Path = std::array<char, KEDGE_PATH_SIZE>;

std::vector<std::byte> content_of(int rank, std::size_t size_bytes) {
  std::vector<std::byte> content(size_bytes);
  for (std::size_t i = 0; i < size_bytes; ++i) content[i] = static_cast<std::byte>(i * 3 + static_cast<unsigned>(rank));
  return content;
}

std::size_t routed_names(const FaultyDisk& disk) {
  std::size_t count = 0;
  for (const auto& [path, entry] : disk.snapshot()) {
    if (path.find("/routed-") != std::string::npos) ++count;
  }
  return count;
}

TEST(CApiRoutes, FilesGoOutAndComeBack) {
  SimulatedJob job(2);
  run_in_c(job, [&](int rank, kedge_engine* engine) {
    Path path{};
    std::size_t length = 0;
    ASSERT_EQ(kedge_create(engine, "a", nullptr, 0), KEDGE_OK);
    const std::string name = "out/restart." + std::to_string(rank);
    ASSERT_EQ(kedge_route_out(engine, name.c_str(), 0, path.data(), path.size(), &length), KEDGE_OK);
    EXPECT_THAT(path.data(), EndsWith("/" + name));
    EXPECT_EQ(length, std::strlen(path.data()));
    job.disk.write_all(path.data(), content_of(rank, 5'000'000));
    ASSERT_EQ(kedge_route_out(engine, "dump/", 100, path.data(), path.size(), nullptr), KEDGE_OK);
    job.disk.write_all(path.data() + std::string("base"), content_of(rank, 100));
    ASSERT_EQ(kedge_commit(engine), KEDGE_OK) << kedge_last_error();

    EXPECT_EQ(opened(engine), "a");
    kedge_region region{};
    ASSERT_EQ(kedge_find_region(engine, "dump/base", &region), KEDGE_OK);
    EXPECT_EQ(region.routed, 1);
    ASSERT_EQ(kedge_route_in(engine, name.c_str(), path.data(), path.size(), &length), KEDGE_OK);
    EXPECT_THAT(path.data(), EndsWith("/" + name));
    EXPECT_EQ(length, std::strlen(path.data()));
    EXPECT_EQ(job.disk.read_all(path.data()), content_of(rank, 5'000'000));
    ASSERT_EQ(kedge_route_in(engine, "dump/", path.data(), path.size(), nullptr), KEDGE_OK);
    EXPECT_EQ(job.disk.read_all(path.data() + std::string("base")), content_of(rank, 100));
    EXPECT_EQ(kedge_close(engine), KEDGE_OK) << kedge_last_error();
  });
  EXPECT_EQ(routed_names(job.disk), 0U);
}

TEST(CApiRoutes, WhatOneRankDoesWrongIsToldByCommitAndCloseOnAll) {
  constexpr int kTurns = 5;
  SimulatedJob job(2);
  run_in_c(job, [&](int rank, kedge_engine* engine) {
    ASSERT_EQ(commit_value_in_c(engine, "before", 1), KEDGE_OK);
    Path path{};
    std::size_t length = 77;
    for (int turn = 0; turn < kTurns; ++turn) {
      SCOPED_TRACE(turn);
      const bool small = turn == 2 || turn == 3;
      const char* name = turn == 0 ? nullptr : turn == 4 ? "../x" : "x";
      char* place = turn == 1 ? nullptr : path.data();
      // One byte too few for the terminating zero, and none at all.
      const std::size_t size = turn == 2 ? std::string("x").size() : turn == 3 ? 0 : path.size();
      path.fill('.');
      ASSERT_EQ(kedge_create(engine, "a", nullptr, 0), KEDGE_OK);
      const std::int32_t value = 1;
      kedge_save(engine, "value", &value, KEDGE_INT32, 0, nullptr);
      if (rank == 1) {
        EXPECT_EQ(kedge_route_out(engine, name, 0, place, size, &length), KEDGE_INVALID_ARGUMENT);
        EXPECT_THAT(kedge_last_error(), HasSubstr(small ? "KEDGE_PATH_SIZE" : turn == 4 ? "'..'" : "must not be NULL"));
        EXPECT_EQ(path[0], '.') << "written only on success";
        EXPECT_EQ(length, 77U);
      }
      EXPECT_EQ(kedge_commit(engine), KEDGE_INVALID_ARGUMENT);
    }
    EXPECT_EQ(routed_names(job.disk), 0U);

    ASSERT_EQ(kedge_create(engine, "b", nullptr, 0), KEDGE_OK);
    ASSERT_EQ(kedge_route_out(engine, "x", 0, path.data(), path.size(), nullptr), KEDGE_OK);
    job.disk.write_all(path.data(), content_of(0, 10));
    ASSERT_EQ(kedge_commit(engine), KEDGE_OK);
    for (int turn = 0; turn < 4; ++turn) {
      SCOPED_TRACE(turn);
      path.fill('.');
      EXPECT_EQ(opened(engine), "b");
      if (rank == 1) {
        EXPECT_EQ(kedge_route_in(engine, turn == 0 ? nullptr : "x", turn == 1 ? nullptr : path.data(),
                                 turn == 2   ? 1
                                 : turn == 3 ? 0
                                             : path.size(),
                                 &length),
                  KEDGE_INVALID_ARGUMENT);
        EXPECT_EQ(path[0], '.');
      }
      EXPECT_EQ(kedge_close(engine), KEDGE_NOT_FOUND) << "as of kedge_load, the same on all ranks";
    }
    EXPECT_EQ(opened(engine), "b");
    if (rank == 0) {
      EXPECT_EQ(kedge_route_in(engine, "nothing", path.data(), path.size(), nullptr), KEDGE_NOT_FOUND);
    }
    EXPECT_EQ(kedge_close(engine), KEDGE_NOT_FOUND);
    EXPECT_EQ(kedge_route_in(engine, "x", path.data(), path.size(), nullptr), KEDGE_BAD_STATE);
    EXPECT_EQ(kedge_route_out(engine, "x", 0, path.data(), path.size(), nullptr), KEDGE_BAD_STATE);
  });
}

TEST(CApiRoutes, ABufferOfJustTheRightSizeIsEnough) {
  SimulatedJob job(1);
  run_in_c(job, [&](int, kedge_engine* engine) {
    Path path{};
    std::size_t length = 0;
    ASSERT_EQ(kedge_create(engine, "a", nullptr, 0), KEDGE_OK);
    ASSERT_EQ(kedge_route_out(engine, "x", 0, path.data(), path.size(), &length), KEDGE_OK);
    EXPECT_EQ(kedge_route_out(engine, "y", 0, path.data(), length + 1, nullptr), KEDGE_OK);
    EXPECT_THAT(path.data(), EndsWith("/y"));
    EXPECT_EQ(kedge_route_out(engine, "z", 0, path.data(), length, nullptr), KEDGE_INVALID_ARGUMENT);
    EXPECT_EQ(kedge_abandon(engine), KEDGE_OK);
  });
}

}  // namespace
}  // namespace kedge::faults::c_api_routes_test
