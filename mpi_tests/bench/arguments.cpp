#include "arguments.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <stdexcept>
#include <string_view>

namespace kedge_bench {
namespace {

using kedge::Scheme;

constexpr std::uint64_t kSmallestBytes = std::uint64_t{64} << 10U;

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

std::uint32_t small_number(const std::string& option, const std::string& text) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(number(option, text), UINT32_MAX));
}

Scheme scheme_of(const std::string& text) {
  for (const Scheme scheme : {Scheme::automatic, Scheme::single, Scheme::partner, Scheme::xor_, Scheme::rs}) {
    if (to_string(scheme) == text) return scheme;
  }
  throw std::runtime_error("--scheme wants auto, single, partner, xor or rs, not '" + text + "'");
}

/// "xor" or "xor,rs".
std::vector<Scheme> schemes_of(const std::string& text) {
  std::vector<Scheme> schemes;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    schemes.push_back(scheme_of(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return schemes;
}

/// "protect" or "protect:3".
Slow slow_of(const std::string& text) {
  constexpr std::array kStages{"blocked", "protect", "checkpoint", "open", "rebuild", "small", "flush"};
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string row = text.substr(0, colon);
  if (std::ranges::find(kStages, row) == kStages.end()) throw std::runtime_error("--slow knows no stage " + row);
  return {row, colon < text.size() ? static_cast<double>(number("--slow", text.substr(colon + 1))) : 0};
}

kedge::Io io_of(const std::string& text) {
  if (text == "auto") return kedge::Io::automatic;
  if (text == "buffered") return kedge::Io::buffered;
  if (text == "direct") return kedge::Io::direct;
  throw std::runtime_error("--prefix-io is auto, buffered or direct");
}

/// False if it is none.
bool set_flag(Arguments& arguments, const std::string& option) {
  if (option == "--check") arguments.check = true;
  else if (option == "--persistent") arguments.persistent = true;
  else if (option == "--spoil") arguments.spoil = true;
  else return false;
  return true;
}

void set_value(Arguments& arguments, const std::string& option, const std::string& value) {
  if (option == "--size") arguments.size_bytes = number(option, value);
  else if (option == "--rounds") arguments.rounds = number(option, value);
  else if (option == "--scheme") arguments.schemes = schemes_of(value);
  else if (option == "--parity") arguments.parity = small_number(option, value);
  else if (option == "--set-size") arguments.set_size = small_number(option, value);
  else if (option == "--nodes") arguments.nodes = small_number(option, value);
  else if (option == "--tags") arguments.tags = number(option, value);
  else if (option == "--store") arguments.store = value;
  else if (option == "--prefix") arguments.prefix = value;
  else if (option == "--prefix-io") arguments.prefix_io = io_of(value);
  else if (option == "--json") arguments.json = value;
  else if (option == "--slow") arguments.slow = slow_of(value);
  else throw std::runtime_error("unknown option " + option + "; see --help");
}

}  // namespace

std::string help() {
  return "usage: mpirun -n RANKS kedge-bench [OPTION [VALUE] ...]\n"
         "       kedge-bench --device [--bytes N] [--rounds N] [--store DIRECTORY] [--json FILE]\n"
         "Measures Kedge against plain writes and reads of the same bytes in the same run.\n"
         "  --size BYTES     of each rank, with or without KiB, MiB, GiB (256MiB)\n"
         "  --rounds N       in which everything is measured once, after one that does not count (7)\n"
         "  --scheme NAMES   auto, single, partner, xor, rs, or several with commas between, each with a table of its\n"
         "                   own (xor,rs)\n"
         "  --parity N       losses that rs survives in each set, 1 to 4 (2)\n"
         "  --set-size N     members of a redundancy set at most (8)\n"
         "  --nodes N        that the ranks act as, as many on each (every rank a node of its own)\n"
         "  --store DIRECTORY   where the node-local stores are made (/dev/shm)\n"
         "  --persistent     measures flushes to the prefix and a start from it, too: slow, and 4 x the size on disk\n"
         "  --tags N         also compares commits with N and with 20 checkpoints on the prefix: minutes for 20000\n"
         "  --prefix DIRECTORY  where the prefix is made (where this program lies, or the temporary directory if that "
         "is\n"
         "                   memory); has to be a disk, or better a parallel filesystem, for --persistent\n"
         "  --prefix-io WAY  how it is written: auto, buffered or direct, as io (auto)\n"
         "  --json FILE      writes the results there too; share/kedge/plot-bench draws them\n"
         "  --check          exit code 0: every row that has a target reached it; 1: one missed it; 2: it cannot be\n"
         "                   said, as what is measured against spreads by more than 15 %, or in fewer than 7 rounds.\n"
         "                   The targets are meant for 4 ranks as 4 nodes with 256 MiB each.\n"
         "Exit code 3: nothing was measured, or what came back was wrong.\n"
         "--device measures checkpoints of GPU memory (1 GiB), by one process; exit code 77: there is no GPU.\n"
         "What it makes in the two directories is removed at the end.\n";
}

std::optional<Arguments> parse(int argc, char** argv) {
  Arguments arguments;
  arguments.schemes = {Scheme::xor_, Scheme::rs};
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--help") return std::nullopt;
    if (set_flag(arguments, option)) continue;
    if (i + 1 == argc) throw std::runtime_error(option + " is unknown or wants a value; see --help");
    set_value(arguments, option, argv[++i]);
  }
  if (arguments.size_bytes % kSmallestBytes != 0) throw std::runtime_error("--size wants a multiple of 64 KiB");
  return arguments;
}

}  // namespace kedge_bench
