#include "engine/writer.hpp"

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

#include "base/attempt.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "commits/commit_record.hpp"
#include "engine/global_arrays.hpp"
#include "engine/protector.hpp"
#include "format/attributes.hpp"

namespace kedge::engine {
namespace {

// How much is copied into a mapping before the file is looked at again.
constexpr std::size_t kAttributesRoomMin = 512;
constexpr std::uint64_t kCheckEveryBytes = std::uint64_t{1} << 20U;

/// Adds the time of a scope to a sum.
class Stopwatch {
 public:
  Stopwatch(Clock& clock, double& sum_s) : clock_(clock), sum_s_(sum_s), begin_s_(clock.seconds()) {}
  ~Stopwatch() { sum_s_ += clock_.seconds() - begin_s_; }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  Clock& clock_;
  double& sum_s_;
  double begin_s_;
};

}  // namespace

void Writer::create(std::string_view tag, const Attributes& attributes) {
  const double begin_s = context_.environment.clock->seconds();
  std::optional<Failure> local = context_.wrong_phase(Call::create, {Phase::idle});
  if (!local) local = check_tag(tag);
  if (!local && context_.is_root()) local = format::check(attributes);
  context_.enter(Call::create, hash_of(tag), local);
  // Without an open before it: which of the files that lie here must not be overwritten?
  if (!context_.ledger.is_surveyed()) {
    context_.recovery->survey_only();
    context_.retire();
  }
  auto checkpoint = std::make_unique<Checkpoint>();
  checkpoint->commit = draw_identity(tag);
  checkpoint->attributes = attributes;
  checkpoint_ = std::move(checkpoint);
  local = attempt([&] {
    checkpoint_->file = &context_.store->begin(store::FileKind::container, layout_ ? layout_->file_size : 0);
    checkpoint_->container =
        std::make_unique<format::ContainerWriter>(*checkpoint_->file, layout_, context_.copy_threads);
  });
  if (auto failure = context_.vote(local)) {
    give_up();
    const std::vector<commits::Entry> entries = context_.ledger.entries();
    if (failure->code == ErrorCode::no_space && entries.size() > context_.options.store.keep) {
      failure->message +=
          compose("; {} stays beside newer commits because none of them is protected yet", entries.back().commit.tag);
    }
    throw Error(*failure);
  }
  checkpoint_->blocked_s = context_.environment.clock->seconds() - begin_s;
  context_.phase = Phase::writing;
  if (context_.is_root()) {
    context_.log.debug(compose("began {} (generation {})", checkpoint_->commit.tag, checkpoint_->commit.generation));
  }
}

CommitHead Writer::draw_identity(std::string_view tag) {
  commits::CommitRecord identity;
  std::optional<Failure> local;
  if (context_.is_root()) {
    local = attempt([&] {
      identity = commits::to_record({context_.run_id, random_id(), context_.ledger.parent_id(),
                                     context_.ledger.highest_generation() + 1, context_.incarnation,
                                     static_cast<std::uint32_t>(context_.comm->size()),
                                     context_.environment.clock->wall_ns(), Tag(tag)});
    });
  }
  comm::throw_if(context_.vote(local));
  context_.broadcast(identity);
  context_.ledger.raise_generation(identity.generation);
  return commits::to_head(identity);
}

std::optional<Failure> Writer::not_writing(std::string_view call) const {
  return context_.wrong_phase(call, Phase::writing, "create");
}

Status Writer::remember(Failure failure) {
  failure.rank = context_.rank();
  const std::lock_guard guard(mutex_);
  if (checkpoint_ && !checkpoint_->first_failure) checkpoint_->first_failure = failure;
  return failure;
}

Status Writer::save(std::string_view name, const Region& region, const Placement& placement) {
  if (auto failure = not_writing("save")) return *failure;
  const double begin_s = context_.environment.clock->seconds();
  auto failure = attempt([&] {
    const format::RegionSpec spec{std::string(name), region.dtype, region.shape, placement};
    if (const auto problem = format::check(spec)) throw Error(*problem);
    if (format::is_attributes(spec)) {
      throw Error(ErrorCode::invalid_argument, "'.kedge/attributes' is kept for Kedge itself; give them to create");
    }
    std::uint64_t elements = 0;
    (void)element_count(region.shape, elements);  // check() refused what does not fit
    const std::uint64_t bytes = elements * size_bytes(region.dtype);
    if (region.data == nullptr && bytes != 0) {
      throw Error(ErrorCode::invalid_argument, compose("region '{}' has no memory (null pointer)", name));
    }
    copy(*checkpoint_, spec, {static_cast<const std::byte*>(region.data), bytes});
  });
  const double spent_s = context_.environment.clock->seconds() - begin_s;
  {
    const std::lock_guard guard(mutex_);
    checkpoint_->blocked_s += spent_s;
  }
  return failure ? remember(std::move(*failure)) : Status{};
}

void Writer::copy(Checkpoint& checkpoint, const format::RegionSpec& spec, std::span<const std::byte> bytes) {
  // A look at the file costs a system call: once per MiB, not once per region.
  if (checkpoint.copied_since_check.fetch_add(bytes.size()) + bytes.size() >= kCheckEveryBytes) {
    checkpoint.copied_since_check = 0;
    checkpoint.file->check_present();
  }
  checkpoint.container->add(spec, bytes);
}

Routed Writer::route_out(std::string_view name, std::uint64_t max_bytes) {
  if (auto failure = not_writing("route_out")) return {{}, *failure};
  std::string path;
  auto failure = attempt([&] {
    const format::RegionSpec spec{std::string(name), DataType::opaque, Shape{max_bytes}, {}, true};
    if (const auto problem = format::check(spec)) throw Error(*problem);
    const std::lock_guard guard(mutex_);
    path = context_.store->routed_path();
    checkpoint_->routed.push_back({std::string(name), path, max_bytes});
  });
  if (failure) return {{}, remember(std::move(*failure))};
  return {path, {}};
}

void Writer::take_in(Checkpoint& checkpoint, const RoutedFile& routed) {
  const auto status = context_.environment.file_system->status(routed.path);
  if (!status) {
    throw Error(
        Failure{ErrorCode::not_found,
                compose("nothing was written for '{}'; write the file that route_out named before commit", routed.name),
                -1, routed.path, 0});
  }
  if (status->kind != fs::FileStatus::Kind::file) {
    throw Error(Failure{ErrorCode::invalid_argument,
                        compose("what lies at the path for '{}' is no regular file; write the file itself there, no "
                                "directory and no link",
                                routed.name),
                        -1, routed.path, 0});
  }
  if (status->size_bytes > routed.max_bytes) {
    throw Error(Failure{ErrorCode::invalid_argument,
                        compose("the file for '{}' has {} bytes and route_out was told at most {}", routed.name,
                                status->size_bytes, routed.max_bytes),
                        -1, routed.path, 0});
  }
  const auto file = context_.environment.file_system->open(routed.path, fs::Access::read);
  std::vector<std::byte> content(status->size_bytes);
  (void)file->copy_out(0, content, 0);
  copy(checkpoint, {routed.name, DataType::opaque, Shape{content.size()}, {}, true}, content);
}

void Writer::commit() {
  const auto local = context_.wrong_phase(Call::commit, {Phase::writing});
  context_.enter(Call::commit, hash_of(checkpoint_ ? checkpoint_->commit.tag : ""), local);
  std::uint64_t total_bytes = 0;
  double blocked_s = checkpoint_->blocked_s;
  std::optional<Failure> unprotected;
  std::optional<Failure> unflushed;
  {
    const Stopwatch watch(*context_.environment.clock, blocked_s);  // not the checkpoint's: a failure ends that first
    finish();
    total_bytes = checkpoint_->container->container_bytes();
    context_.comm->all_reduce(std::span(&total_bytes, 1), Reduction::sum, context_.deadline());
    seal();
    context_.note_first_commit(checkpoint_->commit.id);
    ++commits_;
    unprotected = protect_if_due();
    unflushed = flush_if_due();
    context_.retire();
    make_next_ready(checkpoint_->file->size_bytes());
  }
  if (context_.is_root()) {
    tell(total_bytes, blocked_s);
    if (unprotected) {
      context_.log.warning(compose("{} is not protected against the loss of a node: {}", checkpoint_->commit.tag,
                                   to_string(*unprotected)));
    }
    if (unflushed) {
      context_.log.warning(
          compose("{} is not on the parallel filesystem: {}", checkpoint_->commit.tag, to_string(*unflushed)));
    }
  }
  checkpoint_.reset();
}

void Writer::tell(std::uint64_t total_bytes, double blocked_s) const {
  const std::optional<commits::Entry> commit = context_.ledger.find(checkpoint_->commit.tag);
  if (!commit) return;
  std::string level = commit->in_stores == Level::protected_
                          ? compose("protected ({})", to_string(context_.redundancy.scheme))
                          : std::string(to_string(commit->in_stores));
  if (commit->persistent) level += " and persistent";
  context_.log.info(compose("committed {} (generation {}): {} on {} ranks, {}, blocked {}", checkpoint_->commit.tag,
                            checkpoint_->commit.generation, human_bytes(total_bytes), context_.comm->size(), level,
                            human_seconds(blocked_s)));
}

/// Local. The first checkpoints of a job find no file to refill: each makes the next one's ready, so that only the
/// first waits for new storage. After parity, which needs its room first. Where there is no room, the next create says
/// so. No parity: a protection may fail or not be wanted, and its room be what the next container needs.
void Writer::make_next_ready(std::uint64_t size_bytes) const {
  // Files that are only needed while an older commit waits for the protection of a newer one come and go.
  const bool is_enough = context_.store->files(store::FileKind::container) > context_.options.store.keep;
  if (is_enough || !context_.store->memory_backed()) return;
  (void)attempt([&] { context_.store->make_ready(store::FileKind::container, size_bytes); });
}

/// COLLECTIVE. A failure does not undo the commit: the level stays what it is.
std::optional<Failure> Writer::protect_if_due() {
  const std::uint64_t every = context_.options.redundancy.every;
  if (every == 0 || commits_ % every != 0) return std::nullopt;
  const std::optional<commits::Entry> commit = context_.ledger.find(checkpoint_->commit.tag);
  return protect(context_, *commit);
}

/// COLLECTIVE. Likewise.
std::optional<Failure> Writer::flush_if_due() {
  const std::uint64_t every = context_.options.persistent.every;
  // What failed is tried again with the next commit.
  if (++context_.unflushed < every || every == 0) return std::nullopt;
  const std::optional<commits::Entry> commit = context_.ledger.find(checkpoint_->commit.tag);
  return flusher_.flush(*commit);
}

/// Local. They lie in logical rank 0's container, so that they are there again whatever level is reached.
void Writer::save_attributes(Checkpoint& checkpoint) {
  if (!context_.is_root()) return;
  if (checkpoint.attributes.empty() && attributes_room_ == 0) return;
  std::string text = format::encode(checkpoint.attributes);
  attributes_room_ = std::max(attributes_room_, std::bit_ceil(std::max(text.size(), kAttributesRoomMin)));
  text.resize(attributes_room_, ' ');
  copy(checkpoint, {format::kAttributesName, DataType::opaque, Shape{text.size()}, {}, false},
       std::as_bytes(std::span(text)));
}

/// COLLECTIVE. Costs one all-reduce as long as no rank's structure changes.
void Writer::check_global_arrays(const std::shared_ptr<const format::Layout>& layout) {
  std::uint64_t changed = layout == layout_ ? 0 : 1;
  context_.comm->all_reduce(std::span(&changed, 1), Reduction::max, context_.deadline());
  if (changed == 0) return;
  const std::vector<SharedRegion> mine = shared_regions(layout->regions);
  const GlobalArrays arrays = GlobalArrays::tell(*context_.comm, mine, context_.deadline());
  if (const auto failure = context_.vote(arrays.check())) {
    give_up();
    throw Error(*failure);
  }
}

/// First vote, *ready*: everything that can fail but the seal.
void Writer::finish() {
  std::optional<Failure> local = checkpoint_->first_failure;
  std::shared_ptr<const format::Layout> layout;
  if (!local) {
    local = attempt([&] {
      for (const RoutedFile& routed : checkpoint_->routed) take_in(*checkpoint_, routed);
      save_attributes(*checkpoint_);
      checkpoint_->file->check_present();
      layout = checkpoint_->container->finish();
      checkpoint_->file->flush(context_.options.store.durable);
    });
  }
  if (const auto failure = context_.vote(local)) {
    give_up();
    throw Error(*failure);
  }
  check_global_arrays(layout);
  layout_ = std::move(layout);
}

/// Second vote, *sealed*. Only an explicit no unseals; whoever times out here throws and leaves its seal.
void Writer::seal() {
  format::Superblock superblock;
  superblock.commit = checkpoint_->commit;
  superblock.logical_rank = context_.logical_rank();
  const auto local = attempt([&] {
    checkpoint_->file->check_present();
    checkpoint_->container->seal(superblock);
    checkpoint_->file->flush(context_.options.store.durable);
  });
  if (const auto failure = context_.vote(local)) {
    give_up();
    (void)context_.vote({});  // no rank throws before every rank has unsealed
    throw Error(*failure);
  }
  context_.store->sealed(*checkpoint_->file, {checkpoint_->commit.id, {}}, checkpoint_->commit.generation);
  context_.ledger.commit(checkpoint_->commit);
  context_.phase = Phase::idle;
  drop_routed();
}

void Writer::abandon() {
  const auto local = context_.wrong_phase(Call::abandon, {Phase::writing});
  context_.enter(Call::abandon, 0, local);
  give_up();
}

/// Local. Frees what create took; never throws, because what failed before is what is to be reported.
void Writer::give_up() {
  drop_routed();
  if (checkpoint_->file != nullptr) {
    checkpoint_->container.reset();
    if (const auto failure = attempt([&] { context_.store->discard(*checkpoint_->file); })) {
      context_.log.warning("an unfinished container could not be removed: " + to_string(*failure));
    }
  }
  checkpoint_.reset();
  context_.phase = Phase::idle;
}

void Writer::drop_routed() {
  for (const RoutedFile& routed : checkpoint_->routed) {
    if (const auto failure = attempt([&] { context_.environment.file_system->remove(routed.path); })) {
      context_.log.warning("a routed file could not be removed: " + to_string(*failure));
    }
  }
}

}  // namespace kedge::engine
