// What ends background work that sends over TCP, at a level of MPI that lets only one thread call it: a rank whose
// connections are cut off is named by the next call of every rank; the child of a fork disturbs nobody, whatever it
// does; an engine that is destroyed with work under way does not wait. Exits with 0 if every rank came to its end.
// Usage: background_ends DIRECTORY
#include <mpi.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/simulated_nodes.hpp"
#include "kedge/kedge.hpp"
#include "kedge/mpi.hpp"

namespace {

int rank = 0;

void check(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error("rank " + std::to_string(rank) + ": " + what);
}

class Job {
 public:
  Job(const std::string& directory, const std::string& run) {
    options_.run = run;
    options_.store.path = directory + "/store/{node}";
    options_.persistent.path = directory + "/prefix";
    options_.persistent.every = 1;
    options_.pipeline.mode = kedge::PipelineMode::background;
    options_.pipeline.max_pending = 8;
    options_.comm.timeout_s = 40;
    options_.log.level = kedge::LogLevel::info;
    options_.log.sink = [this](kedge::LogLevel, std::string_view line) {
      const std::lock_guard guard(mutex_);
      log_ += std::string(line) + "\n";
    };
    engine.emplace(MPI_COMM_WORLD, options_);
    check(rank != 0 || log().find("background work sends over TCP") != std::string::npos, log());
    state_.add("large", large_);
  }
  void commit(const char* tag) { engine->checkpoint(tag, state_); }
  [[nodiscard]] std::string log() {
    const std::lock_guard guard(mutex_);
    return log_;
  }

  std::optional<kedge::Engine> engine;

 private:
  kedge::Options options_;
  kedge::faults::SimulatedNodes nodes_{1};
  std::mutex mutex_;
  std::string log_;
  std::vector<double> large_ = std::vector<double>(std::size_t{2} << 20U, 1);
  kedge::State state_;
};

/// Descriptors of connections over IP.
std::set<int> connections() {
  std::set<int> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int descriptor = std::stoi(entry.path().filename().string());
    ::sockaddr_storage address{};
    ::socklen_t size = sizeof address;
    const bool is_connected = ::getpeername(descriptor, reinterpret_cast<::sockaddr*>(&address), &size) == 0;
    if (is_connected && (address.ss_family == AF_INET || address.ss_family == AF_INET6)) found.insert(descriptor);
  }
  return found;
}

void a_rank_that_is_cut_off_is_named(const std::string& directory) {
  const std::set<int> of_mpi = connections();
  Job job(directory, "cut");
  job.commit("a");
  job.engine->wait("a", kedge::Level::persistent);
  if (rank == 1) {
    int cut = 0;
    for (const int descriptor : connections()) {
      if (!of_mpi.contains(descriptor) && ::shutdown(descriptor, SHUT_RDWR) == 0) ++cut;
    }
    check(cut > 0, "there was no connection to cut");
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const auto begin = std::chrono::steady_clock::now();
  job.commit("b");
  try {
    job.engine->wait("b", kedge::Level::persistent);
    check(false, "nothing was thrown");
  } catch (const kedge::Error& error) {
    check(error.code() == kedge::ErrorCode::rank_failed, error.what());
    const std::string words = error.what();
    check(words.find("its connection") != std::string::npos ||
              words.find("has died (reported by rank") != std::string::npos,
          words);
  }
  check(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20), "it was only noticed by a timeout");
  job.engine.reset();
}

void children_of_forks_disturb_nobody(const std::string& directory) {
  Job job(directory, "fork");
  job.commit("a");
  const ::pid_t leaves = ::fork();
  if (leaves == 0) {
    job.engine.reset();  // as the end of a program does
    ::_exit(0);
  }
  const ::pid_t stays = ::fork();
  if (stays == 0) {
    ::pause();
    ::_exit(0);
  }
  int status = 1;
  check(::waitpid(leaves, &status, 0) == leaves && status == 0, "the child did not end well");
  for (const char* tag : {"b", "c", "d"}) job.commit(tag);
  job.engine->wait("d", kedge::Level::persistent);
  job.engine->finalize();
  job.engine.reset();
  ::kill(stays, SIGKILL);
  (void)::waitpid(stays, &status, 0);
}

void an_engine_that_is_destroyed_does_not_wait(const std::string& directory) {
  Job job(directory, "destroyed");
  job.commit("a");
  job.engine->wait("a", kedge::Level::persistent);
  if (rank == 0) job.engine->pause();  // the others wait for rank 0
  for (const char* tag : {"b", "c"}) job.commit(tag);
  const auto begin = std::chrono::steady_clock::now();
  job.engine.reset();
  check(std::chrono::steady_clock::now() - begin < std::chrono::seconds(3), "the end of an engine took long");
  MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  try {
    check(provided == MPI_THREAD_FUNNELED, "MPI gives another level than it was asked for");
    const std::string directory = argv[1];
    children_of_forks_disturb_nobody(directory);
    an_engine_that_is_destroyed_does_not_wait(directory);
    a_rank_that_is_cut_off_is_named(directory);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}
