// write_golden DIRECTORY: the golden files of this version into DIRECTORY/v<version>, which must not exist yet, and its
// path on standard output. For make_golden.sh.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "base/text.hpp"
#include "interop/golden.hpp"

namespace {

void write(const std::filesystem::path& directory) {
  if (std::filesystem::exists(directory)) throw std::runtime_error(directory.string() + " exists");
  for (const kedge::testing::GoldenFile& golden : kedge::testing::make_golden_files()) {
    const std::filesystem::path path = directory / golden.name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(golden.bytes.data()), static_cast<std::streamsize>(golden.bytes.size()));
    if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
  }
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) {
    std::fputs("usage: write_golden DIRECTORY\n", stderr);
    return 2;
  }
  try {
    const std::filesystem::path directory =
        std::filesystem::path(words[1]) / kedge::compose("v{}", kedge::format::kFormatVersion);
    write(directory);
    std::printf("%s\n", directory.c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "write_golden: %s\n", error.what());
    return 1;
  }
  return 0;
}
