#include "persist/new_file.hpp"

#include <charconv>

#include "kedge/error.hpp"

namespace kedge::persist {

std::uint32_t parse_mode(const std::string& octal) noexcept {
  std::uint32_t bits = 0;
  (void)std::from_chars(octal.data(), octal.data() + octal.size(), bits, 8);
  return bits;
}

void throw_name_taken(const std::string& path) {
  throw Error(Failure{ErrorCode::io,
                      "file already exists: another program writes to this directory; end it or remove the file", -1,
                      path, 0});
}

}  // namespace kedge::persist
