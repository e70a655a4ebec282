#include "recovery/holding.hpp"

#include <utility>

namespace kedge::recovery {

Holding Holding::in_store(store::StoredFiles& files, const Id128& commit_id, LogicalRank logical_rank,
                          unsigned copy_threads) {
  Holding holding(logical_rank);
  holding.file_ = store::Pin(files, store::FileKind::container, logical_rank, {commit_id, {}});
  store::StoreFile& file = *holding.file_;
  holding.reader_ =
      std::make_unique<format::ContainerReader>(file.bytes(), file.size_bytes(), file.path(), copy_threads);
  return holding;
}

Holding Holding::on_prefix(persist::PrefixReader& storage, const std::string& directory, const CommitHead& commit,
                           LogicalRank logical_rank) {
  Holding holding(logical_rank);
  holding.opened_ = storage.open_container(directory, commit, logical_rank);
  return holding;
}

}  // namespace kedge::recovery
