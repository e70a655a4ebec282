#include "comm/mpi/mpi_launcher.hpp"

#include <array>
#include <charconv>

#include "base/text.hpp"

namespace kedge::comm {
namespace {

constexpr std::array kSizes = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};

}  // namespace

std::optional<std::string> launcher_warning(
    int world_size, const std::function<std::optional<std::string>(const std::string&)>& variable,
    std::string_view library) {
  if (world_size != 1) return std::nullopt;
  for (const char* name : kSizes) {
    const std::string value = variable(name).value_or("");
    int started = 0;
    std::from_chars(value.data(), value.data() + value.size(), started);
    if (started <= 1) continue;
    return compose(
        "the launcher started {} processes ({}), and {} sees only this one: each is a job of its own. Start "
        "the program with the launcher of the MPI that it was built with",
        started, name, library);
  }
  return std::nullopt;
}

}  // namespace kedge::comm
