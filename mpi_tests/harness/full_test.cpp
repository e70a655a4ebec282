#include "harness/full_test.hpp"

#include <cstdlib>

namespace kedge::faults {

bool full_test() {
  static const bool full = std::getenv("KEDGE_TEST_FULL") != nullptr;
  return full;
}

}  // namespace kedge::faults
