// write_prefix FOLDER COUNT [catalog]: a prefix with many small masters, to measure how fast `kedge ls` is.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "interop/sample_prefix.hpp"
#include "persist/tag_catalog.hpp"

int main(int count, char** words) {
  if (count < 3) {
    std::fputs("usage: write_prefix FOLDER COUNT [catalog]\n", stderr);
    return 2;
  }
  const std::string folder = words[1];
  const std::string records = folder + "/.kedge/heat";
  std::filesystem::create_directories(records);
  const auto file_system = kedge::fs::posix_file_system();
  kedge::persist::TagCatalog catalog(*file_system, records);
  const auto tags = static_cast<unsigned>(std::atoi(words[2]));
  for (unsigned generation = 1; generation <= tags; ++generation) {
    const auto entry = kedge::testing::sample_entry(generation);
    const std::string tag_folder = folder + "/" + entry.folder;
    std::filesystem::create_directories(tag_folder);
    const auto master = kedge::testing::sample_master(entry);
    std::ofstream(tag_folder + "/checkpoint.h5", std::ios::binary)
        .write(reinterpret_cast<const char*>(master.data()), static_cast<std::streamsize>(master.size()));
    if (count > 3) catalog.add(entry);
  }
}
