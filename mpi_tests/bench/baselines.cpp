#include "baselines.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "surroundings.hpp"
#include "timing.hpp"

namespace kedge_bench {
namespace {

constexpr std::size_t kCallBytes = std::size_t{4} << 20U;

[[noreturn]] void fail(const std::string& what, const std::string& path) {
  throw std::runtime_error("cannot " + what + " " + path + ": " + std::strerror(errno));
}

class Descriptor {
 public:
  Descriptor(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {
    if (fd_ < 0) fail("open", path);
  }
  ~Descriptor() { ::close(fd_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const noexcept { return fd_; }

 private:
  int fd_;
};

/// Calls call(begin, length) until all bytes passed.
template <class Call>
void pass(std::size_t size, const std::string& what, const std::string& path, Call&& call) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t moved = call(done, std::min(kCallBytes, size - done));
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) fail(what, path);
    done += static_cast<std::size_t>(moved);
  }
}

/// Of an empty file, where the system makes them. The kernel keeps memory for them apart from that for small ones.
void touch_huge_pages(int descriptor, std::size_t size_bytes) {
  constexpr std::size_t kHugePageBytes = std::size_t{2} << 20U;
  constexpr int kCollapse = 25;  // MADV_COLLAPSE, since Linux 6.1
  size_bytes = size_bytes / kHugePageBytes * kHugePageBytes;
  const std::size_t room_bytes = size_bytes + kHugePageBytes;
  void* const room = ::mmap(nullptr, room_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) return;
  void* place = room;
  std::size_t left_bytes = room_bytes;
  std::align(kHugePageBytes, size_bytes, place, left_bytes);
  if (::ftruncate(descriptor, static_cast<off_t>(size_bytes)) == 0 &&
      ::mmap(place, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor, 0) == place) {
    bool touched = true;  // by calls: in a full store a mapping would end the process
    for (std::size_t at = 0; at < size_bytes && touched; at += kHugePageBytes) {
      touched = ::pwrite(descriptor, "", 1, static_cast<off_t>(at)) == 1;
    }
    if (touched) (void)::madvise(place, size_bytes, kCollapse);
  }
  ::munmap(room, room_bytes);
}

/// Nothing if it cannot be started.
std::optional<pid_t> start_dd(const std::string& from, const std::string& to) {
  std::array<std::string, 5> words = {"dd", "if=" + from, "of=" + to, "bs=4M", "status=none"};
  std::array<char*, 6> arguments{};
  std::ranges::transform(words, arguments.begin(), [](std::string& word) { return word.data(); });
  pid_t process = -1;
  if (::posix_spawnp(&process, "dd", nullptr, nullptr, arguments.data(), environ) != 0) return std::nullopt;
  return process;
}

bool succeeded(pid_t process) {
  int status = 0;
  while (::waitpid(process, &status, 0) < 0) {
    if (errno != EINTR) return false;
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

Baselines::Baselines(std::string directory, int rank, Buffers& buffers)
    : directory_(std::move(directory)), rank_(rank), buffers_(buffers) {}

std::string Baselines::path(const std::string& kind, int rank) const {
  return directory_ + "/" + kind + "." + std::to_string(rank);
}

std::pair<double, double> Baselines::copy() {
  double cpu_s = 0;
  const double spent_s = timed([&] {
    const double begin_s = cpu_seconds();
    std::memcpy(buffers_.back.data(), buffers_.data.data(), buffers_.data_bytes().size());
    cpu_s = cpu_seconds() - begin_s;
  });
  return {spent_s, sum(cpu_s)};
}

void Baselines::bring_small_pages() {
  (void)write("spare", false);
  remove("spare");
}

void Baselines::bring_memory() {
  bring_small_pages();
  {
    const Descriptor descriptor(path("spare", rank_), O_CREAT | O_EXCL | O_RDWR);
    touch_huge_pages(descriptor.get(), buffers_.data_bytes().size());
  }
  remove("spare");
}

double Baselines::write_fresh() {
  remove();
  bring_small_pages();
  return write("plain", false);
}

double Baselines::write_synced() {
  remove();
  return write("plain", true);
}

double Baselines::write(const std::string& kind, bool synced) {
  const std::string file = path(kind, rank_);
  const auto bytes = buffers_.data_bytes();
  return timed([&] {
    const Descriptor descriptor(file, O_CREAT | O_EXCL | O_WRONLY);
    pass(bytes.size(), "write", file, [&](std::size_t begin, std::size_t length) {
      return ::write(descriptor.get(), bytes.data() + begin, length);
    });
    if (synced && ::fsync(descriptor.get()) != 0) fail("bring to stable storage", file);
  });
}

double Baselines::copy_to(const std::string& directory) {
  const std::string from = path("plain", rank_);
  const std::string to = directory + "/copy." + std::to_string(rank_);
  std::vector<std::byte> buffer(kCallBytes);
  const double spent_s = timed([&] {
    const Descriptor source(from, O_RDONLY);
    const Descriptor target(to, O_CREAT | O_EXCL | O_WRONLY);
    pass(buffers_.data_bytes().size(), "copy", from, [&](std::size_t, std::size_t length) {
      const ssize_t got = ::read(source.get(), buffer.data(), length);
      return got <= 0 ? got : ::write(target.get(), buffer.data(), static_cast<std::size_t>(got));
    });
  });
  together([&] {
    if (::unlink(to.c_str()) != 0) fail("remove", to);
  });
  return spent_s;
}

void Baselines::evict() {
  together([&] { drop_from_page_cache(path("plain", rank_)); });
}

double Baselines::write_pieces(std::uint64_t piece_bytes, std::uint64_t pieces) {
  const std::string file = path("pieces", rank_);
  const auto bytes = buffers_.data_bytes();
  remove("pieces");
  bring_small_pages();
  const double spent_s = timed([&] {
    const Descriptor descriptor(file, O_CREAT | O_EXCL | O_WRONLY);
    for (std::uint64_t i = 0; i < pieces; ++i) {
      const std::uint64_t begin = i * piece_bytes;
      if (::pwrite(descriptor.get(), bytes.data() + begin, piece_bytes, static_cast<off_t>(begin)) !=
          static_cast<ssize_t>(piece_bytes)) {
        fail("write", file);
      }
    }
  });
  (void)read_back("pieces", piece_bytes * pieces);
  return spent_s;
}

void Baselines::remove() { remove("plain"); }

void Baselines::remove(const std::string& kind) {
  const std::string file = path(kind, rank_);
  together([&] {
    if (::unlink(file.c_str()) != 0 && errno != ENOENT) fail("remove", file);
  });
}

double Baselines::read() { return read_back("plain", buffers_.data_bytes().size()); }

double Baselines::read_back(const std::string& kind, std::uint64_t size_bytes) {
  const std::string file = path(kind, rank_);
  const auto bytes = buffers_.back_bytes().first(size_bytes);
  std::ranges::fill(bytes, std::byte{0});
  const double spent_s = timed([&] {
    const Descriptor descriptor(file, O_RDONLY);
    pass(bytes.size(), "read", file,
         [&](std::size_t begin, std::size_t length) { return ::read(descriptor.get(), bytes.data() + begin, length); });
  });
  agree(std::ranges::equal(bytes, buffers_.data_bytes().first(size_bytes))
            ? ""
            : "a plain read gave other bytes than were written");
  return spent_s;
}

std::optional<double> Baselines::copy_by_dd() {
  bring_small_pages();
  bool started = false;
  const double spent_s = timed([&] {
    const auto process = start_dd(path("plain", rank_), path("dd", rank_));
    started = process.has_value();
    if (process && !succeeded(*process)) throw std::runtime_error("dd failed");
  });
  (void)::unlink(path("dd", rank_).c_str());
  if (most(started ? 0 : 1) > 0) return std::nullopt;
  return spent_s;
}

}  // namespace kedge_bench
