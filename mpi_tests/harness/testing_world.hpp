// kedge::testing beside GoogleTest, whose namespace has the same name.
#pragma once

#include <gtest/gtest.h>

#include "kedge/testing/in_process_job.hpp"    // IWYU pragma: export
#include "kedge/testing/in_process_world.hpp"  // IWYU pragma: export
#include "kedge/testing/simulated_death.hpp"   // IWYU pragma: export

namespace kedge::testing {

/// Inside namespace kedge, `testing::` finds this namespace first: tests get both by it.
using namespace ::testing;  // NOLINT(google-build-using-namespace)

}  // namespace kedge::testing
