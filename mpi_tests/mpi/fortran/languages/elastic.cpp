// Loads what any number of ranks saved in any language, and saves the next step: see other_ranks_test.py.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "kedge/kedge.hpp"
#include "kedge/mpi.hpp"

int main(int argc, char** argv) {
  return kedge::mpi_main(argc, argv, [] {
    int rank = 0, ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const auto place = static_cast<std::uint64_t>(rank), places = static_cast<std::uint64_t>(ranks);
    kedge::Engine engine(MPI_COMM_WORLD, kedge::Options::load());
    const std::uint64_t rows = 12, columns = 10;
    const std::uint64_t begin = rows * place / places, end = rows * (place + 1) / places;
    const std::uint64_t first = begin == 0 ? 0 : begin - 1;  // one row more is loaded
    int step = 0, own = 0;
    unsigned saved_by = 0;
    std::vector<double> block((end - first) * columns);
    const auto element = [&](std::uint64_t i) { return 1000.0 * step + static_cast<double>(first * columns + i); };
    if (engine.open()) {
      saved_by = engine.info().world_size;
      const kedge::LogicalRank of{static_cast<unsigned>(rank) % saved_by};
      engine.load_all({{"field", kedge::mutable_region(block.data(), {end - first, columns}),
                        kedge::Shard{{rows, columns}, {first, 0}}},
                       {"step", kedge::mutable_region(&step, {}), kedge::Replicated{}},
                       {"own", kedge::mutable_region(&own, {}), {}, of}});
      engine.close();
      bool good = own == 100 * step + static_cast<int>(of.value);
      for (std::uint64_t i = 0; i < block.size(); ++i) good = good && block[i] == element(i);
      std::printf("rank %d: step %d of %u ranks, %s\n", rank, step, saved_by, good ? "good" : "wrong");
    } else {
      std::printf("rank %d: none\n", rank);
    }
    ++step;
    own = 100 * step + rank;
    for (std::uint64_t i = 0; i < block.size(); ++i) block[i] = element(i);
    engine.create("step-" + std::to_string(step));
    engine.save("field", kedge::region(block.data() + (begin - first) * columns, {end - begin, columns}),
                kedge::Shard{{rows, columns}, {begin, 0}});
    engine.save("step", kedge::region(&step, {}), kedge::Replicated{});
    engine.save("own", kedge::region(&own, {}));
    engine.commit();
    engine.finalize();
  });
}
