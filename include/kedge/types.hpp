// Basic types: data types, shapes, regions, shards, identities, levels.
#pragma once

#include <array>
#include <compare>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <variant>

namespace kedge {

/// Element type of a region. The numbers are on disk: do not change them.
enum class DataType : std::uint8_t {
  int8 = 1,
  int16 = 2,
  int32 = 3,
  int64 = 4,
  uint8 = 5,
  uint16 = 6,
  uint32 = 7,
  uint64 = 8,
  float16 = 9,
  bfloat16 = 10,
  float32 = 11,
  float64 = 12,
  complex64 = 13,      ///< two float32
  complex128 = 14,     ///< two float64
  boolean = 15,        ///< one byte, 0 or 1
  opaque = 16,         ///< one uninterpreted byte
  float8_e4m3fn = 17,  ///< 4 exponent bits, 3 mantissa bits; one NaN for each sign, no infinity
  float8_e5m2 = 18,    ///< 5 exponent bits, 2 mantissa bits, as IEEE 754 would have it
};

/// The highest number of a DataType; the lowest is 1.
inline constexpr DataType kLastDataType = DataType::float8_e5m2;

/// Bytes of one element; 0 for a value that is not a DataType.
[[nodiscard]] std::size_t size_bytes(DataType dtype) noexcept;

/// The name as written above, e.g. "float64" ("bool" for boolean).
[[nodiscard]] std::string_view to_string(DataType dtype) noexcept;

/// Extents of an array, slowest dimension first; without dimensions, a scalar. With more than kMaxDimensions it is
/// marked `too_long`, and save rejects it: an exception in the constructor would reach only this rank.
class Shape {
 public:
  static constexpr std::size_t kMaxDimensions = 8;  ///< Largest number of dimensions of a region.

  Shape() = default;
  /// Slowest dimension first.
  Shape(std::initializer_list<std::uint64_t> extents) : Shape(std::span(extents.begin(), extents.size())) {}
  explicit Shape(std::span<const std::uint64_t> extents) noexcept {  ///< Slowest dimension first.
    too_long_ = extents.size() > kMaxDimensions;
    for (std::size_t i = 0; i < extents.size() && i < kMaxDimensions; ++i) extents_[dimensions_++] = extents[i];
  }

  [[nodiscard]] std::size_t dimensions() const noexcept { return dimensions_; }  ///< How many; 0 is a scalar.
  [[nodiscard]] bool too_long() const noexcept { return too_long_; }  ///< More than kMaxDimensions were given.
  /// All extents; valid as long as this Shape.
  [[nodiscard]] std::span<const std::uint64_t> extents() const noexcept { return {extents_.data(), dimensions_}; }
  std::uint64_t operator[](std::size_t i) const noexcept { return extents_[i]; }  ///< One extent, below dimensions().
  bool operator==(const Shape&) const = default;                                  ///< Whether the extents are the same.

 private:
  std::array<std::uint64_t, kMaxDimensions> extents_{};
  std::uint8_t dimensions_ = 0;
  bool too_long_ = false;
};

/// Sets `count` to the number of elements (1 for a scalar). False if the product does not fit in 64 bits.
[[nodiscard]] bool element_count(const Shape& shape, std::uint64_t& count) noexcept;

/// Text such as "scalar", "7", "3 x 4".
[[nodiscard]] std::string to_string(const Shape& shape);

namespace detail {
template <class T>
consteval DataType data_type_of() {
  if constexpr (std::is_same_v<T, bool>) return DataType::boolean;
  else if constexpr (std::is_same_v<T, std::byte>) return DataType::opaque;
  else if constexpr (std::is_same_v<T, float>) return DataType::float32;
  else if constexpr (std::is_same_v<T, double>) return DataType::float64;
  else if constexpr (std::is_same_v<T, std::complex<float>>) return DataType::complex64;
  else if constexpr (std::is_same_v<T, std::complex<double>>) return DataType::complex128;
  else if constexpr (std::is_integral_v<T> && sizeof(T) <= 8) {
    constexpr std::uint8_t base = std::is_signed_v<T> ? 1 : 5;
    return static_cast<DataType>(base + (sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3));
  } else {
    static_assert(sizeof(T) == 0, "no kedge::DataType for this element type; give dtype and bytes yourself");
  }
}
}  // namespace detail

/// The DataType of a C++ element type, e.g. kDataType<double>.
template <class T>
inline constexpr DataType kDataType = detail::data_type_of<std::remove_cv_t<T>>();

/// A GPU stream: a cudaStream_t or CUstream. 0 is the legacy default stream; code compiled for per-thread default
/// streams uses cudaStreamPerThread. Owned by the caller; must stay valid until the call returns.
struct DeviceStream {
  void* handle = nullptr;                                ///< CUDA's stream handle.
  bool operator==(const DeviceStream&) const = default;  ///< Whether the handles are the same.
};

/// Memory to save: `shape` elements of `dtype` in row-major order at `data`. Owned by the caller.
///
/// Memory of NVIDIA GPUs, including managed memory, is detected; other vendors' GPUs are not supported. Errors for GPU
/// memory: invalid_argument (a size beyond the allocation, as far as CUDA detects it, which it does not within a pool
/// or a caching allocator's block; any GPU memory if Kedge was built without CUDA), no_space (no host memory can be
/// pinned), bad_state (during stream capture), device_failed. Passing freed memory is undefined behaviour. Finalize the
/// engine before resetting a device or destroying its context.
struct Region {
  const void* data = nullptr;  ///< Host memory or that of an NVIDIA GPU, detected automatically. Owned by the caller.
  DataType dtype = DataType::opaque;  ///< Type of one element.
  Shape shape;                        ///< In elements, row-major.
  /// For structs: the text from members() of kedge/elements.hpp. dtype is then opaque, and the last extent the size of
  /// one struct.
  std::string_view members = {};
  /// GPU memory is read after all work already enqueued on this stream; without a stream, after all work already
  /// submitted in the memory's context. Host memory is read at once, or after the stream's work if one is given.
  std::optional<DeviceStream> stream = {};
};

/// Memory to load into; dtype and shape must match what was saved.
struct MutableRegion {
  void* data = nullptr;               ///< Host memory or that of an NVIDIA GPU. Owned by the caller.
  DataType dtype = DataType::opaque;  ///< Type of one element.
  Shape shape;                        ///< In elements, row-major.
  std::string_view members = {};      ///< Struct members; see Region.
  /// Stream that load waits for (see Region); GPU memory is complete when load returns.
  std::optional<DeviceStream> stream = {};
};

/// A contiguous range as a region, one-dimensional unless a shape is given.
template <class T, std::size_t extent>
[[nodiscard]] Region region(std::span<T, extent> values) {
  return {values.data(), kDataType<T>, Shape{values.size()}};
}
template <class T>
[[nodiscard]] Region region(const T* values, Shape shape) {  ///< Elements of this shape as a region.
  return {values, kDataType<T>, shape};
}
template <class T, std::size_t extent>
[[nodiscard]] MutableRegion mutable_region(std::span<T, extent> values) {  ///< To load into.
  return {values.data(), kDataType<T>, Shape{values.size()}};
}
template <class T>
[[nodiscard]] MutableRegion mutable_region(T* values, Shape shape) {  ///< To load into.
  return {values, kDataType<T>, shape};
}

/// A block of a global array, starting at `offset`. The blocks of all ranks must cover the array exactly once;
/// otherwise commit throws `mismatch` with the first hole or overlap.
struct Shard {
  Shape global_shape;          ///< extents of the whole array
  Shape offset;                ///< where the block begins
  bool holes_allowed = false;  ///< elements may be saved by no rank; they read as zeros in the manifest's view
  bool operator==(const Shard&) const = default;  ///< Member by member.
};

/// A region that all ranks that save it save with the same bytes. commit compares them by their checksums, and throws
/// `mismatch` with the region and two ranks if they differ.
struct Replicated {
  bool operator==(const Replicated&) const = default;  ///< Always true.
};

/// How a region relates to other ranks' regions of the same name: unrelated (monostate), a shard, or replicated.
using Placement = std::variant<std::monostate, Shard, Replicated>;

/// The rank that saved a container, which may differ from the rank that loads it.
struct LogicalRank {
  std::uint32_t value = 0;                               ///< From 0.
  auto operator<=>(const LogicalRank&) const = default;  ///< By value.
};

/// 128 random bits: a run UUID or a commit id. All zero means none.
struct Id128 {
  std::array<std::uint8_t, 16> bytes{};                                     ///< Most significant first.
  auto operator<=>(const Id128&) const = default;                           ///< Order of the hex digits.
  [[nodiscard]] bool is_none() const noexcept { return *this == Id128{}; }  ///< All bits are zero.
};

/// 32 lower-case hex digits.
[[nodiscard]] std::string to_string(const Id128& id);

/// Parses 32 hex digits; nothing if `text` is anything else.
[[nodiscard]] std::optional<Id128> parse_id(std::string_view text) noexcept;

/// Name that the application gives a checkpoint: 1 to 128 of A-Z a-z 0-9 . _ -, not starting with a dot;
/// `latest` is reserved. A repeated tag is a new generation.
using Tag = std::string;

/// Identity of a commit, equal on every rank and in every file of the commit.
struct CommitHead {
  Id128 run_id;                                        ///< of the run that made it
  Id128 id;                                            ///< random; identifies all files of the commit
  Id128 parent_id;                                     ///< opened or committed before it; none if there was none
  std::uint64_t generation = 0;                        ///< orders commits, then `id` does
  std::uint64_t incarnation = 0;                       ///< of the start that made it
  std::uint32_t world_size = 0;                        ///< logical ranks
  std::int64_t time_ns = 0;                            ///< since 1970, when it was created
  Tag tag;                                             ///< its name
  bool is_output = false;                              ///< made by create_output: nothing to restart from
  bool operator==(const CommitHead&) const = default;  ///< Member by member.
};

/// Whether `a` is newer than `b`: by generation, then by id, which gives commits that two starts made concurrently the
/// same order everywhere.
[[nodiscard]] inline bool is_newer(const CommitHead& a, const CommitHead& b) noexcept {
  return std::tie(a.generation, a.id) > std::tie(b.generation, b.id);
}

/// How much a commit survives, in increasing order.
enum class Level : std::uint8_t {
  none = 0,        ///< not committed
  snapshot = 1,    ///< copied on the GPU only (device.snapshot); survives nothing
  local = 2,       ///< sealed on the node-local stores of all ranks; survives the death of processes
  protected_ = 3,  ///< parity sealed; survives the loss of a failure domain
  persistent = 4,  ///< committed on the parallel filesystem; survives the allocation
};

/// "none", "snapshot", "local", "protected", "persistent".
[[nodiscard]] std::string_view to_string(Level level) noexcept;

}  // namespace kedge
