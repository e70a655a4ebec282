#include "unit/structure/rules.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "base/text.hpp"

namespace kedge::structure {
namespace {

// The floors. An include goes down only; rooms on one floor do not see each other.
const std::map<std::string, int, std::less<>>& floors() {
  static const std::map<std::string, int, std::less<>> table = {
      {"base", 0},       {"checksum", 0}, {"fs", 1},       {"comm", 1},     {"device", 1},
      {"codec", 1},      {"commits", 1},  {"format", 2},   {"store", 3},    {"arrays", 3},
      {"redundancy", 4}, {"persist", 4},  {"recovery", 5}, {"pipeline", 5}, {"start", 5},
      {"engine", 6},     {"drain", 7},    {"tools", 8},    {"bindings", 8}, {"testing", 2}};
  return table;
}

// Interfaces of floor 1 that the whole house may see.
constexpr std::array<std::string_view, 1> kInterfaces = {"fs/file_system.hpp"};

// An outside library, known by how its headers begin, and the rooms that may include it.
struct Library {
  std::string_view begins;
  std::vector<std::string> space_limits;
};

const std::vector<Library>& libraries() {
  static const std::vector<Library> table = {{"fmt/", {"base"}},
                                             {"spdlog/", {"base"}},
                                             {"nlohmann/", {"base"}},
                                             {"toml++/", {"base"}},
                                             {"isa-l", {"checksum", "codec"}},
                                             {"hdf5", {"format"}},
                                             {"H5", {"format"}},
                                             {"boost/", {"fs"}},
                                             {"liburing", {"fs"}},
                                             {"mpi.h", {"comm/mpi"}},
                                             {"mpi-ext.h", {"comm/mpi"}},
                                             {"cuda", {"device"}},
                                             {"CLI/", {"tools"}},
                                             {"nanobind/", {"bindings"}},
                                             {"netinet/", {"comm"}},
                                             {"net/", {"comm"}},
                                             {"ifaddrs.h", {"comm"}},
                                             {"arpa/", {"base", "comm"}}};
  return table;
}

// C headers of the system. Those of C++ have neither a dot nor a slash.
bool is_system_header(std::string_view name) {
  static const std::set<std::string_view> names = {"unistd.h", "fcntl.h",     "poll.h",   "pwd.h",      "dirent.h",
                                                   "dlfcn.h",  "link.h",      "sched.h",  "spawn.h",    "signal.h",
                                                   "mntent.h", "immintrin.h", "libgen.h", "arm_acle.h", "arm_neon.h"};
  return name.find_first_of("./") == std::string_view::npos || name.starts_with("sys/") || name.starts_with("linux/") ||
         names.contains(name);
}

// What would let the world into a room of pure functions.
bool brings_the_world(std::string_view name) {
  static const std::set<std::string_view> names = {"fstream",
                                                   "iostream",
                                                   "cstdio",
                                                   "filesystem",
                                                   "thread",
                                                   "mutex",
                                                   "unistd.h",
                                                   "fcntl.h",
                                                   "kedge/communicator.hpp",
                                                   "fs/file_system.hpp",
                                                   "base/clock.hpp",
                                                   "base/random.hpp",
                                                   "base/options_load.hpp",
                                                   "base/log.hpp"};
  return names.contains(name) || name.starts_with("sys/");
}

bool is_pure(std::string_view path) {
  return path.starts_with("src/codec/") || path.starts_with("src/commits/") || path.starts_with("src/redundancy/plan");
}

std::string first_part(std::string_view path) { return std::string(path.substr(0, path.find('/'))); }

// "comm" of "comm/mpi".
int floor_of(std::string_view room) {
  const auto found = floors().find(first_part(room));
  return found == floors().end() ? -1 : found->second;
}

const Library* library_of(std::string_view name) {
  const auto found = std::ranges::find_if(libraries(), [&](const Library& l) { return name.starts_with(l.begins); });
  return found == libraries().end() ? nullptr : &*found;
}

// The public headers that show mpi.h.
bool is_mpi_header(std::string_view name) {
  return name == "kedge/mpi.hpp" || name == "kedge/kedge_mpi.h" || name == "kedge/mpi_family.h";
}

// The public headers of the C interface show C programs what every C99 compiler has.
bool is_for_c(std::string_view path) { return path.starts_with("include/") && path.ends_with(".h"); }

std::optional<std::string> c_problem(const Source& source, const Include& include) {
  const std::string& name = include.name;
  const bool house = include.quoted && name.starts_with("kedge/") && name.ends_with(".h");
  const bool outside = !include.quoted && (name == "stddef.h" || name == "stdint.h");
  const bool mpi = is_mpi_header(source.path.substr(std::string_view("include/").size())) && name == "mpi.h";
  if (house || outside || mpi) return std::nullopt;
  return compose("{} includes {}: a header for C needs stddef.h, stdint.h and its like only", source.path, name);
}

std::optional<std::string> outside_problem(const Source& source, const std::string& name) {
  const std::string room = room_of(source.path);
  if (const Library* library = library_of(name)) {
    const bool shown = source.path.starts_with("include/") && is_mpi_header(source.path.substr(8)) && name == "mpi.h";
    if (shown || std::ranges::find(library->space_limits, room) != library->space_limits.end()) return std::nullopt;
    return compose("{} includes <{}>, which belongs to room {} alone", source.path, name,
                   library->space_limits.front());
  }
  if (is_system_header(name)) return std::nullopt;
  return compose("{} includes <{}>, which has no room yet: give the library one", source.path, name);
}

std::optional<std::string> simulator_problem(const Source& source, const std::string& name) {
  const std::string target = first_part(name);
  if (target == "simulator" || target == "commits" || target == "base" || name.starts_with("redundancy/plan")) {
    return std::nullopt;
  }
  return compose("{} includes \"{}\": the simulator sees commits and redundancy/plan only", source.path, name);
}

// The product, which is all of src/ and include/ but the library kedge::testing, does not know that library.
std::optional<std::string> testing_problem(const Source& source, const std::string& name) {
  const bool product = source.path.starts_with("src/") || source.path.starts_with("include/");
  const bool itself = source.path.starts_with("src/testing/") || source.path.starts_with("include/kedge/testing/");
  if (!product || itself || !(name.starts_with("kedge/testing/") || name.starts_with("testing/"))) return std::nullopt;
  return compose("{} includes \"{}\": only tests and the room testing itself may", source.path, name);
}

// A quoted include of a file below src/.
std::optional<std::string> house_problem(const Source& source, const std::string& name) {
  if (name.starts_with("kedge/")) {
    const int floor = floor_of(room_of(source.path));
    if (!is_mpi_header(name) || room_of(source.path) == "comm/mpi" || floor == floor_of("tools")) return std::nullopt;
    return compose("{} includes \"{}\", but only comm/mpi and the top floor know MPI", source.path, name);
  }
  const std::string room = room_of(source.path);
  if (first_part(room) == "simulator") return simulator_problem(source, name);
  const std::string target = room_of("src/" + name);
  if (room == "bindings" && floor_of(target) > 0 && target != room) {
    return compose("{} includes \"{}\": bindings see the public interface and base only", source.path, name);
  }
  if (room == "testing" && floor_of(target) >= 0 && target != room && target != "base" && target != "comm") {
    return compose("{} includes \"{}\": testing sees the public interface, base and comm only", source.path, name);
  }
  if (floor_of(target) < 0) {
    return compose("{} includes \"{}\": write it from src/, beginning with a room", source.path, name);
  }
  if (first_part(room) == first_part(target) && !(room != "comm/mpi" && target == "comm/mpi")) return std::nullopt;
  if (std::ranges::find(kInterfaces, name) != kInterfaces.end()) return std::nullopt;
  if (floor_of(target) < floor_of(room)) return std::nullopt;
  return compose("{} (floor {}) includes \"{}\" (floor {}): an include goes down only", source.path, floor_of(room),
                 name, floor_of(target));
}

std::string spaced_lower_case(std::string_view text) {
  std::string out;
  char before = ' ';
  for (const char c : text) {
    const auto is = [](int (*what)(int), char x) { return what(static_cast<unsigned char>(x)) != 0; };
    if (is(std::isupper, c) && is(std::islower, before)) out += ' ';
    const char next = is(std::isalnum, c) ? static_cast<char>(std::tolower(static_cast<unsigned char>(c))) : ' ';
    if (next != ' ' || !out.ends_with(' ')) out += next;
    before = c;
  }
  return " " + out + " ";
}

}  // namespace

// By hand: std::regex makes g++ 12 warn falsely under the sanitizers.
std::vector<Include> includes_of(std::string_view text) {
  const auto skip_blanks = [](std::string_view& line) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  };
  const auto skip_word = [&](std::string_view& line, std::string_view word) {
    skip_blanks(line);
    if (!line.starts_with(word)) return false;
    line.remove_prefix(word.size());
    skip_blanks(line);
    return true;
  };
  std::vector<Include> found;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::string_view rest = line;
    if (!skip_word(rest, "#") || !skip_word(rest, "include") || rest.empty()) continue;
    const bool quoted = rest.front() == '"';
    const std::size_t end = rest.find(quoted ? '"' : '>', 1);
    if ((!quoted && rest.front() != '<') || end == std::string_view::npos) continue;
    found.push_back({std::string(rest.substr(1, end - 1)), quoted});
  }
  return found;
}

std::string room_of(std::string_view path) {
  if (!path.starts_with("src/")) return {};
  path.remove_prefix(4);
  return path.starts_with("comm/mpi/") ? "comm/mpi" : first_part(path);
}

std::vector<std::string> include_problems(const Source& source) {
  std::vector<std::string> problems;
  const auto add = [&](std::optional<std::string> problem) {
    if (problem) problems.push_back(std::move(*problem));
  };
  const bool in_house = source.path.starts_with("src/");
  const bool is_public = source.path.starts_with("include/");
  if (in_house && room_of(source.path) != "simulator" && floor_of(room_of(source.path)) < 0) {
    problems.push_back(compose("{} lies in no room of the house", source.path));
    return problems;
  }
  for (const Include& include : includes_of(source.text)) {
    if (is_for_c(source.path)) {
      add(c_problem(source, include));
      continue;
    }
    const auto& [name, quoted] = include;
    const bool show_public = quoted && !name.starts_with("kedge/");
    if (!quoted && (in_house || is_public)) add(outside_problem(source, name));
    const auto unknown = quoted ? testing_problem(source, name) : std::nullopt;
    if (unknown) {
      add(unknown);
      continue;
    }
    if (quoted && in_house) add(house_problem(source, name));
    if (is_public && show_public)
      problems.push_back(compose("{} includes \"{}\", which is not public", source.path, name));
    // The ledger and its parts are shared by threads: their locks are all that they have of the world.
    const bool is_of_ledger = source.path.starts_with("src/commits/ledger.") ||
                              source.path.starts_with("src/commits/generations.") ||
                              source.path.starts_with("src/commits/excluded_commits.");
    const bool is_its_lock = is_of_ledger && name == "mutex";
    if (is_pure(source.path) && brings_the_world(name) && !is_its_lock) {
      problems.push_back(compose("{} includes {}: this room takes values and returns values", source.path, name));
    }
    if (source.path.starts_with("examples/") && quoted && floor_of(first_part(name)) >= 0) {
      problems.push_back(compose("{} includes \"{}\": examples use what users have", source.path, name));
    }
  }
  return problems;
}

std::vector<std::string> use_problems(const Source& source) {
  const bool binding = source.path.starts_with("src/bindings/fortran/");
  const bool example = source.path.starts_with("examples/");
  if (!binding && !example) return {};
  std::vector<std::string> problems;
  std::istringstream lines{source.text};
  for (std::string line; std::getline(lines, line);) {
    std::string_view rest = line;
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    if (!rest.starts_with("use ") && !rest.starts_with("use,")) continue;
    if (const auto colons = rest.find("::"); colons != std::string_view::npos) rest.remove_prefix(colons + 2);
    else rest.remove_prefix(4);
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    const std::string name(rest.substr(0, rest.find_first_of(", ")));
    if (example && name.starts_with("kedge_m_")) {
      problems.push_back(compose("{} uses {}: examples use what users have", source.path, name));
    }
    const bool known = name.starts_with("kedge_m_") || name.starts_with("iso_") ||
                       (name == "mpi_f08" && source.path.ends_with("/mpi_f08.f90"));
    if (binding && !known) problems.push_back(compose("{} uses {}, which has no room here", source.path, name));
  }
  return problems;
}

std::vector<std::string> length_problems(const Source& source) {
  const auto lines = static_cast<std::size_t>(std::ranges::count(source.text, '\n'));
  if (lines <= kLongestFile) return {};
  return {compose("{} has {} lines, more than {}: it holds two ideas", source.path, lines, kLongestFile)};
}

std::vector<std::string> top_level_problems(const std::vector<std::string>& names) {
  static const std::set<std::string> permitted = {
      "CMakeLists.txt", "CMakePresets.json", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md",
      "examples",       "include",           "mpi_tests",    "share",           "spack",   "src"};
  std::vector<std::string> problems;
  for (const std::string& name : names) {
    if (!name.starts_with('.') && !permitted.contains(name)) problems.push_back(name + " does not belong at the top");
  }
  return problems;
}

std::vector<std::string> missing_words(const std::vector<std::string>& words, const std::vector<Source>& sources) {
  std::vector<std::string> texts;
  texts.reserve(sources.size());
  for (const Source& source : sources) texts.push_back(spaced_lower_case(source.text));
  std::vector<std::string> missing;
  for (const std::string& word : words) {
    const std::string wanted = spaced_lower_case(word);
    const auto holds = [&](const std::string& text) { return text.find(wanted) != std::string::npos; };
    if (std::ranges::none_of(texts, holds)) missing.push_back(word);
  }
  return missing;
}

}  // namespace kedge::structure
