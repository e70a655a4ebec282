// Two ranks save rows of an array, and load them with one row more on each side.
#include <cstdint>
#include <kedge/kedge.hpp>
#include <kedge/mpi.hpp>
#include <stdexcept>
#include <vector>

int main(int argc, char** argv) {
  return kedge::mpi_main(argc, argv, [] {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    kedge::Engine engine(MPI_COMM_WORLD, kedge::Options::load());
    const std::uint64_t all_rows = 8, columns = 3;
    std::vector<double> own(4 * columns);
    for (std::size_t i = 0; i < own.size(); ++i) own[i] = static_cast<double>(rank * 12) + static_cast<double>(i);
    int step = 7, entry = 100 + rank;
    engine.create("a");
    engine.save("field", kedge::region(own.data(), {4, columns}),
                kedge::Shard{{all_rows, columns}, {static_cast<std::uint64_t>(rank) * 4, 0}});
    engine.save("step", kedge::region(&step, {}), kedge::Replicated{});
    engine.save("log", kedge::region(&entry, {}));
    engine.commit();

    step = entry = 0;
    const std::uint64_t first_row = rank == 0 ? 0 : 3, rows = 5;
    std::vector<double> block(rows * columns);
    // [example]
    for (std::size_t i = 0; i < block.size(); ++i) {
      if (block[i] != static_cast<double>(first_row * columns + i)) throw std::runtime_error("a wrong element");
    }
    if (step != 7 || entry != 100) throw std::runtime_error("a wrong number");
    engine.finalize();
  });
}
