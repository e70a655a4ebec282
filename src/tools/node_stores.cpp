#include "tools/node_stores.hpp"

#include <algorithm>

#include "base/attempt.hpp"
#include "base/options_load.hpp"
#include "base/text.hpp"
#include "store/file_name.hpp"
#include "store/location.hpp"
#include "tools/tag_location.hpp"

namespace kedge::tools {

Store open_store(fs::FileSystem& file_system, const std::string& path) {
  const auto status = status_of(file_system, path);
  if (!status) refuse(ErrorCode::not_found, "there is no such directory; check the path", path);
  Store found{file_system.canonical(path), {}};
  if (!store::is_private_directory(file_system, found.directory)) {
    refuse(ErrorCode::mismatch,
           "not a store of yours; expected a directory kedge-<uid>-<run>-<8 hex digits> that belongs to you, mode 0700",
           path);
  }
  found.content = store::read_store_content(file_system, found.directory);
  // A directory left by an interrupted removal has neither record nor containers.
  const bool has_name =
      found.directory.substr(found.directory.rfind('/') + 1).starts_with(compose("kedge-{}-", file_system.user()));
  const bool is_rest = has_name && std::ranges::none_of(found.content.files, [](const std::string& name) {
                         return store::parse_file_name(name).has_value();
                       });
  if (found.content.record.run_id.is_none() && !is_rest) {
    refuse(ErrorCode::mismatch, "not a store: it has no valid file 'run'; if it is one, remove it by hand", path);
  }
  return found;
}

std::vector<Store> find_stores(fs::FileSystem& file_system) {
  const std::string begin = compose("kedge-{}-", file_system.user());
  std::vector<std::string> roots = store::default_roots(process_variable);
  std::ranges::sort(roots);
  roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
  std::vector<Store> found;
  for (const std::string& root : roots) {
    (void)attempt([&] {
      for (const std::string& name : file_system.list(root)) {
        if (!name.starts_with(begin)) continue;
        (void)attempt([&] { found.push_back(open_store(file_system, fs::join(root, name))); });
      }
    });
  }
  return found;
}

}  // namespace kedge::tools
