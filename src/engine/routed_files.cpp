#include "engine/routed_files.hpp"

#include <algorithm>
#include <optional>
#include <span>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "fs/tree.hpp"

namespace kedge::engine {
namespace {

using Kind = fs::FileStatus::Kind;

constexpr std::uint32_t kDirectoryMode = 0700;
constexpr std::size_t kFileNameBytesMax = 255;  // NAME_MAX of every filesystem that a store lies on
constexpr std::size_t kPathBytesMax = 4095;     // PATH_MAX without the zero; KEDGE_PATH_SIZE promises it

std::string_view without_slash(std::string_view name) noexcept {
  if (name.ends_with('/')) name.remove_suffix(1);
  return name;
}

bool is_below(std::string_view name, std::string_view directory) noexcept {
  return name.size() > directory.size() && name.starts_with(directory) && name[directory.size()] == '/';
}

format::RegionSpec spec_of(std::string_view name, std::uint64_t bytes) {
  return {std::string(name), DataType::opaque, Shape{bytes}, {}, true};
}

void check_name(std::string_view name, std::uint64_t max_bytes) {
  if (const auto problem = format::check_region_spec(spec_of(without_slash(name), max_bytes))) throw Error(*problem);
  for (std::string_view rest = name; !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find('/'));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    if (part.size() <= kFileNameBytesMax) continue;
    throw Error(ErrorCode::invalid_argument,
                compose("the name '{}' cannot be routed: each part is a file name of at most {} bytes", name,
                        kFileNameBytesMax));
  }
}

/// Description of whatever is in the place of a regular file, and what to do about it.
std::string_view describe_other_file(const std::optional<fs::FileStatus>& status) noexcept {
  if (!status) return "is gone: it was removed while commit ran; leave routed files in place until commit returns";
  switch (status->kind) {
    case Kind::link:
      return "is a symbolic link, not a regular file, and links are not stored; before commit remove it, or put a copy "
             "of its target in its place; after route_in create it anew";
    case Kind::directory:
      return "is a directory, not a regular file; to route a directory, give route_out a name that ends with '/'";
    default: return "is a device, pipe or socket, not a regular file; write a file there";
  }
}

/// The source of what has none.
class NoBytes final : public fs::ByteAccess {
 public:
  std::uint32_t write_with_crc(std::uint64_t, std::span<const std::byte>, std::uint32_t crc) override { return crc; }
  [[nodiscard]] std::uint32_t read_with_crc(std::uint64_t, std::span<std::byte>, std::uint32_t crc) override {
    return crc;
  }
  [[nodiscard]] std::uint32_t checksum(std::uint64_t, std::uint64_t, std::uint32_t crc) override { return crc; }
};

}  // namespace

const Route* RoutedFiles::find_conflict(std::string_view name) const noexcept {
  const std::string_view wanted = without_slash(name);
  const auto found = std::ranges::find_if(routes_, [&](const Route& route) {
    if (!is_below(route.path, current_)) return false;
    const std::string_view taken = without_slash(route.name);
    return taken == wanted || is_below(taken, wanted) || is_below(wanted, taken);
  });
  return current_.empty() || found == routes_.end() ? nullptr : &*found;
}

Route RoutedFiles::add(std::string_view name, std::uint64_t max_bytes) {
  check_name(name, max_bytes);
  if (current_.empty()) {
    current_ = store_directories_.make_directory();
    directories_.push_back(current_);
  }
  Route route{std::string(name), fs::join(current_, name), max_bytes};
  if (route.path.size() > kPathBytesMax) {
    refuse(ErrorCode::invalid_argument,
           compose("the routed path would have more than {} bytes; use a shorter name", kPathBytesMax), route.path);
  }
  fs::make_parents(file_system_, current_, name, kDirectoryMode);
  return routes_.emplace_back(std::move(route));
}

void RoutedFiles::copy_into(const Sink& sink) const {
  for (const Route& route : routes_) {
    if (route.is_directory()) {
      take_in_directory(route, sink);
      continue;
    }
    require_own_directories(route);
    const auto status = file_system_.status(route.path);
    if (!status) {
      refuse(ErrorCode::not_found,
             compose("nothing was written for '{}'; write the file that route_out named before commit", route.name),
             route.path);
    }
    if (route.max_bytes != 0 && status->size_bytes > route.max_bytes && status->kind == Kind::file) {
      refuse(ErrorCode::invalid_argument,
             compose("the file for '{}' has {} bytes, and route_out was called with a maximum of {}", route.name,
                     status->size_bytes, route.max_bytes),
             route.path);
    }
    copy_file_into(route.name, route.path, sink);
  }
}

/// The application may have put a link in the place of a directory on the way: what it leads to is not the route's.
void RoutedFiles::require_own_directories(const Route& route) const {
  const std::string_view name = without_slash(route.name);
  const std::string base = route.path.substr(0, route.path.size() - route.name.size());
  for (std::size_t slash = name.find('/'); slash != std::string_view::npos; slash = name.find('/', slash + 1)) {
    const std::string path = base + std::string(name.substr(0, slash));
    const auto status = file_system_.status(path);
    if (!status || status->kind == Kind::directory) continue;
    refuse(
        ErrorCode::invalid_argument,
        compose("a component of the path for '{}' is not a directory; write into the directories that route_out made",
                route.name),
        path);
  }
}

void RoutedFiles::take_in_directory(const Route& route, const Sink& sink) const {
  require_own_directories(route);
  const std::string path(without_slash(route.path));
  const auto status = file_system_.status(path);
  if (!status || status->kind != Kind::directory) {
    refuse(status ? ErrorCode::invalid_argument : ErrorCode::not_found,
           compose("the directory for '{}' is missing or not a directory; write files into the one that route_out made",
                   route.name),
           path);
  }
  const std::vector<fs::TreeFile> files = fs::files_below(file_system_, path);
  std::uint64_t bytes = 0;
  for (const fs::TreeFile& file : files) bytes += file.status.size_bytes;
  if (route.max_bytes != 0 && bytes > route.max_bytes) {
    refuse(ErrorCode::invalid_argument,
           compose("the files in '{}' have {} bytes, and route_out was called with a maximum of {}", route.name, bytes,
                   route.max_bytes),
           path);
  }
  const std::vector<std::string> empty = fs::empty_directories_below(file_system_, path);  // before all of them are
  for (const fs::TreeFile& file : files) copy_file_into(route.name + file.name, fs::join(path, file.name), sink);
  NoBytes nothing;
  for (const std::string& name : empty) sink(format::make_empty_directory(route.name + name), nothing, 0);
}

/// Its storage is free again before the next one is copied.
void RoutedFiles::copy_file_into(const std::string& name, const std::string& path, const Sink& sink) const {
  const auto status = file_system_.status(path);
  if (!status || status->kind != Kind::file) {
    refuse(ErrorCode::invalid_argument, compose("the path for '{}' {}", name, describe_other_file(status)), path);
  }
  const auto file = file_system_.open(path, fs::Access::read);
  const std::uint64_t bytes = file->status().size_bytes;
  bool is_torn = false;
  try {
    sink(spec_of(name, bytes), *file, bytes);
    is_torn = file->status().size_bytes != bytes;
  } catch (const Error& error) {
    Failure failure = error.failure();
    if (failure.code == ErrorCode::no_space) {
      failure.message += compose(" (for the routed file '{}' of {})", name, human_bytes(bytes));
      throw Error(failure);
    }
    is_torn = failure.code == ErrorCode::corrupt && file->status().size_bytes < bytes;
    if (!is_torn) throw;
  }
  if (is_torn) {
    refuse(ErrorCode::invalid_argument,
           compose("the file for '{}' changed while commit stored it; close it before commit", name), path);
  }
  (void)attempt([&] { file_system_.remove(path); });  // else drop() says why
}

void RoutedFiles::log_unrouted_files(const std::string& directory) const {
  if (!log_.is_enabled(LogLevel::debug)) return;
  std::size_t strays = 0;
  std::string first;
  for (const fs::TreeFile& file : fs::files_below(file_system_, directory)) {
    const std::string path = fs::join(directory, file.name);
    const bool is_route = std::ranges::any_of(routes_, [&](const Route& route) {
      return route.is_directory() ? path.starts_with(route.path) : path == route.path;
    });
    if (is_route) continue;
    if (strays++ == 0) first = file.name;
  }
  if (strays == 0) return;
  log_.debug(compose("removed {} for which route_out was not called: {}{}",
                     strays == 1 ? "a file" : compose("{} files", strays), first, strays == 1 ? "" : ", ..."));
}

void RoutedFiles::drop() {
  for (const std::string& directory : directories_) {
    (void)attempt([&] { log_unrouted_files(directory); });
    if (const auto failure = attempt([&] { fs::remove_tree(file_system_, directory); })) {
      log_.warning("routed files could not be removed (the next start tries again): " + to_string(*failure));
    }
  }
  directories_.clear();
  current_.clear();
  routes_.clear();
}

}  // namespace kedge::engine
