// Node-local stores of single ranks over a simulated disk, and sealed files of all kinds to put into them.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "checksum/crc32c.hpp"
#include "format/container_writer.hpp"
#include "harness/simulated_job.hpp"
#include "store/node_store.hpp"

namespace kedge::faults {

using store::FileKey;
using store::FileKind;

inline constexpr FileKind kAllKinds[] = {FileKind::container, FileKind::parity, FileKind::descriptor};

[[nodiscard]] inline Id128 id_of(std::uint8_t number) {
  Id128 id;
  id.bytes.fill(number);
  return id;
}

[[nodiscard]] inline LogicalRank rank_of(int rank) { return LogicalRank{static_cast<std::uint32_t>(rank)}; }

/// Files of commit c have generation c; containers have no protection.
[[nodiscard]] inline FileKey key_of(FileKind kind, std::uint8_t commit, std::uint8_t protection = 1) {
  return {id_of(commit), kind == FileKind::container ? Id128{} : id_of(protection)};
}

/// For retire_all_but: these keys stay.
[[nodiscard]] inline store::IsKept only(std::set<FileKey> keys) {
  return [keys = std::move(keys)](const FileKey& key) { return keys.contains(key); };
}

/// By memory-backed or not.
class StoreFiles : public testing::TestWithParam<bool> {
 protected:
  static constexpr std::uint64_t kParityBytes = 10000;  // no whole pages

  void SetUp() override { disk.make_directories("/store"); }

  [[nodiscard]] std::unique_ptr<store::NodeStore> open_store(int rank, std::vector<int> ranks_on_node = {}) {
    return std::make_unique<store::NodeStore>(disk.view(rank), options, store::StoreLocation{"/store", GetParam()},
                                              rank_of(rank), std::move(ranks_on_node));
  }

  /// Writes a sealed file for `rank`, of the run `run_id`.
  store::StoreFile& put(store::NodeStore& into, FileKind kind, int rank, std::uint8_t commit,
                        std::uint8_t protection = 1) {
    store::StoreFile& file = begin(into, kind, rank, commit, protection);
    into.new_files.mark_sealed(file, key_of(kind, commit, protection), commit);
    return file;
  }

  /// As put(), but the store is not told that it is sealed.
  store::StoreFile& begin(store::NodeStore& into, FileKind kind, int rank, std::uint8_t commit,
                          std::uint8_t protection = 1) {
    store::StoreFile& file =
        into.new_files.begin_file({kind, kind == FileKind::parity ? format::kSuperblockBytes + kParityBytes : 0});
    if (kind == FileKind::container) fill_container(file, rank, commit);
    else fill_set_file(file, kind, rank, commit, protection);
    file.flush(false);
    return file;
  }

  /// Writes a container of `rank` into a file that was begun for it.
  void write_container(store::StoreFile& file, int rank, std::uint8_t commit) const {
    fill_container(file, rank, commit);
    file.flush(false);
  }

  [[nodiscard]] static std::vector<std::string> paths(const std::vector<store::ScannedFile>& found) {
    std::vector<std::string> result;
    result.reserve(found.size());
    for (const auto& held : found) result.push_back(held.path.substr(held.path.rfind('/') + 1));
    return result;
  }
  [[nodiscard]] std::vector<std::string> scanned(store::NodeStore& from) {
    return paths(from.files.scan(run_id, Verify::all));
  }
  [[nodiscard]] bool exists(const std::string& name) const { return disk.snapshot().contains("/store/" + name); }

  FaultyDisk disk{GetParam() ? SimulatedJob::memory_disk() : SimulatedJob::block_disk()};
  Options::Store options;
  Id128 run_id = id_of(0x77);

 private:
  void fill_container(store::StoreFile& file, int rank, std::uint8_t commit) const {
    format::ContainerWriter writer(file, nullptr);
    const std::vector<std::byte> values(5000, static_cast<std::byte>(commit));
    writer.add({"values", DataType::opaque, Shape{values.size()}, {}, false}, values);
    static_cast<void>(writer.finish());
    format::Superblock identity;
    identity.commit.run_id = run_id;
    identity.commit.id = id_of(commit);
    identity.commit.generation = commit;
    identity.logical_rank = rank_of(rank);
    identity.commit.world_size = 64;
    identity.commit.tag = "t";
    writer.seal(identity);
  }

  void fill_set_file(store::StoreFile& file, FileKind kind, int rank, std::uint8_t commit,
                     std::uint8_t protection) const {
    format::SetDescriptor set;
    set.run_id = run_id;
    set.commit_id = id_of(commit);
    set.protection_id = id_of(protection);
    set.generation = commit;
    set.world_size = 64;
    set.members = {{rank_of(rank + 1), 0, 10}, {rank_of(rank), 0, 10}};
    set.position = 1;
    const bool is_parity = kind == FileKind::parity;
    file.reserve(format::kSuperblockBytes + (is_parity ? kParityBytes : 0));
    if (is_parity) {
      set.kind = format::SetFileKind::parity;
      set.parity_bytes = kParityBytes;
      const std::vector<std::byte> parity(kParityBytes, static_cast<std::byte>(protection));
      set.parity_crc = file.bytes().write_with_crc(format::kSuperblockBytes, parity, 0);
    }
    file.set_size(format::kSuperblockBytes + set.parity_bytes);
    file.bytes().write_with_crc(0, format::encode_set_descriptor(set), 0);
  }
};

}  // namespace kedge::faults
