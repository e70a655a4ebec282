#include "tools/failed_flush.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "tools/text_format.hpp"

namespace kedge::tools {

std::string failed_flush_text(const store::FailedFlush& failed) {
  const double age_s = static_cast<double>(system_clock()->wall_ns() - failed.time_ns) * 1e-9;
  return compose("{}: flush failed {} ago{}: {}\n", printable(failed.tag), human_seconds(std::max(age_s, 0.0)),
                 failed.tries > 1 ? compose(" (tried {} times)", failed.tries) : "", printable(failed.reason));
}

Json failed_flush_json(const store::FailedFlush& failed) {
  return {{"tag", failed.tag},           {"generation", failed.generation}, {"commit_id", to_string(failed.commit_id)},
          {"time", utc(failed.time_ns)}, {"time_ns", failed.time_ns},       {"tries", failed.tries},
          {"reason", failed.reason}};
}

}  // namespace kedge::tools
