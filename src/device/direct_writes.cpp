#include "device/direct_writes.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/attempt.hpp"
#include "base/run_on_threads.hpp"
#include "base/text.hpp"

namespace kedge::device {
namespace {

constexpr std::uint64_t kPieceBytes = std::uint64_t{16} << 20U;  // cuFile splits larger writes

/// Whole pages with only the transfer's data, without its last page. The host copies that one, and CUDA refuses the
/// copy if the memory is shorter than claimed.
struct Body {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

Body body_of(std::uint64_t offset, std::uint64_t size_bytes) {
  const auto page = std::max<std::uint64_t>(4096, static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)));
  const std::uint64_t begin = (page - offset % page) % page;
  return {begin, begin + (size_bytes - 1 - begin) / page * page};
}

void write_body(DirectFile& file, const DirectWrites::Transfer& transfer, const Body& body) {
  std::atomic<std::uint64_t> next{body.begin};
  const auto work = [&] {
    // After a piece failed, no thread begins another.
    const struct EndsAll {
      std::atomic<std::uint64_t>& next;
      std::uint64_t end;
      ~EndsAll() { next = end; }
    } ends_all{next, body.end};
    for (std::uint64_t at = next.fetch_add(kPieceBytes); at < body.end; at = next.fetch_add(kPieceBytes)) {
      const std::uint64_t length = std::min(kPieceBytes, body.end - at);
      file.write(transfer.location, transfer.offset + at, transfer.memory.subspan(at, length));
    }
  };
  const std::uint64_t pieces = (body.end - body.begin + kPieceBytes - 1) / kPieceBytes;
  run_on_threads(static_cast<unsigned>(std::min<std::uint64_t>(transfer.threads, pieces)), work);
}

/// Turns the failure into one of the file, unless the device failed.
Error of_file(Failure failure, const fs::File& file) {
  const bool is_of_file = failure.code == ErrorCode::io || failure.code == ErrorCode::no_space;
  if (is_of_file && failure.path.empty()) failure.path = file.path();
  return Error(std::move(failure));
}

}  // namespace

void FileRegistration::end() noexcept {
  const std::lock_guard guard(mutex_);
  file_.reset();
}

DirectWrites::DirectWrites(std::shared_ptr<Devices> devices, Settings settings)
    : devices_(std::move(devices)), settings_(std::move(settings)), checksums_(devices_, settings_.log) {}

void DirectWrites::release() {
  const std::lock_guard guard(mutex_);
  checksums_.release();
  for (const auto& one : std::exchange(registrations_, {})) {
    if (const auto access = one.lock()) access->end();
  }
}

std::optional<std::vector<std::uint32_t>> DirectWrites::write(const Transfer& transfer, const CopyByHost& by_host) {
  if (!is_candidate(transfer)) return std::nullopt;
  const std::lock_guard guard(mutex_);
  DirectFile* file = register_file(transfer);
  if (file == nullptr || !checksums_.is_measured(transfer.location)) return std::nullopt;
  DeviceChecksums* checksums = checksums_.device_checksums(transfer.location);
  if (checksums == nullptr) {
    log_refusal(Failure{ErrorCode::bad_state, "the checksums of this GPU's memory are computed by the host"});
    return std::nullopt;
  }
  try {
    auto found = write_all(*file, *checksums, transfer, by_host);
    if (!std::exchange(has_logged_, true)) {
      log_line(LogLevel::info,
               compose("GPU memory is written to the node-local store by GPUDirect Storage, {}", file->method()));
    }
    return found;
  } catch (const Error& error) {
    // For example managed memory or memory of several allocations: buffers can copy it, or report its error.
    const bool is_of_memory = error.code() == ErrorCode::invalid_argument;
    if (!is_of_memory && error.code() != ErrorCode::bad_state) throw of_file(error.failure(), *transfer.target.file);
    if (!is_of_memory) log_refusal(error.failure());
    return std::nullopt;
  }
}

void DirectWrites::compare_checksums(const Transfer& transfer, std::span<const std::uint32_t> of_host) {
  if (!is_candidate(transfer)) return;
  const std::lock_guard guard(mutex_);
  if (register_file(transfer) == nullptr || checksums_.is_measured(transfer.location)) return;
  checksums_.measure_device(transfer.location, transfer.memory, transfer.block_bytes, of_host, std::nullopt);
}

bool DirectWrites::is_candidate(const Transfer& transfer) const noexcept {
  return transfer.target.file != nullptr && transfer.memory.size() >= kBytesMin && !transfer.location.is_managed;
}

/// Null if the file cannot be registered; after one refusal no file is registered.
DirectFile* DirectWrites::register_file(const Transfer& transfer) {
  if (!settings_.is_wanted) return nullptr;
  FileRegistration& access = *transfer.target.access;
  const std::lock_guard guard(access.mutex_);
  if (access.file_) return access.file_.get();
  const auto failure = attempt([&] {
    const int descriptor = transfer.target.file->direct_descriptor();
    if (descriptor < 0) throw Error(ErrorCode::bad_state, "the store's filesystem does not support O_DIRECT");
    // Adjacent pages must leave the cache too: where it keeps many pages as one, a write to one makes all of them
    // dirty. From now on this checkpoint's pages are cached one by one.
    transfer.target.file->drop_cached_pages(0, transfer.target.file->status().size_bytes);
    access.file_ = devices_->open_direct_file(transfer.location, descriptor);
  });
  if (failure) {
    if (failure->code == ErrorCode::device_failed) throw Error(*failure);
    log_refusal(*failure);
    return nullptr;
  }
  access.devices_ = devices_;
  std::erase_if(registrations_, [](const auto& one) { return one.expired(); });
  registrations_.push_back(transfer.target.access);
  return access.file_.get();
}

/// Writes before computing checksums: invalid memory is an error of a copy, but makes a kernel disable the device.
std::vector<std::uint32_t> DirectWrites::write_all(DirectFile& file, DeviceChecksums& checksums,
                                                   const Transfer& transfer, const CopyByHost& by_host) {
  const Body body = body_of(transfer.offset, transfer.memory.size());
  fs::File& cached = *transfer.target.file;
  if (body.begin != 0) by_host(0, body.begin);
  by_host(body.end, transfer.memory.size() - body.end);
  const auto drop_cached_pages = [&] { cached.drop_cached_pages(transfer.offset + body.begin, body.end - body.begin); };
  drop_cached_pages();  // of an earlier checkpoint
  write_body(file, transfer, body);
  drop_cached_pages();  // that were read ahead meanwhile
  begin_block_checksums(checksums, transfer.memory, transfer.block_bytes);
  return finish_block_checksums(checksums, transfer.memory.size(), transfer.block_bytes);
}

void DirectWrites::log_refusal(const Failure& why) {
  log_line(LogLevel::warning,
           compose("GPU memory goes to the node-local store through pinned buffers, not by GPUDirect Storage: {} "
                   "(device.path = auto skips the attempt)",
                   why.message));
  settings_.is_wanted = false;
}

void DirectWrites::log_line(LogLevel level, std::string_view line) const {
  if (settings_.log) settings_.log(level, line);
}

}  // namespace kedge::device
