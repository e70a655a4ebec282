#include "workplace.hpp"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "timing.hpp"

namespace kedge_bench {
namespace {

namespace fs = std::filesystem;

std::string make_folder(const std::string& parent) {
  std::string name = parent + "/kedge-bench-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) {
    throw std::runtime_error("cannot make a folder in " + parent + ": " + std::strerror(errno));
  }
  return name;
}

void broadcast(std::string& text) {
  auto length = static_cast<int>(text.size());
  MPI_Bcast(&length, 1, MPI_INT, 0, MPI_COMM_WORLD);
  text.resize(static_cast<std::size_t>(length));
  MPI_Bcast(text.data(), length, MPI_CHAR, 0, MPI_COMM_WORLD);
}

}  // namespace

Workplace::Workplace(const Arguments& arguments, int rank) : rank_(rank) {
  const std::string temporary = fs::temp_directory_path().string();
  const std::string memory = fs::is_directory("/dev/shm") ? "/dev/shm" : temporary;
  try {
    together([&] {
      if (rank != 0) return;
      stores_ = make_folder(arguments.store.empty() ? memory : arguments.store);
      prefix_ = make_folder(arguments.prefix.empty() ? temporary : arguments.prefix);
    });
    broadcast(stores_);
    broadcast(prefix_);
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
  if (rank_ == 0 && !prefix_.empty()) fs::remove_all(prefix_, ignored);
}

void Workplace::lose_node(int lost_rank) const {
  together([&] {
    if (rank_ == lost_rank && fs::remove_all(stores_ + "/node" + std::to_string(rank_)) == 0) {
      throw std::runtime_error("there is no store to lose in " + stores_);
    }
  });
}

}  // namespace kedge_bench
