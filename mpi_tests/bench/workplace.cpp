#include "workplace.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "surroundings.hpp"
#include "timing.hpp"

namespace kedge_bench {
namespace {

namespace fs = std::filesystem;

std::string make_directory(const std::string& parent) {
  std::string name = parent + "/kedge-bench-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) {
    throw std::runtime_error("cannot make a directory in " + parent + ": " + std::strerror(errno));
  }
  return name;
}

void broadcast(std::string& text) {
  auto length = static_cast<int>(text.size());
  MPI_Bcast(&length, 1, MPI_INT, 0, MPI_COMM_WORLD);
  text.resize(static_cast<std::size_t>(length));
  MPI_Bcast(text.data(), length, MPI_CHAR, 0, MPI_COMM_WORLD);
}

/// Of this program, if that is on no memory filesystem and can be written to.
std::string directory_for_prefix(const std::string& temporary) {
  std::error_code failed;
  const std::string here = fs::read_symlink("/proc/self/exe", failed).parent_path().string();
  return failed || ::access(here.c_str(), W_OK) != 0 || filesystem_of(here).memory ? temporary : here;
}

}  // namespace

Workplace::Workplace(const Arguments& arguments, int rank, int ranks)
    : rank_(rank),
      ranks_(ranks),
      nodes_(arguments.nodes == 0 ? ranks : static_cast<int>(arguments.nodes)),
      ranks_per_node_(nodes_ == 0 ? 0 : ranks / nodes_) {
  if (nodes_ <= 0 || ranks_per_node_ * nodes_ != ranks) {
    throw std::runtime_error("--nodes wants a divisor of the number of ranks");
  }
  ::setenv("KEDGE_TEST_RANKS_PER_NODE", std::to_string(ranks_per_node_).c_str(), 1);
  const std::string temporary = fs::temp_directory_path().string();
  const std::string memory = fs::is_directory("/dev/shm") ? "/dev/shm" : temporary;
  try {
    together([&] {
      if (rank != 0) return;
      stores_ = make_directory(arguments.store.empty() ? memory : arguments.store);
      disk_ = make_directory(arguments.prefix.empty() ? directory_for_prefix(temporary) : arguments.prefix);
      fs::create_directories(prefix());
      fs::create_directories(plain_on_disk());
    });
    broadcast(stores_);
    broadcast(disk_);
    together([&] { fs::create_directories(plain()); });  // on another node than rank 0's it is new
  } catch (const std::exception&) {
    remove();
    throw;
  }
}

Workplace::~Workplace() { remove(); }

void Workplace::remove() const noexcept {
  std::error_code ignored;
  if (!stores_.empty()) fs::remove_all(stores_, ignored);
  if (rank_ == 0 && !disk_.empty()) fs::remove_all(disk_, ignored);
}

void Workplace::lose_nodes(std::uint64_t first, std::uint64_t count) const {
  const auto nodes = static_cast<std::uint64_t>(nodes_);
  const auto own = static_cast<std::uint64_t>(rank_ / ranks_per_node_);
  together([&] {
    if ((own + nodes - first % nodes) % nodes < count) lose_own_store();
  });
}

void Workplace::lose_all_nodes() const {
  together([&] { lose_own_store(); });
}

void Workplace::lose_own_store() const {
  if (rank_ % ranks_per_node_ != 0) return;  // the first rank of the node sees to it
  if (fs::remove_all(stores_ + "/node" + std::to_string(rank_ / ranks_per_node_)) == 0) {
    throw std::runtime_error("there is no store to lose in " + stores_);
  }
}

void Workplace::warm_prefix() const {
  together([&] {
    for_own_share(prefix(), [](const std::string& file) {
      std::vector<char> buffer(std::size_t{1} << 20U);
      std::ifstream in(file, std::ios::binary);
      while (in.read(buffer.data(), static_cast<std::streamsize>(buffer.size()))) continue;
    });
  });
}

void Workplace::evict_prefix() const {
  together([&] { for_own_share(prefix(), drop_from_page_cache); });
}

/// Calls it for every so many of the files below.
void Workplace::for_own_share(const std::string& directory, const std::function<void(const std::string&)>& call) const {
  int number = 0;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file() && number++ % ranks_ == rank_) call(entry.path().string());
  }
}

void Workplace::remove_tag_directories() const {
  together([&] {
    if (rank_ != 0) return;
    std::vector<fs::path> directories;
    for (const auto& entry : fs::directory_iterator(prefix())) {
      if (entry.is_directory() && !entry.path().filename().string().starts_with('.'))
        directories.push_back(entry.path());
    }
    if (directories.empty()) throw std::runtime_error("nothing was flushed to " + prefix());
    for (const fs::path& directory : directories) fs::remove_all(directory);
  });
}

}  // namespace kedge_bench
