#include "cloud.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace particles {
namespace {

constexpr double kStep = 0.01;
constexpr double kTurn = 6.283185307179586;

/// A number in [0, 1) that depends on `seed` alone.
double random(std::uint64_t seed) {
  seed = (seed ^ (seed >> 30U)) * 0xbf58476d1ce4e5b9U;
  seed = (seed ^ (seed >> 27U)) * 0x94d049bb133111ebU;
  return static_cast<double>((seed ^ (seed >> 31U)) >> 11U) * 0x1p-53;
}

/// Back into the unit square at the other side.
double wrapped(double x) { return x - std::floor(x); }

/// Two swirls that come and go: it draws particles together and apart again.
void push(Particle& particle, double time) {
  const double x = kTurn * particle.position[0], y = kTurn * particle.position[1];
  const double strength = std::sin(0.7 * time);
  particle.velocity[0] = 0.98 * particle.velocity[0] + kStep * strength * std::sin(x) * std::cos(y);
  particle.velocity[1] = 0.98 * particle.velocity[1] - kStep * std::cos(x) * std::sin(y + time);
  for (int d = 0; d < 2; ++d) particle.position[d] = wrapped(particle.position[d] + kStep * particle.velocity[d] * 20);
}

std::uint64_t hash_of(const Particle& particle) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  const auto mix = [&](const auto& value) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    hash = (hash ^ bits) * 0x9e3779b97f4a7c15U;
    hash ^= hash >> 32U;
  };
  mix(particle.id);
  for (const double value : particle.position) mix(value);
  for (const double value : particle.velocity) mix(value);
  return hash;
}

}  // namespace

Cloud::Cloud(MPI_Comm comm, std::uint64_t count) : comm_(comm), total_(count) {
  MPI_Comm_rank(comm_, &rank_);
  MPI_Comm_size(comm_, &ranks_);
  for (std::uint64_t id = 0; id < count; ++id) {
    Particle particle{{random(4 * id), random(4 * id + 1)},
                      {random(4 * id + 2) - 0.5, random(4 * id + 3) - 0.5},
                      static_cast<std::int64_t>(id)};
    if (owner(particle) == rank_) mine_.push_back(particle);
  }
}

int Cloud::owner(const Particle& particle) const {
  return std::min(static_cast<int>(particle.position[0] * ranks_), ranks_ - 1);
}

void Cloud::advance(std::uint64_t step) {
  for (Particle& particle : mine_) push(particle, static_cast<double>(step) * kStep);
  migrate();
}

void Cloud::migrate() {
  std::ranges::stable_sort(mine_, {}, [&](const Particle& particle) { return owner(particle); });
  const auto ranks = static_cast<std::size_t>(ranks_);
  std::vector<int> sent(ranks), received(ranks), from(ranks), to(ranks);
  constexpr int kBytes = sizeof(Particle);
  for (const Particle& particle : mine_) sent[static_cast<std::size_t>(owner(particle))] += kBytes;
  MPI_Alltoall(sent.data(), 1, MPI_INT, received.data(), 1, MPI_INT, comm_);
  std::exclusive_scan(sent.begin(), sent.end(), from.begin(), 0);
  std::exclusive_scan(received.begin(), received.end(), to.begin(), 0);
  std::vector<Particle> arrived(static_cast<std::size_t>(to.back() + received.back()) / sizeof(Particle));
  MPI_Alltoallv(mine_.data(), sent.data(), from.data(), MPI_BYTE, arrived.data(), received.data(), to.data(), MPI_BYTE,
                comm_);
  mine_ = std::move(arrived);
}

std::uint64_t Cloud::count_before() const {
  std::uint64_t before = 0;
  const std::uint64_t here = mine_.size();
  MPI_Exscan(&here, &before, 1, MPI_UINT64_T, MPI_SUM, comm_);
  return rank_ == 0 ? 0 : before;
}

std::uint64_t Cloud::checksum() const {
  std::uint64_t here = 0, all = 0;
  for (const Particle& particle : mine_) here += hash_of(particle);
  MPI_Allreduce(&here, &all, 1, MPI_UINT64_T, MPI_SUM, comm_);
  return all;
}

}  // namespace particles
