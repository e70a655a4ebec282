#include "tools/outcome.hpp"

#include <cstdio>
#include <system_error>

#include "base/text.hpp"
#include "kedge/exit_status.hpp"
#include "tools/text_format.hpp"

namespace kedge::tools {

void print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

void print_error(std::string_view text) {
  std::fflush(stdout);
  const std::string line = fold(compose("kedge: {}\n", text));
  std::fwrite(line.data(), 1, line.size(), stderr);
}

std::string describe(const Failure& failure) {
  std::string text =
      failure.path.empty() ? failure.message : compose("{}: {}", printable(failure.path), failure.message);
  if (failure.system_errno != 0) text += compose(" ({})", std::generic_category().message(failure.system_errno));
  return text;
}

Outcome explain(const Failure& failure) {
  print_error(describe(failure));
  const bool is_lost = failure.code == ErrorCode::corrupt || failure.code == ErrorCode::unrecoverable;
  return is_lost ? Outcome::damaged : Outcome::not_checked;
}

Outcome report_failed_attempt(const Failure& failure) {
  const Outcome outcome = explain(failure);
  return outcome == Outcome::not_checked && exit_status(failure.code) == kExitTryAgain ? Outcome::try_again : outcome;
}

}  // namespace kedge::tools
