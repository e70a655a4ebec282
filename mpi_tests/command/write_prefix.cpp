// write_prefix DIRECTORY COUNT [catalog|data]: a prefix to try the kedge command on. Many manifests alone, with the
// run's catalog or without it, to measure how fast `kedge ls` is; or with containers of 4 ranks.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "harness/sample_prefix.hpp"
#include "persist/tag_catalog.hpp"

int main(int count, char** words) {
  if (count < 3) {
    std::fputs("usage: write_prefix DIRECTORY COUNT [catalog|data]\n", stderr);
    return 2;
  }
  const std::string directory = words[1];
  const std::string what = count > 3 ? words[3] : "";
  const std::string records = directory + "/.kedge/heat";
  std::filesystem::create_directories(records);
  const auto file_system = kedge::fs::posix_file_system();
  kedge::persist::TagCatalog catalog(*file_system, records);
  const auto tags = static_cast<unsigned>(std::atoi(words[2]));
  for (unsigned generation = 1; generation <= tags; ++generation) {
    const auto entry = kedge::testing::sample_entry(generation);
    if (what == "data") kedge::testing::write_checkpoint(directory, entry);
    else kedge::testing::write_manifest(directory, entry);
    if (what == "catalog") catalog.add(entry);
  }
}
