#include "start/fingerprint.hpp"

#include <span>

#include "base/options_values.hpp"
#include "base/text.hpp"
#include "checksum/crc32c.hpp"
#include "kedge/error.hpp"

namespace kedge::start {
namespace {

constexpr std::size_t kBytesMax = 8192;

}  // namespace

std::string fingerprint_of(fs::FileSystem& file_system, const Options& options) {
  std::string text = options.fingerprint;
  for (const std::string& path : options.fingerprint_files) {
    try {
      // A link to an input file is the user's own arrangement.
      const auto file = file_system.open(file_system.canonical(path), fs::Access::read);
      const std::uint64_t size = file->status().size_bytes;
      // Without the directory: a job may be moved with its input.
      text += compose("{}{} ({} bytes, CRC32C {:08x})", text.empty() ? "" : ", ", path.substr(path.rfind('/') + 1),
                      size, file->checksum(0, size, 0));
    } catch (const Error& error) {
      Failure failure = error.failure();
      failure.message = "cannot read a file of fingerprint_files: " + failure.message;
      if (failure.path.empty()) failure.path = path;
      throw Error(std::move(failure));
    }
  }
  return text.size() <= kBytesMax ? text
                                  : compose("{}... ({} bytes, CRC32C {:08x})", text.substr(0, kBytesMax), text.size(),
                                            crc32c(std::as_bytes(std::span(text))));
}

void require_same_fingerprint(const std::optional<std::string>& recorded, const std::string& mine,
                              const std::string& run, StartMode start) {
  if (!recorded || mine.empty() || *recorded == mine || start == StartMode::fresh || permits_other_fingerprint(start))
    return;
  throw Error(ErrorCode::mismatch,
              compose("the checkpoints of the run '{}' were made with different input: recorded \"{}\", given \"{}\". "
                      "Give this job a run of its own (KEDGE_RUN) or start it in another directory; or, for one start, "
                      "set KEDGE_START=fresh to start over here, or KEDGE_START={} to continue them with this input",
                      run, *recorded, mine, start == StartMode::adopt ? "adopt_and_accept" : "accept"));
}

}  // namespace kedge::start
