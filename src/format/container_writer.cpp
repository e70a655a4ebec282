#include "format/container_writer.hpp"

#include <algorithm>
#include <mutex>

#include "base/invariant.hpp"
#include "base/text.hpp"
#include "checksum/crc32c.hpp"

namespace kedge::format {
namespace {

constexpr std::uint64_t kReserveStepMin = std::uint64_t{1} << 20U;
constexpr std::uint64_t kReserveStepMax = std::uint64_t{64} << 20U;

void check_bytes(const RegionSpec& spec, std::uint64_t bytes) {
  if (auto problem = check_region_spec(spec)) throw Error(*std::move(problem));
  if (bytes != region_size_bytes(spec)) {
    throw Error(ErrorCode::invalid_argument,
                kedge::compose("region '{}' has {} bytes, but its shape ({}) of {} needs {}", spec.name, bytes,
                               to_string(spec.shape), to_string(spec.dtype), region_size_bytes(spec)));
  }
}

// Distinguishes "the application saved fewer regions" from "it saved all of them".
bool all_taken(const std::vector<std::atomic<bool>>& taken) {
  return std::all_of(taken.begin(), taken.end(), [](const std::atomic<bool>& one) { return one.load(); });
}

}  // namespace

std::uint64_t ContainerTarget::reserve_ahead(std::uint64_t size_bytes, std::uint64_t wished_bytes) {
  try {
    reserve(wished_bytes);
    return wished_bytes;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::no_space) throw;
    reserve(size_bytes);
    return size_bytes;
  }
}

// Marks the writer as failed unless it is completed, whatever exception ends it (tests throw types that are no
// std::exception).
class ContainerWriter::Attempt {
 public:
  explicit Attempt(ContainerWriter& writer) : writer_(writer) {}
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;
  ~Attempt() {
    if (!succeeded_) writer_.has_failed_ = true;
  }
  void succeeded() noexcept { succeeded_ = true; }

 private:
  ContainerWriter& writer_;
  bool succeeded_ = false;
};

ContainerWriter::ContainerWriter(ContainerTarget& target, std::shared_ptr<const Layout> predicted,
                                 unsigned copy_threads)
    : target_(target), predicted_(std::move(predicted)), copy_threads_(copy_threads) {
  if (!predicted_) {
    builder_ = std::make_unique<LayoutBuilder>();
    return;
  }
  claimed_ = std::vector<std::atomic<bool>>(predicted_->regions.size());
  saved_regions_.resize(predicted_->regions.size());
  target_.reserve(predicted_->file_size);
  reserved_bytes_ = predicted_->file_size;
}

void ContainerWriter::add(const RegionSpec& spec, std::span<const std::byte> bytes) {
  add_copied(spec, bytes.size(), [&](fs::ByteAccess& file, std::uint64_t offset, bool /*stays*/) {
    return copy_region_in(file, offset, bytes, copy_threads_);
  });
}

void ContainerWriter::add(const RegionSpec& spec, device::Staging& staging, const device::Span& from, bool straight) {
  add_copied(spec, from.size_bytes, from_device(staging, from, straight));
}

/// The referenced arguments must outlive the result.
ContainerWriter::WriteRegion ContainerWriter::from_device(device::Staging& staging, const device::Span& from,
                                                          bool straight) {
  return [this, &staging, &from, straight](fs::ByteAccess& file, std::uint64_t offset, bool stays) {
    // Registration is slow, so memory that the next region may remap is not registered.
    const device::HostMemory memory = straight && stays ? target_.memory() : device::HostMemory();
    return copy_region_in(file, offset, staging, from, {memory, target_.direct_file()}, copy_threads_);
  };
}

void ContainerWriter::add(const RegionSpec& spec, fs::ByteAccess& from, std::uint64_t bytes) {
  add_copied(spec, bytes, [&](fs::ByteAccess& file, std::uint64_t offset, bool /*stays*/) {
    return stream_region_in(file, offset, from, bytes);
  });
}

void ContainerWriter::add_copied(const RegionSpec& spec, std::uint64_t bytes, const WriteRegion& copy) {
  Attempt attempt(*this);
  begin_adding(spec, bytes);
  if (!add_predicted(spec, copy)) {
    SavedRegion& saved = add_saved_region(spec);
    const std::shared_lock lock(mutex_);
    saved.checksums = copy(target_.bytes(), saved.offset, false);
  }
  attempt.succeeded();
}

void ContainerWriter::begin_adding(const RegionSpec& spec, std::uint64_t bytes) const {
  if (has_failed_)
    throw Error(ErrorCode::bad_state,
                "an earlier region of this checkpoint could not be saved; abandon the checkpoint");
  check_bytes(spec, bytes);
}

bool ContainerWriter::add_predicted(const RegionSpec& spec, const WriteRegion& copy) {
  const std::shared_lock lock(mutex_);
  const std::ptrdiff_t position = claim_predicted(spec);
  if (position < 0) return false;
  const auto i = static_cast<std::size_t>(position);
  saved_regions_[i].checksums = copy(target_.bytes(), predicted_->regions[i].offset, true);
  return true;
}

/// Call it under the lock. Claims the region and returns its position; -1 if it was not predicted.
std::ptrdiff_t ContainerWriter::claim_predicted(const RegionSpec& spec) {
  if (layout_) throw Error(ErrorCode::bad_state, "the container is finished; no region can be added");
  if (builder_) return -1;
  const std::ptrdiff_t position = predicted_->find_position(spec.name);
  if (position < 0) return -1;
  const auto i = static_cast<std::size_t>(position);
  if (predicted_->regions[i].spec != spec) return -1;
  if (claimed_[i].exchange(true)) {
    throw Error(ErrorCode::invalid_argument,
                kedge::compose("region '{}' is saved twice; save each region once", spec.name));
  }
  return position;
}

bool ContainerWriter::claim_region(const RegionSpec& spec) {
  Attempt attempt(*this);
  begin_adding(spec, region_size_bytes(spec));
  const std::shared_lock lock(mutex_);
  const std::ptrdiff_t position = claim_predicted(spec);
  if (position >= 0) saved_regions_[static_cast<std::size_t>(position)].is_claimed = true;
  attempt.succeeded();
  return position >= 0;
}

void ContainerWriter::fill_claimed_region(const RegionSpec& spec, device::Staging& staging, const device::Span& from,
                                          bool straight) {
  Attempt attempt(*this);
  begin_adding(spec, from.size_bytes);
  const std::shared_lock lock(mutex_);
  SavedRegion* saved = nullptr;
  std::uint64_t offset = 0;
  if (builder_) {  // the prediction was left meanwhile: the region has another position, perhaps another offset
    const auto found =
        std::ranges::find_if(saved_regions_, [&](const SavedRegion& one) { return one.spec.name == spec.name; });
    invariant(found != saved_regions_.end(), "only a region that was promised is filled");
    saved = &*found;
    offset = saved->offset;
  } else {
    const std::ptrdiff_t position = predicted_->find_position(spec.name);
    invariant(position >= 0, "only a region that was promised is filled");
    saved = &saved_regions_[static_cast<std::size_t>(position)];
    offset = predicted_->regions[static_cast<std::size_t>(position)].offset;
  }
  invariant(saved->is_claimed, "a region that was promised is filled once");
  saved->checksums = from_device(staging, from, straight)(target_.bytes(), offset, !builder_);
  saved->is_claimed = false;
  attempt.succeeded();
}

bool ContainerWriter::is_as_predicted() const {
  const std::shared_lock lock(mutex_);
  return !has_failed_ && !builder_ && all_taken(claimed_);
}

ContainerWriter::SavedRegion& ContainerWriter::add_saved_region(const RegionSpec& spec) {
  const std::unique_lock lock(mutex_);
  if (layout_) throw Error(ErrorCode::bad_state, "the container is finished; no region can be added");
  if (!builder_) end_prediction();
  const std::uint64_t offset = builder_->add(spec);
  SavedRegion& saved = saved_regions_.emplace_back(SavedRegion{spec, offset, region_size_bytes(spec), {}});
  // An empty region has no offset; the superblock always needs its bytes.
  reserve(std::max<std::uint64_t>(saved.offset + saved.size_bytes, kSuperblockBytes));
  return saved;
}

// The longest run of predicted regions that were all saved stays in place; the other saved regions move.
void ContainerWriter::end_prediction() {
  auto builder = std::make_unique<LayoutBuilder>();
  std::deque<SavedRegion> old = std::move(saved_regions_);
  saved_regions_.clear();
  std::vector<std::size_t> beyond;
  bool in_prefix = true;
  for (std::size_t i = 0; i < old.size(); ++i) {
    const StoredRegion& region = predicted_->regions[i];
    in_prefix = in_prefix && claimed_[i];
    if (!claimed_[i]) continue;
    old[i].spec = region.spec;
    old[i].offset = region.offset;
    old[i].size_bytes = region.size_bytes;
    if (!in_prefix) {
      beyond.push_back(i);
      continue;
    }
    if (builder->add(region.spec) != region.offset) {
      throw Error(ErrorCode::io,
                  kedge::compose("HDF5 placed region '{}' at a different offset than last time; please report this",
                                 region.spec.name));
    }
    end_bytes_ = std::max(end_bytes_, region.offset + region.size_bytes);
    saved_regions_.push_back(std::move(old[i]));
  }
  builder_ = std::move(builder);
  move_to_new_offsets(std::move(beyond), old);
}

// Copies all regions out before it writes the first one, because new offsets may overlap old ones.
void ContainerWriter::move_to_new_offsets(std::vector<std::size_t> positions, std::deque<SavedRegion>& saved) {
  std::vector<std::unique_ptr<std::byte[]>> copies;  // NOLINT(*-avoid-c-arrays)
  for (const std::size_t i : positions) {
    const SavedRegion& region = saved[i];
    if (region.is_claimed) {  // no bytes to move yet
      copies.emplace_back();
      continue;
    }
    copies.push_back(std::make_unique_for_overwrite<std::byte[]>(region.size_bytes));  // NOLINT(*-avoid-c-arrays)
    const auto checksums = copy_region_out(target_.bytes(), region.offset, {copies.back().get(), region.size_bytes});
    if (checksums != region.checksums) {
      throw Error(ErrorCode::corrupt, kedge::compose("region '{}' changed in the store while it was being written; "
                                                     "check the node's memory",
                                                     region.spec.name));
    }
  }
  for (std::size_t k = 0; k < positions.size(); ++k) {
    SavedRegion& region = saved_regions_.emplace_back(std::move(saved[positions[k]]));
    region.offset = builder_->add(region.spec);
    reserve(region.offset + region.size_bytes);
    if (region.is_claimed) continue;
    region.checksums = copy_region_in(target_.bytes(), region.offset, {copies[k].get(), region.size_bytes});
    copies[k].reset();
  }
}

// Reserves in steps: many small regions would each remap the file.
void ContainerWriter::reserve(std::uint64_t size_bytes) {
  end_bytes_ = std::max(end_bytes_, size_bytes);
  if (size_bytes <= reserved_bytes_) return;
  const std::uint64_t with_step = size_bytes + std::clamp(size_bytes / 4, kReserveStepMin, kReserveStepMax);
  reserved_bytes_ = target_.reserve_ahead(size_bytes, with_step);
}

std::shared_ptr<const Layout> ContainerWriter::finish() {
  const std::unique_lock lock(mutex_);
  Attempt attempt(*this);
  if (has_failed_)
    throw Error(ErrorCode::bad_state, "a region of this checkpoint could not be saved; abandon the checkpoint");
  if (layout_) throw Error(ErrorCode::bad_state, "the container is already finished");
  invariant(std::ranges::none_of(saved_regions_, &SavedRegion::is_claimed),
            "every promised region is filled before finish");
  if (!builder_ && !all_taken(claimed_)) end_prediction();
  std::shared_ptr<const Layout> layout = builder_ ? builder_->finish() : predicted_;
  builder_.reset();
  target_.reserve(layout->file_size);
  target_.set_size(layout->file_size);
  layout_ = std::move(layout);
  write_structure();
  attempt.succeeded();
  return layout_;
}

void ContainerWriter::write_structure() {
  fs::ByteAccess& file = target_.bytes();
  for (const MetadataExtent& extent : layout_->metadata)
    static_cast<void>(file.write_with_crc(extent.offset, extent.bytes, 0));
  write_padding(file, *layout_);

  std::vector<const BlockChecksums*> regions;
  for (const SavedRegion& saved : saved_regions_) regions.push_back(&saved.checksums);
  const std::vector<std::uint32_t> checksums = extent_checksums(*layout_, regions);
  const std::vector<std::byte>& head = layout_->index_head;
  const std::uint64_t padding = layout_->index_capacity_bytes - layout_->index_size();
  index_crc_ = file.write_with_crc(layout_->index_offset, head, 0);
  index_crc_ =
      file.write_with_crc(layout_->index_offset + head.size(), std::as_bytes(std::span(checksums)), index_crc_);
  write_zeros(file, layout_->index_offset + layout_->index_size(), padding);
  index_extent_crc_ = crc32c_zeros(padding, index_crc_);
}

SuperblockBytes ContainerWriter::make_sealed_head(Superblock identity) const {
  const std::shared_lock lock(mutex_);
  if (has_failed_ || !layout_) throw Error(ErrorCode::bad_state, "only a finished container can be sealed");
  identity.is_sealed = true;
  identity.file_size = layout_->file_size;
  identity.index_offset = layout_->index_offset;
  identity.index_size = layout_->index_size();
  identity.index_crc = index_crc_;
  identity.extents = layout_->table;
  for (Extent& extent : identity.extents) {
    if (extent.kind == ExtentKind::index) extent.crc = index_extent_crc_;
  }
  return encode_superblock(identity);
}

void ContainerWriter::seal(const Superblock& identity) {
  static_cast<void>(target_.bytes().write_with_crc(0, make_sealed_head(identity), 0));
}

std::uint64_t ContainerWriter::container_bytes() const {
  const std::shared_lock lock(mutex_);
  if (layout_) return layout_->file_size;
  return builder_ ? end_bytes_ : predicted_->file_size;
}

}  // namespace kedge::format
