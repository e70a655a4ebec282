// A batch system's job id, as part of file names.
#pragma once

#include <string>
#include <string_view>

namespace kedge {

/// Pure. The id with `_` in place of what is neither a letter nor a digit nor one of `.-[]`, and cut to 100 characters:
/// the same for the same id wherever it is written and looked for.
[[nodiscard]] std::string job_name(std::string_view id);

}  // namespace kedge
