// The C API on engines over a simulated disk.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "bindings/c/handle.hpp"
#include "harness/engine_checks.hpp"
#include "kedge/kedge.h"

namespace kedge::faults {

struct FreeEngine {
  void operator()(kedge_engine* engine) const { kedge_engine_free(engine); }
};
using OwnedEngine = std::unique_ptr<kedge_engine, FreeEngine>;

/// What kedge_engine_new gives, in this rank's world.
[[nodiscard]] inline OwnedEngine make_c_engine(RankScope& scope) {
  return OwnedEngine(std::make_unique<kedge_engine>(scope.make_engine()).release());
}

/// One start of a job whose ranks know Kedge by its C interface alone.
inline void run_in_c(SimulatedJob& job, const std::function<void(int rank, kedge_engine*)>& body) {
  expect_returned(job.start([&](RankScope& scope) {
    const OwnedEngine engine = make_c_engine(scope);
    body(scope.rank, engine.get());
  }));
}

/// Commits one int32 region "value".
[[nodiscard]] inline kedge_error commit_value_in_c(kedge_engine* engine, const char* tag, std::int32_t value) {
  if (const kedge_error error = kedge_create(engine, tag, nullptr, 0); error != KEDGE_OK) return error;
  kedge_save(engine, "value", &value, KEDGE_INT32, 0, nullptr);
  return kedge_commit(engine);
}

/// The tag that kedge_open found; empty if none.
[[nodiscard]] inline std::string opened(kedge_engine* engine, const char* tag = nullptr) {
  int found = -1;
  EXPECT_EQ(kedge_open(engine, tag, KEDGE_KEEP_NEWER, &found), KEDGE_OK) << kedge_last_error();
  if (found == 0) return {};
  kedge_info info{};
  EXPECT_EQ(kedge_get_info(engine, &info), KEDGE_OK);
  return info.tag;
}

}  // namespace kedge::faults
