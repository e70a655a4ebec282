#include "comm/mpi/mpi_library.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <mutex>
#include <numeric>

#if defined(OPEN_MPI)
#include <mpi-ext.h>
#endif

// Names its failed ranks: Open MPI 5 with ULFM. MPICH 4 aborts in MPIX_Comm_failure_ack, so its failed ranks cannot be
// listed.
#if defined(OMPI_HAVE_MPI_EXT_FTMPI) && OMPI_HAVE_MPI_EXT_FTMPI
#define KEDGE_MPI_NAMES_FAILED_RANKS 1
#endif

namespace kedge::comm {
namespace {

/// Words with one space between them.
std::string one_line(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const bool is_space = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (!is_space) line += c;
    else if (!line.empty() && line.back() != ' ') line += ' ';
  }
  if (line.ends_with(' ')) line.pop_back();
  return line;
}

}  // namespace

std::string mpi_library() {
  std::string text(MPI_MAX_LIBRARY_VERSION_STRING, '\0');
  int length = 0;
  if (MPI_Get_library_version(text.data(), &length) != MPI_SUCCESS) return "the MPI library";
  text.resize(static_cast<std::size_t>(length));
  // Open MPI lists how it was built after a comma, MPICH on further lines.
  return one_line(text.substr(0, text.find_first_of(",\n")));
}

bool is_process_failure([[maybe_unused]] int code) {
#if defined(KEDGE_MPI_NAMES_FAILED_RANKS) || defined(MPIX_ERR_PROC_FAILED)
  int error_class = MPI_SUCCESS;
  if (MPI_Error_class(code, &error_class) != MPI_SUCCESS) return false;
  return error_class == MPIX_ERR_PROC_FAILED || error_class == MPIX_ERR_PROC_FAILED_PENDING ||
         error_class == MPIX_ERR_REVOKED;
#else
  return false;
#endif
}

std::vector<int> failed_ranks([[maybe_unused]] MPI_Comm comm) {
  std::vector<int> ranks;
#if defined(KEDGE_MPI_NAMES_FAILED_RANKS)
  MPI_Group failed = MPI_GROUP_NULL;
  MPI_Group all = MPI_GROUP_NULL;
  int count = 0;
  if (MPIX_Comm_get_failed(comm, &failed) != MPI_SUCCESS) return ranks;
  if (MPI_Comm_group(comm, &all) == MPI_SUCCESS && MPI_Group_size(failed, &count) == MPI_SUCCESS) {
    std::vector<int> in_failed(static_cast<std::size_t>(count));
    std::iota(in_failed.begin(), in_failed.end(), 0);
    ranks.resize(in_failed.size());
    if (MPI_Group_translate_ranks(failed, count, in_failed.data(), all, ranks.data()) != MPI_SUCCESS) ranks.clear();
    std::sort(ranks.begin(), ranks.end());
  }
  if (all != MPI_GROUP_NULL) MPI_Group_free(&all);
  MPI_Group_free(&failed);
#endif
  return ranks;
}

#if defined(MPICH_VERSION) || defined(MPICH_NAME)

namespace {

/// The application's handler, saved while any ScopedMpiErrorsReturn exists. State of the whole process, as
/// MPI_COMM_WORLD is (share/doc/architecture.md lists all such state).
struct ReplacedErrorHandler {
  std::mutex mutex;
  int users = 0;
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
};

ReplacedErrorHandler& replaced_error_handler() {
  static ReplacedErrorHandler one;
  return one;
}

}  // namespace

ScopedMpiErrorsReturn::ScopedMpiErrorsReturn() {
  ReplacedErrorHandler& now = replaced_error_handler();
  const std::lock_guard guard(now.mutex);
  if (now.users++ > 0) return;
  now.handler = MPI_ERRHANDLER_NULL;
  if (MPI_Comm_get_errhandler(MPI_COMM_WORLD, &now.handler) != MPI_SUCCESS) return;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

ScopedMpiErrorsReturn::~ScopedMpiErrorsReturn() {
  ReplacedErrorHandler& now = replaced_error_handler();
  const std::lock_guard guard(now.mutex);
  if (--now.users > 0 || now.handler == MPI_ERRHANDLER_NULL) return;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, now.handler);
  MPI_Errhandler_free(&now.handler);
}

#else

ScopedMpiErrorsReturn::ScopedMpiErrorsReturn() = default;
ScopedMpiErrorsReturn::~ScopedMpiErrorsReturn() = default;

#endif

}  // namespace kedge::comm
