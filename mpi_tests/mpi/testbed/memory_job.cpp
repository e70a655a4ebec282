// One rank of a job that saves memory, for who limits or measures it: `memory_job TAG:MIB ...` makes a checkpoint of so
// many MiB per rank for each argument, which cost no memory themselves, and prints how each ended. `open` opens the
// newest, `pause` prints so and does nothing for a while.
#include <mpi.h>
#include <sys/mman.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <thread>

#include "kedge/kedge.hpp"
#include "kedge/mpi.hpp"

namespace {

/// Zeros that were never written: all of them are one page of the kernel's.
class Zeros {
 public:
  explicit Zeros(std::size_t size_bytes)
      : size_bytes_(size_bytes),
        data_(::mmap(nullptr, size_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    if (data_ == MAP_FAILED) std::abort();
    static_cast<void>(::madvise(data_, size_bytes_, MADV_NOHUGEPAGE));
  }
  Zeros(const Zeros&) = delete;
  Zeros& operator=(const Zeros&) = delete;
  ~Zeros() { ::munmap(data_, size_bytes_); }
  [[nodiscard]] std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(data_), size_bytes_}; }

 private:
  std::size_t size_bytes_;
  void* data_;
};

void checkpoint(kedge::Engine& engine, const std::string& tag, std::size_t mib, int rank) {
  const Zeros zeros(mib << 20U);
  try {
    engine.create(tag);
    static_cast<void>(engine.save("zeros", kedge::region(zeros.bytes())));
    engine.commit();
    if (rank == 0) std::printf("%s: committed\n", tag.c_str());
  } catch (const kedge::Error& error) {
    if (rank == 0) std::printf("%s: %s\n", tag.c_str(), error.what());
  }
}

void open_newest(kedge::Engine& engine, int rank) {
  const auto tag = engine.open();
  if (rank == 0) std::printf("open: %s\n", tag ? tag->c_str() : "none");
  if (tag) engine.close();
}

void pause(int rank) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    std::printf("pause: begins\n");
    std::fflush(stdout);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  {
    kedge::Engine engine(MPI_COMM_WORLD, kedge::Options::load());
    for (int i = 1; i < argc; ++i) {
      const std::string argument = argv[i];
      const auto colon = argument.find(':');
      if (argument == "open") open_newest(engine, rank);
      else if (argument == "pause") pause(rank);
      else checkpoint(engine, argument.substr(0, colon), std::stoul(argument.substr(colon + 1)), rank);
    }
    engine.finalize();
  }
  MPI_Finalize();
  return 0;
}
