#include "arguments.hpp"

#include <array>
#include <charconv>
#include <stdexcept>
#include <string_view>

namespace kedge_bench {
namespace {

constexpr std::uint64_t kPageBytes = 4096;

std::uint64_t unit_of(std::string_view suffix) {
  if (suffix.empty()) return 1;
  if (suffix == "K" || suffix == "KiB") return std::uint64_t{1} << 10U;
  if (suffix == "M" || suffix == "MiB") return std::uint64_t{1} << 20U;
  if (suffix == "G" || suffix == "GiB") return std::uint64_t{1} << 30U;
  return 0;
}

/// "4194304", "256MiB", "1G".
std::uint64_t number(const std::string& option, const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::uint64_t unit = unit_of(std::string_view(text).substr(static_cast<std::size_t>(end - text.data())));
  if (error != std::errc{} || unit == 0 || value == 0 || value > UINT64_MAX / unit) {
    throw std::runtime_error(option + " wants a number above 0, such as 7, 4194304 or 256MiB, not '" + text + "'");
  }
  return value * unit;
}

kedge::Scheme scheme_of(const std::string& text) {
  using kedge::Scheme;
  for (const Scheme scheme : {Scheme::automatic, Scheme::single, Scheme::partner, Scheme::xor_}) {
    if (to_string(scheme) == text) return scheme;
  }
  throw std::runtime_error("--scheme wants auto, single, partner or xor, not '" + text + "'");
}

}  // namespace

std::string help() {
  return "usage: mpirun -n RANKS kedge-bench [OPTION VALUE ...]\n"
         "Measures Kedge against plain writes and reads of the same bytes; every rank acts as a node of its own.\n"
         "  --size BYTES     of each rank, with or without KiB, MiB, GiB (256MiB)\n"
         "  --rounds N       in which everything is measured once, after one that does not count (7)\n"
         "  --scheme NAME    auto, single, partner or xor (xor)\n"
         "  --store FOLDER   where the node-local stores are made (/dev/shm)\n"
         "  --persistent     measures flushes to the prefix and a start from it, too: slow, and 4 x the size on disk\n"
         "  --prefix FOLDER  where the prefix is made (where this program lies, or the temporary folder if that is\n"
         "                   memory); has to be a disk, or better a parallel filesystem, for --persistent\n"
         "  --json FILE      writes the results there too\n"
         "What it makes in the two folders is removed at the end.\n";
}

std::optional<Arguments> parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--help") return std::nullopt;
    if (option == "--spoil") {
      arguments.spoil = true;
      continue;
    }
    if (option == "--persistent") {
      arguments.persistent = true;
      continue;
    }
    if (i + 1 == argc) throw std::runtime_error(option + " is unknown or wants a value; see --help");
    const std::string value = argv[++i];
    if (option == "--size") arguments.size_bytes = number(option, value);
    else if (option == "--rounds") arguments.rounds = number(option, value);
    else if (option == "--scheme") arguments.scheme = scheme_of(value);
    else if (option == "--store") arguments.store = value;
    else if (option == "--prefix") arguments.prefix = value;
    else if (option == "--json") arguments.json = value;
    else throw std::runtime_error("unknown option " + option + "; see --help");
  }
  if (arguments.size_bytes % kPageBytes != 0) throw std::runtime_error("--size wants a multiple of 4096 bytes");
  return arguments;
}

}  // namespace kedge_bench
