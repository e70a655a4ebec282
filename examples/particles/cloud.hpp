// Particles in a flow, distributed to ranks by position: the ordinary part of the example.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kedge/elements.hpp"

namespace particles {

struct Particle {
  double position[2];  ///< in the unit square
  double velocity[2];
  std::int64_t id;
};

/// [kedge] What other HDF5 readers see of it.
inline std::string kedge_members(const Particle*) {
  return kedge::members("position", &Particle::position, "velocity", &Particle::velocity, "id", &Particle::id);
}

/// This rank's particles: those in its strip of the unit square. The flow gathers them here and there, so ranks have
/// more or fewer from step to step.
class Cloud {
 public:
  /// COLLECTIVE. `count` particles of the whole job, the same whatever the number of ranks.
  Cloud(MPI_Comm comm, std::uint64_t count);

  /// COLLECTIVE. One step in time; each particle then moves to the rank in whose strip it is.
  void advance(std::uint64_t step);

  [[nodiscard]] std::vector<Particle>& mine() noexcept { return mine_; }
  [[nodiscard]] std::uint64_t total() const noexcept { return total_; }
  /// COLLECTIVE. How many particles the ranks before this one have.
  [[nodiscard]] std::uint64_t count_before() const;
  /// COLLECTIVE. Of all particles, in whatever order and on whichever ranks they are.
  [[nodiscard]] std::uint64_t checksum() const;
  [[nodiscard]] int rank() const noexcept { return rank_; }

 private:
  [[nodiscard]] int owner(const Particle& particle) const;
  void migrate();

  MPI_Comm comm_;
  int rank_ = 0;
  int ranks_ = 1;
  std::uint64_t total_;
  std::vector<Particle> mine_;
};

}  // namespace particles
