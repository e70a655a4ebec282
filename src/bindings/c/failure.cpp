#include "bindings/c/failure.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.hpp"
#include "kedge/exit_status.hpp"

namespace kedge::bindings {
namespace {

static_assert(sizeof(kedge_error) == sizeof(int), "other languages take it for an int");
static_assert(KEDGE_INVALID_ARGUMENT == static_cast<int>(ErrorCode::invalid_argument));
static_assert(KEDGE_BAD_STATE == static_cast<int>(ErrorCode::bad_state));
static_assert(KEDGE_NOT_FOUND == static_cast<int>(ErrorCode::not_found));
static_assert(KEDGE_MISMATCH == static_cast<int>(ErrorCode::mismatch));
static_assert(KEDGE_NO_SPACE == static_cast<int>(ErrorCode::no_space));
static_assert(KEDGE_IO == static_cast<int>(ErrorCode::io));
static_assert(KEDGE_CORRUPT == static_cast<int>(ErrorCode::corrupt));
static_assert(KEDGE_UNRECOVERABLE == static_cast<int>(ErrorCode::unrecoverable));
static_assert(KEDGE_TIMEOUT == static_cast<int>(ErrorCode::timeout));
static_assert(KEDGE_BUSY == static_cast<int>(ErrorCode::busy));
static_assert(KEDGE_RANK_FAILED == static_cast<int>(ErrorCode::rank_failed));

/// A thread's last failure, in reserved memory: works even when memory runs out.
struct LastFailure {
  std::array<char, 4096> text{};
  std::array<char, 4096> path{};
  kedge_failure shown{KEDGE_OK, -1, 0, "", ""};
};

// Per thread, like errno, and private to the binding (decision 007).
LastFailure& last() noexcept {
  thread_local LastFailure failure;
  return failure;
}

/// Truncates between two UTF-8 characters.
template <std::size_t size>
const char* put(std::array<char, size>& place, std::string_view text) noexcept {
  std::size_t length = std::min(text.size(), size - 1);
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; };
  while (length < text.size() && length > 0 && continues(text[length])) --length;
  std::copy_n(text.data(), length, place.data());
  place[length] = '\0';
  return place.data();
}

kedge_error keep(kedge_error code, int rank, int system_errno, std::string_view text, std::string_view path) noexcept {
  LastFailure& failure = last();
  failure.shown = {code, rank, system_errno, put(failure.text, text), put(failure.path, path)};
  return code;
}

kedge_error out_of_memory() noexcept {
  return keep(KEDGE_NO_SPACE, -1, 0, "no_space: out of memory; give the job more memory or save less per rank", "");
}

}  // namespace

kedge_error remember(const Failure& failure) noexcept {
  try {
    return keep(static_cast<kedge_error>(failure.code), failure.rank, failure.system_errno, to_string(failure),
                failure.path);
  } catch (const std::exception&) {
    return keep(static_cast<kedge_error>(failure.code), failure.rank, failure.system_errno, failure.message,
                failure.path);
  }
}

kedge_error remember(const std::exception& error) noexcept {
  try {
    return remember(to_failure(error));
  } catch (const std::exception&) {
    return out_of_memory();
  }
}

kedge_error refuse(std::string message) noexcept {
  return remember(Failure{ErrorCode::invalid_argument, std::move(message)});
}

kedge_error null_engine_error(const char* call) noexcept {
  try {
    return refuse(compose(
        "{}: engine must not be NULL; pass the one that kedge_engine_new, or kedge_init in Fortran, made", call));
  } catch (const std::exception&) {
    return keep(KEDGE_INVALID_ARGUMENT, -1, 0, "invalid_argument: engine must not be NULL", "");
  }
}

}  // namespace kedge::bindings

using namespace kedge;

extern "C" {

const char* kedge_error_name(kedge_error code) {
  if (code == KEDGE_OK) return "ok";
  // The names are literals with a final zero. Numbers that are no codes never reach to_string.
  return code >= KEDGE_INVALID_ARGUMENT && code <= KEDGE_DEVICE_FAILED ? to_string(static_cast<ErrorCode>(code)).data()
                                                                       : "unknown";
}

int kedge_exit_status(kedge_error code) { return code == KEDGE_OK ? 0 : exit_status(static_cast<ErrorCode>(code)); }

const kedge_failure* kedge_last_failure(void) { return &bindings::last().shown; }

const char* kedge_last_error(void) { return bindings::last().shown.text; }

}  // extern "C"
