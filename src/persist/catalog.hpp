// The name that the engine still has for the run's records.
#pragma once

#include "persist/run_records.hpp"

namespace kedge::persist {

using Catalog = RunRecords;

}  // namespace kedge::persist
