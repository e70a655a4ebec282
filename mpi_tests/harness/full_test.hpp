// Whether the long tests were asked for.
#pragma once

namespace kedge::faults {

/// KEDGE_TEST_FULL is set: more sizes, more seeds, smaller pieces.
[[nodiscard]] bool full_test();

}  // namespace kedge::faults
